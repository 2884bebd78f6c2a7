"""The models that come with the project, loaded once."""

import pytest
import torch

from cdlm_lab.applied.language import LanguageModel
from cdlm_lab.applied.loading import load
from cdlm_lab.applied.tasks import CoreferenceModel, TaggingModel


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Use one thread, as the models are too small to gain from a second."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cdlm() -> LanguageModel:
    return load("storyworld/cdlm")


@pytest.fixture(scope="session")
def coreference() -> CoreferenceModel:
    return load("storyworld/coreference")


@pytest.fixture(scope="session")
def tagging() -> TaggingModel:
    return load("storyworld/tagging")
