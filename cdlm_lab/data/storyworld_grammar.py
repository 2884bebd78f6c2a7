"""The little language in which storyworld's sentences are written, and its compiler.

    [a|b|]        one of the alternatives, which may nest and may be empty
    {mayor}       an entity: named and introduced at first, then described, called by surname or by pronoun
    {mayor.sub}   the same as the subject of a sentence (a pronoun is possible); .'s possessive;
                  .he .his .him pronouns; .name the full name; .desc the description ("the mayor")
    {dead}        a number
    {$crowns}     a plain word of the story
    {>what}       a fragment of the event type, chosen anew each time
    <fell~main>   words that name the event `main`
    {ev}          a noun for the main event, marked as its mention
    @             in an introduction: the name

A template without a final stop is a clause: it can be attributed, joined or opened with a connective.
"""

from __future__ import annotations

from dataclasses import dataclass

Node = str | tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A compiled template. `keys`: all slots it may use; `clause`: it has no final stop."""

    nodes: tuple[Node, ...]
    keys: frozenset[str]
    clause: bool


def compile_template(text: str) -> Template:
    """Parse `text`.

    Raises:
        ValueError: brackets do not match; the message shows where.
    """
    keys: set[str] = set()
    nodes, end = _sequence(text, 0, stops="", keys=keys)
    if end != len(text):
        raise ValueError(f"stray {text[end]!r} at character {end} of template {text!r}; remove it")
    return Template(nodes=nodes, keys=frozenset(keys), clause=not text.endswith((".", "?", "!", '"')))


def compile_all(texts: tuple[str, ...]) -> tuple[Template, ...]:
    """Compile each of `texts`."""
    return tuple(compile_template(text) for text in texts)


def _sequence(text: str, at: int, *, stops: str, keys: set[str]) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    literal = ""
    while at < len(text) and text[at] not in stops:
        if text[at] not in "[{<@":
            if text[at] in "]}>":
                break
            literal += text[at]
            at += 1
            continue
        if literal:
            nodes.append(literal)
            literal = ""
        node, at = _node(text, at, keys=keys)
        nodes.append(node)
    if literal:
        nodes.append(literal)
    return tuple(nodes), at


def _node(text: str, at: int, *, keys: set[str]) -> tuple[Node, int]:
    opening = text[at]
    if opening == "@":
        return ("at",), at + 1
    if opening == "{":
        end = _closing(text, at, "}")
        return _slot(text[at + 1 : end], keys=keys), end + 1
    if opening == "<":
        inner, end = _sequence(text, at + 1, stops="~", keys=keys)
        close = _closing(text, end, ">")
        return ("mark", inner, text[end + 1 : close]), close + 1
    options = []
    while True:
        inner, end = _sequence(text, at + 1, stops="|]", keys=keys)
        options.append(inner)
        if end >= len(text):
            raise ValueError(f"'[' is never closed in template {text!r}; add ']'")
        at = end
        if text[end] == "]":
            return ("alt", tuple(options)), end + 1


def _closing(text: str, at: int, mark: str) -> int:
    end = text.find(mark, at)
    if end < 0:
        raise ValueError(f"no {mark!r} after character {at} of template {text!r}; add it")
    return end


def _slot(body: str, *, keys: set[str]) -> Node:
    if body.startswith("$"):
        return ("word", body[1:])
    if body.startswith(">"):
        return ("macro", body[1:])
    if body == "ev":
        return ("event",)
    key, _, form = body.partition(".")
    keys.add(key)
    return ("ref", key, form)
