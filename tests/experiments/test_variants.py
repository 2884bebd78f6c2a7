"""The five variants are those of the paper's section 3."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from cdlm_lab.experiments.attention_analysis.ranks import Analysis, Settings
from cdlm_lab.experiments.cluster_corpora import VARIANTS, checkpoint_of, variant_of
from cdlm_lab.experiments.multihop_qa import MultihopRun
from cdlm_lab.experiments.multihop_qa import Settings as QuestionSettings
from cdlm_lab.experiments.runs import Training
from cdlm_lab.experiments.systems.answering import ENCODERS
from cdlm_lab.experiments.systems.matching import SYSTEMS, Matchers, MatcherSettings
from cdlm_lab.models.coreference import load_pair_scorer
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.parameters import ParameterError


def test_order_is_that_of_table_1() -> None:
    assert list(VARIANTS) == ["longformer", "local-cdlm", "rand-cdlm", "prefix-cdlm", "cdlm"]


def test_what_sets_them_apart() -> None:
    found = {name: (variant.documents, variant.global_policy) for name, variant in VARIANTS.items()}
    assert found == {
        "longformer": ("random", "none"),
        "local-cdlm": ("related", "none"),
        "rand-cdlm": ("random", "masked"),
        "prefix-cdlm": ("related", "prefix"),
        "cdlm": ("related", "masked"),
    }


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown variant 'cdml'; choose one of longformer, local-cdlm"):
        variant_of("cdml")


def test_where_the_encoder_of_a_variant_is(tmp_path: Path) -> None:
    assert checkpoint_of("storyworld", "cdlm") == "storyworld/cdlm"
    with pytest.raises(ParameterError, match="where cdlm is not; write storyworld, or a folder with"):
        checkpoint_of(str(tmp_path), "cdlm")
    (tmp_path / "cdlm").mkdir()
    (tmp_path / "cdlm" / "config.json").write_text("{}")
    assert checkpoint_of(str(tmp_path), "cdlm") == str(tmp_path / "cdlm")
    (tmp_path / "cdlm" / "model").mkdir()
    (tmp_path / "cdlm" / "model" / "config.json").write_text("{}")
    assert checkpoint_of(str(tmp_path), "cdlm") == str(tmp_path / "cdlm" / "model")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of encoders whose global projections differ from the local ones, as those of others may."""
    folder = tmp_path_factory.mktemp("encoders")
    model, tokenizer = load_encoder("storyworld/cdlm", max_length=64, window=8)
    for name in ("longformer", "cdlm"):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return str(folder)


def scoring(encoders: str, name: str, reset: bool) -> nn.Module:
    """Notebook 03 is told of a single model, whatever its name: it resets what it is asked to."""
    asked = reset and name == "longformer"
    form = {"max_length": 64, "window": 8, "reset_globals": asked}
    return load_pair_scorer(checkpoint_of(encoders, name), **form)[0]


def matched(encoders: str, name: str, reset: bool) -> nn.Module:
    settings = MatcherSettings(encoders=encoders, max_length=64, window=8, reset_globals=reset)
    matchers = Matchers(settings=settings, training=[], cache=Path("not-needed"))
    return matchers.make(SYSTEMS[name], seed=0).model


def answering(encoders: str, name: str, reset: bool) -> nn.Module:
    settings = QuestionSettings(encoders=encoders, max_length=64, window=8, reset_globals=reset)
    run = MultihopRun(settings=settings, questions={})
    return run.answerer(Training(ENCODERS[name], 0), trained=False).model


def analysed(encoders: str, name: str, reset: bool) -> nn.Module:
    checkpoint = {name: checkpoint_of(encoders, name)}
    settings = Settings(max_length=64, window=8, reset_globals=reset, **checkpoint)
    return Analysis(settings=settings, topics=[], pairs={}).load(name, load_encoder)[0]


@pytest.mark.parametrize("load", [scoring, matched, answering, analysed])
def test_globals_of_baselines_start_as_the_local_projections(
    load: Callable[[str, str, bool], nn.Module], encoders: str
) -> None:
    """CDLM section 3, "Baseline LMs", for all of Tables 3 to 6."""

    def are_local(name: str, reset: bool) -> bool:
        layers = [one for one in load(encoders, name, reset).modules() if hasattr(one, "query_global")]
        assert layers
        pairs = [(layer.query_global.weight, layer.query.weight) for layer in layers]
        return all(torch.equal(*pair) for pair in pairs)

    assert are_local("longformer", True)
    assert not are_local("longformer", False), "an option: what the checkpoint has"
    assert not are_local("cdlm", True), "pretrained with global tokens"
