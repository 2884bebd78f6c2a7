"""Coreference in documents of one's own: from marked mentions to clusters, with a trained scorer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cdlm_lab.data.coreference_records import Topic
from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.marked_documents import parse_marked_documents
from cdlm_lab.examples.mention_pairs import group_mentions
from cdlm_lab.experiments.coreference import Prepared, encoded_documents
from cdlm_lab.experiments.coreference_prediction import GroupPrediction, predict_groups
from cdlm_lab.experiments.coreference_views import clusters_view
from cdlm_lab.report.values import write_json

# What stands in the box before anything is typed, by kind of mention.
EXAMPLES = {
    "event": """\
== morning paper ==
A gas <m>blast</m> killed 14 miners in the Ombrava mine near Telk on Tuesday. Another 30 men were
<m>brought up alive</m> by nightfall. Engineers began <m>drilling</m> a shaft to reach the rest.

== evening paper ==
The <m>explosion</m> in the mine near Telk was the worst in ten years, the energy minister said on
Wednesday. The <m>rescue</m> of 30 miners had taken six hours.

== radio bulletin ==
A shaft is being <m>drilled</m> at the Ombrava mine, a day after the <m>accident</m>.
""",
    "entity": """\
== morning paper ==
A gas blast killed 14 miners in the <m>Ombrava mine</m> near <m>Telk</m> on Tuesday. <m>Marta Elling</m>,
the energy minister, promised an inquiry.

== evening paper ==
The explosion in the <m>mine</m> near <m>Telk</m> was the worst in ten years, the <m>energy minister</m>
said on Wednesday. <m>She</m> will visit the <m>town</m> on Friday.
""",
}


def own_text(path: str, kind: str) -> str:
    """The text of a file, or an example if `path` is "". Raises DataError as its reader does."""
    return read_text(path) if path else EXAMPLES[kind]


def cluster_own(prepared: Prepared, text: str, *, source: str = "text") -> tuple[Topic, GroupPrediction]:
    """Score all pairs of the marked mentions of a text; `source`: what complaints call it.

    Raises:
        DataError: as of `parse_marked_documents`, and for a text with one mention alone.
    """
    kind = prepared.settings.kind
    topic = parse_marked_documents(text, kind=kind, source=source)
    groups = group_mentions([topic], kind, "topic", None)
    if len(groups[0].mentions) < 2:
        remedy = "mark at least two with <m> and </m>"
        raise DataError(source, "there is one mention only", remedy, field="marks")
    documents = encoded_documents([topic], prepared.tokenizer)
    (prediction,) = predict_groups(prepared, documents, groups, file=None, name="scoring your documents")
    return topic, prediction


def own_clusters(
    prepared: Prepared, text: str, *, folder: Path, source: str = "text"
) -> Callable[[float], str]:
    """For the box of documents: score a text; the function returned takes a threshold, writes the clusters
    to `own_clusters.json` in `folder` and gives them as HTML. Errors as of `cluster_own`."""
    topic, prediction = cluster_own(prepared, text, source=source)

    def clusters_at(threshold: float) -> str:
        _write(folder / "own_clusters.json", topic, prediction, threshold)
        return clusters_view([topic], prediction, threshold, gold=False)

    return clusters_at


def _write(file: Path, topic: Topic, prediction: GroupPrediction, threshold: float) -> None:
    """For each cluster its mentions with document, half-open span of tokens and words."""
    documents = {document.id: document for document in topic.documents}
    clusters = [
        [
            {
                "document": mention.document,
                "tokens": list(mention.tokens),
                "text": documents[mention.document].text_of(mention),
            }
            for mention in cluster
        ]
        for cluster in prediction.clusters(threshold)
    ]
    write_json(file, {"threshold": threshold, "clusters": clusters})
