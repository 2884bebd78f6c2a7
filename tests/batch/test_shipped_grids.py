"""The grids that the project ships, planned where neither data, nor checkpoints, nor runs are."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny_grid import jobs_of, plan_of

from cdlm_lab.batch.expansion import Job
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.plan import HUB
from cdlm_lab.encoders.model_folder import PREFIX
from cdlm_lab.encoders.variants import VARIANTS

ROOT = Path(__file__).resolve().parents[2]
GRIDS = sorted(path.name for path in (ROOT / "notebooks" / "grids").glob("*.yaml"))
PAPERS = ("cda.yaml", "cdlm.yaml", "doc_arc.yaml", "mspp.yaml")
REAL = "real_small.yaml"
WITH_DATA = (*PAPERS, REAL)
# Doc-ARC, Tables 2 to 4: "mean (SD) test F1 scores across 5 runs"; MSPP, 4.3: "five independent runs".
FIVE_SEEDS = {
    "doc_arc.yaml": {"07_document_attentive_ner"},
    "mspp.yaml": {"09_answer_selection", "10_fact_verification"},
}


@pytest.fixture(autouse=True)
def nowhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's notebooks and nothing else, on a machine without checkpoints."""
    (here / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(here / "hub"))
    return here


def path_of(name: str) -> Path:
    return Path("notebooks", "grids", name)


def texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from texts(inner)


def waits_for(jobs: Mapping[str, Job], name: str) -> set[str]:
    """All runs that are made before a run."""
    return {one for other in jobs[name].after for one in {other, *waits_for(jobs, other)}}


@pytest.mark.parametrize("name", GRIDS)
def test_all_that_is_not_here_is_told_in_one_line_each(name: str):
    for step in plan_of(path_of(name), gpus=0).values():
        gpus = step.job.resources.gpus
        expected = [f"{need}: " for need, what in step.job.needs.items() if not Path(what).exists()]
        expected += [f"{gpus} GPU"] if gpus else []
        assert len(step.missing) == len(expected), step.missing
        for line, start in zip(step.missing, expected, strict=True):
            assert line.startswith(start)
            assert "\n" not in line


@pytest.mark.parametrize("name", GRIDS)
def test_what_a_run_reads_is_made_before_it_or_given(name: str):
    """It waits for what it refers to, in `encoders` too; a checkpoint that it needs is a parameter."""
    grid, jobs = read_grid(path_of(name)), jobs_of(path_of(name))
    for job in jobs.values():
        encoders = Path(job.parameters.get("encoders", ""))
        start = "" if encoders == grid.runs else encoders.name  # before each system's name
        among_runs = grid.runs in (encoders, encoders.parent) and start not in jobs
        for text in texts(job.parameters):
            assert not re.search(r"\{\w+[^{}]*\}", text), f"{job.name}: {text}"
            for place in map(Path, text.split()):
                below = place.relative_to(grid.runs).parts if place.is_relative_to(grid.runs) else ()
                given = any(Path(need).is_relative_to(place) for need in job.needs.values())
                given = given or (among_runs and place == encoders)
                assert not below or below[0] in job.after or given, f"{job.name} does not wait for {place}"
        if among_runs:
            wanted = set(VARIANTS) & {*str(job.effective["systems"]).split()}
            made = {run.removeprefix(start).lstrip("-_") for run in job.after}
            assert wanted <= made | {Path(need).parent.name for need in job.needs.values()}
        if job.parameters.get("mspp") == str(grid.runs):
            heads = [head for other in job.after if (head := jobs[other].parameters.get("head"))]
            assert sorted(heads) == ["ae_k", "ie_k"], "one of each: the notebook tells them by their heads"
        checkpoints = {need.removeprefix(HUB) for need in job.needs.values() if need.startswith(HUB)}
        assert checkpoints <= set(texts(job.effective)), job.name
    if name == "pages.yaml":  # every notebook as it opens, 12 on the recorded runs
        return
    last = list(grid.tasks.values())[-1]
    assert last.notebook.path.stem == "12_results", "the results book comes last and reads everything"
    (book,) = [job for job in jobs.values() if job.task.name == last.name]
    assert book.parameters["results"] == str(grid.runs)
    assert waits_for(jobs, book.name) == set(jobs) - {book.name}


def test_the_models_that_come_with_the_project_are_made_from_nothing():
    for job in jobs_of(path_of("shipped.yaml")).values():  # none reads one that is there, also not by default
        read = texts({"trained": opened} if (opened := job.effective.get("trained")) else job.effective)
        assert not [text for text in read if text.startswith(PREFIX)], job.name


@pytest.mark.parametrize("name", sorted(FIVE_SEEDS))
def test_five_seeds_where_the_paper_has_five(name: str):
    jobs = [job for job in jobs_of(path_of(name)).values() if "seeds" in job.effective]
    seeds = {job.task.notebook.path.stem: job.effective["seeds"] for job in jobs}
    assert seeds == dict.fromkeys(FIVE_SEEDS[name], 5)


@pytest.mark.parametrize("name", GRIDS)
def test_no_path_of_any_one_machine_even_in_comments(name: str):
    assert not re.search(r"(?<![\w.}\-])[/~]/?\w", path_of(name).read_text().replace("://", " "))


@pytest.mark.parametrize("name", GRIDS)
def test_a_machine_that_is_slow_in_half_precision_is_not_made_to_use_it(name: str):
    wanted = {job.effective.get("precision", "auto") for job in jobs_of(path_of(name)).values()}
    assert wanted <= {"auto", "float32"}


@pytest.mark.parametrize("name", WITH_DATA)
def test_data_may_lie_elsewhere(name: str):
    grid = read_grid(path_of(name), variables={"data": "else/where"})
    given = [text for task in grid.tasks.values() for text in texts(task.needs)]
    assert grid.variables["data"] == "else/where"
    assert all(text.startswith((HUB, "{data}/", str(grid.runs), "{runs}")) for text in given)


# ---- the recorded runs that data/results/files.md says real_small.yaml makes again ----

RESULTS = ROOT / "data" / "results"
ROW = re.compile(r"^\| `([\w/.-]+\.json)` \|.*\| `([\w.-]+)` \|[^|]*\|$", re.MULTILINE)
RUN_OF = dict(ROW.findall((RESULTS / "files.md").read_text()))
# Made by older code, or counted from a run.
BY_HAND = {
    "scisumm_minilm/matching_small_weights.json",
    "scisumm_minilm_first/matching.json",
    "scisumm_minilm_first/alignment.json",
    "ecb_plus_minilm/attention_by_common_words.json",
    "ecb_plus_minilm/event_all_documents.json",
    "ecb_plus_minilm/entity_all_documents.json",
    "hotpotqa_minilm/questions_last_pass.json",
}
# What runs that were recorded before these were parameters had; the grids have today's values.
BEFORE = {"attention_dropout": "checkpoint", "word_vector_size": 0.6, "reset_globals": False}
OF_STORYWORLD = {"train_stories", "held_out_stories", "stories", "paragraphs", "seen"}


@pytest.mark.parametrize("name", ["deciding.yaml", "news.yaml", "shipped.yaml"])
def test_perplexities_are_read_under_the_same_masks_and_of_one_vocabulary(name: str):
    jobs = [job for job in jobs_of(path_of(name)).values() if job.task.notebook.path.stem.startswith("02")]
    assert {job.effective["seed"] for job in jobs} == {0}
    read = {str(job.effective[model.replace("-", "_")]) for job in jobs for model in VARIANTS}
    assert not [model for model in read if model.startswith("storyworld/")], "another vocabulary"


def test_every_recorded_file_has_a_run_and_every_run_a_file():
    files = {path.relative_to(RESULTS).as_posix() for path in RESULTS.glob("*_minilm*/*.json")}
    assert {file for file in RUN_OF if "_minilm" in file} == files - BY_HAND
    named = [run for file, run in RUN_OF.items() if file in files]
    assert len(set(named)) == len(named)
    jobs = jobs_of(path_of(REAL))
    pretrained = {name for name, job in jobs.items() if job.task.notebook.path.stem[:2] in ("01", "08")}
    assert {*named, "news_512_perplexity-s1-validation", "results"} == jobs.keys() - pretrained


@pytest.mark.parametrize(("file", "run"), RUN_OF.items())
def test_a_run_has_the_parameters_of_its_recorded_file(file: str, run: str):
    """Those that both know; not where corpora and models lie, nor what is shown, of the machine, or of
    storyworld alone."""
    recorded = json.loads((RESULTS / file).read_text())["parameters"]
    now = jobs_of(path_of(REAL if "_minilm" in file else "shipped.yaml"))[run].effective
    passed_over = {"workers", "precision", "compare"} | (
        set() if now.get("corpus") == "storyworld" else OF_STORYWORLD
    )
    names = [name for name in now.keys() & recorded.keys() - passed_over if "/" not in str(now[name])]
    assert len(names) >= 2
    changed = {name: recorded[name] for name in names if now[name] != recorded[name]}
    assert changed == {name: BEFORE.get(name) for name in changed}
