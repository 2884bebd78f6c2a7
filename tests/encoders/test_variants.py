"""The five variants, where their checkpoints are, and the global projections that baselines start with."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tagging_runs import saved
from torch import nn

from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.variants import VARIANTS, checkpoint_of, variant_of
from cdlm_lab.explorer.ranks import Analysis
from cdlm_lab.explorer.ranks import Settings as AnalysisSettings
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.coreference.model import load_pair_scorer
from cdlm_lab.tasks.matching.systems import SYSTEMS, Matchers, MatcherSettings
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.tasks.multihop.experiment import Settings as QuestionSettings
from cdlm_lab.tasks.multihop.systems import ENCODERS


def test_variants_are_those_of_table_1_in_its_order() -> None:
    assert [tuple(variant)[:3] for variant in VARIANTS.values()] == [
        ("longformer", "random", "none"),
        ("local-cdlm", "related", "none"),
        ("rand-cdlm", "random", "masked"),
        ("prefix-cdlm", "related", "prefix"),
        ("cdlm", "related", "masked"),
    ]
    with pytest.raises(ValueError, match="variant is 'cdml'; choose one of longformer, local-cdlm"):
        variant_of("cdml")


def test_where_the_encoder_of_a_variant_is(tmp_path: Path) -> None:
    assert checkpoint_of("storyworld", "cdlm") == "storyworld/cdlm"
    with pytest.raises(ParameterError, match="where cdlm is not; write storyworld, or a folder with"):
        checkpoint_of(str(tmp_path), "cdlm")
    for place in ("_cdlm/model", "-cdlm/model", "", "/systems/cdlm-0/model", "/cdlm", "/cdlm/model"):
        folder = Path(f"{tmp_path}{place}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")
        assert checkpoint_of(str(tmp_path), "cdlm") == str(folder), "preferred to those before"


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of encoders whose global projections differ from the local ones, as external models' may."""
    folder, parts = tmp_path_factory.mktemp("encoders"), load_encoder("storyworld/cdlm", **SHORT)
    for name in ("longformer", "cdlm"):
        saved(folder / name, *parts)
    return str(folder)


SHORT = {"max_length": 64, "window": 8}


def scoring(encoders: str, name: str, reset: bool) -> nn.Module:
    """Load a pair scorer as notebook 03 does from one model; `reset`: reset globals of a Longformer."""
    return load_pair_scorer(
        checkpoint_of(encoders, name), **SHORT, reset_globals=reset and name == "longformer"
    )[0]


def matched(encoders: str, name: str, reset: bool) -> nn.Module:
    settings = MatcherSettings(encoders=encoders, **SHORT, reset_globals=reset)
    matchers = Matchers(settings=settings, training=[], cache=Path("not-needed"))
    return matchers.make(SYSTEMS[name], seed=0).model


def answering(encoders: str, name: str, reset: bool) -> nn.Module:
    settings = QuestionSettings(encoders=encoders, **SHORT, reset_globals=reset)
    run = MultihopRun(settings=settings, questions={})
    return run.answerer(Training(ENCODERS[name], 0), trained=False).model


def analysed(encoders: str, name: str, reset: bool) -> nn.Module:
    checkpoint = {name: checkpoint_of(encoders, name)}
    settings = AnalysisSettings(**SHORT, reset_globals=reset, **checkpoint)
    return Analysis(settings=settings, topics=[], pairs={}).load(name, load_encoder)[0]


@pytest.mark.parametrize("load", [scoring, matched, answering, analysed])
def test_globals_of_baselines_start_as_the_local_projections(
    load: Callable[[str, str, bool], nn.Module], encoders: str
) -> None:
    """CDLM section 3, "Baseline LMs", for all of Tables 3 to 6."""

    def are_local(name: str, reset: bool) -> bool:
        layers = [one for one in load(encoders, name, reset).modules() if hasattr(one, "query_global")]
        assert layers
        return all(torch.equal(layer.query_global.weight, layer.query.weight) for layer in layers)

    assert are_local("longformer", True)
    assert not are_local("longformer", False), "an option: what the checkpoint has"
    assert not are_local("cdlm", True), "pretrained with global tokens"
