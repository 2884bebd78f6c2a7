"""Which pairs of mentions a system got wrong, the worst first: those it merged, and those it split.

Clusters of ten mentions each, merged by mistake, are a hundred wrong pairs that say the same; so of the pairs
between the same two gold clusters (of one, if it was split) the worst is shown and the others are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.markup import count_in_words, table_html
from cdlm_lab.widgets.shown_mention import ShownMention, gold_chip, gold_colours, muted, sentence_html
from cdlm_lab.widgets.theme import GLOBAL

__all__ = ["CoreferenceErrors", "PairError", "ShownMention", "errors_html"]

_TRACK = "rgba(128,128,128,0.28)"
_STYLE = """
div.cdlm-errors{font-size:13.5px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:1180px}
div.cdlm-errors table.cdlm-table tr{background:none!important}
div.cdlm-errors table.cdlm-table td:nth-child(n+2){width:46%}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """Two mentions and the probability, in [0, 1], that the scorer gives them to corefer."""

    first: ShownMention
    second: ShownMention
    score: float

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise ValueError(f"the score of a pair is {self.score}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceErrors:
    """The wrong pairs of a system, in any order.

    Attributes:
        merged: pairs put into one cluster that do not corefer.
        split: pairs that corefer, put into different clusters.
        threshold: of the clustering; a pair on the right side of it was misled by other pairs, and the page
            says so. None = not known.
    """

    merged: tuple[PairError, ...]
    split: tuple[PairError, ...]
    threshold: float | None = None


def errors_html(errors: CoreferenceErrors, *, limit: int = 20) -> str:
    """Two tables of pairs, each with its score and both mentions in their sentences.

    Merged pairs stand in order of falling score, split ones in order of rising score: the surest mistakes of
    the scorer first.

    Args:
        limit: rows of each table.

    Raises:
        ValueError: `limit` below 1.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; show at least one pair")
    merged = sorted(errors.merged, key=lambda pair: -pair.score)
    split = sorted(errors.split, key=lambda pair: pair.score)
    at = errors.threshold
    joined_by_others = [pair for pair in merged if at is not None and pair.score <= at]
    parted_by_others = [pair for pair in split if at is not None and pair.score > at]
    notes = {id(pair): "joined by way of others" for pair in joined_by_others}
    notes |= {id(pair): "kept apart by others" for pair in parted_by_others}
    sections = (
        ("Merged", "in one cluster, but they do not corefer; the highest score first", merged),
        ("Split", "in two clusters, but they corefer; the lowest score first", split),
    )
    body = "".join(_section(*section, notes=notes, limit=limit) for section in sections)
    return f'<div class="cdlm-errors"><style>{_STYLE}</style>{body}</div>'


def _section(
    name: str, meaning: str, pairs: Sequence[PairError], *, notes: Mapping[int, str], limit: int
) -> str:
    count = f"{count_in_words(len(pairs))} pair{'' if len(pairs) == 1 else 's'}"
    head = (
        f'<div style="font-size:16px;font-weight:600;margin-top:14px">{name}: {count}</div>{muted(meaning)}'
    )
    if not pairs:
        return head
    rows = _worst_of_each(pairs)
    shown = rows[:limit]
    colours = gold_colours((pair.first.gold, pair.second.gold) for pair, _ in shown)
    cells = [
        (
            _score(pair.score, notes.get(id(pair), ""), alike),
            _mention(pair.first, colours),
            _mention(pair.second, colours),
        )
        for pair, alike in shown
    ]
    table = table_html(("score", "one mention", "the other"), cells, text_columns=(0, 1, 2))
    left = sum(1 + alike for _, alike in rows[limit:])
    rest = f"\u2026 and {count_in_words(left)} more pair{'' if left == 1 else 's'}, not shown" if left else ""
    return head + table + (muted(rest) if rest else "")


def _worst_of_each(pairs: Sequence[PairError]) -> list[tuple[PairError, int]]:
    """The first pair of each two gold clusters, and how many more there are; pairs without gold stay."""
    rows: dict[object, list[PairError]] = {}
    for place, pair in enumerate(pairs):
        golds = frozenset((pair.first.gold, pair.second.gold))
        rows.setdefault(place if None in golds else golds, []).append(pair)
    return [(alike[0], len(alike) - 1) for alike in rows.values()]


def _score(score: float, note: str, alike: int) -> str:
    bar = f'<div style="width:{100 * score:.0f}%;height:4px;border-radius:2px;background:{GLOBAL}"></div>'
    small = [note] if note else []
    if alike:
        small.append(f"and {count_in_words(alike)} more pair{'' if alike == 1 else 's'} like this")
    return (
        f'<div style="width:112px"><span style="font-weight:600">{score:.3f}</span>'
        f'<div style="width:72px;border-radius:2px;background:{_TRACK};margin:2px 0 3px">{bar}</div>'
        f"{''.join(muted(text, size=11.5) for text in small)}</div>"
    )


def _mention(mention: ShownMention, colours: Mapping[str | None, str]) -> str:
    colour = colours[mention.gold]
    return f"<div>{gold_chip(mention.gold, colour)}</div>{sentence_html(mention, colour)}"
