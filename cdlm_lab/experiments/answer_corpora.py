"""From the corpus that notebook 09 names to questions with candidates in three splits: storyworld, or files
of WikiQA, TREC-QA or ASNQ.

Dev and test are always "clean": their questions have a right candidate and a wrong one (MSPP paper, section
4.1). Of training the paper says two things of WikiQA, clean in appendix A.2 and all 2,118 questions in Table
5, so that is a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.candidate_files import checksum_of, format_of, read_candidate_sets
from cdlm_lab.data.candidate_sets import CandidateCounts, clean_sets, counts_of
from cdlm_lab.data.candidate_storyworld import read_storyworld_candidates
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types

SPLITS = ("train", "dev", "test")
STORYWORLD = "storyworld"
TRAIN_ON = ("clean", "all")


@dataclass(frozen=True, kw_only=True)
class AnswerCorpus:
    """Which questions are learned from, and which are ranked.

    Attributes:
        corpus: `storyworld`, or a folder of WikiQA, TREC-QA or ASNQ (see data/candidate_files.py).
        test_corpus: the same, whose test questions are ranked; "" = those of `corpus`.
        train_stories, held_out_stories: of storyworld, three questions each.
        train_on: `clean` = questions that have right and wrong candidates, or `all`.
        train_questions: at most so many are drawn of those for training, the same ones in each run; 0 = all.
    """

    corpus: str = STORYWORLD
    test_corpus: str = ""
    train_stories: int = 60
    held_out_stories: int = 24
    train_on: str = "clean"
    train_questions: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, TRAIN_ON, "train_on")
        check_least(self, 2, "train_stories", "held_out_stories")
        check_least(self, 0, "train_questions")

    def source_of(self, split: str) -> str:
        """The corpus that a split is of."""
        return self.test_corpus if split == "test" and self.test_corpus else self.corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSplit:
    """The questions of one split.

    Attributes:
        sets: those that are used, in order.
        read: what was read, questions that are left out too.
        corpus: `storyworld`, `wikiqa`, `trecqa` or `asnq`.
        checksum: of the files; "" = storyworld, which is made.
    """

    sets: tuple[CandidateSet, ...]
    read: CandidateCounts
    corpus: str
    checksum: str


def read_answers(settings: AnswerCorpus) -> dict[str, AnswerSplit]:
    """Questions of train, dev and test.

    Raises:
        ParameterError: a split has no question that can be used.
        DataError: as of `read_candidate_sets`.
    """
    return {split: _split(settings, split) for split in SPLITS}


def cluster_of(one: CandidateSet) -> str:
    """What a question has in common with others, for intervals: of storyworld the story, else the question
    itself."""
    return one.id.rpartition("-c")[0] if one.id.startswith(f"{STORYWORLD}-") else one.id


def _split(settings: AnswerCorpus, split: str) -> AnswerSplit:
    source = settings.source_of(split)
    if source == STORYWORLD:
        stories = settings.train_stories if split == "train" else settings.held_out_stories
        found, corpus, checksum = list(read_storyworld_candidates(split, stories)), STORYWORLD, ""
    else:
        found = read_candidate_sets(source, split)
        corpus, checksum = format_of(source), checksum_of(source, split)
    kept = found if split == "train" and settings.train_on == "all" else clean_sets(found)
    if len(kept) < 2:
        raise ParameterError(
            f"{source}: {len(kept)} of the {len(found)} questions of {split} can be used: others have "
            "no right or no wrong candidate; give at least two"
        )
    if split == "train":
        kept = _drawn(kept, settings.train_questions)
    return AnswerSplit(sets=tuple(kept), read=counts_of(found), corpus=corpus, checksum=checksum)


def _drawn(sets: Sequence[CandidateSet], most: int) -> Sequence[CandidateSet]:
    """The questions that are learned from, in their order."""
    if not most or most >= len(sets):
        return sets
    return [sets[number] for number in sorted(np.random.default_rng(0).permutation(len(sets))[:most])]
