"""The buttons that hand what is chosen to another view: what a click does, and what a person is told."""

from cdlm_lab.widgets.ask import ChosenSentences


class Stage:
    """Buttons whose pictures are kept; without words chosen there is nothing to draw."""

    def __init__(self, *, chosen: str = "fire") -> None:
        self.chosen = chosen
        self.pictures: list[str] = []
        self.buttons = ChosenSentences(self.draw, models=["Longformer", "CDLM"], show=self.pictures.append)

    def draw(self, model: str, view: str, direction: str) -> str:
        if not self.chosen:
            raise ValueError("choose words <first>")
        return f"{model}, {view}, {direction}: {self.chosen}"


def test_it_begins_with_the_last_model_and_the_view_of_heads():
    stage = Stage()
    stage.buttons.show()
    assert stage.pictures == ["CDLM, head, from: fire"]


def test_without_words_it_says_what_to_do_and_a_run_goes_on():
    stage = Stage(chosen="")
    stage.buttons.show()
    assert "choose words &lt;first&gt;" in stage.pictures[0]


def test_a_click_takes_what_is_chosen_then():
    stage = Stage()
    stage.buttons.show()
    stage.chosen = "blaze"
    assert len(stage.pictures) == 1, "nothing is drawn unasked"
    stage.buttons.model.value, stage.buttons.view.value = "Longformer", "model"
    stage.buttons.direction.value = "to"
    stage.buttons.button.click()
    assert stage.pictures[-1] == "Longformer, model, to: blaze"
    assert stage.buttons.message.value == ""


def test_a_mistake_is_told_as_text_and_the_picture_stays():
    stage = Stage()
    stage.buttons.show()
    stage.chosen = ""
    stage.buttons.button.click()
    assert "choose words &lt;first&gt;" in stage.buttons.message.value
    assert len(stage.pictures) == 1
    assert not stage.buttons.button.disabled


def test_the_words_of_the_button_are_not_cut_where_room_is_short():
    buttons = Stage().buttons
    assert buttons.button.layout.flex == "0 0 auto"
    assert buttons.box.children[0].layout.flex_flow == "row wrap"
