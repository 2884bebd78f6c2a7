"""One run of a grid: `python -m cdlm_lab.batch.one_run JOBS_FILE NAME`, which Snakemake calls for each.

It executes the notebook by papermill; its output is in `run.log` of the run's folder, the cells, as far as
they came, in `executed.ipynb`. It fails unless the notebook wrote a `report.json`; the last line of the log
then says why. When it is told to stop, or the process that started it ends, however that happens, the kernel
first ends the step of its training and writes a checkpoint, and no process remains.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from nbclient.exceptions import DeadKernelError
from papermill import execute_notebook
from papermill.exceptions import PapermillExecutionError

from cdlm_lab.errors import print_any_sign
from cdlm_lab.progress import end_with_parent
from cdlm_lab.runs.report import REPORT_FILE

LOG_FILE, EXECUTED_FILE = "run.log", "executed.ipynb"
MARK = "=== "  # begins a line of the log that says why a run ended
_LAST_STEP = 60.0  # seconds in which a kernel that is told to end must do so
_LONGEST = 300  # characters of the reason why a run failed
_THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")


def main() -> int:
    """Make the run that the command line names and return the exit code."""
    end_with_parent(signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    jobs_file, name = sys.argv[1:]
    plan = json.loads(Path(jobs_file).read_text(encoding="utf-8"))
    os.chdir(plan["folder"])
    job = plan["jobs"][name]
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG_FILE).open("a", encoding="utf-8") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    print_any_sign()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    print(f"--- {now} {socket.gethostname()}: {job['notebook']}", flush=True)
    if plan["gpus"] is not None:  # a cluster shows the run its GPUs itself
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(plan["gpus"][place] for place in job["gpus"])
    if why := _execute(job, folder, jupyter=Path(jobs_file).with_name("jupyter")):
        print(f"{MARK}{why}", flush=True)
    return 1 if why else 0


def _execute(job: dict[str, Any], folder: Path, *, jupyter: Path) -> str:
    """Execute the notebook of a run; return why it failed, "" if it did not."""
    executed = folder / EXECUTED_FILE
    if executed.exists() and executed.stat().st_size:  # keep the notebook of an earlier attempt
        executed.rename(
            next(new for n in count(1) if not (new := folder / f"{executed.stem}.{n}.ipynb").exists())
        )
    os.environ |= {f"{name}_NUM_THREADS": str(job["cores"]) for name in _THREADS}
    os.environ |= {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "JUPYTER_PATH": str(jupyter)}
    form = {"kernel_name": "python3", "log_output": True, "progress_bar": False, "autosave_cell_every": 30}
    try:
        execute_notebook(job["notebook"], str(executed), job["parameters"], **form)
    except DeadKernelError:
        return "the kernel was killed; out of memory?"
    except PapermillExecutionError as error:
        print(error)
        return " ".join(f"the notebook ended with {error.ename}: {error.evalue}".split())[:_LONGEST]
    except OSError as error:
        return f"{error.strerror or error}: {error.filename or folder}"
    return "" if (folder / REPORT_FILE).exists() else f"the notebook ended but left no {REPORT_FILE}"


def _end(number: int, frame: object) -> None:
    """End the kernel, after its step, and then this process, at a signal."""
    for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    with suppress(OSError):
        os.write(1, f"{MARK}stopped by {signal.Signals(number).name}\n".encode())
    me = psutil.Process()
    below = me.children(recursive=True)
    for kernel in me.children():
        with suppress(psutil.Error):
            kernel.terminate()
    for left in psutil.wait_procs(below, timeout=_LAST_STEP)[1]:
        with suppress(psutil.Error):
            left.kill()
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
