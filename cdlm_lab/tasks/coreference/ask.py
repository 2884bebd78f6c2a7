"""Coreference of one's own documents: what `load` returns for a run of notebook 03."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from cdlm_lab.data.marked import marked_texts
from cdlm_lab.data.records import CoreferenceMention
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import model_of_run, settings_of_run
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.coreference.scoring import Scorer
from cdlm_lab.tasks.coreference.view import clusters_html, score_own, shown_clusters
from cdlm_lab.training.trained import trained_threshold
from cdlm_lab.views.answers import PATIENCE, Pictured, foreign_to, texts_of, warn_of_cut


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


@dataclass(frozen=True, kw_only=True)
class CoreferenceModel:
    """Clusters mentions of the same event or entity, across documents."""

    name: str
    kind: str  # kind of mentions it was trained on: event or entity
    threshold: float | None  # for merging clusters, chosen on dev; None = none was chosen
    scorer: Scorer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def clusters(self, documents: Mapping[str, str], *, threshold: float | None = None) -> Clusters:
        """Cluster the mentions marked with `<m>` and `</m>` in documents, given by name. Long documents are
        truncated to the text around each pair of mentions.

        Args:
            threshold: the higher, the fewer mentions are merged; None = the one that was best on dev.
        """
        chosen = self.threshold if threshold is None else threshold
        if chosen is None or not 0 < chosen < 1:
            why = "the run chose none" if chosen is None else "it must lie between 0 and 1"
            raise ParameterError(f"threshold is {chosen}: {why}; give one, such as 0.5")
        topic = marked_texts(texts_of(documents), kind=self.kind)
        with bars_after(PATIENCE):
            own = score_own(self.scorer, topic)
        cut = warn_of_cut(own.cut)
        records = {one.id: one for one in topic.documents}

        def mention(one: CoreferenceMention) -> Mention:
            start, end = one.tokens
            return Mention(
                document=one.document, start=start, end=end, text=records[one.document].text_of(one)
            )

        clusters = tuple(tuple(map(mention, cluster)) for cluster in own.prediction.clusters(chosen))
        shown = shown_clusters([topic], own.prediction, chosen, gold=False)
        foreign, picture = (
            foreign_to(self.profile, self.name, documents.values()),
            partial(clusters_html, shown),
        )
        return Clusters(parts=clusters, threshold=chosen, picture=picture, foreign=foreign, cut=cut)


def load_coreference(name: str, run: str, system: str) -> CoreferenceModel:
    """The model of a run of notebook 03."""
    if system:
        raise ParameterError(f"system is {system!r}, but this run has one model only; leave it out")
    settings = settings_of_run(coreference.Settings, run)
    scorer = coreference.load_scorer(settings)
    threshold = trained_threshold(run)
    form = {"kind": settings.kind, "threshold": threshold, "profile": TextProfile.load(model_of_run(run))}
    return CoreferenceModel(name=name, scorer=scorer, **form)
