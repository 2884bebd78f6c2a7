"""Clusters as cards: what is in sight, what is folded, and where the wrong mentions show."""

import re

import pytest

from cdlm_lab.widgets.coreference import (
    IN_FOLD,
    IN_SIGHT,
    ShownCluster,
    ShownMention,
    clusters_html,
)


def mentions(gold, count, *, text="word", start=0):
    return tuple(
        ShownMention(text=f"{text}{n}", before="the", after="rose", document=f"{gold}-{n % 2}", gold=gold)
        for n in range(start, start + count)
    )


def cluster(name, *members):
    return ShownCluster(name=name, mentions=tuple(mention for part in members for mention in part))


def body(html):
    """The page without its stylesheet."""
    return re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)


def cards(html):
    return body(html).split('<div class="cdlm-card"')[1:]


def words(html):
    return re.findall(r"<mark[^>]*>([^<]*)</mark>", html)


def text_of(html):
    return re.sub(r"<[^>]*>", "", html).replace("&ensp;", " ")


def test_a_card_has_the_mentions_in_their_sentences():
    (card,) = cards(clusters_html([cluster("7", mentions("A", 3))]))
    assert words(card) == ["word0", "word1", "word2"]
    assert "7 word0" in text_of(card)
    assert "3 mentions, 2 documents" in text_of(card)
    assert "the word1 rose A-1" in text_of(card)
    assert "<details" not in card
    assert "dashed" not in card


def test_the_largest_cluster_comes_first_and_equals_keep_their_order():
    html = clusters_html(
        [cluster("a", mentions("A", 2)), cluster("b", mentions("B", 3)), cluster("c", mentions("C", 2))]
    )
    assert [re.search(r"<bdi>(\w)</bdi>", card).group(1) for card in cards(html)] == ["b", "a", "c"]


def test_mentions_of_another_gold_cluster_stand_out():
    html = clusters_html(
        [cluster("1", mentions("B", 1), mentions("A", 3)), cluster("2", mentions("B", 2, start=5))]
    )
    first, second = cards(html)
    assert words(first) == ["word0", "word1", "word2", "word0"]  # those of A, then the one that is wrong
    (wrong,) = re.findall(r'<div style="border-left:3px dashed.*?</mark>', first)
    assert "≠" in wrong
    assert "<bdi>B</bdi>" in wrong
    assert "A 3 here" in text_of(first)
    assert "B 1 here, others in 2" in text_of(first)
    assert "≠" not in second
    assert "B 2 here, others in 1" in text_of(second)


def test_long_cards_are_folded_and_wrong_mentions_stay_in_sight():
    members = (mentions("A", 20), mentions("B", IN_SIGHT + 2, text="wrong"))
    (card,) = cards(clusters_html([cluster("1", *members)]))
    seen, folded = card.split("<details>")
    assert words(seen) == [f"word{n}" for n in range(IN_SIGHT)] + [f"wrong{n}" for n in range(IN_SIGHT)]
    assert sorted(words(folded)) == sorted([f"word{n}" for n in range(IN_SIGHT, 20)] + ["wrong5", "wrong6"])
    assert f"<summary>{20 - IN_SIGHT + 2} more mentions, 2 of other gold clusters</summary>" in folded


@pytest.mark.parametrize(("count", "folds"), [(IN_SIGHT, 0), (IN_SIGHT + 1, 0), (IN_SIGHT + 2, 1)])
def test_nothing_is_folded_to_save_one_line(count, folds):
    html = clusters_html([cluster("1", mentions("A", count))])
    assert html.count("<details>") == folds
    assert len(words(html)) == count


def test_a_huge_card_is_cut():
    (card,) = cards(clusters_html([cluster("1", mentions("A", 1000))]))
    assert len(words(card)) == IN_SIGHT + IN_FOLD
    assert f"… and {1000 - IN_SIGHT - IN_FOLD} more mentions, not shown" in card


def test_at_most_so_many_clusters_and_how_many_more():
    several = [cluster(f"s{n}", mentions(f"A{n}", 2)) for n in range(5)]
    single = [cluster(f"o{n}", mentions(f"B{n}", 1)) for n in range(4)]
    html = clusters_html([*single, *several], limit=3)
    assert len(cards(html)) == 3
    assert "… and 2 more clusters of several mentions, not shown" in html
    assert "… and 1 more cluster of one mention, not shown" in html
    assert (
        "9 clusters of 14 mentions · 0 with mentions of several gold clusters · 4 mentions alone"
        in text_of(html)
    )
    assert "not shown" not in clusters_html([*single, *several], limit=5)


def test_mentions_alone_are_folded_and_say_where_the_others_are():
    html = clusters_html([cluster("1", mentions("A", 2)), cluster("2", mentions("A", 1, start=8))])
    alone = html[html.index("<details>") :]
    assert "<summary>1 mention alone</summary>" in alone
    assert words(alone) == ["word8"]
    assert "A others in 1" in text_of(alone)


def test_colours_tell_gold_clusters_apart():
    html = clusters_html(
        [cluster("1", mentions("A", 2), mentions("B", 1)), cluster("2", mentions("A", 2, start=4))]
    )
    colours = re.findall(r"<mark style=\"background:(#\w{6})42", html)
    assert len(set(colours)) == 2
    assert colours == [colours[0]] * 2 + [colours[2]] + [colours[0]] * 2


def test_without_gold_nothing_is_wrong():
    members = tuple(ShownMention(text=f"w{n}", document="mine") for n in range(3))
    html = body(clusters_html([ShownCluster(name="1", mentions=members)]))
    for sign in ("≠", "dashed", "gold", "●"):
        assert sign not in html


def test_texts_are_escaped():
    evil = '<script>alert("x")</script><b title="'
    mention = ShownMention(text=evil, before=evil, after=evil, document=evil, gold=evil)
    other = ShownMention(text=evil, gold="B" + evil)
    one = ShownMention(text=evil, gold=evil)
    page = clusters_html(
        [
            ShownCluster(name=evil, mentions=(mention, mention, other)),
            ShownCluster(name="2" + evil, mentions=(one,)),
        ]
    )
    assert "<script" not in page
    assert '<b title="' not in page
    assert '"x"' not in page
    tags = {"div", "style", "b", "span", "bdi", "mark", "details", "summary"}
    assert set(re.findall(r"<([a-z]+)", page)) <= tags


def test_nothing_to_show():
    assert "0 clusters of 0 mentions" in text_of(clusters_html([]))


def test_clusters_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="cluster 3 has no mentions"):
        ShownCluster(name="3", mentions=())
    with pytest.raises(ValueError, match="two clusters are called '1'"):
        clusters_html([cluster("1", mentions("A", 1)), cluster("1", mentions("B", 1))])
    with pytest.raises(ValueError, match="limit is 0"):
        clusters_html([], limit=0)
