"""The merge tree of a topic as a figure."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.clustering import labels_at, merge_tree
from cdlm_lab.widgets.coreference import SYMBOLS, dendrogram_figure, leaf_order
from cdlm_lab.widgets.html import HUES, UNKNOWN, ShownMention

# 0 and 2 join at 0.9, 3 joins them at 0.45, 1 joins all at 0.05
SCORES = np.array([[1, 0.05, 0.9, 0.6], [0.05, 1, 0.05, 0.05], [0.9, 0.05, 1, 0.3], [0.6, 0.05, 0.3, 1]])
TREE = merge_tree(SCORES)


def shown(*golds):
    texts = ["fire", "vote", "blaze", "flames"]
    return [
        ShownMention(
            text=f"{texts[n % 4]}{n // 4 or ''}", before="the", after="spread", document=f"d{n}", gold=gold
        )
        for n, gold in enumerate(golds)
    ]


FIGURE = dendrogram_figure(TREE, shown("F", "V", "F", "F"), threshold=0.4)


def branches(figure):
    """(colour, corners) of each elbow."""
    elbows = []
    for trace in figure.data:
        if trace.mode == "lines":
            corners = list(zip(trace.x, trace.y, strict=True))
            assert corners[4::5] == [(None, None)] * (len(corners) // 5)
            elbows += [(trace.line.color, corners[at : at + 4]) for at in range(0, len(corners), 5)]
    return elbows


def random_tree(mentions, seed=0):
    scores = np.random.default_rng(seed).uniform(size=(mentions, mentions))
    return merge_tree((scores + scores.T) / 2)


def test_elbows_join_at_the_average_score():
    # leaves from the top: 0, 2, 3, 1
    (dark, first), (_, second), (grey, third) = branches(FIGURE)
    assert first == [(1.0, 0.0), (0.9, 0.0), (0.9, 1.0), (1.0, 1.0)]
    assert sorted(second) == [(0.45, 0.5), (0.45, 2.0), (0.9, 0.5), (1.0, 2.0)]
    assert sorted(third) == [(0.05, 1.25), (0.05, 3.0), (0.45, 1.25), (1.0, 3.0)]
    assert dark in HUES
    assert grey == UNKNOWN  # F and V meet there


def test_a_branch_has_a_colour_if_all_below_it_are_of_one_gold_cluster():
    for golds, coloured in (("FFFF", 3), ("FVFF", 2), ("FFVV", 0), ("FVFV", 1), ("FVVF", 0)):
        figure = dendrogram_figure(TREE, shown(*golds), threshold=0.4)
        assert sum(colour != UNKNOWN for colour, _ in branches(figure)) == coloured


def test_leaves_have_their_texts_colours_and_sentences():
    assert list(FIGURE.layout.yaxis.ticktext) == ["fire", "blaze", "flames", "vote"]
    assert list(FIGURE.layout.yaxis.tickvals) == [0, 1, 2, 3]
    leaves = FIGURE.data[-1]
    hue = branches(FIGURE)[0][0]
    assert list(leaves.marker.color) == [hue, hue, hue, UNKNOWN]
    assert list(leaves.marker.symbol) == ["circle", "circle", "circle", "circle-open"]
    assert leaves.hovertext[1] == "<b>blaze</b><br>the blaze spread<br>document d2<br>gold: F"


def test_the_threshold_is_a_line_and_its_clusters_are_bands():
    bands = [shape for shape in FIGURE.layout.shapes if shape.type == "rect"]
    (line,) = [shape for shape in FIGURE.layout.shapes if shape.type == "line"]
    assert (line.x0, line.x1) == (0.4, 0.4)
    assert [(band.x1, band.y0, band.y1) for band in bands] == [(0.4, -0.45, 2.45)]
    assert "threshold 0.40" in [note.text for note in FIGURE.layout.annotations]
    alone = dendrogram_figure(TREE, shown("F", "V", "F", "F"), threshold=0.95)
    assert [shape.type for shape in alone.layout.shapes] == ["line"]


@given(mentions=st.integers(1, 30), seed=st.integers(0, 99), threshold=st.floats(0, 1))
def test_no_branches_cross(mentions, seed, threshold):
    tree = random_tree(mentions, seed)
    order = leaf_order(tree)
    assert sorted(order) == list(range(mentions))
    assert order[0] == 0  # the branch with the first mention is on top
    labels = labels_at(tree, threshold)[order].tolist()
    changes = sum(a != b for a, b in pairwise(labels))
    assert changes == len(set(labels)) - 1  # each cluster is a run


def test_a_chain_of_a_thousand_mentions_is_no_fault():
    scores = np.minimum.outer(np.linspace(0.9, 0.1, 1000), np.linspace(0.9, 0.1, 1000))
    assert leaf_order(merge_tree(scores))[:3] == [0, 1, 2]


@pytest.mark.parametrize("mentions", [2, 10, 60, 200])
def test_the_figure_grows_with_the_mentions(mentions):
    figure = dendrogram_figure(random_tree(mentions), shown(*["F"] * mentions), threshold=0.5)
    assert figure.layout.height >= 13 * mentions + 100
    assert len(figure.layout.yaxis.ticktext) == mentions
    assert len(figure.to_json()) < 100_000


def test_one_mention():
    figure = dendrogram_figure(np.empty((0, 4)), shown("F"), threshold=0.5)
    assert branches(figure) == []
    assert list(figure.layout.yaxis.ticktext) == ["fire"]


def test_gold_clusters_that_share_a_colour_differ_in_their_symbol():
    golds = [f"G{n // 2}" for n in range(40)]
    leaves = dendrogram_figure(random_tree(40), shown(*golds), threshold=0.5).data[-1]
    looks = {}
    for gold, colour, symbol in zip(leaves.hovertext, leaves.marker.color, leaves.marker.symbol, strict=True):
        looks.setdefault(gold.rpartition("gold: ")[2], set()).add((colour, symbol))
    assert all(len(look) == 1 for look in looks.values())
    assert len(set.union(*looks.values())) == 20
    assert {symbol for look in looks.values() for _, symbol in look} <= set(SYMBOLS)


def test_without_gold_all_is_grey():
    figure = dendrogram_figure(TREE, shown(None, None, None, None), threshold=0.4)
    assert {colour for colour, _ in branches(figure)} == set(figure.data[-1].marker.color) == {UNKNOWN}
    assert "gold: not known" in figure.data[-1].hovertext[0]


def test_texts_are_escaped_and_long_ones_cut():
    evil = "<script>'x'</script><a href='http://x'>" + "long " * 30
    mention = ShownMention(text=evil, before=evil, after=evil, document=evil, gold=evil)
    figure = dendrogram_figure(TREE, [mention] * 4, threshold=0.4, title=evil)
    leaves = figure.data[-1]
    for text in (*figure.layout.yaxis.ticktext, *leaves.hovertext, figure.layout.title.text):
        assert "<script" not in text
        assert "<a " not in text
        assert "&lt;script&gt;'x'" in text
    assert max(map(len, figure.layout.yaxis.ticktext)) < 60
    assert len(leaves.hovertext[0]) < 2500


def test_trees_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="the tree has 4 leaves, but there are 3 mentions"):
        dendrogram_figure(TREE, shown("F", "V", "F"), threshold=0.4)
    with pytest.raises(ValueError, match=r"threshold is 1\.5"):
        dendrogram_figure(TREE, shown("F", "V", "F", "F"), threshold=1.5)
