"""Storyworld as questions with candidates: those of the stories, clean, the same every time."""

import pytest

from cdlm_lab.data.candidates import is_clean
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.task_sets import read_storyworld_candidates


def test_sets_are_those_of_the_stories():
    found = list(read_storyworld_candidates("test", 8, seed=3, start=2))
    given = stories(seed=3, split="test", start=2, stop=10)
    assert found == [candidates for story in given for candidates in story.candidate_sets]
    assert len({one.id for one in found}) == len(found) > 8
    assert all(is_clean(one) for one in found)
    assert all(2 <= len(one.candidates) <= 8 for one in found)


def test_same_sets_every_time():
    assert list(read_storyworld_candidates("dev", 2)) == list(read_storyworld_candidates("validation", 2))
    first = next(read_storyworld_candidates("train", 10**9))  # made one at a time
    assert first == next(read_storyworld_candidates("train", 1))
    assert first != next(read_storyworld_candidates("train", 1, seed=1))
    assert first != next(read_storyworld_candidates("train", 1, start=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "all"}, "split is 'all'; choose one of train, dev, test"),
        ({"stories_count": 0}, "stories_count is 0; it must be at least 1"),
        ({"start": -1}, "start is -1; it must be at least 0"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_storyworld_candidates(**({"split": "train", "stories_count": 1} | arguments))
