"""A notebook cell that is run again leaves one copy of its widgets, and of the models behind them."""

import gc
import json
import weakref
from typing import Any

import ipywidgets
import pytest
from jupyter_client.manager import start_new_kernel

from cdlm_lab.views import rerun
from cdlm_lab.views.ask import ask_box
from cdlm_lab.views.browse import Leafing


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str] | None]:
    """The cell that runs, and its run, in a list of one that tests change."""
    now: list[tuple[str, str] | None] = [None]
    monkeypatch.setattr(rerun, "running_cell", lambda: now[0])
    monkeypatch.setattr(rerun, "_MADE", {})
    return now


class Model:
    """Answers, and can be told to be gone."""

    def __call__(self, *texts: str) -> str:
        return "answer"


def leafing(model: Model) -> Leafing:
    form = {"noun": "text", "text": str, "right": lambda item: None, "html": model}
    return Leafing(["a", "b"], filters={"length": {"one": lambda item: True}}, **form)


BOXES = {
    "a box": lambda model: ask_box(model, {"text": "a", "texts": ["b"], "threshold": 0.5}),
    "a box with mentions": lambda model: ask_box(model, {"documents": {"a": "A fire."}}, mark=dict),
    "a list to leaf through": leafing,
}


@pytest.mark.parametrize("name", BOXES)
def test_of_ten_runs_of_a_cell_one_widget_and_one_model_live(name: str, runs: list):
    before, models, kept = len(ipywidgets.widgets.widget._instances), [], []
    for run in range(10):
        runs[0] = ("cell", str(run))
        model = Model()
        models.append(weakref.ref(model))
        BOXES[name](model)
        runs[0] = ("another cell", str(run))
        kept.append(len(ipywidgets.widgets.widget._instances) - before)
    del model
    gc.collect()
    assert [one() is not None for one in models] == [False] * 9 + [True]
    assert len(set(kept)) == 1, kept


def test_two_widgets_of_one_run_and_widgets_of_other_cells_stay(runs: list):
    runs[0] = ("cell", "0")
    made = [BOXES["a box"](Model()) for _ in range(2)]
    runs[0] = ("other", "0")
    made.append(BOXES["a box"](Model()))
    assert all(box.box.comm is not None for box in made)
    runs[0] = ("cell", "1")
    BOXES["a box"](Model())
    assert [box.box.comm is not None for box in made] == [False, False, True]


def test_where_no_front_end_names_cells_nothing_is_closed(runs: list):
    first, _ = BOXES["a box"](Model()), BOXES["a box"](Model())
    assert first.box.comm is not None
    assert rerun.running_cell() is None


CELL = """import gc, weakref
from cdlm_lab.views.ask import ask_box
class Model:
    def __call__(self, text):
        return "answer"
model = Model()
try:
    models.append(weakref.ref(model))
except NameError:
    models = [weakref.ref(model)]
box = ask_box(model, {"text": "a"})
gc.collect()
print([one() is not None for one in models])
"""


@pytest.mark.slow
def test_a_real_kernel_knows_the_cell_that_jupyterlab_names():
    manager, client = start_new_kernel()
    try:
        for run in range(3):
            content = {"code": CELL, "silent": False, "store_history": True, "user_expressions": {}}
            message = client.session.msg("execute_request", content, metadata={"cellId": "abc"})
            client.shell_channel.send(message)
            client.get_shell_msg(timeout=60)
            printed = _printed(client, message["header"]["msg_id"])
            assert json.loads(printed.lower()) == [False] * run + [True]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _printed(client: Any, request: str) -> str:
    text = ""
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return text
