"""The figure of perplexities."""

import pytest

from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.pretraining.view import perplexity_figure

NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]


def rows(*, cross=True):
    every = [
        Score(system=variant, metric="perplexity", value=4.0 + i, low=3.5 + i, high=5.0 + i, n=100)
        for i, variant in enumerate(reversed(VARIANTS))
    ]
    crossing = {"metric": "cross_document_perplexity", "value": 40.0, "low": 30.0, "high": 60.0, "n": 10}
    return every + [Score(system=one.system, **crossing) for one in every] * cross


def test_one_dot_with_its_interval_for_each_variant_and_panel():
    figure = perplexity_figure(rows())
    first = [(8.0 - i, name, "x") for i, name in enumerate(NAMES)]
    found = {(trace.x[0], trace.y[0], trace.xaxis) for trace in figure.data}
    assert found == {*first, *((40.0, name, "x2") for name in NAMES)}
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"
    for axis in figure.select_yaxes():
        assert list(axis.categoryarray) == NAMES[::-1], "the first variant is on top"
    for trace in (one for one in figure.data if one.xaxis == "x"):
        assert (trace.error_x.arrayminus[0], trace.error_x.array[0]) == (0.5, 1.0)
    low, high = (10**end for end in figure.layout.xaxis.range)
    assert low < 3.5 < 9.0 < high
    single = perplexity_figure(rows(cross=False))
    assert len(single.data) == 5
    assert [annotation.text for annotation in single.layout.annotations] == ["all masked tokens"]
    with pytest.raises(ValueError, match="there is no variant to show: no row is a perplexity"):
        perplexity_figure([Score(system="cdlm", metric="f1", value=0.5)])
