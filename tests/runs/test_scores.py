"""The score table: what a row is, and how the names of format 1 become rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.runs.report import RunError, open_run, read_report
from cdlm_lab.runs.scores import NAMINGS, Score, plain_name, rows_of_names

# Of each experiment: a name, what it says (system, split, group, metric), and a test that belongs to it.
PERPLEXITY = ("cdlm/perplexity", ("cdlm", "", "", "perplexity"))
OF_F1 = {"b": "x", "measure": "f1"}
NAMED = {
    "tour": (*PERPLEXITY, {"a": "cdlm", "b": "x", "kind": "perplexity"}),
    "pretraining": (*PERPLEXITY, None),
    "cross-document perplexity": (*PERPLEXITY, {"a": "cdlm", "b": "x", "kind": "perplexity"}),
    "coreference": (
        "test/this run/conll/f1",
        ("this run", "test", "event", "conll/f1"),
        {"a": "x", "b": "this run"},
    ),
    "document matching": ("gru-han/test/f1", ("gru-han", "test", "", "f1"), {"a": "gru-han"} | OF_F1),
    "sentence alignment": (
        "gru-han/cosine/oracle/mrr",
        ("gru-han/cosine", "", "oracle", "mrr"),
        {"a": "gru-han", "by": "cosine", "b": "x", "b_by": "attention"},
    ),
    "multihop question answering": ("cdlm/test/f1", ("cdlm", "test", "", "f1"), {"a": "cdlm"} | OF_F1),
    "document-attentive tagging": ("bert/test/f1", ("bert", "test", "", "f1"), {"a": "bert"} | OF_F1),
    "answer selection": (
        "joint-ie/all/test/map",
        ("joint-ie", "test", "all", "map"),
        {"a": "joint-ie", "b": "pairwise", "ranking": "all", "measure": "map"},
    ),
    "fact verification": (
        "joint-ie/symmetric/label_accuracy",
        ("joint-ie", "symmetric", "", "label_accuracy"),
        {"a": "joint-ie", "b": "pairwise-max", "set": "symmetric", "measure": "label_accuracy"},
    ),
    "attention analysis": (
        "cdlm/positive/event",
        ("cdlm", "", "", "positive/event"),
        {"a": "cdlm", "b": "x", "cell": "positive/event"},
    ),
}


def rows(experiment: str, scores: dict, *tests: dict) -> list[Score]:
    tables = {"comparisons": [*tests]} if tests else {}
    return rows_of_names(experiment, scores, parameters={"kind": "event"}, tables=tables)


@pytest.mark.parametrize("experiment", NAMINGS)
def test_names_become_rows(experiment: str):
    name, place, test = NAMED[experiment]
    score = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 40, "deviation": None, "seeds": 1}
    tests = [test | {"p_holm": 0.125}] if test else []
    first, step = rows(experiment, {name: score, "best_step": {"value": 3}}, *tests)
    assert (first.system, first.split, first.group, first.metric) == place
    assert (first.value, first.low, first.high, first.seeds, first.deviation) == (0.5, 0.25, 0.75, 1, None)
    assert (first.p, bool(first.against)) == ((0.125, True) if test else (None, False))
    assert (step.system, step.metric, step.value) == ("", "best_step", 3)


@pytest.mark.parametrize("name", ["tour", "pretraining", "cross-document perplexity"])
def test_tokens_are_what_a_perplexity_is_measured_on(name: str):
    (row,) = rows(name, {"cdlm/perplexity": {"value": 3.5, "n": 4, "tokens": 90}})
    assert (row.n, row.clusters) == (90, 4)


def test_tests_against_other_systems_stand_in_the_comparisons_alone():
    test = {"a": "mspp-ie", "b": "joint-ie", "ranking": "all", "measure": "map", "p_holm": 0.5}
    assert rows("answer selection", {"mspp-ie/all/test/map": {"value": 0.5}}, test)[0].p is None
    test = {"a": "joint-ie", "b": "claim-only", "set": "dev", "measure": "label_accuracy", "p_holm": 0.5}
    assert rows("fact verification", {"joint-ie/dev/label_accuracy": {"value": 0.5}}, test)[0].p is None


def test_further_numbers_are_rows_and_further_text_is_a_note():
    score = {"value": 0.5, "dev_conll_f1": 0.75, "reports": ["a", "b"], "empty": None}
    first, second = rows("x", {"threshold": score})
    assert (first.metric, first.value, first.note) == ("threshold", 0.5, "a, b")
    assert (second.metric, second.value, second.note) == ("threshold/dev_conll_f1", 0.75, "")
    (label,) = rows("fact verification", {"majority/dev/label_accuracy": {"value": 0.5, "label": "refuted"}})
    assert label.note == "refuted"


def test_rows_are_written_read_and_framed(tmp_path: Path):
    run = open_run(tmp_path, name="x", parameters={})
    first = Score(system="a", split="test", metric="f1", value=np.float32(0.5), n=np.int64(4), seed=7)
    second = Score(metric="tokens", value=10)
    report = run.write_report(scores=[first, second])
    assert read_report(tmp_path) == report
    assert report.rows == [first, second]
    assert json.loads((tmp_path / "report.json").read_text())["scores"] == [
        {"system": "a", "split": "test", "metric": "f1", "value": 0.5, "n": 4, "seed": 7},
        {"metric": "tokens", "value": 10},
    ]
    frame = report.frame
    assert frame.query("system == 'a' and split == 'test'")["value"].tolist() == [0.5]
    assert frame["p"].isna().all()
    assert frame["against"].tolist() == ["", ""]
    assert plain_name(first) == "a/test/f1/seed 7"


@pytest.mark.parametrize("value", [True, "0.5", float("nan"), float("inf"), None])
def test_what_no_value_can_be(value: object):
    with pytest.raises(ValueError, match="value"):
        Score(metric="f1", value=value)


def as_format_1(folder: Path, name: str, **values: object) -> Path:
    """The report of an empty run, changed to format 1 with these values."""
    open_run(folder, name=name, parameters={}).write_report(scores={})
    path = folder / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1, **values}))
    return path


def test_a_report_of_format_1_is_not_as_its_notebook_writes_it(tmp_path: Path):
    scores = {"test/a/conll/f1": {"value": 1}}
    path = as_format_1(tmp_path, "coreference", scores=scores, tables={"comparisons": [{}]})
    with pytest.raises(RunError, match=r"report\.json: not as its notebook writes it \(KeyError\('b'\)\)"):
        read_report(path)


def test_p_has_one_name_in_reports_of_format_1_too(tmp_path: Path):
    path = as_format_1(tmp_path, "x", scores={}, tables={"a": [{"p_permutation": 0.5}]})
    assert read_report(path).tables == {"a": [{"p": 0.5}]}
