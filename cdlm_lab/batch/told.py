"""Snakemake, telling what becomes of each run: `python -m cdlm_lab.batch.told JOBS_FILE ARGUMENTS`.

A plugin for Snakemake's log, registered here as `--logger cdlm-lab`. It prints a line when a run begins, ends
or fails; everything that Snakemake says is in `.snakemake/log` of the folder of runs.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from snakemake.cli import main
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from cdlm_lab.batch.one_run import LOG_FILE, MARK
from cdlm_lab.progress import end_with_parent
from cdlm_lab.runs.card import shown_time


class LogHandler(LogHandlerBase):
    """Prints one line for each run that begins, ends or fails, and at the end which runs did not start."""

    plan: ClassVar[Mapping[str, Any]]  # what jobs.json says
    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        self._jobs = self.plan["jobs"]
        self._names: dict[int, str] = {}  # number of a job of Snakemake -> name of the run
        self._since: dict[str, float] = {}  # name of a run -> when it began
        self._done: set[str] = set()
        self._failed: dict[str, str] = {}  # name of a run -> why it failed

    def emit(self, record: logging.LogRecord) -> None:
        """Print what an event of Snakemake means for a run."""
        event = getattr(record, "event", None)
        number = getattr(record, "jobid", getattr(record, "job_id", None))
        if event == LogEvent.JOB_INFO and "name" in record.wildcards:
            name = self._names[number] = record.wildcards["name"]
            self._since[name] = time.time()
            self._failed.pop(name, None)  # it is tried again
            self._say(f"{name}: begins; its output is in {self._log(name)}")
        elif event == LogEvent.JOB_FINISHED and number in self._names:
            self._done.add(self._names[number])
            self._ended(self._names[number], "done")
        elif event == LogEvent.JOB_ERROR and number in self._names:
            name, words = self._names[number], " ".join(str(record.rule_msg or "").split())
            self._failed[name] = "; ".join(filter(None, [self._reason(name), words]))
            self._ended(name, f"failed: {self._failed[name]},")
        elif record.levelno >= logging.ERROR and getattr(record, "exception", "") != "RuleException":
            self._say(f"Snakemake: {record.getMessage()}")

    def close(self) -> None:
        """Print again which runs failed, and why; which did not start; and how many did what."""
        super().close()
        if not self._failed:
            return
        for name, why in self._failed.items():
            print(f"\n{name} failed: {why}\n    see {self._log(name)} and the notebook beside it")
        blocked: dict[str, str] = {}  # a run that could not begin -> the failed run that it needs
        for name, job in self._jobs.items():  # each stands after those that it needs
            if over := [*filter({**self._failed, **blocked}.get, job["after"])]:
                blocked[name] = blocked.get(over[0], over[0])
                print(f"{name} did not start: it waits for {blocked[name]}")
        rest = len(self._jobs) - len(self._done) - len(self._failed)
        print(f"\n{len(self._failed)} failed, {len(self._done)} done, {rest} not started", flush=True)
        self._failed.clear()

    def _ended(self, name: str, how: str) -> None:
        after = shown_time(time.time() - self._since[name])
        counts = f"{len(self._done)} of {len(self._jobs)} done, {len(self._failed)} failed"
        self._say(f"{name}: {how} after {after} ({counts})")

    def _log(self, name: str) -> Path:
        return Path(self._jobs[name]["folder"], LOG_FILE)

    def _reason(self, name: str) -> str:
        """Why a run failed, as the last line of its log says."""
        log = Path(self.plan["folder"], self._log(name))  # Snakemake works in the folder of runs
        with suppress(OSError):
            if log.stat().st_mtime >= self._since[name]:
                *_, last = ["", *log.read_text(encoding="utf-8", errors="replace").splitlines()]
                vanished = "it vanished: killed from outside, or its node was lost"
                return last.removeprefix(MARK) if last.startswith(MARK) else vanished
        return "it could not begin"

    def _say(self, what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


if __name__ == "__main__":
    LogHandler.plan = json.loads(Path(sys.argv.pop(1)).read_text(encoding="utf-8"))
    # When the command is killed, runs on this machine end with Snakemake, which cancels those of a cluster.
    end_with_parent(signal.SIGINT if LogHandler.plan["gpus"] is None else signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells let background processes ignore
    LoggerPluginRegistry().register_plugin("snakemake_logger_plugin_cdlm_lab", sys.modules[__name__])
    main()
