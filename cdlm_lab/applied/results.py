"""What models say of texts: small typed objects, each with a frame for pandas and a picture for notebooks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from cdlm_lab.analysis.hidden_words import FilledWord
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets import html
from cdlm_lab.widgets.explorer.still import shade
from cdlm_lab.widgets.html import escaped

PACKAGE = Path(__file__).resolve().parents[1]
IN_SIGHT = 12  # rows of a table that a picture shows
Part = TypeVar("Part")


class TextCut(UserWarning):
    """A model did not read all of a text."""


def warn_of_cut(what: str, *, lost: int, of: int, policy: str, unit: str = "tokens") -> None:
    """Warn, if anything was lost, how much of how much was, and by which rule; at the line of the caller
    outside of the package."""
    if lost:
        files = (frame.filename for frame in inspect.stack(context=0)[1:])
        level = 2 + sum(1 for _ in takewhile(lambda file: Path(file).is_relative_to(PACKAGE), files))
        warnings.warn(f"{what}: {lost:,} of {of:,} {unit} are not read; {policy}", TextCut, stacklevel=level)


def texts_of(texts: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Texts by their names: "text 0", "text 1" if they have none. Raises ParameterError: there is none, or
    one is not text or is empty."""
    if isinstance(texts, str):
        texts = [texts]
    named = texts if isinstance(texts, Mapping) else {f"text {n}": text for n, text in enumerate(texts)}
    if not named:
        raise ParameterError("there is no text; give at least one")
    for name, text in named.items():
        if not isinstance(text, str) or not isinstance(name, str):
            raise ParameterError(f"{name} is {type(text).__name__}; names and texts must be text")
        if not text.strip():
            raise ParameterError(f"{name} is empty; write some text, or leave it out")
    return dict(named)


class Result:
    """What all results have in common."""

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """Of the frame."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The result as a table."""
        return pd.DataFrame(list(self.rows()))

    def as_json(self) -> dict[str, Any]:
        """The result as plain values, as a line of JSON has it."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(Result, Sequence, Generic[Part]):
    """A result that is a sequence of parts, each of them a row of the frame."""

    parts: tuple[Part, ...]

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The fields of each part."""
        return map(asdict, self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:
        return self.parts[number]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


@dataclass(frozen=True, kw_only=True)
class Pictured(Parts[Part]):
    """Such a result, with the picture that the notebook of its task shows of it."""

    picture: Callable[[], str] = field(repr=False, compare=False)  # HTML

    def _repr_html_(self) -> str:
        return self.picture()


# ---- of language models ----


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedText:
    """The tokens of a text that were read, and their vectors."""

    tokens: tuple[str, ...]
    offsets: np.ndarray  # int64 (tokens, 2), first character of each token, and the one after its last
    vectors: np.ndarray = field(repr=False)  # float32 (tokens, dim)


@dataclass(frozen=True, kw_only=True, eq=False)
class Encodings(Parts[EncodedText]):
    """An `EncodedText` for each text, in order."""

    def to_frame(self) -> pd.DataFrame:
        """A row for each token: text, token, start, end, and the numbers of its vector."""
        frames = []
        for number, one in enumerate(self.parts):
            head = pd.DataFrame({"text": number, "token": one.tokens})
            head[["start", "end"]] = one.offsets
            vectors = pd.DataFrame(one.vectors).rename(columns=lambda place: f"v{place}")
            frames.append(pd.concat([head, vectors], axis=1))
        return pd.concat(frames, ignore_index=True)

    def as_json(self) -> dict[str, Any]:
        """Of each text its tokens, offsets and vectors."""
        texts = [
            {"tokens": one.tokens, "offsets": one.offsets.tolist(), "vectors": one.vectors.tolist()}
            for one in self.parts
        ]
        return {"texts": texts}

    def _repr_html_(self) -> str:
        rows = [
            [str(number), escaped(html.shortened(" \u00b7 ".join(one.tokens), 120)), f"{len(one.tokens):,}"]
            for number, one in enumerate(self.parts)
        ]
        size = self.parts[0].vectors.shape[1]
        table = html.table_html(["text", "tokens", "how many"], rows, text_columns=(0, 1))
        return html.view_html("encodings", f"{html.muted(f'each token has a vector of {size}')}{table}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledBlank:
    """The likeliest words for a blank, likeliest first."""

    text: int  # number of the text, from 0
    start: int  # the character where the blank stands in it
    words: tuple[FilledWord, ...]


@dataclass(frozen=True, kw_only=True)
class Filled(Parts[FilledBlank]):
    """A `FilledBlank` for each blank, in order."""

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each word: text, start, word, probability, pieces."""
        for one in self.parts:
            for word in one.words:
                yield {"text": one.text, "start": one.start, **asdict(word)}

    def as_json(self) -> dict[str, Any]:
        """The blanks with their words."""
        return {"blanks": [asdict(one) for one in self.parts]}

    def _repr_html_(self) -> str:
        rows = []
        for one in self.parts:
            words = (f"{escaped(word.word)}&ensp;{html.share_bar(word.probability)}" for word in one.words)
            rows.append([f"{one.text}, {one.start:,}", html.bare_table([list(words)])])
        table = html.table_html(["text, character", "words"], rows, text_columns=(0, 1))
        return html.view_html("filled", table)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendedWord:
    """A word of another text, and how much it has to do with the source."""

    text: int  # number of the text, from 0
    place: int  # number of the word in it, from 0
    word: str
    score: float  # the attention between them, both ways (CDLM section 3.5)
    rank: float  # percentile rank among the words of its text, 0 to 100


@dataclass(frozen=True, kw_only=True)
class Attended(Parts[AttendedWord]):
    """The words of all other texts, in order, punctuation left out."""

    source: str
    texts: tuple[tuple[str, ...], ...] = field(repr=False)  # the words of all texts, punctuation too

    def best(self, count: int = 10) -> list[AttendedWord]:
        """Those of the highest rank; ties in the order of the text."""
        return sorted(self.parts, key=lambda one: (-one.rank, -one.score))[:count]

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each word, the highest rank first."""
        return map(asdict, self.best(len(self.parts)))

    def as_json(self) -> dict[str, Any]:
        """The source and the words, in order."""
        return {"source": self.source, "words": [asdict(one) for one in self.parts]}

    def _repr_html_(self) -> str:
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


# ---- of models for tasks ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A marked mention."""

    document: str
    start: int  # number of its first word in the document, from 0
    end: int  # of the word after its last
    text: str


@dataclass(frozen=True, kw_only=True)
class Clusters(Pictured[tuple[Mention, ...]]):
    """Mentions that mean the same, cluster by cluster; mentions that are alone are clusters too."""

    threshold: float

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each mention: cluster, document, start, end, text."""
        for number, cluster in enumerate(self.parts):
            for mention in cluster:
                yield {"cluster": number, **asdict(mention)}

    def as_json(self) -> dict[str, Any]:
        """The threshold and the clusters."""
        return {
            "threshold": self.threshold,
            "clusters": [[asdict(one) for one in each] for each in self.parts],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedWord:
    """A word with its tag, such as `B-PER`, and where it stands in the text."""

    text: str
    start: int
    end: int
    tag: str
    sentence: int  # number of its sentence, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSpan:
    """A name in the text."""

    text: str
    label: str
    start: int  # its first character
    end: int  # the one after its last
    sentence: int


@dataclass(frozen=True, kw_only=True)
class TaggedText(Pictured[NamedSpan]):
    """The names in a text, in order."""

    words: tuple[TaggedWord, ...] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The names, and all words with their tags."""
        return {"spans": list(self.rows()), "words": [asdict(one) for one in self.words]}


@dataclass(frozen=True, kw_only=True)
class Match(Result):
    """Whether two documents belong together."""

    probability: float
    system: str

    @property
    def related(self) -> bool:
        """True = more likely than not."""
        return self.probability > 0.5

    def __float__(self) -> float:
        return self.probability

    def rows(self) -> list[Mapping[str, Any]]:
        """One row: probability, related, system."""
        return [self.as_json()]

    def as_json(self) -> dict[str, Any]:
        """Probability, related, system."""
        return {"probability": self.probability, "related": self.related, "system": self.system}

    def _repr_html_(self) -> str:
        words = "belong together" if self.related else "do not belong together"
        row = [html.share_bar(self.probability), f"The documents {words}, says {escaped(self.system)}"]
        return html.view_html("match", html.bare_table([row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedSentence:
    """A sentence of the first document, and how much it has to do with the second."""

    sentence: int  # its number, from 0
    text: str
    weight: float  # on a scale of its system's own


@dataclass(frozen=True, kw_only=True)
class Aligned(Pictured[AlignedSentence]):
    """The sentences of the first document, in order."""

    probability: float  # that the documents belong together

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """A row for each sentence, that of the largest weight first; ties in the order of the text."""
        return map(asdict, sorted(self.parts, key=lambda one: -one.weight))

    def as_json(self) -> dict[str, Any]:
        """The probability and the sentences, in order."""
        return {"probability": self.probability, "sentences": [asdict(one) for one in self.parts]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingSentence:
    """A sentence of a document, and how surely it supports the answer."""

    title: str
    sentence: int  # its number in the document, from 0
    text: str
    probability: float
    supports: bool  # True = the answer is said to rest on it


@dataclass(frozen=True, kw_only=True)
class Answer(Pictured[SupportingSentence]):
    """The answer to a question, and the sentences that were read."""

    text: str
    title: str | None  # the document that it stands in; None = it stands nowhere, as yes and no
    alternatives: tuple[tuple[str, float], ...]  # (text, score) of other spans, the best first
    parts: tuple[SupportingSentence, ...] = field(repr=False)

    @property
    def supporting(self) -> tuple[SupportingSentence, ...]:
        """The sentences that the answer is said to rest on."""
        return tuple(one for one in self.parts if one.supports)

    def as_json(self) -> dict[str, Any]:
        """The answer, its document, and the sentences that support it."""
        supporting = [asdict(one) for one in self.supporting]
        return {"answer": self.text, "title": self.title, "supporting": supporting}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A candidate for an answer."""

    candidate: int  # its number as it was given, from 0
    text: str
    probability: float  # that it answers the question


@dataclass(frozen=True, kw_only=True)
class Ranking(Pictured[RankedCandidate]):
    """The candidates, the best one first."""

    def as_json(self) -> dict[str, Any]:
        """The candidates, the best one first."""
        return {"ranking": list(self.rows())}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedEvidence:
    """A sentence of evidence."""

    evidence: int  # its number, from 0
    text: str
    share: float | None  # that it has in the verdict, in [0, 1]; None = the system gives none


@dataclass(frozen=True, kw_only=True)
class Verdict(Pictured[WeighedEvidence]):
    """What becomes of a claim."""

    label: str
    probabilities: Mapping[str, float]  # of all labels

    def as_json(self) -> dict[str, Any]:
        """Label, probabilities, and the shares of the evidence."""
        shares = [one.share for one in self.parts]
        return {"label": self.label, "probabilities": dict(self.probabilities), "shares": shares}
