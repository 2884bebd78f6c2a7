"""Mentions that a program finds in plain texts: what it must return, and how that is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from operator import index
from typing import Any

from cdlm_lab.data.records import Kind, Span
from cdlm_lab.parameters import ParameterError

# From a text to its mentions, (start, end) or (start, end, label) in characters. Mentions labelled "event"
# are events, those with another label entities, those without a label of whatever kind is asked for.
Finder = Callable[[str], Iterable[Any]]
_BLANK_LINE = re.compile(r"\n\s*\n")


def found_spans(finder: Finder, text: str, *, kind: Kind | None, source: str) -> list[Span]:
    """The spans of the mentions of a kind (None = of both) in a text, in order, without white space around
    them. Raises ParameterError, about `source`, if the finder does not return mentions of this text."""
    found = finder(text)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise _fault(source, f"it returned {type(found).__name__}")
    spans: list[Span] = []
    for one in found:
        try:
            start, end, *label = one
            start, end = index(start), index(end)
        except (TypeError, ValueError):
            raise _fault(source, f"it returned {one!r}"[:100]) from None
        if len(label) > 1 or not all(isinstance(name, str) for name in label):
            raise _fault(source, f"it returned {one!r}"[:100])
        if not 0 <= start < end <= len(text):
            raise _fault(source, f"({start}, {end}) is no span of {len(text):,} characters")
        words = text[start:end].strip()
        if not words or _BLANK_LINE.search(words):
            raise _fault(source, f"({start}, {end}) has {'a blank line in it' if words else 'no words'}")
        if not label or kind is None or (label[0] == "event") == (kind == "event"):
            start += len(text[start:end]) - len(text[start:end].lstrip())
            spans.append((start, start + len(words)))
    spans.sort()
    if twice := next((one for one, other in pairwise(spans) if one == other), None):
        raise _fault(source, f"{text[slice(*twice)][:40]!r} at {twice} is there twice")
    return spans


def _fault(source: str, what: str) -> ParameterError:
    remedy = "it must return (start, end) or (start, end, label) of each mention, in characters of the text"
    return ParameterError(f"mentions of {source}: {what}; {remedy}")
