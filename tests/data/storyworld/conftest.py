"""Fixtures of the storyworld tests."""

import pytest

from cdlm_lab.data.records import Story
from cdlm_lab.data.storyworld.stories import stories


@pytest.fixture(scope="session")
def many() -> list[Story]:
    """The first 200 training stories."""
    return list(stories(seed=0, split="train", stop=200))
