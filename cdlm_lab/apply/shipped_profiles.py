"""Write the text profile of each model that comes with the project:

    python -m cdlm_lab.apply.shipped_profiles

All know the reports, questions and claims of the training split of storyworld, of which the inputs of all
tasks are made; the limits of each are those that the inputs of its own task in the validation split keep to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from cdlm_lab.data.clusters import paragraph_documents
from cdlm_lab.data.records import Cluster, DocumentPair
from cdlm_lab.data.splits import split_named
from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.text_profile import Record, TextProfile, texts_of_record
from cdlm_lab.encoders.model_folder import FOLDER, is_model
from cdlm_lab.errors import print_any_sign
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


@cache
def _world() -> TextProfile:
    """The profile of all texts of the stories of the training split."""
    each = (
        [
            *(document.text for document in one.cluster.documents),
            *(question.text for question in one.questions),
            *(one_of.question for one_of in one.candidate_sets),
            *(claim.text for claim in one.claims),
        ]
        for one in stories(split="train", stop=STORIES["train"])
    )
    profile = TextProfile.of(each, [["A fire."]], trained_on=WORLD)
    assert profile is not None
    return profile


def shipped_profile(kind: str) -> TextProfile | None:
    """The profile of the shipped models of a kind of run, a key of INPUTS."""
    return _world().limited(map(texts_of_record, INPUTS[kind]("dev", STORIES["dev"])))


def main(folder: Path = FOLDER) -> None:
    """Write the profiles of all models in a folder of shipped ones."""
    print_any_sign()
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
