"""The models that come with the project, loaded once."""

import pytest

from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.apply.loading import load
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.tagging.ask import TaggingModel


@pytest.fixture(scope="session")
def cdlm() -> LanguageModel:
    return load("storyworld/cdlm")


@pytest.fixture(scope="session")
def coreference() -> CoreferenceModel:
    return load("storyworld/coreference")


@pytest.fixture(scope="session")
def tagging() -> TaggingModel:
    return load("storyworld/tagging")
