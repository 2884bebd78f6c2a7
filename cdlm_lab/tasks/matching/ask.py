"""Whether two of one's own documents belong together, and by which sentences: what `load` returns for a run
of notebook 04 or 05."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import inf, nan
from typing import Any, ClassVar, NamedTuple

from cdlm_lab.data.native import pair_document
from cdlm_lab.data.records import DocumentPair
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.encoders.source_attention import CutAsGiven, apart
from cdlm_lab.parameters import ParameterError, settings_of
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, score_on_dev, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.matching import alignment as sentence_alignment
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.matching.alignment import longformer_alignments
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import Matcher, MatchPredictions
from cdlm_lab.tasks.matching.view import column_of, pair_html
from cdlm_lab.training.trained import on_this_machine, trained_parameters
from cdlm_lab.views import html
from cdlm_lab.views.answers import PATIENCE, Pictured, Result, asked, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words, escaped


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
    start: int  # of its first character in the document as given
    end: int  # behind its last one
    text: str  # with spaces for line breaks
    weight: float | None  # comparable only within one system; None = the model has not read the sentence


@dataclass(frozen=True, kw_only=True)
class Aligned(Pictured[AlignedSentence]):
    """The sentences of the first document with their weights, in order."""

    probability: float  # probability that the documents belong together

    def _repr_html_(self) -> str:
        return f"{html.warning(self.foreign)}{self.picture_html()}"  # which itself says what was not read

    def heading(self) -> str:
        """The probability that the documents belong together."""
        return f"related: {self.probability:.1%}"

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per sentence, largest weight first; ties in the order of the text, and last what was not
        read, with NaN for its weight."""
        ordered = sorted(self.parts, key=lambda one: inf if one.weight is None else -one.weight)
        return ({**asdict(one), "weight": nan if one.weight is None else one.weight} for one in ordered)

    def as_json(self) -> dict[str, Any]:
        """The probability, and the sentences in order."""
        return {"probability": self.probability, "sentences": [asdict(one) for one in self.parts]}


@dataclass(frozen=True, kw_only=True)
class MatchingModel:
    """Predicts whether one document cites, copies or reports another's content, and by which sentences."""

    name: str
    system: str
    run: MatchingRun = field(repr=False)
    matcher: Matcher = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    # In a box before a person types: two reports of one event of storyworld's test set, which all shipped
    # systems call related.
    example: ClassVar[Mapping[str, Any]] = {
        "first": """\
Bridge inspectors had warned

At least 74 people were killed and 381 injured when part of the Zudodan Bridge broke off near Busajash on \
Thursday. At that point the bridge stands 64 metres above the Merdihur river. The wrecks of 77 vehicles lay \
in the river. The bridge, opened in 1997, was crossed by 57,922 vehicles a day. The 53-year-old police \
chief, Dzugaya Taidaymabad, begged drivers to stay away.""",
        "second": """\
Operator of fallen bridge faces claims

Rescuers searched the Merdihur river on Thursday after the Zudodan Bridge collapsed near Busajash and 77 \
vehicles fell into the gorge. The roadway fell 64 metres into the Merdihur river. Dzugaya Taidaymabad, 53, \
the police chief, said 74 people had been killed. The bridge dates from 1997; 57,922 vehicles a day used it. \
"We are looking for the living," said the police chief.""",
    }

    def score(
        self, first: str | Sequence[str], second: str | Sequence[str], *, cut: CutAsGiven = None
    ) -> Any:
        """The probability that two documents belong together: a `Match`; for two lists `Answers`. Long
        documents are truncated. `cut`: `"documents"` = neither attends to the other, and only the first
        token of the sequence reads both; see `source_attention.apart`."""

        def scored(texts: Sequence[OwnPair]) -> list[Match]:
            with apart(self.matcher.model, self.matcher.tokenizer, cut):
                return self._score(texts)

        return asked(OwnPair.of, scored, first=first, second=second)

    def align(self, first: str | Sequence[str], second: str | Sequence[str]) -> Any:
        """The weight of each sentence of the first document for its relation to the second: an `Aligned`; for
        two lists `Answers`."""
        return asked(OwnPair.of, self._align, first=first, second=second)

    def _score(self, texts: Sequence[OwnPair]) -> list[Match]:
        _, predictions = self._predicted(texts)
        system, probabilities = self.matcher.system.label, predictions.probabilities.tolist()
        each = zip(probabilities, map(self._notes, texts), strict=True)
        return [Match(probability=share, system=system, **notes) for share, notes in each]

    def _align(self, texts: Sequence[OwnPair]) -> list[Aligned]:
        pairs, predictions = self._predicted(texts)
        aligned = []
        for number, (one, pair) in enumerate(zip(texts, pairs, strict=True)):
            alignments = {by: every[number] for by, every in predictions.alignments.items()}
            if self.matcher.system.encoder == "longformer":
                alignments = longformer_alignments(self.matcher, pair)
            label, probability = self.matcher.system.label, float(predictions.probabilities[number])
            column = column_of(label, alignments, one.pair, probability)
            column = replace(column, others_read=self._sentences_read(one.pair)[1])
            first = one.pair.first
            each = enumerate(zip(first.sentences, first.offsets, column.weights, strict=True))
            parts = (
                AlignedSentence(sentence=n, start=start, end=end, text=text, weight=weight)
                for n, (text, (start, end), weight) in each
            )
            form = {"picture": partial(pair_html, one.pair, [column]), **self._notes(one)}
            aligned.append(Aligned(parts=tuple(parts), probability=probability, **form))
        return aligned

    def _predicted(self, texts: Sequence[OwnPair]) -> tuple[list[DocumentPair], MatchPredictions]:
        """The pairs under ids of their own, by which documents are encoded once, and their predictions."""
        pairs = [
            replace(
                pair,
                first=replace(pair.first, id=f"{number}/first"),
                second=replace(pair.second, id=f"{number}/second"),
            )
            for number, (_, pair) in enumerate(texts)
        ]
        with bars_after(PATIENCE):
            return pairs, self.run.predict_pairs(self.matcher, pairs)

    def _notes(self, one: OwnPair) -> dict[str, str]:
        """What of the two texts is not read, and what is foreign, each as a line, after warning of it."""
        total = len(one.pair.first.sentences) + len(one.pair.second.sentences)
        if self.matcher.system.encoder == "longformer":
            policy = f"{self.name} reads {self.run.settings.max_length:,} tokens, of both an equal share"
        else:
            policy = f"{self.name} reads the first {self.run.settings.most_sentences} of each document"
        lost = total - sum(self._sentences_read(one.pair))
        cut = cut_in_words("documents", lost=lost, of=total, policy=policy, unit="sentences")
        return {"cut": warn_of_cut(cut), "foreign": foreign_to(self.profile, self.name, one.texts, real=[])}

    def _sentences_read(self, pair: DocumentPair) -> tuple[int, int]:
        """The number of sentences of both documents, always the first ones, that the system reads."""
        counts = len(pair.first.sentences), len(pair.second.sentences)
        if self.matcher.system.encoder == "longformer":
            lost = self.matcher.examples([pair]).describe(0).lost_sentences
            return counts[0] - lost[0], counts[1] - lost[1]
        most = self.run.settings.most_sentences
        return min(counts[0], most), min(counts[1], most)


class OwnPair(NamedTuple):
    """Two texts as they were given, and as a pair of documents."""

    texts: tuple[str, str]
    pair: DocumentPair

    @classmethod
    def of(cls, first: str, second: str) -> OwnPair:
        """Split two texts into sentences. Raises ParameterError for an empty one."""
        texts = tuple(texts_of([first, second]).values())
        named = zip(("first", "second"), texts, strict=True)
        documents = {name: pair_document(f"{name} document", text) for name, text in named}
        return cls(texts, DocumentPair(id="own", **documents, related=False, aligned=None, cluster="own"))


def load_matching(name: str, run: str, system: str) -> MatchingModel:
    """A matcher of a run of notebook 04."""
    settings = settings_of_run(document_matching.Settings, run)
    return _matcher(name, settings, system)


def load_alignment(name: str, run: str, system: str) -> MatchingModel:
    """A matcher with which a run of notebook 05 aligns."""
    parameters = on_this_machine(trained_parameters(run)) | {"run_folder": run}
    given = settings_of(sentence_alignment.Settings, parameters)
    settings = sentence_alignment.matched_settings(given)
    if settings.trained:
        settings = replace(settings, run_folder="")
    return _matcher(name, settings, system)


def _matcher(name: str, settings: document_matching.Settings, system: str) -> MatchingModel:
    learned = [one for one in settings.chosen if one.is_model]  # a threshold is fitted to a corpus
    if not learned:
        raise ParameterError(f"{name}: none of its systems is a model; a threshold is fitted to a corpus")
    run = MatchingRun(settings=settings, pairs={})
    chosen = system_named(system, sorted(learned, key=partial(score_on_dev, run)))
    training = Training(chosen, 0)
    form = {"run": run, "matcher": run.load(training), "profile": profile_of(run, training)}
    return MatchingModel(name=name, system=chosen.name, **form)
