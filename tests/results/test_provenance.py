"""Recorded runs say what made them: from a clean commit, and what their models began with."""

import json
from pathlib import Path

import pytest

from cdlm_lab.results.reports import NamedReport
from cdlm_lab.results.series import encoder_name
from cdlm_lab.runs.report import read_report

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
# Recorded before runs from a tree with uncommitted changes were refused; tables mark them. It only shrinks.
KNOWN = Path(__file__).with_name("made_from_uncommitted.txt").read_text().split()


def uncommitted(folder: Path) -> list[str]:
    """The recorded files whose program had changes that no commit holds: nobody can make them again."""
    names = []
    for file in sorted(folder.rglob("*.json")):
        values = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(values, dict) and str(values.get("git_commit")).endswith("-dirty"):
            names.append(file.relative_to(folder).as_posix())
    return names


def test_no_further_run_is_recorded_from_a_tree_with_uncommitted_changes(tmp_path: Path) -> None:
    assert sorted(set(uncommitted(RESULTS)) - set(KNOWN)) == [], "commit, run it again, and record that"
    for name, commit in (("a/b.json", "8d0f-dirty"), ("c.json", "8d0f"), ("d.json", None)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"git_commit": commit}))
    assert uncommitted(tmp_path) == ["a/b.json"]
    assert len(KNOWN) <= 23


def recorded(name: str) -> NamedReport:
    report = read_report(RESULTS / "storyworld_tiny" / f"{name}.json")
    return NamedReport(name=f"storyworld_tiny/{name}.json", report=report)


MATCHED, TALKED = "CDLM, after language modelling, claims", "CDLM, after language modelling"
ASKED = "CDLM, after language modelling, questions"


@pytest.mark.parametrize(
    ("name", "system", "label", "encoder"),
    [
        ("matching", "cdlm", "CDLM (after language modelling, claims)", MATCHED),
        ("matching_cosine", "tf-idf", "TF-IDF cosine", ""),
        ("matching_20000", "cdlm", "CDLM", "storyworld/cdlm"),
        ("answers", "joint-ie", f"joint IE_k (from {TALKED})", TALKED),
        ("answers_short", "joint-ie", "joint IE_k", "storyworld/longformer"),
        ("answers_groupings", "pairwise", f"pairwise (from {TALKED})", TALKED),
        ("questions_shipped", "local-cdlm", f"Local CDLM (from {ASKED})", ASKED),
        ("claims_decided", "joint-ie", f"joint IE_1 (from {TALKED})", TALKED),
    ],
)
def test_rows_and_encoders_say_what_a_model_began_with(name: str, system: str, label: str, encoder: str):
    one = recorded(name)
    row = next(row for row in one.rows if row.system == system)
    assert row.label.removesuffix(one.report.mark).strip() == label
    assert encoder_name(one.encoder_of(system)) == encoder


def test_an_alignment_is_of_the_model_of_its_matching() -> None:
    labels = {row.label for row in recorded("alignment").rows}
    assert any("(after language modelling, claims)" in label for label in labels)
