"""Every notebook runs from top to bottom, small, as papermill runs it, and its report holds sensible numbers.

A row of SMALL says how to make a notebook small and what its scores must then be. A new notebook needs a row.
"""

import json
import math
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import notebook_rules as rules
import papermill
import pytest
from filelock import FileLock

from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import read_report
from cdlm_lab.runs.scores import plain_name
from cdlm_lab.training.trainer import Loop

ROOT = Path(__file__).resolve().parents[2]
RUN_FOLDER = "run_folder"  # the parameter, of every notebook, that says where results go
KERNEL = "the-python-of-the-tests"
BUSY = 1200  # seconds until a run is given up; alone each takes 5 to 30, on a busy machine many times that


class Small(NamedTuple):
    """How to run a notebook in a small form. `parameters` make it small; `scores`: name of a score, or of
    another column of it -> (lowest, highest) value; `after`: (notebook, parameter), a notebook that must run
    first, in its small form, and the parameter that gets its run folder."""

    parameters: dict[str, object]
    scores: dict[str, tuple[float, float]]
    after: tuple[str, str] | None = None


SMALL: dict[str, Small] = {
    "00_tour": Small(
        {"train_clusters": 40, "held_out_clusters": 8, "max_length": 256, "base_steps": 6, "steps": 5}
        | {"batch_size": 2},
        # below 1 is impossible; a model that knew nothing would stand at the vocabulary's 1,024
        {"cdlm/perplexity": (10, 1500), "longformer/cross_document_perplexity": (10, 10_000)},
    ),
    "01_pretraining": Small(
        {"train_clusters": 40, "held_out_clusters": 8, "max_length": 256, "steps": 6, "warmup_steps": 2}
        | {"batch_size": 2, "micro_batch_size": 1, "evaluate_every": 3},
        {"cdlm/perplexity": (10, 1500), "training_tokens": (500, 6 * 2 * 256)},
    ),
    "02_cross_document_perplexity": Small(
        {"local_cdlm": "", "rand_cdlm": "", "prefix_cdlm": "", "clusters": 8},
        # shipped checkpoints, on 400 clusters 4.0, 21 and 2.3; here on 8
        {"longformer/perplexity": (3, 6), "longformer/cross_document_perplexity": (12, 30)}
        | {"cdlm/cross_document_perplexity": (1.2, 4)},
    ),
    "03_coreference": Small(
        {"train_stories": 6, "held_out_stories": 3, "train_pairs": 32},
        # the shipped scorer, on 60 stories above 0.9; what needs no training is known
        {"this run/event/test/conll/f1": (0.7, 1), "singletons/event/test/b_cubed/precision": (1, 1)}
        | {"one cluster/event/test/muc/recall": (1, 1), "event/threshold": (0.02, 0.98)},
    ),
    "04_document_matching": Small(
        {"trained": "", "systems": "tf-idf bert-han-shallow gru-han-deep cdlm", "train_stories": 12}
        | {"held_out_stories": 6, "epochs": 1, "encoder_epochs": 1, "max_length": 256, "window": 32},
        # reports of one event share names and numbers; two of a kind do not
        {"tf-idf/test/accuracy": (0.6, 1), "bert-han-shallow/test/accuracy": (0.2, 0.8)}
        | {"cdlm/test/f1": (0, 1)},
    ),
    "05_sentence_alignment": Small(
        {"systems": "tf-idf gru-han-deep cdlm"},
        {"random/oracle/mrr": (0.1, 0.7), "tf-idf/cosine/oracle/mrr": (0.5, 1)}
        | {"cdlm/global attention/oracle/mrr": (0.2, 1)},
        after=("04_document_matching", "matching_run"),
    ),
    "06_multihop_qa": Small(
        {"trained": "", "train_stories": 6, "held_out_stories": 3, "epochs": 1}
        | {"systems": "longformer cdlm", "window": 32, "batch_size": 4, "micro_batch_size": 4},
        # after a handful of updates nothing is known: more than a few lucky answers would be a leak
        {"cdlm/test/f1": (0, 0.7), "cdlm/test/sp_f1": (0, 0.7), "longformer/dev/joint_f1": (0, 0.5)},
    ),
    "07_document_attentive_ner": Small(
        {"train_documents": 8, "held_out_documents": 3},
        # the shipped taggers, on 20 documents above 0.95
        {"bert-lstm/test/f1": (0.85, 1), "doc-arc/test/f1": (0.85, 1), "doc-arc/dev/recall": (0.85, 1)},
    ),
    "08_paragraph_pretraining": Small(
        {"trained": "", "train_clusters": 6, "held_out_clusters": 3, "steps": 6, "batch_size": 4}
        | {"micro_batch_size": 2, "warmup_steps": 2, "evaluate_every": 3, "mask_probability": 0.15},
        # after six steps nothing is known of the candidates: much above chance, or below, would be a leak
        {"mspp/first": (0.05, 0.45), "mspp/above/same document": (0.3, 0.7)}
        | {"mspp/above/other document": (0.3, 0.7), "mlm/perplexity": (10, 1500)},
    ),
    "09_answer_selection": Small(
        {"systems": "pairwise joint-ae mspp-ie", "train_stories": 4, "held_out_stories": 3, "epochs": 1}
        | {"sentence_length": 16, "pairwise_length": 16, "batch_size": 16, "micro_batch_size": 16}
        | {"trained": ""},
        # one of eight candidates is right; after a handful of updates much above chance would be a leak
        {"random/all/test/p_at_1": (0.125, 0.125), "pairwise/all/test/map": (0.13, 0.75)}
        | {"mspp-ie/reranked/test/map": (0.13, 0.75), "joint-ae/all/dev/p_at_1": (0, 0.6)},
        after=("08_paragraph_pretraining", "mspp"),
    ),
    "10_fact_verification": Small(
        {"systems": "pairwise-sum mspp-ie-ae claim-only", "train_stories": 6, "held_out_stories": 3}
        | {"evidence_sentences": 2, "sentence_length": 16, "epochs": 1}
        | {"batch_size": 8, "micro_batch_size": 8, "trained": ""},
        # three labels, each a third of the claims: after four updates much above or below would be a leak
        {"pairwise-sum/test/label_accuracy": (0, 0.8), "mspp-ie-ae/dev/label_accuracy": (0, 0.8)}
        | {"majority/test/label_accuracy": (1 / 3, 1 / 3)},
        after=("08_paragraph_pretraining", "mspp"),
    ),
    "11_attention_analysis": Small(
        {"local_cdlm": "", "rand_cdlm": "", "prefix_cdlm": "", "stories": 6, "pairs": 12, "cut_stories": 3},
        # shipped checkpoints; with 100 pairs CDLM has 78 for events that corefer and 54 for others
        {"cdlm/positive/event": (65, 100), "cdlm/negative/event": (25, 80)}
        | {"cdlm/positive/entity chance": (45, 70)},
    ),
    "12_results": Small(
        {"results": "data/results", "leave_out": "scisumm_minilm/*two_sentences*"},
        # what the recorded reports say
        {"cdlm/cdlm-1/storyworld/1/perplexity": (2.09, 2.1)}
        | {"longformer/sentences/cdlm-2-event/ECB+/1/conll/f1": (0.78, 0.781)}
        | {"doc-arc/doc-arc-2/JNLPBA/1/f1 deviation": (0.001, 0.02)},
    ),
}


@pytest.fixture(scope="session", autouse=True)
def _kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make KERNEL run this Python interpreter, whatever kernels the machine has."""
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels" / KERNEL / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("JUPYTER_PATH", str(folder))
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this test session share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "notebooks"
    folder.mkdir(exist_ok=True)
    return folder


def numbers(found: object) -> list[float]:
    """Return all numbers in a JSON value."""
    if isinstance(found, dict | list):
        return [n for inner in (found.values() if isinstance(found, dict) else found) for n in numbers(inner)]
    return [found] if isinstance(found, int | float) else []


def execute(notebook: Path, parameters: dict, executed: Path) -> str:
    """Run a notebook unattended in this process, which is faster; return the traceback of an error, or ""."""
    form = {"kernel_name": KERNEL, "cwd": ROOT, "start_timeout": BUSY, "execution_timeout": BUSY}
    try:
        papermill.execute_notebook(notebook, executed, parameters, **form, progress_bar=False)
    except Exception:
        return traceback.format_exc()[-5000:]
    return ""


def run_small(name: str, *, shared: Path) -> Path:
    """Run a notebook in its small form in `shared`/name, after the one that it needs; return its run folder.
    Only the first call runs it, for all processes."""
    small, folder, before = SMALL[name], shared / name, {}
    if small.after:
        needed, parameter = small.after
        run_small(needed, shared=shared)
        before[parameter] = str(shared / needed / "run")
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            notebook = ROOT / "notebooks" / f"{name}.ipynb"
            given = small.parameters | before | {RUN_FOLDER: str(folder / "run")}
            fault = execute(notebook, given, folder / "executed.ipynb")
            (folder / "fault").write_text(fault, encoding="utf-8")
    fault = (folder / "fault").read_text(encoding="utf-8")
    assert not fault, f"{name}: {fault}"
    return folder / "run"


@pytest.mark.parametrize("name", SMALL)
def test_notebook_runs(name: str, shared_folder: Path):
    folder = run_small(name, shared=shared_folder)
    written = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert all(math.isfinite(number) for number in numbers(written))
    scores = {plain_name(row): row for row in read_report(folder).rows}
    for score, (lowest, highest) in SMALL[name].scores.items():
        path, column = score.rsplit(" ", 1) if score.endswith((" chance", " deviation")) else (score, "value")
        value = getattr(scores[path], column)
        assert lowest <= value <= highest, f"{score} = {value}"
    executed = json.loads((folder.parent / "executed.ipynb").read_text(encoding="utf-8"))
    outputs = [one for cell in executed["cells"] for one in cell.get("outputs", ())]
    bundles = [one["data"] for one in outputs if "text/html" in one.get("data", {})]
    tables = ["".join(one["text/plain"]) for one in bundles if "<table" in "".join(one["text/html"])]
    assert not [text for text in tables if "HTML object" in text], "a log shows tables as text"
    if name == "12_results":
        assert written["data"]["reports"] >= 12, "every report that fills a table"


@pytest.mark.parametrize("name", sorted(SMALL.keys() - {"12_results"}))
def test_run_all_again_shows_the_finished_run(
    name: str, shared_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The cells run as in a kernel, but in this process, in which any training step fails the test."""
    folder = run_small(name, shared=shared_folder)
    written = (folder / "report.json").read_bytes()
    monkeypatch.setattr(Loop, "step", pytest.fail)
    monkeypatch.setattr("plotly.io.renderers.default", "json")
    monkeypatch.chdir(ROOT)
    cells = [
        rules.source_of(cell)
        for _, cell in rules.code_cells(rules.read_notebook(ROOT / "notebooks" / f"{name}.ipynb"))
    ]
    namespace: dict[str, object] = {}
    exec(cells[0], namespace)
    known = read_report(folder).parameters
    namespace |= {parameter: known.get(parameter, value) for parameter, value in namespace.items()}
    for cell in cells[1:]:
        exec(cell, namespace)
    assert namespace["report"] == read_report(folder)
    assert (folder / "report.json").read_bytes() == written


def settle(name: str, parameters: dict) -> None:
    """Execute the first cells of a notebook like a kernel: its parameters, the given ones, settings."""
    cells = rules.code_cells(rules.read_notebook(ROOT / "notebooks" / f"{name}.ipynb"))
    declared, settings = (rules.source_of(cell) for _, cell in cells[:2])
    lines = (f"{parameter} = {value!r}" for parameter, value in parameters.items())
    given = "\n".join(["# Parameters", *lines])  # as papermill begins its cell
    namespace = {"In": ["", declared, given, settings]}
    for cell in namespace["In"]:
        exec(cell, namespace)


@pytest.mark.parametrize("name", SMALL)
def test_misspelt_parameter_stops_the_settings_cell(name: str, tmp_path: Path):
    """A rule of test_contract.py ensures that nothing is done before it. No run remains in the tree."""
    given = SMALL[name].parameters | {RUN_FOLDER: str(tmp_path / "run")}
    settle(name, given)
    with pytest.raises(ParameterError, match="unknown parameter lerning_rate"):
        settle(name, given | {"lerning_rate": 0.5})


def test_misspelt_parameter_stops_an_unattended_run(tmp_path: Path):
    run = tmp_path / "run"
    given = SMALL["00_tour"].parameters | {RUN_FOLDER: str(run), "lerning_rate": 0.5}
    fault = execute(ROOT / "notebooks" / "00_tour.ipynb", given, tmp_path / "executed.ipynb")
    assert "unknown parameter lerning_rate" in fault
    assert not run.exists()


def test_every_notebook_has_a_row():
    assert set(SMALL) == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert all(small.scores for small in SMALL.values())
