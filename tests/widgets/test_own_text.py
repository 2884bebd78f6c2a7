"""The box for a text of one's own; what clicking does in general is tested with questions of one's own."""

from cdlm_lab.widgets.ask import OwnText, own_text_box


def tag(text):
    if "!" in text:
        raise ValueError(f"{text} does not\nfit")
    return f"<i>{len(text)}</i>"


def test_a_click_tags_the_text():
    own = OwnText(tag, text="Lucy came.")
    assert (own.text.value, own.answer.value, own.message.value) == ("Lucy came.", "", "")
    own.button.click()
    assert own.answer.value == "<i>10</i>"


def test_a_mistake_is_one_line_and_what_was_tagged_stays():
    own = OwnText(tag, text="<b>!", tagged="<b>known</b>")
    own.text.value = "<u>!"
    own.button.click()
    assert own.answer.value == "<b>known</b>"
    assert own.message.value == '<span style="color:#c22">&lt;u&gt;! does not fit</span>'
    own.text.value = " \n"
    own.button.click()
    assert "the text is empty; write or paste one" in own.message.value
    own.text.value = "Lucy"
    own.button.click()
    assert (own.answer.value, own.message.value) == ("<i>4</i>", "")


def test_what_is_known_is_not_asked_again():
    asked = []
    own = OwnText(lambda text: asked.append(text) or "found", text="Lucy", tagged="<b>known</b>")
    own.button.click()
    assert (asked, own.answer.value) == ([], "<b>known</b>")
    own.text.value = "Florence"
    own.button.click()
    assert (asked, own.answer.value) == (["Florence"], "found")


def test_the_box_holds_all_parts():
    box = own_text_box(tag, text="Lucy came.")
    assert [type(part).__name__ for part in box.children] == ["HTML", "Textarea", "Button", "HTML", "HTML"]
    assert "elsewhere in it helps" in box.children[0].value
    assert box.children[1].value == "Lucy came."
    assert box.children[2].description == "Tag"
