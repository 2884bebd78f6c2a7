"""What is told while a grid runs, of events as Snakemake 9.27 and its executor for Slurm 2.8 log them."""

import logging
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from cdlm_lab.batch.told import LogHandler
from cdlm_lab.runs.card import shown_time

AFTER = {"a": [], "b": ["a"], "c": ["b", "kept"], "d": []}


@pytest.fixture
def handler(here: Path, monkeypatch: pytest.MonkeyPatch) -> LogHandler:
    jobs = {name: {"folder": f"runs/{name}", "after": after} for name, after in AFTER.items()}
    monkeypatch.setattr(LogHandler, "plan", {"folder": str(here), "jobs": jobs}, raising=False)
    (here / "runs" / "a").mkdir(parents=True)
    return LogHandler(SimpleNamespace(), None)


def happens(handler: LogHandler, event: LogEvent | None, number: int = 0, **more: object) -> None:
    key = "job_id" if event == LogEvent.JOB_FINISHED else "jobid"
    if event == LogEvent.JOB_INFO:
        more |= {"wildcards": {"name": "abcd"[number]}}
    if event == LogEvent.JOB_ERROR:
        more = {"rule_msg": None, "log": [], **more}
    level = logging.ERROR if event in (None, LogEvent.JOB_ERROR, LogEvent.ERROR) else logging.INFO
    values = {"levelno": level, "msg": "of Snakemake", "event": event, key: number, **more}
    handler.emit(logging.makeLogRecord(values))


def said(capsys: pytest.CaptureFixture) -> str:
    return re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", capsys.readouterr().out)


def test_what_begins_and_ends(handler: LogHandler, capsys: pytest.CaptureFixture):
    happens(handler, LogEvent.JOB_INFO, 0)
    assert said(capsys) == "a: begins; its output is in runs/a/run.log\n"
    handler._since["a"] -= 75
    happens(handler, LogEvent.JOB_FINISHED, 0)
    assert said(capsys) == "a: done after 1:15 (1 of 4 done, 0 failed)\n"
    happens(handler, None, exception="WorkflowError")
    assert said(capsys) == "Snakemake: of Snakemake\n"
    happens(handler, LogEvent.ERROR, exception="RuleException")
    handler.close()
    assert said(capsys) == "", "the run has said it"


def test_a_failed_run_blocks_those_that_wait_for_it(handler: LogHandler, capsys: pytest.CaptureFixture):
    happens(handler, LogEvent.JOB_INFO, 0)
    Path("runs/a/run.log").write_text("some\nlines\n=== the kernel was killed; out of memory?\n")
    happens(handler, LogEvent.JOB_ERROR, 0)
    told = said(capsys).splitlines()[-1]
    assert told == "a: failed: the kernel was killed; out of memory?, after 0:00 (0 of 4 done, 1 failed)"
    handler.close()
    assert said(capsys) == (
        "\na failed: the kernel was killed; out of memory?\n"
        "    see runs/a/run.log and the notebook beside it\n"
        "b did not start: it waits for a\nc did not start: it waits for a\n"
        "\n1 failed, 0 done, 3 not started\n"
    )


def test_a_run_that_is_tried_again_has_not_failed(handler: LogHandler, capsys: pytest.CaptureFixture):
    for event in (LogEvent.JOB_INFO, LogEvent.JOB_ERROR, LogEvent.JOB_INFO, LogEvent.JOB_FINISHED):
        happens(handler, event, 0)
    assert "a: done after 0:00 (1 of 4 done, 0 failed" in said(capsys)


@pytest.mark.parametrize(("log", "message", "expected"), [
    (None, "SLURM sbatch failed.\n The error message was 'x'", "it could not begin; SLURM sbatch failed"),
    ("old", None, "it could not begin, after"),
    ("some lines\n", "SLURM-job '4' failed", "it vanished: killed from outside, or its node was lost; S"),
    ("", None, "it vanished"),
])  # fmt: skip
def test_why_a_run_failed_that_could_not_say_so(
    log: str | None, message: str | None, expected: str, handler: LogHandler, capsys: pytest.CaptureFixture
):
    happens(handler, LogEvent.JOB_INFO, 0)
    if log is not None:
        Path("runs/a/run.log").write_text(log)
        before = 99 if log == "old" else -1  # of an attempt before, or since
        os.utime("runs/a/run.log", (time.time() - before,) * 2)
    happens(handler, LogEvent.JOB_ERROR, 0, rule_msg=message)
    assert f"a: failed: {expected}" in said(capsys)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (75.4, "1:15"), (3599, "59:59"), (3600, "1:00 h"), (7290, "2:01 h")]
)
def test_times(seconds: float, text: str):
    assert shown_time(seconds) == text
