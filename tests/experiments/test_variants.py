"""The five variants are those of the paper's section 3."""

from pathlib import Path

import pytest

from cdlm_lab.experiments.variants import VARIANTS, checkpoint_of, variant_of
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
