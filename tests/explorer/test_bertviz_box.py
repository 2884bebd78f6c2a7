"""The explorer's selection in bertviz."""

from cdlm_lab.explorer.bertviz_box import ChosenSentences


def test_what_is_chosen_in_the_explorer_is_drawn_by_a_click():
    shown, chosen = [], ["fire"]

    def draw(model, view, direction):
        if not chosen:
            raise ValueError("choose words <first>")
        return f"{model}, {view}, {direction}: {chosen[0]}"

    own = ChosenSentences(draw, models=["Longformer", "CDLM"], show=shown.append)
    own.show()
    for name, value in {"model": "Longformer", "view": "model", "direction": "to"}.items():
        own.fields[name].value = value
    assert shown == ["CDLM, head, from: fire"], "nothing is drawn unasked"
    own.button.click()
    assert (shown[1:], own.message.value) == (["Longformer, model, to: fire"], "")
    chosen.clear()
    own.button.click()
    assert "choose words &lt;first&gt;" in own.message.value
    assert (len(shown), own.button.disabled) == (2, False), "the picture stays"
    own.show()
    assert "choose words &lt;first&gt;" in shown[2], "a run without a person goes on"
    assert own.button.layout.flex == "0 0 auto", "its words are not cut where room is short"
    assert own.box.children[1].layout.flex_flow == "row wrap"
