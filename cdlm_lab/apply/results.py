"""Results of models: small typed objects, each with a pandas data frame and a picture for notebooks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from math import inf, nan
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.explorer.hidden_words import FilledWord
from cdlm_lab.explorer.widget.still import shade
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views import html
from cdlm_lab.views.html import escaped

PACKAGE = Path(__file__).resolve().parents[1]
IN_SIGHT = 12  # most table rows in a picture
Part = TypeVar("Part")


class TextCut(UserWarning):
    """Warning that a model did not read all of a text."""


class ForeignText(UserWarning):
    """Warning that a text is unlike all that a model was trained on, so that its answer means little."""


def warn_of_cut(cut: str) -> str:
    """Warn of what is not read, if anything, and return it; the warning points at the caller's line outside
    the package."""
    if cut:
        _warn(cut, TextCut)
    return cut


def foreign_to(profile: TextProfile | None, name: str, texts: Iterable[str]) -> str:
    """Warn, in one line, if texts that are read together are foreign to the model of that name, and return
    the line, which belongs to the result; "" if they are not, or the model has no profile."""
    message = profile.foreign(texts) if profile else ""
    if message:
        _warn(f"{name}: {message}", ForeignText)
    return message


def _warn(message: str, category: type[Warning]) -> None:
    files = (frame.filename for frame in inspect.stack(context=0)[1:])
    level = 2 + sum(1 for _ in takewhile(lambda file: Path(file).is_relative_to(PACKAGE), files))
    warnings.warn(message, category, stacklevel=level)


def texts_of(texts: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Texts by name; unnamed ones are called "text 0", "text 1". Raises ParameterError if there is none, or
    one is not a string or is empty."""
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


def list_of(texts: Sequence[str], *, name: str) -> list[str]:
    """Several texts as a list. Raises ParameterError for one text, whose letters would be taken for texts."""
    if isinstance(texts, str | bytes | Mapping):
        raise ParameterError(f"{name} is one {type(texts).__name__}; give a list of texts")
    return list(texts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Base class of all results."""

    foreign: str = ""  # a line that says so if the text is foreign to the model, as `ForeignText` does
    cut: str = ""  # a line on what of the text the model has not read, as `TextCut` has it

    def picture_html(self) -> str:
        """The picture of the result for notebooks, without the lines above it."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return f"{html.warning(self.foreign)}{html.warning(self.cut)}{self.picture_html()}"

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the data frame."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The result as a data frame."""
        return pd.DataFrame(list(self.rows()))

    def as_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can hold."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(Result, Sequence, Generic[Part]):
    """A result that is a sequence of parts, each one row of the data frame."""

    parts: tuple[Part, ...]

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The fields of each part, as one row."""
        return map(asdict, self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:
        return self.parts[number]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


@dataclass(frozen=True, kw_only=True)
class Pictured(Parts[Part]):
    """A sequence result with the picture that the notebook of its task shows."""

    picture: Callable[[], str] = field(repr=False, compare=False)  # HTML

    def picture_html(self) -> str:
        """The picture that the notebook of the task shows."""
        return self.picture()


# ---- of language models ----


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


# ---- of models for tasks ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A marked mention, as a half-open span of words."""

    document: str
    start: int  # index of its first word in the document, from 0
    end: int  # index after its last word
    text: str


@dataclass(frozen=True, kw_only=True)
class Clusters(Pictured[tuple[Mention, ...]]):
    """Clusters of coreferring mentions, singletons included."""

    threshold: float

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per mention: cluster, document, start, end, text."""
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
    """A word with its tag, such as `B-PER`, and its half-open character span in the text."""

    text: str
    start: int
    end: int
    tag: str
    sentence: int  # index of its sentence, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSpan:
    """A named entity in the text."""

    text: str
    label: str
    start: int  # offset of its first character
    end: int  # offset after its last character
    sentence: int


@dataclass(frozen=True, kw_only=True)
class TaggedText(Pictured[NamedSpan]):
    """The named entities in a text, in order."""

    words: tuple[TaggedWord, ...] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The named entities, and all words with their tags."""
        return {"spans": list(self.rows()), "words": [asdict(one) for one in self.words]}


@dataclass(frozen=True, kw_only=True)
class Match(Result):
    """The prediction whether two documents belong together."""

    probability: float
    system: str

    @property
    def related(self) -> bool:
        """True if the probability is above 0.5."""
        return self.probability > 0.5

    def __float__(self) -> float:
        return self.probability

    def rows(self) -> list[Mapping[str, Any]]:
        """One row: probability, related, system."""
        return [self.as_json()]

    def as_json(self) -> dict[str, Any]:
        """Probability, related, system."""
        return {"probability": self.probability, "related": self.related, "system": self.system}

    def picture_html(self) -> str:
        """The probability, and what it says."""
        words = "belong together" if self.related else "do not belong together"
        row = [html.share_bar(self.probability), f"The documents {words}, says {escaped(self.system)}"]
        return html.view_html("match", html.bare_table([row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedSentence:
    """A sentence of the first document, and its weight for the relation to the second."""

    sentence: int  # its index, from 0
    text: str
    weight: float | None  # comparable only within one system; None = the model has not read the sentence


@dataclass(frozen=True, kw_only=True)
class Aligned(Pictured[AlignedSentence]):
    """The sentences of the first document with their weights, in order."""

    probability: float  # probability that the documents belong together

    def _repr_html_(self) -> str:
        return f"{html.warning(self.foreign)}{self.picture_html()}"  # which itself says what was not read

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per sentence, largest weight first; ties in the order of the text, and last what was not
        read, with NaN for its weight."""
        ordered = sorted(self.parts, key=lambda one: inf if one.weight is None else -one.weight)
        return ({**asdict(one), "weight": nan if one.weight is None else one.weight} for one in ordered)

    def as_json(self) -> dict[str, Any]:
        """The probability, and the sentences in order."""
        return {"probability": self.probability, "sentences": [asdict(one) for one in self.parts]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingSentence:
    """A sentence of a document, and the probability that it supports the answer."""

    title: str
    sentence: int  # its index in the document, from 0
    text: str
    probability: float
    supports: bool  # True = predicted to support the answer


@dataclass(frozen=True, kw_only=True)
class Answer(Pictured[SupportingSentence]):
    """The answer to a question, and all sentences that were read."""

    text: str
    probability: float | None  # of the text, as the model has it: of its type, its first and its last token
    title: str | None  # the document that contains it; None for yes and no, which are in none
    alternatives: tuple[tuple[str, float], ...]  # (text, score) of the best spans, best first
    parts: tuple[SupportingSentence, ...] = field(repr=False)

    @property
    def supporting(self) -> tuple[SupportingSentence, ...]:
        """The sentences predicted to support the answer."""
        return tuple(one for one in self.parts if one.supports)

    def __str__(self) -> str:
        share = "" if self.probability is None else f" ({self.probability:.1%})"
        support = (f"{one.title}: {one.text} ({one.probability:.1%})" for one in self.supporting)
        return "\n".join(filter(None, (self.foreign, self.cut, f"{self.text}{share}", *support)))

    def as_json(self) -> dict[str, Any]:
        """The answer with its probability, its document, and the supporting sentences with theirs."""
        supporting = [asdict(one) for one in self.supporting]
        answer = {"answer": self.text, "probability": self.probability, "title": self.title}
        return answer | {"supporting": supporting}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A candidate answer."""

    candidate: int  # its index in the given order, from 0
    text: str
    probability: float  # probability that it answers the question
    read: int  # how many of its characters, the first ones, the model has read


@dataclass(frozen=True, kw_only=True)
class Ranking(Pictured[RankedCandidate]):
    """The candidates, best first."""

    def as_json(self) -> dict[str, Any]:
        """The candidates, best first."""
        return {"ranking": list(self.rows())}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedEvidence:
    """A sentence of evidence, with its share in the verdict."""

    evidence: int  # its index, from 0
    text: str
    share: float | None  # its share in the verdict, in [0, 1]; None = not read, or the system has none


@dataclass(frozen=True, kw_only=True)
class Verdict(Pictured[WeighedEvidence]):
    """The predicted label of a claim."""

    label: str
    probabilities: Mapping[str, float]  # label -> probability

    def as_json(self) -> dict[str, Any]:
        """The label, all probabilities, and the shares of the evidence."""
        shares = [one.share for one in self.parts]
        return {"label": self.label, "probabilities": dict(self.probabilities), "shares": shares}
