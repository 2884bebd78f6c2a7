"""Execute a notebook that trains models, with one line of progress. Run by the Makefile:

    python .make/run_notebook.py NOTEBOOK RUN_FOLDER [arguments of papermill]

What papermill and the notebook print goes to RUN_FOLDER.log, the end of which is shown after a failure, and
the cells with their outputs to RUN_FOLDER.ipynb. What the notebook adds to RUN_FOLDER/summary.txt is shown at
once. On a terminal the line of progress is redrawn every second; elsewhere a line follows whenever another
quarter of the training is done.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LOG_LINES = 20  # of the end of the log, shown after a failure
HISTORY = "training/history.jsonl"  # in the folder of each model: the records of its training
SUMMARY = "summary.txt"  # in the run folder: results in words, as they come


def steps_done(run: Path) -> tuple[int, int]:
    """(steps done, steps in all) of the models of a tour; (0, 0) before the training."""
    try:
        given = json.loads((run / "run.json").read_text(encoding="utf-8"))["parameters"]
        total = given["base_steps"] + 4 * given["steps"]
    except (OSError, ValueError, LookupError):
        return 0, 0
    done = 0
    for history in run.glob(f"*/{HISTORY}"):
        with suppress(OSError, ValueError, LookupError):  # its last line may be half written
            done += json.loads(history.read_text(encoding="utf-8").splitlines()[-1])["step"]
    return min(done, total), total


class Line:
    """The line of progress of a run."""

    def __init__(self, run: Path) -> None:
        self._run, self._began, self._at_first = run, time.monotonic(), steps_done(run)[0]
        self._training: float | None = None  # when the first step of this call was seen
        self._told = -1
        self._results = ""  # shown so far
        self._redrawn = sys.stdout.isatty()

    def results(self) -> None:
        """Print what was added to the summary."""
        found = ""
        with suppress(OSError):  # not written yet
            found = (self._run / SUMMARY).read_text(encoding="utf-8")
        if found != self._results:
            shown, self._results = found.removeprefix(self._results), found
            self.end()
            print(f"\nafter {minutes(time.monotonic() - self._began)}:\n\n{shown.strip()}\n", flush=True)

    def show(self) -> None:
        """Redraw the line; off a terminal print it if there is something to tell."""
        self.results()
        done, total = steps_done(self._run)
        if self._training is None and done > self._at_first:
            self._training, self._at_first = time.monotonic(), done
        ran = time.monotonic() - self._began
        words = f"{minutes(ran)}, reading and measuring"
        if self._training is not None and done < total:
            words = f"{minutes(ran)}, training: {done} of {total} steps"
            if done > self._at_first:
                pace = (time.monotonic() - self._training) / (done - self._at_first)
                words += f", about {minutes(pace * (total - done))} left"
        elif total and done == total:
            words = f"{minutes(ran)}, trained; measuring"
        if self._redrawn:
            print(f"\r\033[K{words}", end="", flush=True)
        elif self._training is not None and (quarter := 4 * done // max(total, 1)) > self._told:
            self._told = quarter
            print(words, flush=True)

    def end(self) -> None:
        """Clear the line."""
        if self._redrawn:
            print("\r\033[K", end="", flush=True)


def minutes(seconds: float) -> str:
    """75 -> "1:15"."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02d}"


def main(notebook: str, folder: str, *more: str) -> int:
    """Execute the notebook; returns papermill's exit code, or 1 if it left no report."""
    sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has every sign
    run, log = Path(folder), Path(f"{folder}.log")
    run.parent.mkdir(parents=True, exist_ok=True)
    (run / SUMMARY).unlink(missing_ok=True)  # of an earlier call; the notebook writes it anew
    command = [sys.executable, "-m", "papermill", notebook, f"{folder}.ipynb", "--kernel", "python3"]
    command += ["--log-output", "--no-progress-bar", "--autosave-cell-every", "30"]
    command += ["-p", "run_folder", folder, *more]
    print(f"executing {notebook} into {folder}, which takes about 3 minutes; its log: {log}", flush=True)
    line = Line(run)
    with log.open("a", encoding="utf-8") as out:
        print(f"=== {shlex.join(command)}", file=out, flush=True)
        running = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        signal.signal(signal.SIGTERM, lambda number, frame: running.send_signal(number))
        again = f"to go on: make run RUN={shlex.quote(folder)}"
        while running.poll() is None:
            try:
                line.show()
                running.wait(timeout=1)
            except subprocess.TimeoutExpired:
                continue
            except KeyboardInterrupt:  # papermill has it too, and ends the kernel, which keeps what it has
                running.wait()
                line.end()
                print(f"stopped; {again}")
                return 130
    line.results()
    line.end()
    if running.returncode == 0 and (run / "report.json").is_file():
        return 0
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    print(f"the end of {log}:", *(f"    | {text}" for text in lines), sep="\n")
    what = f"exit code {running.returncode}" if running.returncode else f"no {run}/report.json"
    print(f"the notebook ended with {what}; {again}")
    return running.returncode if running.returncode > 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
