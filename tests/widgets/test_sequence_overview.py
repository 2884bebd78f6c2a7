"""The narrow picture of a whole sequence."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cdlm_lab.widgets.packed import BINS, overview_svg


def bars(svg: str) -> list[float]:
    """Heights of the bars of the only lane."""
    path = next(e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("path"))
    return [float(height) for height in re.findall(r"v-([\d.]+)h", path.get("d"))]


def test_documents_are_numbered_blocks_as_wide_as_they_are_long():
    svg = overview_svg(np.repeat([-1, 0, 1, -1], [100, 400, 200, 100]), [])
    root = ElementTree.fromstring(svg)
    widths = [float(e.get("width")) + 2 for e in root if e.tag.endswith("rect")]
    assert widths == pytest.approx([856 / 2, 856 / 4], abs=0.1)
    assert [e.text for e in root if e.tag.endswith("text")] == ["documents", "1", "2"]


def test_a_bar_is_as_tall_as_its_share():
    flags = np.zeros(BINS * 4, bool)
    flags[:4] = True  # the first place is full
    flags[8:10] = True  # the third is half full
    assert bars(overview_svg(np.zeros(BINS * 4, int), [("masked", flags, "#e69f00")])) == [17, 8.5]


def test_the_fullest_place_has_full_height():
    flags = np.zeros(BINS * 8, bool)
    flags[:2] = True
    flags[8] = True
    assert bars(overview_svg(np.zeros(BINS * 8, int), [("masked", flags, "#e69f00")])) == [17, 8.5]


def test_every_token_of_a_short_sequence_has_its_own_bar():
    assert len(bars(overview_svg(np.zeros(7, int), [("masked", np.ones(7, bool), "red")]))) == 7


def test_a_lane_of_another_length_is_refused():
    with pytest.raises(ValueError, match="lane 'masked' has 2 tokens, document has 3"):
        overview_svg(np.zeros(3, int), [("masked", np.zeros(2, bool), "red")])
