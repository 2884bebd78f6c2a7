"""From the corpus that notebook 06 names to questions in three splits: storyworld, or files in HotpotQA's
format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from cdlm_lab.data.hotpotqa import read_hotpotqa
from cdlm_lab.data.multihop_questions import MultihopQuestion
from cdlm_lab.data.question_storyworld import read_storyworld_questions
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types

SPLITS = ("train", "dev", "test")
SEEN = ("both documents", "one document")
_SUFFIXES = (".json", ".json.gz", ".jsonl", ".jsonl.gz")
Questions = Mapping[str, tuple[MultihopQuestion, ...]]  # by split


@dataclass(frozen=True, kw_only=True)
class QuestionCorpus:
    """Which questions are asked.

    Attributes:
        corpus: `storyworld`, or a folder of `train.json`, `dev.json` and `test.json` in HotpotQA's format or
            the hub's (`.jsonl` too, and compressed).
        train_stories, held_out_stories: of storyworld, two or three questions each.
        passage_sentences: of storyworld: sentences of a report that stand in the context.
        paragraphs: of storyworld: in the context of a question, two of which an answer needs.
        seen: of storyworld: `both documents`, or `one document` = without the one that makes the other tell
            the answer, so that nobody can do better than guess.
        train_questions, held_out_questions: at most so many are drawn of the training questions, and of those
            of dev and of test; 0 = all.
        dev_from_train: of a folder: so many questions, drawn of `train.json`, are dev and not train; 0 =
            `dev.json` is dev. The paper reports on the official development set; nothing may be chosen there,
            and the official test set has no gold.
        data_seed: of all these draws.
    """

    corpus: str = "storyworld"
    train_stories: int = 200
    held_out_stories: int = 40
    passage_sentences: int = 2
    paragraphs: int = 4
    seen: str = "both documents"
    train_questions: int = 0
    held_out_questions: int = 0
    dev_from_train: int = 0
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, SEEN, "seen")
        check_least(self, 2, "train_stories", "held_out_stories", "paragraphs")
        for name in ("train_questions", "held_out_questions", "dev_from_train"):
            if getattr(self, name) < 0:
                zero = "dev.json" if name == "dev_from_train" else "all"
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for {zero}, or how many")
        if self.dev_from_train and self.corpus == "storyworld":
            raise ParameterError("dev_from_train is of a folder: storyworld has stories of its own for dev")


def read_questions(settings: QuestionCorpus) -> Questions:
    """Questions of train, dev and test; answers and supporting facts are known of all. Facts that name a
    sentence which is not there, as a few of the official ones do, are `unknown_supporting`.

    Raises:
        ParameterError: a corpus that is neither, a file without gold, or one question in two splits.
        DataError: as its reader.
    """
    if settings.corpus == "storyworld":
        found = {split: _storyworld(split, settings) for split in SPLITS}
    else:
        found = _of_folder(Path(settings.corpus), settings)
    return {split: tuple(_drawn(questions, split, settings)) for split, questions in found.items()}


def _of_folder(folder: Path, settings: QuestionCorpus) -> dict[str, Sequence[MultihopQuestion]]:
    apart = settings.dev_from_train
    files = {split: _file(folder, split) for split in SPLITS if split != "dev" or not apart}
    read = {split: _with_gold(file) for split, file in files.items()}
    if apart:
        if apart >= len(read["train"]):
            raise ParameterError(
                f"dev_from_train is {apart}; train has {len(read['train']):,} questions in all"
            )
        order = np.random.default_rng([settings.data_seed, len(SPLITS)]).permutation(len(read["train"]))
        for split, numbers in (("dev", order[:apart]), ("train", order[apart:])):
            read[split] = [read["train"][number] for number in sorted(numbers)]
    found = {split: read[split] for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        if shared := {question.id for question in found[one]} & {question.id for question in found[other]}:
            raise ParameterError(
                f"corpus is {str(folder)!r}, where {one} and {other} share {len(shared):,} questions, as "
                f"{min(shared)}: what is learned or chosen on a question cannot be tested on it; take other "
                "questions, or as dev some of train with dev_from_train"
            )
    return found


def _storyworld(split: str, settings: QuestionCorpus) -> list[MultihopQuestion]:
    return list(
        read_storyworld_questions(
            split,
            settings.train_stories if split == "train" else settings.held_out_stories,
            sentences=settings.passage_sentences,
            paragraphs=settings.paragraphs,
            withheld=settings.seen == "one document",
        )
    )


def _file(folder: Path, split: str) -> Path:
    files = [file for suffix in _SUFFIXES if (file := folder / f"{split}{suffix}").is_file()]
    if not files:
        also = "; or take dev from train with dev_from_train" if split == "dev" else ""
        raise ParameterError(
            f"corpus is {str(folder)!r}, where there is no {split}.json; write storyworld, or a folder with "
            f"train.json, dev.json and test.json in HotpotQA's format{also}"
        )
    return files[0]


def _with_gold(file: Path) -> list[MultihopQuestion]:
    questions = read_hotpotqa(file, unknown_facts="keep")
    for question in questions:
        if question.answer is None or not (question.supporting or question.unknown_supporting):
            raise ParameterError(
                f"{file}: question {question.id} has no answer or no supporting facts, which training and "
                "scores need; leave it out"
            )
    return questions


def _drawn(
    questions: Sequence[MultihopQuestion], split: str, settings: QuestionCorpus
) -> Sequence[MultihopQuestion]:
    """The questions that are used, in their order."""
    most = settings.train_questions if split == "train" else settings.held_out_questions
    if not most or most >= len(questions):
        return questions
    kept = np.random.default_rng([settings.data_seed, SPLITS.index(split)]).permutation(len(questions))[:most]
    return [questions[number] for number in sorted(kept)]


def cluster_of(question: MultihopQuestion) -> str:
    """What a question shares its paragraphs with others of, for intervals: of storyworld the story, else the
    question itself."""
    return question.id.rpartition("-q")[0] if question.id.startswith("storyworld-") else question.id
