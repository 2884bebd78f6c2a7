"""Coreference of one's own documents: what `load` returns for a run of notebook 03."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cdlm_lab.attention.cut import Cut
from cdlm_lab.data.convert.written import save_clusters
from cdlm_lab.data.files import DataError
from cdlm_lab.data.marked import has_marks, marked_texts, pasted_documents, with_marks
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Span, Topic, characters
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.encoders.source_attention import CutAsGiven, apart
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import model_of_run, settings_of_run
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.coreference.examples import group_mentions, pairs_within
from cdlm_lab.tasks.coreference.found import Finder, found_spans
from cdlm_lab.tasks.coreference.readings import ReadingExamples
from cdlm_lab.tasks.coreference.scoring import (
    GroupPrediction,
    Scorer,
    pair_examples,
    predict_groups,
    scored_apart,
)
from cdlm_lab.tasks.coreference.view import clusters_html, shown_clusters, texts_html
from cdlm_lab.training.trained import trained_threshold
from cdlm_lab.views.answers import PATIENCE, Pictured, asked, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words

# Of two long documents those mentions are read together that have this probability with one of the other when
# each is read alone; on ECB+ cut into parts that loses nothing (data/results/cdlm.md).
PROMISING = 0.1
SHIPPED_FOR = {"event": ("ecb/events",), "entity": ("ecb/entities",)}  # kind -> models of real English


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A mention that was marked or found."""

    document: str
    start: int  # of its first character in the document as given, marks included
    end: int  # behind its last one
    text: str  # its words, without marks in it


@dataclass(frozen=True, kw_only=True)
class Clusters(Pictured[tuple[Mention, ...]]):
    """Clusters of coreferring mentions, singletons included."""

    threshold: float
    topic: Topic = field(repr=False, compare=False)
    members: tuple[tuple[CoreferenceMention, ...], ...] = field(repr=False, compare=False)
    texts: Mapping[str, str] = field(repr=False, compare=False)  # as given

    def save(self, path: str | Path) -> None:
        """Write the documents and clusters as `.conll`, `.conllu` (CorefUD), or as rows in `.jsonl` or
        `.json` with their texts, without marks, and the characters of each mention. Notebook 03 reads each of
        them; see `save_clusters` for what it raises."""
        named = {str(number): cluster for number, cluster in enumerate(self.members)}
        save_clusters(path, [self.topic], named, texts=self.texts)

    def heading(self) -> str:
        """How many clusters there are, and the threshold."""
        return f"{len(self.parts)} clusters at the threshold {self.threshold:g}"

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


@dataclass(frozen=True, kw_only=True)
class CoreferenceModel:
    """Clusters mentions of the same event or entity, across documents."""

    name: str
    kind: str  # kind of mentions it was trained on: event or entity
    threshold: float | None  # for merging clusters, chosen on dev; None = none was chosen
    scorer: Scorer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)
    corpus: str = "storyworld"  # what it was trained on
    open_finder: Callable[[str], Finder] | None = field(default=None, repr=False)  # by name; "" = the default
    _scored: list[ScoredOwn] = field(default_factory=list, repr=False)  # the last ones

    @property
    def example(self) -> dict[str, Any]:
        """Documents and the threshold, in a box before a person types: of storyworld, with marks, or for a
        model of real texts three articles without."""
        name = self.kind if self.corpus == "storyworld" else "articles"
        file = Path(__file__).parent / "own_texts" / f"{name}.txt"
        documents = dict(pasted_documents(file.read_text(encoding="utf-8")))
        return {"documents": documents, "threshold": 0.5 if self.threshold is None else self.threshold}

    def clusters(
        self,
        documents: Mapping[str, str] | Sequence[str] | Sequence[Mapping[str, str]],
        *,
        mentions: str | Finder | None = None,
        threshold: float | None = None,
        cut: CutAsGiven = None,
    ) -> Any:
        """Cluster the mentions in documents, given by name or as a list of texts: `Clusters`; for a list with
        the documents of one topic by name in each entry, `Answers`. If any document of a topic has mentions
        marked with `<m>` and `</m>`, these are the mentions; else they are found in the plain texts. Long
        documents are truncated to the text around each pair of mentions; by one reading, where two do not fit
        it, those of their mentions are read together that may corefer when each document is read alone.

        Args:
            mentions: what finds mentions: the name of a tagger of mentions or the folder of its run (notebook
                07); None = the one that comes with the project; or a function from a text to (start, end) or
                (start, end, label) of each mention in characters, such as, of spaCy,
                `lambda text: [(t.idx, t.idx + len(t)) for t in nlp(text) if t.pos_ == "VERB"]`.
            threshold: the higher, the fewer mentions are merged; None = the one that was best on dev.
            cut: `"documents"` = no document attends to another; see `source_attention.apart`.
        """
        chosen = self.threshold if threshold is None else threshold
        if chosen is None or not 0 < chosen < 1:
            why = "the run chose none" if chosen is None else "it must lie between 0 and 1"
            raise ParameterError(f"threshold is {chosen}: {why}; give one, such as 0.5")

        def answer(topics: Sequence[OwnTopic]) -> list[Clusters]:
            return self._clusters(topics, chosen, Cut.of(cut))

        if isinstance(documents, list | tuple) and any(isinstance(one, str) for one in documents):
            documents = texts_of(documents)  # a document each
        return asked(lambda documents: self._read(documents, mentions), answer, documents=documents)

    def _read(self, documents: Mapping[str, str], mentions: str | Finder | None) -> OwnTopic:
        texts = texts_of(documents)
        found = {} if any(map(has_marks, texts.values())) else self._found(texts, mentions)
        topic = marked_texts(texts, kind=self.kind, found=found, needs_marks=not found)
        if (count := sum(len(one.mentions) for one in topic.documents)) < 2:
            remedy = "mark at least two with <m> and </m>"
            what = f"{count} {self.kind} mentions were found" if found else "there is one mention only"
            raise DataError("documents", what, remedy, field="marks")
        return OwnTopic(texts, topic)

    def _found(self, texts: Mapping[str, str], mentions: str | Finder | None) -> dict[str, list[Span]]:
        """The spans of the mentions that are found in each text; {} if nothing is there to find them."""
        finder = mentions if callable(mentions) else self.open_finder and self.open_finder(mentions or "")
        if finder is None:
            return {}
        with bars_after(PATIENCE):
            return {n: found_spans(finder, text, kind=self.kind, source=n) for n, text in texts.items()}

    def marked(self, documents: Mapping[str, str], *, mentions: str | Finder | None = None) -> dict[str, str]:
        """The documents with `<m>` and `</m>` around the mentions that are found in them, to be looked over;
        as they are if any has marks. `mentions`: as for `clusters`."""
        texts = texts_of(documents)
        found = {} if any(map(has_marks, texts.values())) else self._found(texts, mentions)
        return {name: with_marks(text, found.get(name, ())) for name, text in texts.items()}

    def _clusters(self, own: Sequence[OwnTopic], threshold: float, cut: Cut | None) -> list[Clusters]:
        with bars_after(PATIENCE), apart(self.scorer.model, self.scorer.tokenizer, cut):
            scored = self._score([one.topic for one in own], cut)
        return [self._clustered(*each, threshold) for each in zip(own, scored, strict=True)]

    def _clustered(self, own: OwnTopic, scored: ScoredOwn, threshold: float) -> Clusters:
        records = {one.id: one for one in own.topic.documents}

        def mention(one: CoreferenceMention) -> Mention:
            document = records[one.document]
            start, end = characters(document.offsets, *one.tokens)
            return Mention(document=one.document, start=start, end=end, text=document.text_of(one))

        members = tuple(map(tuple, scored.prediction.clusters(threshold)))
        shown = shown_clusters([own.topic], scored.prediction, threshold, gold=False)
        parts = tuple(tuple(map(mention, cluster)) for cluster in members)
        places = [[(one.document, one.start, one.end) for one in cluster] for cluster in parts]
        return Clusters(
            parts=parts,
            threshold=threshold,
            topic=own.topic,
            members=members,
            texts=own.texts,
            picture=lambda: texts_html(own.texts, places) + clusters_html(shown),
            foreign=foreign_to(self.profile, self.name, own.texts.values(), real=SHIPPED_FOR[self.kind]),
            cut=warn_of_cut(scored.cut),
        )

    def _score(self, topics: Sequence[Topic], apart: Cut | None) -> list[ScoredOwn]:
        """The scores of all pairs of mentions within each topic, which are read in batches together; those
        of the last topics and cut are kept."""
        if [one[:2] for one in self._scored] == [(topic, apart) for topic in topics]:
            return list(self._scored)
        one, unlike = self.scorer, [_numbered(topic, number) for number, topic in enumerate(topics)]
        groups = group_mentions(unlike, self.kind, "topic", None)
        examples = pair_examples(one.settings, one.tokenizer, unlike, groups)
        more: dict[str, Any] = {}
        if isinstance(examples, ReadingExamples) and examples.in_parts:
            form = {"batch_size": one.settings.micro_batch_size, "name": "reading each alone"}
            more["unread"] = scored_apart(one, examples, **form)
            examples = examples.of_promising(more["unread"] >= PROMISING)
        ends = np.cumsum([len(pairs_within([group])) for group in groups])
        read = [examples.size_of(number) for number in range(len(examples))]
        # as many tokens a batch as one of the longest texts has
        tokens = one.settings.micro_batch_size * one.settings.max_length
        more["batch_size"] = tokens // max((size.length for size in read), default=1)
        predictions = predict_groups(one, examples, groups, file=None, name="scoring your documents", **more)
        topic_of = [
            np.searchsorted(ends, examples.pairs_of(n)[0], side="right") for n in range(len(examples))
        ]
        policy = f"a pair has {one.settings.max_length:,}, of its documents what is nearest to the mentions"
        self._scored.clear()
        for number, (topic, prediction) in enumerate(zip(topics, predictions, strict=True)):
            (group,) = group_mentions([topic], self.kind, "topic", None)  # with the names as given
            sizes = [size for size, of in zip(read, topic_of, strict=True) if of == number]
            lost = sum(size.lost_tokens for size in sizes)
            of = lost + sum(size.length for size in sizes)
            cut = cut_in_words("pairs of documents", lost=lost, of=of, policy=policy)
            self._scored.append(ScoredOwn(topic, apart, replace(prediction, group=group), cut))
        return list(self._scored)


def _numbered(topic: Topic, number: int) -> Topic:
    """A topic whose name, documents and mentions are named apart from those of topics with other numbers."""

    def named(document: CoreferenceDocument) -> CoreferenceDocument:
        name = f"{number} {document.id}"
        mentions = tuple(replace(one, document=name) for one in document.mentions)
        return replace(document, id=name, topic=str(number), mentions=mentions)

    return Topic(id=str(number), documents=tuple(map(named, topic.documents)))


class OwnTopic(NamedTuple):
    """Documents as they were given, by name, and as a topic."""

    texts: Mapping[str, str]
    topic: Topic


class ScoredOwn(NamedTuple):
    """The mentions of a topic with the scores of their pairs."""

    topic: Topic
    apart: Cut | None  # the attention that was cut
    prediction: GroupPrediction
    cut: str  # a line on the tokens that did not fit


def load_coreference(name: str, run: str, system: str) -> CoreferenceModel:
    """The model of a run of notebook 03."""
    if system:
        raise ParameterError(f"system is {system!r}, but this run has one model only; leave it out")
    settings = settings_of_run(coreference.Settings, run)
    scorer = coreference.load_scorer(settings)
    threshold = trained_threshold(run)
    profile = TextProfile.load(model_of_run(settings.trained))
    form = {"kind": settings.kind, "threshold": threshold, "profile": profile, "corpus": settings.corpus}
    return CoreferenceModel(name=name, scorer=scorer, **form)
