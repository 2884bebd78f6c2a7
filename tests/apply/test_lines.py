"""A model applied to a file of lines: the same answers as from Python, in order, also after ten kills."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from cdlm_lab.apply import lines
from cdlm_lab.apply.lines import FORMS, Applied, apply_lines
from cdlm_lab.apply.loading import TASK_RUNS, made_of
from cdlm_lab.batch.command import main
from cdlm_lab.data.files import DataError
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import RunError
from cdlm_lab.tasks.tagging.ask import TaggingModel

TEXT = "Yessel Brandir, 54, left Telk on Monday. The mayor of Telk spoke. Brandir did not."


def written(folder: Path, rows: list[dict[str, Any]], name: str = "in.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, cdlm, coreference, tagging) -> None:
    """Models that were loaded before are not loaded again."""
    known = {"storyworld/cdlm": cdlm, "storyworld/coreference": coreference, "storyworld/tagging": tagging}
    monkeypatch.setattr(lines, "load", lambda name, system: known[name])


def test_every_sort_of_model_has_a_form() -> None:
    assert {kind for kind, _ in TASK_RUNS.values()} < set(FORMS)
    assert len(FORMS) == len({kind for kind, _ in TASK_RUNS.values()}) + 1


def test_answers_are_those_of_python_with_what_was_cut_and_what_could_not_be_read(
    loaded, coreference, tmp_path: Path
) -> None:
    documents = {"police": "A <m>fire</m> broke out.", "paper": "The <m>blaze</m> is out."}
    long = {name: text + " It rained." * 300 for name, text in documents.items()}
    rows = [
        {"id": 7, "documents": documents},
        {"documents": {"a": "A <m>fire</m>."}},
        {"id": "x", "documents": long},
    ]
    rows += [{"documents": documents, "threshold": 0.999999}]
    source, target = written(tmp_path, rows), tmp_path / "new" / "out.jsonl"
    applied = apply_lines("storyworld/coreference", source, target)
    first, wrong, cut, alone = read(target)
    foreign = sum("foreign" in row for row in (first, cut, alone))  # "It rained." 300 times in any case
    assert "foreign" in cut
    assert applied == Applied(target, lines=4, refused=1, foreign=foreign)
    result = coreference.clusters(documents)
    noted = {"foreign": result.foreign} if result.foreign else {}
    assert first == {"id": 7, **result.as_json(), **noted}
    assert wrong["error"].startswith("in.jsonl:2: documents:1: field marks: there is one mention only")
    assert cut["id"] == "x"
    assert "tokens are not read; a pair has 256" in cut["cut"][0]
    assert len(alone["clusters"]) == 2
    assert sorted(path.name for path in target.parent.iterdir()) == ["out.jsonl", "out.jsonl.made.json"]


def test_a_language_model_fills_attends_or_encodes(loaded, cdlm, tmp_path: Path) -> None:
    texts = ["The recount began.", "Votes were counted."]
    rows = [
        {"texts": texts},
        {"texts": texts, "source": [0, "recount"]},
        {"texts": ["A [MASK] fell.", texts[0]]},
    ]
    rows.append({"texts": ["It rained."]})
    apply_lines("storyworld/cdlm", written(tmp_path, rows), tmp_path / "out.jsonl")
    encoded, attended, filled, last = read(tmp_path / "out.jsonl")
    assert last["texts"][0]["tokens"] == list(cdlm.encode(["It rained."])[0].tokens)
    assert [one["tokens"] for one in encoded["texts"]] == [list(one.tokens) for one in cdlm.encode(texts)]
    assert attended == json.loads(json.dumps(cdlm.attention(texts, (0, "recount")).as_json()))
    assert filled["blanks"][0]["start"] == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"txt": "a"}', r'in.jsonl:2: field text: missing; add "text" to the record'),
        ('{"text": 3}', "in.jsonl:2: field text: a number where a text belongs"),
        ('{"text": " "}', "in.jsonl:2: field text: it is empty; fill it in"),
        ('{"id": NaN, "text": "a"}', "in.jsonl:2: field id: it has a number or a character that JSON cannot"),
        ('{"id": [1e999], "text": "a"}', "in.jsonl:2: field id: it has a number or a character"),
        (r'{"id": {"a": "\ud800"}, "text": "a"}', "in.jsonl:2: field id: it has a number or a character"),
        ("text", "in.jsonl:2: field column 1: not JSON .*; write one complete JSON object on each line"),
    ],
)
def test_a_malformed_line_stops_it_before_anything_is_loaded(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(lines, "load", None)
    source = tmp_path / "in.jsonl"
    source.write_text(f'{{"text": "a"}}\n{line}\n')
    with pytest.raises(DataError, match=message):
        apply_lines("storyworld/tagging", source, tmp_path / "out.jsonl")
    assert main(["apply", "storyworld/tagging", str(source), str(tmp_path / "out.jsonl")]) == 2
    assert "in.jsonl:2" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_what_was_made_otherwise_is_refused_and_what_is_finished_stays(
    loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = written(tmp_path, [{"text": TEXT}]), tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.part").touch()  # a kill before the note was written
    apply_lines("storyworld/tagging", source, target)
    before = target.read_bytes()
    monkeypatch.setattr(lines, "load", None)
    assert apply_lines("storyworld/tagging", source, target) == Applied(target, lines=1, refused=0, foreign=0)
    with pytest.raises(
        RunError, match=r"was made with system '', not 'bert-lstm'; delete .*out.jsonl, or name"
    ):
        apply_lines("storyworld/tagging", source, target, system="bert-lstm")
    written(tmp_path, [{"text": "Another."}])
    with pytest.raises(RunError, match="was made with sha256"):
        apply_lines("storyworld/tagging", source, target)
    (tmp_path / "out.jsonl.made.json").unlink()
    with pytest.raises(RunError, match="is there, and nothing says how it was made; delete"):
        apply_lines("storyworld/tagging", source, target)
    with pytest.raises(RunError, match=r"new.jsonl: there is no such file; check the spelling"):
        apply_lines("storyworld/tagging", tmp_path / "new.jsonl", target)
    with pytest.raises(RunError, match=r"out.jsonl would be read and written; name another file"):
        apply_lines("storyworld/tagging", target, tmp_path / "new" / ".." / "out.jsonl")
    assert target.read_bytes() == before


def test_an_interrupt_says_how_to_go_on_and_another_process_is_kept_out(
    loaded,
    tagging: TaggingModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    rows = [{"text": f"{number} {TEXT}"} for number in range(4)]
    source, target = written(tmp_path, rows), tmp_path / "out.jsonl"
    answers = iter([tagging.tag([row["text"] for row in rows[:2]])])

    class Interrupted:
        def tag(self, text: list[str]) -> Any:
            with pytest.raises(RunError, match=r"is being written by another process"), lines._held(part):
                pass
            if (answer := next(answers, None)) is None:
                raise KeyboardInterrupt
            return answer

    part = tmp_path / "out.jsonl.part"
    with monkeypatch.context() as patch:
        patch.setattr(lines, "load", lambda name, system: Interrupted())
        assert main(["apply", "storyworld/tagging", str(source), str(target), "--batch", "2"]) == 130
    assert "stopped; what was made is in" in capsys.readouterr().err
    with part.open("a") as file:
        file.write('{"spans": [')  # a kill in the middle of a line
    with pytest.raises(RunError, match="was made with batch 2, not 32; delete"):
        apply_lines("storyworld/tagging", source, target)
    assert apply_lines("storyworld/tagging", source, target, batch=2).lines == 4
    assert [row["words"][0]["text"] for row in read(target)] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("total", "batch", "of"), [(10, 3, 4), (10, 3, 2), (1, 32, 3), (0, 2, 2), (96, 32, 3), (7, 1, 7)]
)
def test_shards_are_whole_batches_and_together_every_line(total: int, batch: int, of: int) -> None:
    shares = [lines.Shard(number, of).lines(total, batch) for number in range(1, of + 1)]
    assert [line for share in shares for line in share] == list(range(total))
    assert all(share.start % batch == 0 for share in shares if share)
    sizes = [-(-len(share) // batch) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_shards_put_together_are_one_run(loaded, tmp_path: Path) -> None:
    """Also with a line that cannot be read, in the batch of others."""
    rows: list[dict[str, Any]] = [{"id": n, "text": f"{TEXT} {n} ships left."} for n in range(7)]
    rows[4]["text"] = "..."
    source, whole = written(tmp_path, rows), tmp_path / "whole.jsonl"
    apply_lines("storyworld/tagging", source, whole, batch=2)
    command = ["apply", "storyworld/tagging", str(source), str(tmp_path / "out.jsonl"), "--batch", "2"]
    for number in (3, 1, 2):
        main([*command, "--shard", f"{number}/3"])
    files = sorted(tmp_path.glob("out-*-of-3.jsonl"))
    assert [file.name for file in files] == [f"out-{number}-of-3.jsonl" for number in (1, 2, 3)]
    assert b"".join(file.read_bytes() for file in files) == whole.read_bytes()
    assert lines.Shard(2, 16).file(Path("a/out.jsonl")) == Path("a/out-02-of-16.jsonl")


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "a/b", "-1/3"])
def test_what_is_no_shard_is_refused(shard: str, tmp_path: Path) -> None:
    source = written(tmp_path, [{"text": TEXT}])
    with pytest.raises(ParameterError, match=r'write "2/8" for the second of eight, counted from 1'):
        apply_lines("storyworld/tagging", source, tmp_path / "out.jsonl", shard=shard)
    with pytest.raises(ValueError, match="batch is 0; it must be at least 1"):
        apply_lines("storyworld/tagging", source, tmp_path / "out.jsonl", batch=0)


@pytest.mark.slow  # ten starts of torch
def test_ten_kills_leave_the_same_output(tmp_path: Path) -> None:
    rows = [
        {"id": number, "text": f"{TEXT} {number} ships left. " * (1 + number % 3)} for number in range(400)
    ]
    source = written(tmp_path, rows)
    command = [sys.executable, "-m", "cdlm_lab.batch.command", "apply", "storyworld/tagging", str(source)]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    subprocess.run([*command, str(whole)], env=environment, check=True, capture_output=True)
    part, chance, kills = tmp_path / "killed.jsonl.part", random.Random(0), 0
    while kills < 10:
        process = subprocess.Popen([*command, str(killed)], env=environment, stdout=subprocess.DEVNULL)
        before, began = part.stat().st_size if part.exists() else 0, time.monotonic()
        while process.poll() is None and (not part.exists() or part.stat().st_size == before):
            time.sleep(0.01)
            assert time.monotonic() - began < 600
        time.sleep(chance.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert not killed.exists() or part.exists() is False
    subprocess.run([*command, str(killed)], env=environment, check=True, capture_output=True)
    assert killed.read_bytes() == whole.read_bytes()
    assert len(read(killed)) == 400


@pytest.mark.parametrize("killed", [True, False])
def test_answers_of_a_model_that_was_retrained_are_refused(killed: bool, tmp_path: Path) -> None:
    """The model has the same name and folder; interrupted or finished, nothing of the older one is kept."""
    run = Path(shutil.copytree(FOLDER / "tagging", tmp_path / "run"))
    source, target = written(tmp_path, [{"text": TEXT}, {"text": "Telk."}]), tmp_path / "out.jsonl"
    apply_lines(str(run), source, target)
    if killed:
        (tmp_path / "out.jsonl.part").write_text(target.read_text().splitlines(keepends=True)[0])
        target.unlink()
    model = run / "systems" / "doc-arc-10-0" / "model"
    with safe_open(model / "model.safetensors", framework="np") as file:
        weights, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    save_file({name: -weight for name, weight in weights.items()}, model / "model.safetensors", metadata)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("out*")}
    with pytest.raises(RunError, match=f"was made with other models: the model {model} has changed; delete"):
        apply_lines(str(run), source, target)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("out*")} == before


def test_the_models_that_answers_may_depend_on() -> None:
    tagging = [Path(one).relative_to(FOLDER).as_posix() for one in made_of("storyworld/tagging")[:-1]]
    assert tagging == ["tagging/systems/bert-lstm-0/model", "tagging/systems/doc-arc-10-0/model"]
    assert made_of("storyworld/tagging")[-1] == "storyworld/longformer", "whose vectors they read"
    assert made_of("storyworld/cdlm") == [str(FOLDER / "cdlm")]
