"""Two documents of the reader's own, as the systems of notebook 05 align them: for its boxes and `load`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import inf, nan
from typing import Any

from cdlm_lab.data.files import read_text
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.data.words import split_sentences
from cdlm_lab.parameters import ParameterError, settings_of
from cdlm_lab.progress import bars_after
from cdlm_lab.runs import runs
from cdlm_lab.runs.opened import profile_of, score_on_dev, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.matching import alignment as sentence_alignment
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.matching.alignment import AlignmentRun, Settings, longformer_alignments
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import Matcher
from cdlm_lab.tasks.matching.view import AlignedColumn, column_of, pair_html
from cdlm_lab.training.trained import trained_parameters
from cdlm_lab.views import html
from cdlm_lab.views.answers import PATIENCE, Pictured, Result, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.ask import AskBox, ask_box
from cdlm_lab.views.html import cut_in_words, escaped, warning

# The text in the input boxes before the reader types.
EXAMPLE = (  # two reports of one event of storyworld's test set, which all shipped systems call related
    """\
Bridge inspectors had warned

At least 74 people were killed and 381 injured when part of the Zudodan Bridge broke off near Busajash on \
Thursday. At that point the bridge stands 64 metres above the Merdihur river. The wrecks of 77 vehicles lay \
in the river. The bridge, opened in 1997, was crossed by 57,922 vehicles a day. The 53-year-old police \
chief, Dzugaya Taidaymabad, begged drivers to stay away.""",
    """\
Operator of fallen bridge faces claims

Rescuers searched the Merdihur river on Thursday after the Zudodan Bridge collapsed near Busajash and 77 \
vehicles fell into the gorge. The roadway fell 64 metres into the Merdihur river. Dzugaya Taidaymabad, 53, \
the police chief, said 74 people had been killed. The bridge dates from 1997; 57,922 vehicles a day used it. \
"We are looking for the living," said the police chief.""",
)


def own_texts(given: Settings) -> dict[str, str]:
    """The contents of the two files, or the built-in example. Raises DataError if one cannot be read."""
    files = (given.first_document, given.second_document)
    texts = map(read_text, files) if given.first_document else EXAMPLE
    return dict(zip(("first_document", "second_document"), texts, strict=True))


def own_pair_box(run: AlignmentRun) -> AskBox:
    """A box for two documents of the reader's own, and how the systems align them."""
    return ask_box(partial(compare_own, run), own_texts(run.settings), button="Compare")


def compare_own(run: AlignmentRun, first_document: str, second_document: str) -> str:
    """HTML: whether each system with seed 0 predicts that two texts belong together, and how it weighs the
    sentences; also written to `own_pair.html`. Raises ParameterError for a text without sentences."""
    pair, columns = own_pair(first_document, second_document), []
    for system in run.matching.systems:
        loaded = run.matching.loaded(system)
        columns.append(compared_own(run.matching, loaded, pair, system.label))
    foreign = run.matching.foreign([first_document, second_document])
    html = f"{warning(foreign)}{pair_html(pair, columns)}"
    runs.write_page(run.folder / "own_pair.html", f"<!doctype html><meta charset=utf-8>{html}")
    return html


def own_pair(first: str, second: str) -> DocumentPair:
    """Two texts as a pair. Raises ParameterError for a text without sentences."""
    form = {"first": _own("first document", first), "second": _own("second document", second)}
    return DocumentPair(id="own", **form, related=False, aligned=None, cluster="own")


def compared_own(matching: MatchingRun, loaded: Any, pair: DocumentPair, label: str) -> AlignedColumn:
    """Whether a loaded system says that a pair belongs together, and its weights of the first's sentences."""
    predictions = matching.predict_pairs(loaded, [pair])
    alignments = {by: every[0] for by, every in predictions.alignments.items()}
    if isinstance(loaded, Matcher) and loaded.system.encoder == "longformer":
        alignments = longformer_alignments(loaded, pair)
    column = column_of(label, alignments, pair, predictions.probabilities[0])
    return replace(column, others_read=sentences_read(matching, loaded, pair)[1])


def sentences_read(matching: MatchingRun, loaded: Any, pair: DocumentPair) -> tuple[int, int]:
    """The number of sentences of both documents, always the first ones, that a loaded system reads."""
    counts = len(pair.first.sentences), len(pair.second.sentences)
    if not isinstance(loaded, Matcher):
        return counts
    if loaded.system.encoder == "longformer":
        lost = loaded.examples([pair]).describe(0).lost_sentences
        return counts[0] - lost[0], counts[1] - lost[1]
    most = matching.settings.most_sentences
    return min(counts[0], most), min(counts[1], most)


def _own(name: str, text: str) -> PairDocument:
    if not (sentences := split_sentences(text)):
        raise ParameterError(f"the {name} is empty; write some sentences")
    return PairDocument(id=name, sentences=tuple(sentences))


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


@dataclass(frozen=True, kw_only=True)
class MatchingModel:
    """Predicts whether one document cites, copies or reports another's content, and by which sentences."""

    name: str
    system: str
    run: MatchingRun = field(repr=False)
    matcher: Matcher = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def score(self, first: str, second: str) -> Match:
        """The probability that two documents belong together. Long documents are truncated."""
        pair, cut = self._pair(first, second)
        with bars_after(PATIENCE):
            probability = float(self.run.predict_pairs(self.matcher, [pair]).probabilities[0])
        foreign = foreign_to(self.profile, self.name, [first, second])
        return Match(probability=probability, system=self.matcher.system.label, foreign=foreign, cut=cut)

    def align(self, first: str, second: str) -> Aligned:
        """The weight of each sentence of the first document for its relation to the second."""
        pair, cut = self._pair(first, second)
        with bars_after(PATIENCE):
            column = compared_own(self.run, self.matcher, pair, self.matcher.system.label)
        both = enumerate(zip(pair.first.sentences, column.weights, strict=True))
        parts = (AlignedSentence(sentence=n, text=text, weight=weight) for n, (text, weight) in both)
        picture = partial(pair_html, pair, [column])
        notes = {"foreign": foreign_to(self.profile, self.name, [first, second]), "cut": cut}
        return Aligned(parts=tuple(parts), probability=column.decision, picture=picture, **notes)

    def _pair(self, first: str, second: str) -> tuple[DocumentPair, str]:
        """The two texts as a pair, and a line on what of them is not read."""
        texts_of([first, second])
        pair = own_pair(first, second)
        read, total = (
            sum(counts)
            for counts in (
                sentences_read(self.run, self.matcher, pair),
                (len(pair.first.sentences), len(pair.second.sentences)),
            )
        )
        if self.matcher.system.encoder == "longformer":
            policy = f"{self.name} reads {self.run.settings.max_length:,} tokens, of both an equal share"
        else:
            policy = f"{self.name} reads the first {self.run.settings.most_sentences} of each document"
        form = {"lost": total - read, "of": total, "policy": policy, "unit": "sentences"}
        return pair, warn_of_cut(cut_in_words("documents", **form))


def load_matching(name: str, run: str, system: str) -> MatchingModel:
    """A matcher of a run of notebook 04."""
    settings = settings_of_run(document_matching.Settings, run)
    return _matcher(name, settings, system)


def load_alignment(name: str, run: str, system: str) -> MatchingModel:
    """A matcher with which a run of notebook 05 aligns."""
    given = settings_of(sentence_alignment.Settings, {**trained_parameters(run), "run_folder": run})
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
