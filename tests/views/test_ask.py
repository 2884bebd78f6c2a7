"""Boxes for texts of one's own: what a click asks, how a mistake is told, and what stays in sight."""

import shutil
import subprocess
from pathlib import Path

import ipywidgets
import pytest

from cdlm_lab.views import ask
from cdlm_lab.views.ask import MarkedText, ask_box

HOSTILE = "!<script>x</script>"
MISTAKE = '<span style="color:#d64545">!&lt;script&gt;x&lt;/script&gt; does not fit</span>'
LONG = "A long text. " * 40
EXAMPLE = {
    "question": " When? ",
    "candidates": ["In 1958.", "It is a cape."],
    "documents": {"a": "One.", "b": "Two.\nThree."},
    "other_text": LONG,
    "threshold": 0.5,
}


class Stage:
    """A box whose questions are recorded; what has a "!" in it cannot be answered."""

    def __init__(self, example, **form):
        self.asked, self.shown, self.while_busy = [], [], lambda: None
        self.box = ask_box(self.answer, example, show=self.shown.append, **form)

    def answer(self, **asked):
        self.asked.append(asked)
        self.while_busy()
        if "!" in str(asked):
            raise ValueError(f"{next(iter(asked.values()))} does not\nfit")
        return f"<b>answer {len(self.asked)}</b>"

    def click(self, **values):
        """Message after values were typed and the button clicked."""
        for name, value in values.items():
            self.box.fields[name].value = value
        self.box.button.click()
        assert not self.box.button.disabled
        return self.box.message.value


def test_fields_are_made_and_read_by_the_type_of_the_example():
    stage = Stage(EXAMPLE, button="Rank")
    assert stage.asked == [], "nothing is asked before it is shown"
    kinds = {name: type(field).__name__ for name, field in stage.box.fields.items()}
    assert kinds == {
        "question": "Text",
        **dict.fromkeys(("candidates", "documents", "other_text"), "Textarea"),
        "threshold": "FloatSlider",
    }
    stage.box.show()
    assert stage.asked == [EXAMPLE | {"question": "When?"}]
    stage.click(candidates=" a \n\r\n a\n", documents="Three.")
    assert stage.asked[1]["candidates"] == ["a", "a"], "equal lines are two"
    assert stage.asked[1]["documents"] == {"": "Three."}
    labels = [label.children[0].value for label in stage.box.box.children[1].children]
    assert labels[0] == "candidates: one on each line"
    assert "each under a line <code>== its title ==</code>" in labels[1]
    assert labels[2] == "other text"
    assert stage.box.fields["question"].placeholder == "your question"
    assert all("cdlm-own" in field._dom_classes for name, field in stage.box.fields.items() if name[0] != "t")
    assert "unicode-bidi:plaintext" in stage.box.box.children[-1].value
    assert stage.box.button.description == "Rank"


def test_a_click_asks_once_and_a_mistake_is_one_line_of_text_that_takes_the_answer_away():
    stage = Stage({"text": "a"})
    stage.box.show()
    stage.while_busy = stage.box.button.click
    assert stage.click() == ""
    assert len(stage.asked) == 1, "the answer stands there"
    stage.box.fields["text"].value = "b"
    assert len(stage.asked) == 1, "typing alone asks nothing"
    assert stage.click() == stage.click() == ""
    assert len(stage.asked) == 2, "nor does a click while it reads, or a second one"
    stage.while_busy = lambda: None
    assert stage.click(text=HOSTILE) == MISTAKE
    assert stage.click(text="c") == ""
    assert stage.shown == ["<b>answer 1</b>", "<b>answer 2</b>", "", "<b>answer 4</b>"]
    stage.box.fields["text"].value = "!"
    with pytest.raises(ValueError, match="does not\nfit"):  # without a person a mistake stops the run
        stage.box.show()
    stage.while_busy = lambda: 1 / 0
    stage.box.fields["text"].value = "a fault of the program"
    with pytest.raises(ZeroDivisionError):
        stage.box._on_click()
    assert (stage.box.button.disabled, stage.box.message.value) == (False, "")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"question": " "}, "the question is empty; write or paste one"),
        ({"other_text": " \n"}, "the other text is empty; write or paste one"),
        ({"candidates": " \n"}, "candidates:1: field text: the text is empty; write one on each line"),
        ({"candidates": "a\nb\ud83d"}, "candidates:2: field text: half a character"),
        ({"documents": ""}, "documents:1: field text: the text is empty"),
        ({"documents": "One.\n== b ==\nTwo."}, "documents:1: field text: text before the first"),
        ({"documents": "== <i> ==\n"}, "the document &lt;i&gt; has no text"),
    ],
)
def test_what_cannot_be_read_is_not_asked(values, expected):
    stage = Stage(EXAMPLE)
    assert expected in stage.click(**values)
    assert (stage.asked, stage.shown) == ([], [""])


def test_a_bar_moves_in_the_message_and_is_gone_afterwards(capsys):
    messages, stage = [], Stage({"text": "a"})

    def read():
        for done in range(2):
            print(f"\rscoring: {done} <pairs>", end="")
            messages.append((stage.box.message.value, stage.box.button.disabled))
        print()

    stage.while_busy = read
    assert stage.click() == ""
    lines = [f'<code style="white-space:pre-wrap">scoring: {n} &lt;pairs&gt;</code>' for n in range(2)]
    assert messages == [(line, True) for line in lines]
    assert "scoring" not in capsys.readouterr().out


def test_a_slider_asks_when_it_is_moved_and_what_shows_itself_is_shown():
    class Answer:
        def _repr_html_(self):
            return "<b>itself</b>"

    shown, asked = [], []
    choice = ipywidgets.Dropdown(options=[1, 2])

    def method(**given):
        asked.append(given)
        return Answer()

    box = ask_box(method, {"threshold": 0.5, "choice": choice}, show=shown.append)
    box.fields["threshold"].value, choice.value = 0.7, 2
    box.button.click()
    assert asked == [{"threshold": 0.7, "choice": 1}, {"threshold": 0.7, "choice": 2}]
    assert shown == ["<b>itself</b>"] * 2


# ---- a field of documents with mentions ----


def test_mentions_are_found_marked_and_asked_for():
    asked = []

    def cluster(documents: dict[str, str]) -> str:
        asked.append(documents)
        return "answered"

    def mark(documents: dict[str, str]) -> dict[str, str]:
        return {name: text.replace("fire", "<m>fire</m>") for name, text in documents.items()}

    shown = []
    box = ask_box(cluster, {"documents": {"a": "A fire.", "b": "The fire."}}, mark=mark, show=shown.append)
    field = box.fields["documents"]
    assert isinstance(field, MarkedText)
    assert field.value == "== a ==\nA fire.\n\n== b ==\nThe fire."
    box.mark()
    assert field.value == "== a ==\nA <m>fire</m>.\n\n== b ==\nThe <m>fire</m>."
    box.mark()
    assert field.value.count("<m>") == 2, "found anew, not marked twice"
    box.ask()
    assert asked == [{"a": "A <m>fire</m>.", "b": "The <m>fire</m>."}]
    assert shown == ["answered"]


def test_one_adds_and_removes_a_mention_by_click():
    if not shutil.which("node"):
        pytest.skip("until Node.js is there to run the script of the field")
    script = Path(ask.__file__).with_name("marked_text.js").read_text(encoding="utf-8")
    checks = """
    import assert from "node:assert";
    for (const value of ["A <m>fire</m> in <m>the <m>old</m> mill</m>.", "<m>a</m><m>b</m>", "x", "",
                         "<m><m>a</m> b</m>", "<m>a <m>b</m></m>"])
      assert.equal(serialise(parse(value)), value);
    const state = parse("== t ==\\nA <m>fire</m> broke out.\\n\\nBlaze");
    const marks = (start, end) => serialise({ ...state, marks: added(state, start, end) }).slice(8);
    assert.equal(marks(16, 19), "A <m>fire</m> <m>broke</m> out.\\n\\nBlaze");
    assert.equal(marks(11, 19), "A <m><m>fire</m> broke</m> out.\\n\\nBlaze");
    for (const [start, end] of [[10, 14], [0, 3], [20, 34], [14, 15]])
      assert.deepEqual(added(state, start, end), state.marks);
    """
    ran = subprocess.run(
        ["node", "--input-type=module"], input=script + checks, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
