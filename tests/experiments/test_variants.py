"""The five variants are those of the paper's section 3."""

import pytest

from cdlm_lab.experiments.variants import VARIANTS, variant_of


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
