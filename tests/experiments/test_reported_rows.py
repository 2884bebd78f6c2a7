"""Rows of the recorded reports are those that the notebooks' own tables show."""

from pathlib import Path
from statistics import fmean

import pytest
from small_reports import answer_report, claim_report

from cdlm_lab.experiments.attention_analysis import table_rows
from cdlm_lab.experiments.document_matching import matching_rows
from cdlm_lab.experiments.fact_verification import verification_rows
from cdlm_lab.experiments.perplexity import rows_of
from cdlm_lab.experiments.sentence_alignment import alignment_rows
from cdlm_lab.experiments.views.questions import question_rows
from cdlm_lab.experiments.views.tagging import tag_rows
from cdlm_lab.report import read_report
from cdlm_lab.results.reports import DEV, READERS, ReportedRow, reported_rows

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"


def of(name: str, group: str = "") -> tuple:
    report = read_report(RESULTS / name)
    return report, {row.system: row for row in reported_rows(report) if row.group == group}


def test_perplexities():
    report, rows = of("storyworld_tiny/perplexity.json")
    shown = {row.variant: row for row in rows_of(report)}
    assert list(rows) == list(shown)
    for variant, row in rows.items():
        for measure, theirs in (
            ("perplexity", shown[variant].all_masked),
            ("cross_document_perplexity", shown[variant].cross_document),
        ):
            score = row.scores[measure]
            assert (score.value, score.p) == (theirs.value, theirs.p_next)
            assert score.interval == (theirs.low, theirs.high)
    assert rows["longformer"].scores["perplexity"].against == "local-cdlm"
    assert rows["cdlm"].checkpoint == "runs/story/cdlm/model"


def test_matching():
    report, rows = of("scisumm_minilm/matching.json")
    for theirs in matching_rows(report):
        ours = rows[theirs.system]
        assert ours.label == theirs.label
        assert (ours.scores["f1"].value, ours.scores["f1"].deviation) == (theirs.f1, theirs.f1_deviation)
        assert ours.scores["accuracy"].p == theirs.p
    assert rows["bert-han"].scores[f"{DEV}f1"].p is None
    assert rows["bert-han"].checkpoint == "minilm"
    assert rows["gru-han"].checkpoint == ""
    assert of("scisumm_minilm/matching_longformer.json")[1]["cdlm"].checkpoint == "runs/news/cdlm"


def test_alignment():
    report, rows = of("scisumm_minilm/alignment.json", "oracle")
    for theirs in alignment_rows(report, "oracle"):
        ours = rows[theirs.name.replace(" by ", "/")]
        assert {name: score.value for name, score in ours.scores.items()} == theirs.values
        assert ours.scores["mrr"].p == theirs.p
    _, joint = of("scisumm_minilm/alignment.json", "joint")
    assert "random" not in joint
    assert all(score.p is None for row in joint.values() for score in row.scores.values())


@pytest.mark.parametrize(
    ("alignment", "matching"),
    [("alignment", "matching"), ("alignment_two_sentences", "matching_two_sentences")],
)
def test_the_released_scores_that_were_added_follow_from_those_that_were_recorded(alignment, matching):
    report, rows = of(f"scisumm_minilm/{alignment}.json", "released")
    _, joint = of(f"scisumm_minilm/{alignment}.json", "joint")
    runs = read_report(RESULTS / "scisumm_minilm" / f"{matching}.json").tables["runs"]
    oracle = of(f"scisumm_minilm/{alignment}.json", "oracle")[1]["random"].scores
    assert set(rows) == {"random", *joint}
    for name, row in rows.items():
        test = [run for run in runs if run["split"] == "test" and run["system"] == name.partition("/")[0]]
        accuracy = fmean(run["accuracy"] for run in test) if test else 0.5
        recall = fmean(run["recall"] for run in test) if test else 0.5
        seen = accuracy - recall / 2  # unrelated pairs that are called so, of all
        for measure, score in row.scores.items():
            related = joint[name].scores[measure].value if test else oracle[measure].value / 2
            wrong = (1 - accuracy) / 21 if measure == "mrr" else 0
            assert score.value == pytest.approx(related / 2 + seen + wrong)
            assert score.interval is None
    assert (report.data["pairs"], report.data["unrelated_pairs"]) == (383, 383)


def test_questions_tags_and_ranks():
    report, rows = of("storyworld_tiny/questions.json")
    for theirs in question_rows(report):
        ours = rows[theirs.variant].scores
        assert {name: ours[name].value for name in theirs.values} == {
            name: value[0] for name, value in theirs.values.items()
        }
    report, rows = of("jnlpba_minilm/tagging.json")
    assert {name: row.scores["f1"].deviation for name, row in rows.items()} == {
        theirs.system: theirs.deviation for theirs in tag_rows(report)
    }
    report, rows = of("ecb_plus_minilm/attention.json")
    for theirs in table_rows(report):
        for name, cell in theirs.cells.items():
            ours = rows[theirs.variant].scores
            assert (ours[name].value, ours[name].p) == (cell.mean, cell.p_next)
            assert ours[f"chance/{name}"].value == cell.chance
        assert "gap/event" in ours


def test_coreference_has_p_in_the_row_of_the_other():
    report, rows = of("ecb_plus_minilm/event_documents.json", "event")
    assert list(rows) == ["documents", "ecb_event_sentences", "singletons", "one cluster", "same head word"]
    tests = {row["b"]: row["p_holm"] for row in report.tables["comparisons"]}
    for system, row in rows.items():
        assert row.scores["conll/f1"].p == tests.get(system)
        assert row.scores[f"{DEV}conll/f1"].p is None
    assert rows["documents"].scores["muc/recall"].value == report.scores["test/this run/muc/recall"]["value"]


def groups(rows: list[ReportedRow]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row.system)
    return found


def test_answers(tmp_path: Path):
    report = answer_report(tmp_path / "run")
    rows = reported_rows(report)
    systems = ["pairwise", "joint-ie_k", "mspp-ie_k", "random"]
    assert groups(rows) == {"all": systems, "reranked": systems}
    every, again = ({row.system: row for row in rows if row.group == name} for name in ("all", "reranked"))
    assert every["pairwise"].scores == again["pairwise"].scores, "it ranks all"
    key = "mspp-ie/reranked/test/map"
    assert again["mspp-ie_k"].scores["map"].value == report.scores[key]["value"]
    p = [
        row["p_holm"]
        for row in report.tables["comparisons"]
        if (row["a"], row["b"]) == ("mspp-ie", "pairwise")
    ]
    assert every["mspp-ie_k"].scores["p_at_1"].p == p[0]
    assert every["mspp-ie_k"].scores["p_at_1"].against == "pairwise"
    assert (every["mspp-ie_k"].checkpoint, every["joint-ie_k"].checkpoint) == (
        "given/mspp-ie",
        "storyworld/longformer",
    )
    assert every["random"].scores["p_at_1"].interval is None


def test_claims(tmp_path: Path):
    report = claim_report(tmp_path / "run")
    rows = reported_rows(report)
    assert groups(rows)["test"] == ["majority", "claim-only", "pairwise-weighted_sum", "joint-ie_1"]
    ours = {row.label: row.scores["label_accuracy"] for row in rows if row.group == "test"}
    for theirs in verification_rows(report, "test"):
        assert ours[theirs.label].value == theirs.accuracy.value
        assert ours[theirs.label].p == theirs.accuracy.p
    assert ours["joint IE_1"].against == "pairwise-weighted_sum"


@pytest.mark.parametrize(
    "file", sorted(RESULTS.glob("*/*.json")), ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_every_recorded_report_of_a_table_has_rows(file: Path):
    if not file.read_text(encoding="utf-8").lstrip("{ \n").startswith('"format"'):
        pytest.skip("until it is a report: it holds other numbers")
    report = read_report(file)
    if report.name in READERS:
        assert all(row.scores for row in reported_rows(report))
