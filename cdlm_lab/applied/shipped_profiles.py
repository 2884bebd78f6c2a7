"""Write the text profile of each model that comes with the project:

    python -m cdlm_lab.applied.shipped_profiles

Each knows the inputs of its own task and the reports that these are made of, from the training split of
storyworld; the limits are those that the inputs of its task in the validation split keep to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from cdlm_lab.analysis.text_profile import Record, TextProfile, texts_of_record
from cdlm_lab.data.clusters import paragraph_documents
from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.records import Cluster, split_named
from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.models.checkpoint import FOLDER
from cdlm_lab.models.model_folder import is_model
from cdlm_lab.parameters import RUN_FILE
from cdlm_lab.training.trained import run_name

WORLD = "storyworld, reports of invented events"
STORIES = {"train": 1_500, "dev": 300}  # that profiles are made of
Records = Callable[[str, int], Iterator[Record]]


def _reports(split: str, count: int) -> Iterator[Cluster]:
    return (one.cluster for one in stories(split=split_named(split), stop=count))


def _pairs(split: str, count: int) -> Iterator[DocumentPair]:
    return task_sets.read_storyworld_pairs(split, count, unrelated="recurring")


def _digests(split: str, count: int) -> Iterator[Record]:
    return paragraph_documents("storyworld", split_named(split), size=count, by_topic=True)


INPUTS: dict[str, Records] = {
    "pretraining": _reports,
    "paragraph pretraining": _digests,
    "coreference": task_sets.read_storyworld_topics,
    "document matching": _pairs,
    "multihop question answering": partial(task_sets.read_storyworld_questions, sentences=2, paragraphs=4),
    "document-attentive tagging": task_sets.read_storyworld_tags,
    "answer selection": task_sets.read_storyworld_candidates,
    "fact verification": task_sets.read_storyworld_claims,
}


def shipped_profile(kind: str) -> TextProfile | None:
    """The profile of the shipped models of a kind of run, a key of INPUTS."""
    inputs = {split: map(texts_of_record, INPUTS[kind](split, count)) for split, count in STORIES.items()}
    reports = map(texts_of_record, _reports("train", STORIES["train"]))
    return TextProfile.of(chain(reports, inputs["train"]), inputs["dev"], trained_on=WORLD)


def main(folder: Path = FOLDER) -> None:
    """Write the profiles of all models in a folder of shipped ones."""
    made: dict[str, TextProfile | None] = {}
    for model in sorted(file.parent for file in folder.rglob("model.safetensors") if is_model(file.parent)):
        run = folder / model.relative_to(folder).parts[0]
        kind = run_name(str(run)) if (run / RUN_FILE).is_file() else "pretraining"
        if kind not in made:
            made[kind] = shipped_profile(kind)
        if (profile := made[kind]) is not None:
            profile.save(model)
            limits = ", ".join(f"{share} {limit:.4f}" for share, limit in profile.limits.items())
            print(f"{model.relative_to(folder)}: {limits}", flush=True)


if __name__ == "__main__":
    main()
