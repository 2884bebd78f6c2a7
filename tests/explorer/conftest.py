"""Small models that have read three documents, and the explorer over a pair."""

import pytest
from tagging_runs import saved

from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.encoders.encoder import TinySizes, load_encoder, load_language_model
from cdlm_lab.explorer.explorer import ExploredCluster, explore
from cdlm_lab.explorer.ranks import Analysis, Settings, prepare
from cdlm_lab.explorer.reading import Reader, read_documents

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)


@pytest.fixture(scope="package")
def documents():
    return next(iter(read_storyworld_topics("test", 1))).documents[:3]


@pytest.fixture(scope="package")
def loaded():
    return {"tiny": load_language_model("tiny", max_length=2048, window=16, sizes=SIZES)}


@pytest.fixture
def reader(documents, loaded) -> Reader:
    return read_documents(documents, loaded, max_length=2048)[0]


@pytest.fixture(scope="package")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    models = dict.fromkeys(("local_cdlm", "rand_cdlm", "prefix_cdlm"), "")
    for name, load in (("longformer", load_encoder), ("cdlm", load_language_model)):
        parts = load("tiny", max_length=400, window=8, sizes=SIZES)
        models[name] = saved(tmp_path_factory.mktemp(name), *parts)
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return prepare(Settings(run_folder=run_folder, stories=6, pairs=12, max_length=400, window=8, **models))


@pytest.fixture(scope="package")
def explored(analysis: Analysis) -> ExploredCluster:
    return explore(analysis)
