"""What notebook 03 shows of a prediction: clusters in context, wrong pairs, the tree of a group, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.clustering import labels_at
from cdlm_lab.data.coreference_records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.experiments.coreference_prediction import GroupPrediction
from cdlm_lab.metrics.coreference import Score
from cdlm_lab.widgets.coreference_clusters import ShownCluster, clusters_html
from cdlm_lab.widgets.coreference_errors import CoreferenceErrors, PairError, errors_html
from cdlm_lab.widgets.coreference_table import CoreferenceRow
from cdlm_lab.widgets.dendrogram import dendrogram_figure
from cdlm_lab.widgets.shown_mention import ShownMention, joined

MEASURES = ("muc", "b_cubed", "ceaf_e", "lea", "conll")


def shown_clusters(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> list[ShownCluster]:
    """The clusters of one group, each mention in its sentence.

    `gold`: False = gold clusters are not known.
    """
    documents = _documents(topics)
    return [
        ShownCluster(
            name=f"#{number}",
            mentions=tuple(_shown(mention, documents, gold=gold) for mention in cluster),
        )
        for number, cluster in enumerate(prediction.clusters(threshold), start=1)
    ]


def clusters_view(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> str:
    """`shown_clusters` as HTML."""
    return clusters_html(shown_clusters(topics, prediction, threshold, gold=gold))


def errors_view(topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float) -> str:
    """The wrong pairs of all groups as HTML."""
    return errors_html(pair_errors(topics, predictions, threshold))


def pair_errors(
    topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float
) -> CoreferenceErrors:
    """Pairs that were put together and do not corefer, and pairs that corefer and were kept apart."""
    documents = _documents(topics)
    errors: dict[str, list[PairError]] = {"merged": [], "split": []}
    for prediction in predictions:
        mentions = prediction.group.mentions
        shown = [_shown(mention, documents) for mention in mentions]
        labels = labels_at(prediction.tree, threshold)
        gold = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
        first, second = np.triu_indices(len(mentions), k=1)
        together, corefer = labels[first] == labels[second], gold[first] == gold[second]
        for name, wrong in (("merged", together & ~corefer), ("split", corefer & ~together)):
            errors[name] += [
                PairError(first=shown[i], second=shown[j], score=float(prediction.scores[i, j]))
                for i, j in zip(first[wrong], second[wrong], strict=True)
            ]
    return CoreferenceErrors(
        merged=tuple(errors["merged"]), split=tuple(errors["split"]), threshold=threshold
    )


def group_tree(topics: Sequence[Topic], prediction: GroupPrediction, threshold: float) -> go.Figure:
    """The merge tree of one group with the threshold."""
    documents = _documents(topics)
    mentions = [_shown(mention, documents) for mention in prediction.group.mentions]
    return dendrogram_figure(
        prediction.tree, mentions, threshold=threshold, title=f"How {prediction.group.id} came together"
    )


def score_rows(
    scores: Mapping[str, Mapping[str, Any]],
    comparisons: Sequence[Mapping[str, Any]],
    *,
    baselines: Sequence[str],
) -> list[CoreferenceRow]:
    """Rows of the table, from what stands in the report and nothing else."""
    p_of = {row["b"]: row["p_holm"] for row in comparisons}
    systems = dict.fromkeys(name.split("/", 1)[0] for name in scores if "/conll/" in name)
    rows = []
    for system in systems:
        conll = scores[f"{system}/conll/f1"]
        rows.append(
            CoreferenceRow(
                system=system,
                scores={
                    measure: Score(
                        **{
                            part: scores[f"{system}/{measure}/{part}"]["value"]
                            for part in ("recall", "precision", "f1")
                        }
                    )
                    for measure in MEASURES
                },
                interval=(conll["low"], conll["high"]),
                p=p_of.get(system),
                is_baseline=system in baselines,
            )
        )
    return rows


def _documents(topics: Sequence[Topic]) -> dict[str, CoreferenceDocument]:
    return {document.id: document for topic in topics for document in topic.documents}


def _shown(
    mention: CoreferenceMention, documents: Mapping[str, CoreferenceDocument], *, gold: bool = True
) -> ShownMention:
    document = documents[mention.document]
    start, end = mention.tokens
    first, last = document.sentences[mention.sentence]
    return ShownMention(
        text=joined(document.tokens[start:end]),
        before=joined(document.tokens[first:start]),
        after=joined(document.tokens[end:last]),
        document=mention.document,
        gold=mention.cluster if gold else None,
    )
