"""Clusters as cards, pairs that a system got wrong, and the merge tree of a topic as a figure."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from shown_reads import words_of

from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.tasks.coreference.clustering import labels_at, merge_tree
from cdlm_lab.tasks.coreference.view import IN_FOLD, IN_SIGHT, PairError, ShownCluster, clusters_html
from cdlm_lab.views.html import HUES, UNKNOWN, ShownMention


def plain(html):
    return re.sub(r"<[^>]*>", "", html).replace("&ensp;", " ")


def mentions(gold, count, *, text="word", start=0):
    return tuple(
        ShownMention(text=f"{text}{n}", before="the", after="rose", document=f"{gold}-{n % 2}", gold=gold)
        for n in range(start, start + count)
    )


def cluster(name, *members):
    return ShownCluster(name=name, mentions=tuple(mention for part in members for mention in part))


def cards(*clusters):
    """Return the HTML of each card, without the stylesheet."""
    body = re.sub(r"<style>.*?</style>", "", clusters_html(clusters), flags=re.DOTALL)
    return body.split('<div class="cdlm-card"')[1:]


def words(html):
    return re.findall(r"<mark[^>]*>([^<]*)</mark>", html)


def test_a_card_has_the_mentions_in_their_sentences_and_the_largest_comes_first():
    (card,) = cards(cluster("7", mentions("A", 3)))
    assert words(card) == ["word0", "word1", "word2"]
    for text in ("7 word0", "3 mentions, 2 documents", "the word1 rose A-1"):
        assert text in plain(card)
    assert not re.search("<details|dashed", card)
    sizes = {"a": 2, "b": 3, "c": 2}
    several = cards(*(cluster(name, mentions(name.upper(), size)) for name, size in sizes.items()))
    assert [re.search(r"<bdi>(\w)</bdi>", card)[1] for card in several] == ["b", "a", "c"], (
        "equals keep order"
    )


def test_mentions_of_another_gold_cluster_stand_out():
    first, second = cards(
        cluster("1", mentions("B", 1), mentions("A", 3)), cluster("2", mentions("B", 2, start=5))
    )
    assert words(first) == ["word0", "word1", "word2", "word0"]  # those of A, then the one that is wrong
    (wrong,) = re.findall(r'<div style="border-left:3px dashed.*?</mark>', first)
    assert "≠" in wrong
    assert "<bdi>B</bdi>" in wrong
    assert "A 3 here" in plain(first)
    assert "B 1 here, others in 2" in plain(first)
    assert "≠" not in second
    assert "B 2 here, others in 1" in plain(second)
    colours = re.findall(r"<mark style=\"background:(#\w{6})42", first + second)
    assert colours == [colours[0]] * 3 + [colours[3]] * 3
    assert colours[0] != colours[3]


def test_long_cards_are_folded_and_wrong_mentions_stay_in_sight():
    (card,) = cards(cluster("1", mentions("A", 20), mentions("B", IN_SIGHT + 2, text="wrong")))
    seen, folded = card.split("<details>")
    assert words(seen) == [f"word{n}" for n in range(IN_SIGHT)] + [f"wrong{n}" for n in range(IN_SIGHT)]
    assert sorted(words(folded)) == sorted([f"word{n}" for n in range(IN_SIGHT, 20)] + ["wrong5", "wrong6"])
    assert f"<summary>{20 - IN_SIGHT + 2} more mentions, 2 of other gold clusters</summary>" in folded
    (huge,) = cards(cluster("1", mentions("A", 1000)))
    assert len(words(huge)) == IN_SIGHT + IN_FOLD
    assert f"… and {1000 - IN_SIGHT - IN_FOLD} more mentions, not shown" in huge


def test_at_most_so_many_clusters_and_how_many_more(monkeypatch):
    several = [cluster(f"s{n}", mentions(f"A{n}", 2)) for n in range(5)]
    single = [cluster(f"o{n}", mentions(f"B{n}", 1)) for n in range(4)]
    assert "not shown" not in clusters_html([*single, *several])
    monkeypatch.setattr(coreference, "MOST_CLUSTERS", 3)
    html = clusters_html([*single, *several])
    assert html.count('class="cdlm-card"') == 3
    assert "… and 2 more clusters of several mentions, not shown" in html
    assert "… and 1 more cluster of one mention, not shown" in html
    head = "9 clusters of 14 mentions · 0 with mentions of several gold clusters · 4 mentions alone"
    assert head in plain(html)


def test_mentions_alone_are_folded_and_without_gold_nothing_is_wrong():
    html = clusters_html([cluster("1", mentions("A", 2)), cluster("2", mentions("A", 1, start=8))])
    alone = html[html.index("<details>") :]
    assert "<summary>1 mention alone</summary>" in alone
    assert words(alone) == ["word8"]
    assert "A others in 1" in plain(alone)
    (card,) = cards(cluster("1", [ShownMention(text=f"w{n}", document="mine") for n in range(3)]))
    assert not re.search("≠|dashed|gold|●", card)


def test_nothing_at_all_can_be_shown():
    assert "0 clusters of 0 mentions" in plain(clusters_html([]))


def pair(score, first="A", second="B", *, text="w"):
    return PairError(
        first=ShownMention(text=f"{text}1", before="the", after="fell .", document="d1", gold=first),
        second=ShownMention(text=f"{text}2", before="a", document="d2", gold=second),
        score=score,
    )


def sections(merged, split=(), threshold=0.5):
    """Return the parts with merged and with split pairs, as HTML."""
    html = coreference.errors_html(merged, split, threshold=threshold)
    return re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).split(">Split")


def scores(html):
    return [float(number) for number in re.findall(r"font-weight:600\">(\d\.\d{3})<", html)]


DISTINCT = [pair(score, f"A{n}", f"B{n}") for n, score in enumerate((0.4, 0.9, 0.6, 0.95))]
SAME = [pair(score, f"A{n}", f"A{n}") for n, score in enumerate((0.4, 0.1, 0.3))]


def test_merged_pairs_fall_and_split_pairs_rise():
    merged, split = sections(DISTINCT, SAME)
    assert (scores(merged), scores(split)) == ([0.95, 0.9, 0.6, 0.4], [0.1, 0.3, 0.4])
    assert "Merged: 4 pairs" in merged
    assert ": 3 pairs" in split
    merged, split = sections([pair(0.8125, "STORM", "FIRE")])
    assert "0.812 ● STORM the w1 fell . d1 ● FIRE a w2 d2" in words_of(merged)
    assert "width:81%" in merged
    assert "Merged: 1 pair<" in merged
    assert ": 0 pairs<" in split
    first, second = re.findall(r"background:(#\w{6})42", merged)
    assert first != second


def test_pairs_of_the_same_gold_clusters_are_one_row_but_never_those_without_gold(monkeypatch):
    alike = [pair(0.5, "A", "B"), pair(0.9, "B", "A", text="worst"), pair(0.7, "A", "B"), pair(0.6, "A", "C")]
    merged, _ = sections(alike)
    assert scores(merged) == [0.9, 0.6]
    for text in ("worst1", "and 2 more pairs like this", "Merged: 4 pairs"):
        assert text in merged
    merged, _ = sections([pair(0.5, None, None)] * 3)
    assert scores(merged) == [0.5] * 3
    assert "like this" not in merged
    pairs = (*DISTINCT, pair(0.3, "A0", "B0"), pair(0.2, "X", "Y"))
    assert "not shown" not in sections(pairs)[0]
    monkeypatch.setattr(coreference, "MOST_PAIRS", 2)
    merged, _ = sections(pairs)
    assert scores(merged) == [0.95, 0.9]
    assert "… and 4 more pairs, not shown" in merged


def test_pairs_that_others_misled_are_noted():
    merged, split = sections(
        (pair(0.7, "A", "B"), pair(0.5, "A", "C"), pair(0.1, "A", "D")),
        (pair(0.2, "A", "A"), pair(0.5, "B", "B"), pair(0.6, "C", "C")),
    )
    assert merged.count("joined by way of others") == 2  # 0.5 alone would not have joined: it takes more
    assert split.count("kept apart by others") == 1


# 0 and 2 join at 0.9, 3 joins them at 0.45, 1 joins all at 0.05
SCORES = np.array([[1, 0.05, 0.9, 0.6], [0.05, 1, 0.05, 0.05], [0.9, 0.05, 1, 0.3], [0.6, 0.05, 0.3, 1]])
TREE = merge_tree(SCORES)


def drawn(golds, tree=TREE, threshold=0.4):
    texts = ("fire", "vote", "blaze", "flames")
    around = {"before": "the", "after": "spread"}
    shown = [
        ShownMention(text=f"{texts[n % 4]}{n // 4 or ''}", document=f"d{n}", gold=gold, **around)
        for n, gold in enumerate(golds)
    ]
    return coreference.dendrogram_figure(tree, shown, threshold=threshold)


FIGURE = drawn("FVFF")


def branches(figure):
    """Return (colour, corners) of each elbow of the dendrogram."""
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


def test_elbows_join_at_the_average_score_in_the_colour_of_all_below():
    # leaves from the top: 0, 2, 3, 1
    (dark, first), (_, second), (grey, third) = branches(FIGURE)
    assert first == [(1.0, 0.0), (0.9, 0.0), (0.9, 1.0), (1.0, 1.0)]
    assert sorted(second) == [(0.45, 0.5), (0.45, 2.0), (0.9, 0.5), (1.0, 2.0)]
    assert sorted(third) == [(0.05, 1.25), (0.05, 3.0), (0.45, 1.25), (1.0, 3.0)]
    assert dark in HUES
    assert grey == UNKNOWN  # F and V meet there
    for golds, coloured in (("FFFF", 3), ("FVFF", 2), ("FFVV", 0), ("FVFV", 1), ("FVVF", 0)):
        assert sum(colour != UNKNOWN for colour, _ in branches(drawn(golds))) == coloured
    unknown = drawn([None] * 4)
    assert {colour for colour, _ in branches(unknown)} == set(unknown.data[-1].marker.color) == {UNKNOWN}
    assert "gold: not known" in unknown.data[-1].hovertext[0]


def test_leaves_have_their_texts_colours_and_sentences():
    assert list(FIGURE.layout.yaxis.ticktext) == ["fire", "blaze", "flames", "vote"]
    assert list(FIGURE.layout.yaxis.tickvals) == [0, 1, 2, 3]
    leaves, hue = FIGURE.data[-1], branches(FIGURE)[0][0]
    assert list(leaves.marker.color[:3]) == [hue, hue, hue]
    assert leaves.marker.color[3] in set(HUES) - {hue}
    assert list(leaves.marker.symbol) == ["circle", "circle", "circle", "circle-open"]
    assert leaves.hovertext[1] == "<b>blaze</b><br>the blaze spread<br>document d2<br>gold: F"
    one = drawn("F", np.empty((0, 4)))
    assert branches(one) == []
    assert list(one.layout.yaxis.ticktext) == ["fire"]


def test_the_threshold_is_a_line_and_its_clusters_are_bands():
    bands = [shape for shape in FIGURE.layout.shapes if shape.type == "rect"]
    (line,) = [shape for shape in FIGURE.layout.shapes if shape.type == "line"]
    assert (line.x0, line.x1) == (0.4, 0.4)
    assert [(band.x1, band.y0, band.y1) for band in bands] == [(0.4, -0.45, 2.45)]
    assert "threshold 0.40" in [note.text for note in FIGURE.layout.annotations]
    assert [shape.type for shape in drawn("FVFF", threshold=0.95).layout.shapes] == ["line"]


@given(mentions=st.integers(1, 30), seed=st.integers(0, 99), threshold=st.floats(0, 1))
def test_no_branches_cross(mentions, seed, threshold):
    tree = random_tree(mentions, seed)
    order = coreference.leaf_order(tree)
    assert sorted(order) == list(range(mentions))
    assert order[0] == 0  # the branch with the first mention is on top
    labels = labels_at(tree, threshold)[order].tolist()
    assert sum(a != b for a, b in pairwise(labels)) == len(set(labels)) - 1  # each cluster is a run


def test_a_chain_of_a_thousand_mentions_is_no_fault():
    scores = np.minimum.outer(np.linspace(0.9, 0.1, 1000), np.linspace(0.9, 0.1, 1000))
    assert coreference.leaf_order(merge_tree(scores))[:3] == [0, 1, 2]
