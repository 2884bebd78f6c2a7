"""Sets of candidate answers from storyworld: a question about a number of an invented event, and sentences of
one report, of which those that state the number are right.

Every set is clean (`candidate_sets.is_clean`). The sentences are in the order of the report, without the
headline; a story has up to three sets of up to eight candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.data.storyworld import stories


def read_storyworld_candidates(
    split: str, stories_count: int, *, seed: int = 0, start: int = 0
) -> Iterator[CandidateSet]:
    """The sets of each story, one at a time, the same on every machine.

    Args:
        split: train, dev or test; splits share no facts.
        stories_count: how many stories; there are more sets than that.
        seed: of the stories.
        start: number of the first story.

    Raises:
        ValueError: an unknown split, `stories_count` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (("stories_count", stories_count, 1), ("start", start, 0)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    told = stories(seed=seed, split=SPLIT_NAMES[split], start=start, stop=start + stories_count)
    return (candidates for story in told for candidates in story.candidate_sets)
