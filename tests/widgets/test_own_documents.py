"""The box for one's own documents: what clicking and sliding does, and what a person is told."""

import pytest

from cdlm_lab.widgets.ask import OwnDocuments


class Stage:
    """A box whose pictures are kept; a text with "!" in it cannot be read."""

    def __init__(self, text: str = "a") -> None:
        self.pictures: list[str] = []
        self.read: list[str] = []
        self.box = OwnDocuments(text, find=self.find, threshold=0.5, show=self.pictures.append)

    def find(self, text: str):
        self.read.append(text)
        if "!" in text:
            raise ValueError(f"text:1: {text} is not closed; write </m>")
        return lambda threshold: f"{text} at {threshold:.2f}"


def test_it_begins_with_the_text_it_was_given():
    stage = Stage("a <m>b</m>")
    stage.box.show()
    assert stage.box.text.value == "a <m>b</m>"
    assert stage.pictures == ["a <m>b</m> at 0.50"]


def test_the_slider_draws_again_without_reading_again():
    stage = Stage()
    stage.box.threshold.value = 0.3
    assert stage.pictures == [], "nothing was found yet"
    stage.box.show()
    stage.box.threshold.value = 0.7
    assert stage.pictures == ["a at 0.30", "a at 0.70"]
    assert stage.read == ["a"]


def test_clicking_reads_what_was_typed():
    stage = Stage()
    stage.box.show()
    stage.box.text.value = "b"
    stage.box.button.click()
    assert stage.pictures[-1] == "b at 0.50"
    assert stage.box.message.value == ""
    assert not stage.box.button.disabled


def test_a_bar_moves_in_the_message_and_is_gone_afterwards(capsys: pytest.CaptureFixture[str]):
    told = []

    def find(text: str):
        for done in range(3):
            print(f"\rscoring: {done} <pairs>", end="")
            told.append(box.message.value)
        print()
        return lambda threshold: text

    box = OwnDocuments("a", find=find, threshold=0.5, show=lambda html: None)
    box.button.click()
    assert [line.partition(": ")[2] for line in told] == [f"{n} &lt;pairs&gt;</code>" for n in range(3)]
    assert box.message.value == ""
    box.show()
    assert len(told) == 6
    assert "scoring" not in capsys.readouterr().out


def test_a_mistake_is_told_as_text_and_nothing_is_lost():
    stage = Stage()
    stage.box.show()
    stage.box.text.value = "!<script>"
    stage.box.button.click()
    assert "text:1: !&lt;script&gt; is not closed; write &lt;/m&gt;" in stage.box.message.value
    assert stage.pictures == ["a at 0.50"]
    assert not stage.box.button.disabled
    stage.box.text.value = "c"
    stage.box.button.click()
    assert stage.box.message.value == ""
    assert stage.pictures[-1] == "c at 0.50"


def test_without_a_person_a_mistake_stops_the_run():
    with pytest.raises(ValueError, match="is not closed"):
        Stage("!").box.show()
