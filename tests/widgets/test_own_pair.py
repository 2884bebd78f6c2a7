"""The boxes for two documents of one's own: what clicking does, and what a person is told."""

import pytest

from cdlm_lab.widgets.ask import OwnPair


class Stage:
    """Boxes whose answers are kept; a text with "!" in it cannot be read."""

    def __init__(self, first: str = "a", second: str = "b") -> None:
        self.answers: list[str] = []
        self.pair = OwnPair(first, second, compare=self.compare, show=self.answers.append)

    def compare(self, first: str, second: str) -> str:
        assert not self.is_free or not self.answers, "nobody can click twice"
        if "!" in first + second:
            raise ValueError(f"the first document is empty: {first}")
        return f"{first} and {second}"

    @property
    def is_free(self) -> bool:
        return not self.pair.button.disabled


def test_it_begins_with_the_texts_it_was_given():
    stage = Stage("one", "two")
    assert stage.answers == [], "nothing is compared before it is shown"
    stage.pair.show()
    assert stage.answers == ["one and two"]
    assert [stage.pair.first.value, stage.pair.second.value] == ["one", "two"]


def test_boxes_have_names():
    pair = Stage().pair
    assert [box.description for box in (pair.first, pair.second)] == ["first document", "second document"]
    assert pair.button.description == "Compare"


def test_clicking_compares_what_was_typed():
    stage = Stage()
    stage.pair.show()
    stage.pair.first.value, stage.pair.second.value = "c", "d"
    assert stage.answers == ["a and b"], "typing alone compares nothing"
    stage.pair.button.click()
    assert stage.answers[-1] == "c and d"
    assert stage.pair.message.value == ""
    assert stage.is_free


def test_a_mistake_is_told_as_text_and_nothing_is_lost():
    stage = Stage()
    stage.pair.show()
    stage.pair.first.value = "!<script>"
    stage.pair.button.click()
    assert "the first document is empty: !&lt;script&gt;" in stage.pair.message.value
    assert stage.answers == ["a and b"]
    assert stage.is_free
    stage.pair.first.value = "c"
    stage.pair.button.click()
    assert stage.pair.message.value == ""
    assert stage.answers[-1] == "c and b"


def test_without_a_person_a_mistake_stops_the_run():
    with pytest.raises(ValueError, match="is empty"):
        Stage("!").pair.show()
