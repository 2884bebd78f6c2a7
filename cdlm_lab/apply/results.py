"""What a language model answers: vectors of tokens, words for blanks, attention between texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cdlm_lab.explorer.hidden_words import FilledWord
from cdlm_lab.explorer.widget.still import shade
from cdlm_lab.views import html
from cdlm_lab.views.answers import Parts
from cdlm_lab.views.html import escaped

IN_SIGHT = 12  # most table rows in a picture


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedText:
    """The tokens of a text that were read, with their vectors."""

    tokens: tuple[str, ...]
    offsets: np.ndarray  # int64 (tokens, 2), half-open character span of each token
    vectors: np.ndarray = field(repr=False)  # float32 (tokens, dim)


@dataclass(frozen=True, kw_only=True, eq=False)
class Encodings(Parts[EncodedText]):
    """One `EncodedText` for each text, in order."""

    def to_frame(self) -> pd.DataFrame:
        """One row per token: text, token, start, end, and the components of its vector."""
        frames = []
        for number, one in enumerate(self.parts):
            head = pd.DataFrame({"text": number, "token": one.tokens})
            head[["start", "end"]] = one.offsets
            vectors = pd.DataFrame(one.vectors).rename(columns=lambda place: f"v{place}")
            frames.append(pd.concat([head, vectors], axis=1))
        return pd.concat(frames, ignore_index=True)

    def as_json(self) -> dict[str, Any]:
        """Tokens, offsets and vectors of each text."""
        texts = [
            {"tokens": one.tokens, "offsets": one.offsets.tolist(), "vectors": one.vectors.tolist()}
            for one in self.parts
        ]
        return {"texts": texts}

    def picture_html(self) -> str:
        """How many tokens were read of each text."""
        rows = [
            [str(number), escaped(html.shortened(" \u00b7 ".join(one.tokens), 120)), f"{len(one.tokens):,}"]
            for number, one in enumerate(self.parts)
        ]
        size = self.parts[0].vectors.shape[1]
        table = html.table_html(["text", "tokens", "how many"], rows, text_columns=(0, 1))
        return html.view_html("encodings", f"{html.muted(f'each token has a vector of {size}')}{table}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledBlank:
    """The most probable words for a blank, best first."""

    text: int  # index of the text, from 0
    start: int  # character offset of the blank in it
    words: tuple[FilledWord, ...]


@dataclass(frozen=True, kw_only=True)
class Filled(Parts[FilledBlank]):
    """One `FilledBlank` for each blank, in order."""

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per word: text, start, word, probability, pieces."""
        for one in self.parts:
            for word in one.words:
                yield {"text": one.text, "start": one.start, **asdict(word)}

    def as_json(self) -> dict[str, Any]:
        """The blanks with their words."""
        return {"blanks": [asdict(one) for one in self.parts]}

    def picture_html(self) -> str:
        """The words for each blank, with their probabilities."""
        rows = []
        for one in self.parts:
            words = (f"{escaped(word.word)}&ensp;{html.share_bar(word.probability)}" for word in one.words)
            rows.append([f"{one.text}, {one.start:,}", html.bare_table([list(words)])])
        table = html.table_html(["text, character", "words"], rows, text_columns=(0, 1))
        return html.view_html("filled", table)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendedWord:
    """A word of another text, with its attention score and rank."""

    text: int  # index of the text, from 0
    place: int  # index of the word in it, from 0
    start: int  # of its first character in the text as given
    end: int  # behind its last one
    word: str
    score: float  # attention between source and word, in both directions (CDLM section 3.5)
    rank: float  # percentile rank among the words of its text, 0 to 100


@dataclass(frozen=True, kw_only=True)
class Attended(Parts[AttendedWord]):
    """The words of all texts but the source's, in order, without punctuation."""

    source: str
    texts: tuple[tuple[str, ...], ...] = field(repr=False)  # words of all texts, punctuation included

    def best(self, count: int = 10) -> list[AttendedWord]:
        """The words with the highest rank; ties by score, then in the order of the text."""
        return sorted(self.parts, key=lambda one: (-one.rank, -one.score))[:count]

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per word, highest rank first."""
        return map(asdict, self.best(len(self.parts)))

    def as_json(self) -> dict[str, Any]:
        """The source, and the words in order."""
        return {"source": self.source, "words": [asdict(one) for one in self.parts]}

    def picture_html(self) -> str:
        """The texts with the words shaded by rank, and a table of the best."""
        rank = {(one.text, one.place): one.rank for one in self.parts}
        columns = []
        for number, words in enumerate(self.texts):
            if all(text != number for text, _ in rank):
                continue
            pieces = []
            for place, word in enumerate(words):
                gap = html.gap_between(words[place - 1], word) if place else ""
                style = shade(rank.get((number, place), 0.0))
                pieces.append(gap + (html.span(escaped(word), style) if style else escaped(word)))
            columns.append(html.text_box("".join(pieces), "max-height:340px;overflow:auto;padding:4px 0"))
        rows = [
            [escaped(one.word), str(one.text), f"{one.score:.4f}", f"{one.rank:.1f}"]
            for one in self.best(IN_SIGHT)
        ]
        head = f"Shaded: the words that go with \u201c{escaped(self.source)}\u201d most, in the last layer"
        table = html.table_html(["word", "text", "score", "rank"], rows, text_columns=(0,))
        return html.view_html("attended", f"{html.muted(head)}{''.join(columns)}{table}")
