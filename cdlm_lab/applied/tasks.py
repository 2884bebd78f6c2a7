"""Models for tasks, as trained by notebooks 03 to 10; each answers as the box for texts of one's own does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from cdlm_lab.applied.results import (
    Clusters,
    Mention,
    NamedSpan,
    TaggedText,
    TaggedWord,
    texts_of,
    warn_of_cut,
)
from cdlm_lab.data.tagged import spans_of
from cdlm_lab.data.typed_documents import marked_texts
from cdlm_lab.experiments.coreference.evaluation import score_own, shown_clusters
from cdlm_lab.experiments.coreference.scorer import Scorer
from cdlm_lab.experiments.systems.tagging import Tagger
from cdlm_lab.experiments.views.tagging import tag_own, tags_html
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.widgets.coreference import clusters_html

PATIENCE = 2.0  # seconds until a bar is drawn


@dataclass(frozen=True, kw_only=True)
class CoreferenceModel:
    """Puts mentions of the same event or entity together, across documents."""

    name: str
    kind: str  # of mentions that it was trained on: event or entity
    threshold: float | None  # of clusters, chosen on dev; None = none was
    scorer: Scorer = field(repr=False)

    def clusters(self, documents: Mapping[str, str], *, threshold: float | None = None) -> Clusters:
        """Cluster the mentions between `<m>` and `</m>` of documents by name. Documents that are too long are
        cut around each pair of mentions.

        Args:
            threshold: the higher, the fewer mentions are put together; None = as was best on dev.
        """
        chosen = self.threshold if threshold is None else threshold
        if chosen is None or not 0 < chosen < 1:
            why = "the run chose none" if chosen is None else "it must lie between 0 and 1"
            raise ParameterError(f"threshold is {chosen}: {why}; give one, such as 0.5")
        topic = marked_texts(texts_of(documents), kind=self.kind)
        with bars_after(PATIENCE):
            own = score_own(self.scorer, topic)
        longest = self.scorer.settings.max_length
        policy = f"a pair has {longest:,}, of its documents what is nearest to the mentions"
        warn_of_cut("pairs of documents", lost=own.lost, of=own.read + own.lost, policy=policy)
        records = {one.id: one for one in topic.documents}
        clusters = tuple(
            tuple(
                Mention(
                    document=one.document,
                    start=one.tokens[0],
                    end=one.tokens[1],
                    text=records[one.document].text_of(one),
                )
                for one in cluster
            )
            for cluster in own.prediction.clusters(chosen)
        )
        picture = partial(_clusters_picture, [topic], own.prediction, chosen)
        return Clusters(parts=clusters, threshold=chosen, picture=picture)


def _clusters_picture(*shown: object) -> str:
    return clusters_html(shown_clusters(*shown, gold=False))


@dataclass(frozen=True, kw_only=True)
class TaggingModel:
    """Finds names in a text; how a word is used elsewhere in it helps."""

    name: str
    system: str
    tagger: Tagger = field(repr=False)

    def tag(self, text: str) -> TaggedText:
        """The names in a text, such as a chapter. All of it is read; of a word that is longer than a sequence
        the first pieces."""
        (text,) = texts_of([text]).values()
        with bars_after(PATIENCE):
            document, predictions = tag_own(self.tagger, text)
        cut = sum(one.shortened for one in predictions.examples.documents)
        policy = f"{self.name} reads {self.tagger.taggers.settings.most_tokens} pieces at once"
        words = sum(len(sentence.words) for sentence in document.sentences)
        warn_of_cut("the ends of words", lost=cut, of=words, policy=policy, unit="words")
        tagged, spans, end = [], [], 0
        for number, sentence in enumerate(document.sentences):
            own = []
            tags = predictions.predicted()[0][number]
            for word, tag in zip(sentence.words, tags, strict=True):
                start = text.index(word, end)
                end = start + len(word)
                own.append(TaggedWord(text=word, start=start, end=end, tag=tag, sentence=number))
            for span in spans_of(tags):
                first, last = own[span.first].start, own[span.stop - 1].end
                place = {"start": first, "end": last, "sentence": number}
                spans.append(NamedSpan(text=text[first:last], label=span.label, **place))
            tagged += own
        picture = partial(tags_html, predictions)
        return TaggedText(parts=tuple(spans), words=tuple(tagged), picture=picture)
