"""Ticks of logarithmic axes, and the colours of variants."""

import pytest

from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.views import charts
from cdlm_lab.views.html import VARIANT_COLOURS, paper_order, variant_colours


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3, 9.5, [4, 6, 8]), (5, 340, [5, 10, 20, 50, 100, 200]), (2, 30_000, [10, 100, 1000, 10_000])],
)
def test_logarithmic_ticks(low, high, expected):
    assert charts.logarithmic_ticks(low, high) == pytest.approx(expected)


def test_order_and_colours_of_variants():
    assert paper_order(["mine", "cdlm", "longformer", "cdlm"]) == ["longformer", "cdlm", "mine"]
    colours = variant_colours(["mine", "yours", *VARIANTS])
    assert len(set(colours.values())) == 7
    assert {v: colours[v] for v in VARIANTS} == VARIANT_COLOURS
