"""Mentions as people read them: marked in their sentence, in the colour of their gold cluster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.markup import MUTED, escaped
from cdlm_lab.widgets.theme import OTHER_COLOURS, VARIANT_COLOURS

HUES = (*list(VARIANT_COLOURS.values())[:0:-1], *OTHER_COLOURS)  # all but grey, which means: gold not known
UNKNOWN = "#8c8c8c"
LONGEST_CONTEXT = 160  # characters on either side of a mention
LONGEST_NAME = 28  # characters of the name of a gold cluster
NAME_START = 7  # of which so many from its start: names of one corpus begin alike
LONGEST_TEXT = 300  # characters of a mention
_LONGEST_WORD = 20  # characters that may be given up so as not to cut a word in two

_CLOSING = re.compile(r"\s+([,.;:!?%)\]}\u2019\u201d]|'s\b|n't\b|'')")
_OPENING = re.compile(r"([(\[{$\u2018\u201c]|``)\s+")
_ENDS_OPEN = re.compile(r"([(\[{$\u2018\u201c]|``)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMention:
    """A mention in its sentence, as texts (untrusted).

    Attributes:
        text: the words of the mention.
        before, after: the rest of its sentence.
        document: where it stands.
        gold: name of its gold cluster; None = not known, as in documents of one's own.
    """

    text: str
    before: str = ""
    after: str = ""
    document: str = ""
    gold: str | None = None

    @classmethod
    def from_tokens(
        cls, tokens: Sequence[str], span: tuple[int, int], *, document: str = "", gold: str | None = None
    ) -> ShownMention:
        """From the tokens of a sentence and the half-open `span` of the mention in them.

        Raises:
            ValueError: the span is empty or lies outside the sentence.
        """
        start, end = span
        if not 0 <= start < end <= len(tokens):
            raise ValueError(f"{span} is no span of the {len(tokens)} tokens of the sentence")
        parts = (tokens[:start], tokens[start:end], tokens[end:])
        before, text, after = (joined(part) for part in parts)
        return cls(text=text, before=before, after=after, document=document, gold=gold)

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return joined([part for part in (self.before, self.text, self.after) if part])


def joined(tokens: Iterable[str]) -> str:
    """Tokens with the spaces that print has: `He did n't , she said .` -> `He didn't, she said.`"""
    text = " ".join(tokens)
    return _OPENING.sub(r"\1", _CLOSING.sub(r"\1", text))


def shortened(text: str, longest: int, *, at_start: bool = False) -> str:
    """At most `longest` characters of a text, an ellipsis where it was cut (at its start or its end).

    It is cut between words, unless the next space is far.
    """
    if len(text) <= longest:
        return text
    if at_start:
        kept = text[len(text) - longest + 1 :]
        space = kept.find(" ", 0, _LONGEST_WORD)
        return f"\u2026{kept[space:] if space >= 0 else kept}"
    kept = text[: longest - 1]
    space = kept.rfind(" ", max(1, len(kept) - _LONGEST_WORD))
    return f"{kept[: space + 1] if space >= 0 else kept}\u2026"


def sentence_html(mention: ShownMention, colour: str) -> str:
    """The sentence, cut to some words around the mention, which is marked; then its document, muted."""
    before = escaped(shortened(mention.before, LONGEST_CONTEXT, at_start=True))
    after = escaped(shortened(mention.after, LONGEST_CONTEXT))
    mark = f"background:{colour}42;color:inherit;border-radius:3px;padding:1px 3px;font-weight:600"
    text = f'<mark style="{mark}">{escaped(shortened(mention.text, LONGEST_TEXT))}</mark>'
    sentence = f"{before}{_gap(mention.before, mention.text)}{text}{_gap(mention.text, mention.after)}{after}"
    where = f'&ensp;<span style="font-size:11.5px;{MUTED}"><bdi>{escaped(mention.document)}</bdi></span>'
    return f'<bdi style="overflow-wrap:anywhere">{sentence}</bdi>{where if mention.document else ""}'


def _gap(left: str, right: str) -> str:
    """What print has between two parts of a sentence: a space or nothing."""
    apart = left and right and not _CLOSING.match(f" {right}") and not _ENDS_OPEN.search(left)
    return " " if apart else ""


def gold_chip(gold: str | None, colour: str, note: str = "") -> str:
    """A dot in the colour of a gold cluster and its name, cut if it is long; `note` (HTML) follows, muted."""
    dot = f'<span style="color:{colour}">\u25cf</span>'
    name = "gold not known" if gold is None else f"<bdi>{escaped(_short_name(gold))}</bdi>"
    title = f' title="{escaped(gold)}"' if gold is not None and len(gold) > LONGEST_NAME else ""
    style = "display:inline-block;margin:0 12px 2px 0;font-size:12px"
    rest = f' <span style="{MUTED}">{note}</span>' if note else ""
    return f'<span style="{style}"{title}>{dot} {name}{rest}</span>'


def _short_name(name: str) -> str:
    """A long name without its middle."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:NAME_START]}\u2026{name[NAME_START + 1 - LONGEST_NAME :]}"


def gold_colours(together: Iterable[Iterable[str | None]]) -> dict[str | None, str]:
    """A colour for each gold cluster; grey for None.

    There are more gold clusters than colours that people tell apart, so colours are used again, but if
    possible not twice among the names of one item of `together`, which are seen side by side.
    """
    groups = [list(dict.fromkeys(name for name in names if name is not None)) for names in together]
    beside: dict[str, set[str]] = {}
    for names in groups:
        for name in names:
            beside.setdefault(name, set()).update(names)
    colours: dict[str | None, str] = {None: UNKNOWN}
    used: Counter[str] = Counter()
    for name, neighbours in beside.items():
        taken = {colours[other] for other in neighbours if other in colours}
        free = [hue for hue in HUES if hue not in taken] or list(HUES)
        colours[name] = min(free, key=used.__getitem__)
        used[colours[name]] += 1
    return colours


def muted(text: str, *, size: float = 12) -> str:
    """A line of small print; `text` is HTML already."""
    return f'<div style="font-size:{size}px;{MUTED}">{text}</div>'
