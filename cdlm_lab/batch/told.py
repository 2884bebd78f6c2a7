"""Snakemake, telling what becomes of each run: `python -m cdlm_lab.batch.told JOBS_FILE ARGUMENTS`.

A plugin for Snakemake's log, registered here as `--logger cdlm-lab`. It prints a line when a run begins, ends
or fails; everything that Snakemake says is in `.snakemake/log` of the folder of runs.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from snakemake.cli import main
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from cdlm_lab.batch.one_run import EXECUTED_FILE, LOG_FILE, MARK
from cdlm_lab.progress import end_with_parent
from cdlm_lab.runs.card import shown_time

_LOG_LINES, _LONGEST = 15, 30_000  # lines of a failed run's log that are shown; bytes that are read for them
_VANISHED = "it vanished: killed from outside, or its node was lost"


class LogHandler(LogHandlerBase):
    """Prints one line for each run that begins, ends or fails, with the time that the others will take."""

    plan: ClassVar[Mapping[str, Any]]  # what jobs.json says
    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        self._jobs, self._began = self.plan["jobs"], time.time()
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
            self._ended(name, "failed")
        elif record.levelno >= logging.ERROR and getattr(record, "exception", "") != "RuleException":
            self._say(f"Snakemake: {record.getMessage()}")

    def close(self) -> None:
        """Print the ends of the logs of failed runs, which runs did not start, and how many did what."""
        super().close()
        blocked = self._blocked()
        for name, why in self._failed.items():
            print(f"\n{name} failed: {why}")
            if lines := self._last_lines(name):
                print(f"    the end of {self._log(name)}:", *lines, sep="\n    | ")
            executed = self._log(name).with_name(EXECUTED_FILE)
            if Path(self.plan["folder"], executed).exists():  # Snakemake works in the folder of runs
                print(f"    the notebook as far as it came: {executed}")
        for name, other in blocked.items():
            print(f"{name} did not start: it waits for {other}")
        if self._failed:
            rest = len(self._jobs) - len(self._done) - len(self._failed)
            print(f"\n{len(self._failed)} failed, {len(self._done)} done, {rest} not started", flush=True)
        self._failed.clear()

    def _ended(self, name: str, how: str) -> None:
        after = shown_time(time.time() - self._since[name])
        why = f": {self._failed[name]}" if name in self._failed else ""
        counts = f"{len(self._done)} of {len(self._jobs)} done, {len(self._failed)} failed"
        self._say(f"{name}: {how} after {after}{why} ({counts}{self._left()})")

    def _left(self) -> str:
        """How long the rest will take, at the speed so far; the grid says how the runs compare."""
        waiting = self._jobs.keys() - self._done - self._failed.keys() - self._blocked().keys()
        rest, made = (sum(self._jobs[name]["minutes"] for name in names) for names in (waiting, self._done))
        if not rest or not made:
            return ""
        return f", about {shown_time((time.time() - self._began) * rest / made)} left"

    def _blocked(self) -> dict[str, str]:
        """Runs that cannot begin, with the failed run that they need, perhaps by way of others."""
        blocked: dict[str, str] = {}
        for name, job in self._jobs.items():  # each stands after those that it needs
            if name not in self._failed and (
                over := [*filter({**self._failed, **blocked}.get, job["after"])]
            ):
                blocked[name] = blocked.get(over[0], over[0])
        return blocked

    def _log(self, name: str) -> Path:
        return Path(self._jobs[name]["folder"], LOG_FILE)

    def _last_lines(self, name: str) -> list[str]:
        """The last lines of the log of a run, [] if it did not write to it."""
        try:
            with Path(self.plan["folder"], self._log(name)).open("rb") as file:
                if os.fstat(file.fileno()).st_mtime < self._since[name]:
                    return []
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST))
                return file.read().decode("utf-8", errors="replace").splitlines()[-_LOG_LINES:]
        except OSError:
            return []

    def _reason(self, name: str) -> str:
        """Why a run failed, as the last line of its log says."""
        lines = self._last_lines(name)
        if lines and not lines[-1].startswith(MARK):
            return _VANISHED
        return lines[-1].removeprefix(MARK) if lines else "it could not begin"

    def _say(self, what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


if __name__ == "__main__":
    LogHandler.plan = json.loads(Path(sys.argv.pop(1)).read_text(encoding="utf-8"))
    # When the command is killed, runs on this machine end with Snakemake, which cancels those of a cluster.
    end_with_parent(signal.SIGINT if LogHandler.plan["gpus"] is None else signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells let background processes ignore
    LoggerPluginRegistry().register_plugin("snakemake_logger_plugin_cdlm_lab", sys.modules[__name__])
    main()
