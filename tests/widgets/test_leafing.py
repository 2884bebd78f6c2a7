"""What browsers share; the rest is tested with questions and with tagged sentences."""

import pytest

from cdlm_lab.widgets.browse import Leafing, any_item

FILTERS = {"size": {"all": any_item, "small": lambda item: item < 5, "huge": lambda item: item > 99}}


def leafing(items=(7, 3, 8, 1)):
    """The controls, and the items that were shown."""
    shown = []
    lists = Leafing(
        items, noun="number", filters=FILTERS, line=lambda n: f"item {items[n]}", show=shown.append
    )
    return lists, shown


def test_an_item_is_shown_when_it_is_another():
    lists, shown = leafing()
    assert shown == [7]
    lists.filters["size"].value = "small"
    lists.next.click()
    lists.next.click()
    lists.filters["size"].value = "all"
    lists.filters["size"].value = "huge"
    lists.filters["size"].value = "small"
    assert shown == [7, 3, 1, None, 1]


def test_arrows_do_nothing_where_no_item_is_chosen():
    lists, shown = leafing()
    lists.filters["size"].value = "huge"
    for by in (-1, 1):  # a click that was under way
        lists._step(by)
    assert shown == [7, None]


def test_what_the_lists_say():
    lists, _ = leafing()
    assert [label for label, _ in lists.filters["size"].options] == ["all (4)", "small (2)", "huge (0)"]
    assert [label for label, _ in lists.picker.options] == ["item 7", "item 3", "item 8", "item 1"]
    assert [lists.previous.tooltip, lists.next.tooltip] == ["the number before", "the next number"]


def test_nothing_to_leaf_through_is_refused():
    with pytest.raises(ValueError, match="there is no number to show: items is empty"):
        leafing(())
