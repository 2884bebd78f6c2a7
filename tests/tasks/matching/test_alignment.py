"""Sentence alignment: scores by hand (oracle, joint, released, random), and a run on that of notebook 04."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.own import add_predictions
from cdlm_lab.runs.report import Report, open_run, read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.matching import alignment as experiment
from cdlm_lab.tasks.matching import view
from cdlm_lab.tasks.matching.alignment import Aligned, AlignmentRun, Settings, matched_run, ranked
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.experiment import Settings as MatchingSettings


def pair(name: str, sentences: int, *true: int) -> DocumentPair:
    first = PairDocument(id=f"{name} first", sentences=tuple(f"{name} {n}" for n in range(sentences)))
    second = PairDocument(id=f"{name} second", sentences=("x",))
    return DocumentPair(id=name, first=first, second=second, related=True, aligned=true, cluster=name)


PAIRS = [pair("p", 4, 1), pair("q", 2, 0)]
# GRU-HAN finds p's sentence first with seed 0 and third with seed 1, q's second and first.
SCORES = {
    ("gru-han", "attention", 0): [np.array([0.1, 0.6, 0.2, 0.1]), np.array([0.4, 0.6])],
    ("gru-han", "attention", 1): [np.array([0.4, 0.2, 0.3, 0.1]), np.array([0.7, 0.3])],
    ("gru-han", "cosine", 0): [np.array([0.9, 0.1, 0.8, 0.7]), np.array([0.1, 0.2])],
    ("gru-han", "cosine", 1): [np.array([0.9, 0.1, 0.8, 0.7]), np.array([0.1, 0.2])],
}
DETECTED = {("gru-han", 0): np.array([True, False]), ("gru-han", 1): np.array([True, True])}
# Of p's first document and another one: seed 0 sees that they are unrelated, seed 1 does not.
UNRELATED = [replace(PAIRS[0], id="u", related=False, aligned=())]
REJECTED = {("gru-han", 0): np.array([True]), ("gru-han", 1): np.array([False])}


def reported(folder: Path, **values) -> Report:
    probabilities = {key: one * 1.0 for key, one in DETECTED.items()}
    form = {"detected": DETECTED, "rejected": REJECTED, "probabilities": probabilities}
    settings = Settings(run_folder=str(folder), **values)
    opened = open_run(folder, name="sentence alignment", parameters={})
    known = MatchingSettings(systems="gru-han")
    matching = MatchingRun(settings=known, pairs={"test": [*PAIRS, *UNRELATED]})
    run = AlignmentRun(settings=settings, matching=matching, opened=opened)
    return experiment.report(run, experiment.evaluate(run, Aligned(scores=SCORES, **form)))


@pytest.fixture
def by_hand(tmp_path: Path) -> Report:
    return reported(tmp_path)


def values(report: Report, group: str) -> dict:
    """Return (system, ranked by) -> metric -> row of the scores of a group."""
    rows: dict[tuple[str, str], dict[str, Score]] = {}
    for row in report.rows:
        if row.group == group and row.seed is None:
            system, _, by = row.system.partition("/")
            rows.setdefault((system, by), {})[row.metric] = row
    return rows


def test_given_that_the_documents_are_related(by_hand) -> None:
    oracle = values(by_hand, "oracle")
    row = oracle["gru-han", "attention"]
    # seed 0: 1 and 1/2; seed 1: 1/3 and 1
    assert row["mrr"].value == pytest.approx(((1 + 1 / 2) / 2 + (1 / 3 + 1) / 2) / 2)
    assert row["mrr"].deviation == pytest.approx(np.std([3 / 4, 2 / 3], ddof=1))
    assert (row["at_1"].value, row["at_5"].value, row["mrr"].seeds) == (pytest.approx(1 / 2), 1, 2)
    assert oracle["gru-han", "cosine"]["mrr"].value == pytest.approx((1 / 4 + 1 / 2) / 2)
    # random is the mean over all orders: of 4 sentences (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48, of 2 3/4
    row = oracle["random", ""]
    assert row["mrr"].value == pytest.approx((25 / 48 + 3 / 4) / 2)
    assert row["at_1"].value == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert row["mrr"].seeds == 1
    # cosine is tested against attention
    (row,) = by_hand.tables["comparisons"]
    assert (row["a"], row["b"], row["measure"]) == ("gru-han/cosine", "gru-han/attention", "mrr")
    assert row["difference"] == pytest.approx(3 / 8 - (3 / 4 + 2 / 3) / 2)
    assert oracle["gru-han", "cosine"]["mrr"].p == row["p_holm"]


def test_jointly_a_pair_that_was_not_found_counts_0(by_hand) -> None:
    row = values(by_hand, "joint")["gru-han", "attention"]
    assert row["mrr"].value == pytest.approx(((1 + 0) / 2 + (1 / 3 + 1) / 2) / 2)
    assert row["mrr"].p is None


def test_released_an_unrelated_pair_counts_and_a_wrong_decision_is_rank_21(by_hand) -> None:
    row = values(by_hand, "released")["gru-han", "attention"]
    seeds = ((1 + 1 / 21 + 1) / 3, (1 / 3 + 1 + 1 / 21) / 3)
    assert row["mrr"].value == pytest.approx(sum(seeds) / 2)
    assert row["mrr"].deviation == pytest.approx(np.std(seeds, ddof=1))
    assert row["at_1"].value == pytest.approx(((1 + 0 + 1) / 3 + (0 + 1 + 0) / 3) / 2)
    assert (row["mrr"].n, row["mrr"].clusters) == (3, 2), "p and u are one cluster, q another"
    random = values(by_hand, "released")["random", ""]
    chance = (25 / 48 + 3 / 4) / 2
    assert random["mrr"].value == pytest.approx((chance + 1 / 21 + (1 + 1 / 21) / 2) / 3)


def test_released_sentences_of_pan_are_pooled(tmp_path) -> None:
    row = values(reported(tmp_path, reading="precision"), "released")["gru-han", "attention"]
    # seed 0: one of 5 of p, q missed, u seen; seed 1: one of 5 of both, u taken to be related
    assert row["at_5"].value == pytest.approx(((1 + 0 + 1) / (5 + 1 + 1) + (1 + 1 + 0) / (5 + 5 + 1)) / 2)
    assert row["mrr"].value == pytest.approx(((1 + 1 / 60 + 1) / 3 + (1 / 3 + 1 + 1 / 60) / 3) / 2)


def test_sentences_that_a_system_does_not_read_come_last_and_tie() -> None:
    one = ranked(pair("p", 5, 4), np.array([-0.5, 0.25]))
    assert one.scores[:2].tolist() == [-0.5, 0.25]
    (last,) = set(one.scores[2:])
    assert last < -0.5
    assert np.flatnonzero(one.relevant).tolist() == [4]


# ---- on a run of notebook 04


def test_scores_of_ones_own_are_ranked_in_the_same_way(finished, tmp_path: Path) -> None:
    run, aligned, written = finished
    one, file = aligned.scores["bert-han", "attention", 1], tmp_path / "mine.jsonl"
    rows = [
        {"item": pair.id, "scores": ranked(pair, scores).scores.tolist()}
        for pair, scores in zip(run.pairs, one, strict=True)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows[::-1]))
    mine = {row.metric: row.value for row in add_predictions(run, file).rows if row.system == "mine"}
    seed_1 = [row for row in written.rows if row.key[::4] == ("bert-han/attention", 1)]
    theirs = {row.metric: row.value for row in seed_1 if row.group == "oracle"}
    assert mine == theirs
    file.write_text("".join(f"{json.dumps(row | {'scores': [0.5]})}\n" for row in rows))
    with pytest.raises(DataError, match=r"mine\.jsonl:1: field scores: no \d+ scores; write a number a sent"):
        add_predictions(run, file)


@pytest.fixture(scope="module")
def finished(matched: MatchingRun, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("alignment")
    settings = Settings(run_folder=str(folder), matching_run=str(matched.folder), systems="")
    run = experiment.prepare(settings)
    experiment.train(run)
    aligned = experiment.predict(run)
    return run, aligned, experiment.report(run, experiment.evaluate(run, aligned))


def copied(matched: MatchingRun, folder: Path, changes: dict) -> Settings:
    """Copy the report of a run of notebook 04 with changed parameters to a folder; settings that read it."""
    report = json.loads((matched.folder / "report.json").read_text())
    report["parameters"] |= changes
    (folder / "report.json").write_text(json.dumps(report))
    return Settings(matching_run=str(folder), systems="")


def test_a_finished_run_is_read_with_its_own_settings(matched, finished, tmp_path: Path) -> None:
    run = finished[0]
    assert run.matching.settings == matched.settings
    assert run.matching.pairs == matched.pairs
    assert dict(view.alignment_facts(run)).keys() == {"pairs", "systems"}  # nothing is trained
    assert "true sentences" in view.preview(run).data
    # by how many processes it was made, and in which half precision, does not matter where it is read
    several = copied(matched, tmp_path, {"parallel": "ddp 3", "precision": "float16"})
    assert matched_run(several).settings == replace(matched.settings, run_folder=str(tmp_path))


def test_a_run_of_its_own_trains_in_the_precision_that_is_given(tmp_path: Path) -> None:
    settings = Settings(run_folder=str(tmp_path), systems="gru-han", precision="float32")
    run = AlignmentRun.read(settings)
    assert run.matching.settings.precision == "float32"
    listed = dict(view.alignment_facts(run))
    assert (listed["trained first"], listed["precision of training"]) == ("GRU-HAN, seed 0", "float32")


def test_a_run_of_its_own_opens_the_models_of_another(matched, tmp_path: Path) -> None:
    systems = " ".join(one.system.name for one in matched.trainings if one.system.is_model and not one.seed)
    own = {"run_folder": str(tmp_path / "own"), "systems": systems}
    run = experiment.prepare(Settings(trained=str(matched.folder), **own))
    assert run.matching.settings.hidden_size == matched.settings.hidden_size
    assert {run.matching.model_folder(one).is_dir() for one in run.matching.trainings} == {True}
    assert "trained first" not in dict(view.alignment_facts(run))
    with pytest.raises(ParameterError, match=r"trained is 'storyworld/coreference', which has no trained"):
        experiment.prepare(
            Settings(trained="storyworld/coreference", **own | {"run_folder": str(tmp_path / "b")})
        )


def test_every_system_ranks_the_sentences_of_every_pair_with_true_ones(finished) -> None:
    run, aligned, written = finished
    assert all(pair.related and pair.aligned for pair in run.pairs)
    hierarchical = ("bert-han", "bert-han-shallow", "gru-han")
    assert {key[:2] for key in aligned.scores} == {
        ("tf-idf", "cosine"),
        *((name, by) for name in hierarchical for by in ("attention", "cosine")),
        *(("cdlm", by) for by in ("global attention", "encodings")),
    }
    for scores in aligned.scores.values():
        lists = [ranked(*both) for both in zip(run.pairs, scores, strict=True)]
        assert [len(one.scores) for one in lists] == [len(pair.first.sentences) for pair in run.pairs]
        true = [tuple(np.flatnonzero(one.relevant)) for one in lists]
        assert true == [pair.aligned for pair in run.pairs]
    ways = list(values(written, "joint"))
    assert len(ways) == 9
    for group in ("oracle", "released"):
        assert list(values(written, group)) == [("random", ""), *ways]
        assert "TF-IDF cosine, cosine" in view.alignment_table(written, group).html()
    assert view.mrr_figure(written).data
    assert read_report(run.folder).data["reading_of_p_at_n"] == "hit"


def test_alignments_of_the_longformers_are_kept(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, aligned, _ = finished
    monkeypatch.setattr(MatchingRun, "load", None)  # loading a model would fail
    again = experiment.predict(run)
    for key, scores in aligned.scores.items():
        for one, same in zip(scores, again.scores[key], strict=True):
            np.testing.assert_array_equal(one, same)


def test_the_picture_of_a_pair_has_a_column_for_every_system(finished) -> None:
    run, aligned, _ = finished

    def html(shown: str = "") -> str:
        return view.compared_pair(run, aligned, shown).data

    assert all(system.label in html() for system in run.matching.systems)
    assert "the true sentence" in html()
    assert html(run.pairs[1].id).count("<tr") > 3
    with pytest.raises(ParameterError, match="the pair is 'none such'"):
        html("none such")


def test_runs_that_cannot_be_read(matched: MatchingRun, tmp_path: Path) -> None:
    open_run(tmp_path / "other", name="other", parameters={"seed": 1}).write_report(scores=[])
    for folder, systems, message in (
        (tmp_path, "", "where no finished run of notebook 04 is"),
        (matched.folder, "gru-han-deep tf-idf", "systems names gru-han-deep, which"),
        (tmp_path / "other", "", "a run of 'other' without 'systems'"),
    ):
        with pytest.raises(ParameterError, match=message):
            matched_run(Settings(matching_run=str(folder), systems=systems))


@pytest.mark.parametrize(
    ("scores", "shares"),
    [
        ([0.3, 0.2, 0.25], [2 / 3, 0, 1 / 3]),
        ([0.3], [1]),  # a document of one sentence
        ([0.3, 0.3], [0.5, 0.5]),
        ([0.3, -0.7], [1, None]),  # the second is not in the sequence
        ([0.3, 0.2, -0.8], [1, 0, None]),
    ],
)
def test_scores_without_a_scale_become_shares(scores: list[float], shares: list[float | None]) -> None:
    made = view._shares(np.array(scores))
    assert [share is None for share in made] == [share is None for share in shares]
    assert [share for share in made if share is not None] == pytest.approx(
        [share for share in shares if share is not None]
    )
