"""Any items can be browsed; the browsers of the tasks have their own tests."""

from cdlm_lab.views import browse


def test_any_items_can_be_leafed_through():
    seen = []
    numbers = browse.Leafing(
        (7, 3, 8, 1),
        noun="number",
        filters={"size": {"small": lambda item: item < 5, "huge": lambda item: item > 99}},
        text=lambda item: f"item {item}",
        right=lambda item: None,
        html=lambda item: seen.append(item) or str(item),
    )
    assert [label for label, _ in numbers.filters["size"].options] == ["all (4)", "small (2)", "huge (0)"]
    assert numbers.picker.options[1][0] == "\u00b7 2. item 3"
    for entry in ("small", "all", "huge", "small"):
        numbers.filters["size"].value = entry
    assert seen == [7, 3, 3], "drawn again after nothing was left"
