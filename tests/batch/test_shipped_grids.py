"""The grids that the project ships, planned where neither data, nor checkpoints, nor runs are."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny_grid import jobs_of, plan_of

from cdlm_lab.batch.command import main
from cdlm_lab.batch.expansion import Job
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.plan import HUB

ROOT = Path(__file__).resolve().parents[2]
GRIDS = sorted(path.name for path in (ROOT / "notebooks" / "grids").glob("*.yaml"))
PAPERS = ("cda.yaml", "cdlm.yaml", "doc_arc.yaml", "mspp.yaml")
# Doc-ARC, Tables 2 to 4: "mean (SD) test F1 scores across 5 runs"; MSPP, section 4.3: "averaged across five
# independent runs".
FIVE_SEEDS = {
    "doc_arc.yaml": {"07_document_attentive_ner"},
    "mspp.yaml": {"09_answer_selection", "10_fact_verification"},
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's notebooks and nothing else, on a machine without GPUs and checkpoints."""
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def path_of(name: str) -> Path:
    return Path("notebooks", "grids", name)


def texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def waits_for(jobs: Mapping[str, Job], name: str) -> set[str]:
    """All runs that are made before a run."""
    found: set[str] = set()
    for other in jobs[name].after:
        found |= {other} | waits_for(jobs, other)
    return found


def test_the_four_papers_have_grids():
    assert set(PAPERS) <= set(GRIDS)


@pytest.mark.parametrize("name", GRIDS)
def test_all_that_is_not_here_is_told_in_one_line_each(name: str):
    for step in plan_of(path_of(name), gpus=0).values():
        asked = step.job.resources.gpus
        expected = [f"{need}: " for need, what in step.job.needs.items() if not Path(what).exists()]
        expected += [f"{asked} GPU"] if asked else []
        assert len(step.missing) == len(expected), step.missing
        for line, start in zip(step.missing, expected, strict=True):
            assert line.startswith(start)
            assert "\n" not in line


@pytest.mark.parametrize("name", GRIDS)
def test_references_are_resolved_and_waited_for(name: str):
    runs, jobs = read_grid(path_of(name)).runs, jobs_of(path_of(name))
    for job in jobs.values():
        for text in texts(job.parameters):
            assert not re.search(r"\{\w+[^{}]*\}", text), f"{job.name}: {text}"
            for word in text.split():
                below = Path(word).parts[len(runs.parts) :] if Path(word).is_relative_to(runs) else ()
                given = any(Path(need).is_relative_to(word) for need in job.needs.values())
                assert not below or below[0] in job.after or given, f"{job.name} does not wait for {word}"


@pytest.mark.parametrize("name", GRIDS)
def test_a_folder_of_models_will_hold_them(name: str):
    """Notebooks 04 and 06 look in `encoders` for folders with the names of their systems."""
    runs, jobs = read_grid(path_of(name)).runs, jobs_of(path_of(name))
    for job in jobs.values():
        if job.parameters.get("encoders") == str(runs):
            wanted = str(job.effective.get("systems") or job.effective.get("variants")).split()
            there = {Path(need).parent.name for need in job.needs.values()} | set(job.after)
            assert set(wanted) <= there, job.name
        if job.parameters.get("mspp") == str(runs):
            heads = [head for other in job.after if (head := jobs[other].parameters.get("head"))]
            assert sorted(heads) == ["ae_k", "ie_k"], "one of each: the notebook tells them by their heads"


@pytest.mark.parametrize("name", GRIDS)
def test_checkpoints_that_are_needed_are_used(name: str):
    for job in jobs_of(path_of(name)).values():
        used = set(texts(job.effective))
        for need in job.needs.values():
            assert not need.startswith(HUB) or need.removeprefix(HUB) in used, f"{job.name}: {need}"


@pytest.mark.parametrize("name", GRIDS)
def test_the_results_book_comes_last_and_reads_everything(name: str):
    jobs = jobs_of(path_of(name))
    last = list(read_grid(path_of(name)).tasks.values())[-1]
    assert last.notebook.path.stem == "12_results"
    (book,) = [job for job in jobs.values() if job.task.name == last.name]
    assert book.parameters["results"] == str(read_grid(path_of(name)).runs)
    assert waits_for(jobs, book.name) == set(jobs) - {book.name}


@pytest.mark.parametrize("name", sorted(FIVE_SEEDS))
def test_five_seeds_where_the_paper_has_five(name: str):
    found = {
        job.task.notebook.path.stem: job.effective["seeds"]
        for job in jobs_of(path_of(name)).values()
        if "seeds" in job.effective
    }
    assert found == dict.fromkeys(FIVE_SEEDS[name], 5)


@pytest.mark.parametrize("name", GRIDS)
def test_no_path_of_any_one_machine(name: str):
    """Not in comments either."""
    assert not re.search(r"(?<![\w.}\-])[/~]/?\w", path_of(name).read_text().replace("://", " "))


@pytest.mark.parametrize("name", PAPERS)
def test_data_may_lie_elsewhere(name: str):
    grid = read_grid(path_of(name), variables={"data": "else/where"})
    given = [text for task in grid.tasks.values() for text in texts([g.value for g in task.needs.values()])]
    runs = [str(grid.runs), "{runs}"]
    assert grid.variables["data"] == "else/where"
    assert all(text.startswith((HUB, "{data}/", *runs)) for text in given)


@pytest.mark.parametrize("name", PAPERS)
def test_a_dry_run_says_what_is_missing(name: str, nowhere: Path, capsys: pytest.CaptureFixture):
    assert main(["run", str(path_of(name)), "--dry-run"]) == 2
    said = capsys.readouterr().out
    count = len(jobs_of(path_of(name)))
    assert "missing in all:\n" in said
    assert f"{count} of {count} runs to make, about " in said.splitlines()[-1]
    assert not (nowhere / "runs").exists()
