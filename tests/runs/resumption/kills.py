"""Kill small runs at random moments, give the same command again, and compare the end with another run's.

    python tests/runs/resumption/kills.py RECORD.json [--kills 30] [--only training:coreference ...]

A run is killed by SIGKILL several times before it may end: alternately after a random time, and at a random
one of the moments at which Python opens, renames, makes or removes a file or folder, so that every step of
saving is met. Each attempt is a process forked from one that has imported everything.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import small_runs

from cdlm_lab.apply.lines import apply_lines
from cdlm_lab.runs.report import git_commit, write_json

KILLS_OF_A_RUN = 5
FILE_EVENTS = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.chmod")
APPLIED = {
    "storyworld/tagging": {"text": "Yessel Brandir, {}, left Telk on Monday. The mayor of Telk spoke."},
    "storyworld/cdlm": {"texts": ["A fire broke out in Telk, {} people said.", "The [MASK] was put out."]},
}
LINES = 40


class Work(NamedTuple):
    """What is killed: `run` begins, or goes on, in a folder; `outcome` is compared at the end; `begin` fills
    the folder before the first attempt."""

    run: Callable[[Path], None]
    outcome: Callable[[Path], Any]
    begin: Callable[[Path], None] = lambda folder: None


@dataclass(frozen=True)
class Kill:
    """One kill: its moment, what the same command said afterwards, and whether its run ended as another."""

    work: str
    moment: str
    said: str
    equal: bool


class Attempt(NamedTuple):
    """The exit code of a process (negative: the signal that ended it), its moment, and its last line."""

    code: int
    moment: str
    said: str


def training(kind: str) -> Work:
    """Return the training of a kind."""

    def run(folder: Path) -> None:
        small_runs.module_of(kind).train(small_runs.prepared(kind, folder))

    return Work(run, small_runs.weights)


def evaluation(kind: str) -> Work:
    """Return the evaluation of a kind, after a training that is not killed."""

    def run(folder: Path) -> None:
        small_runs.evaluated(kind, small_runs.prepared(kind, folder))

    return Work(run, small_runs.scores, begin=lambda folder: attempt(training(kind).run, folder))


def applying(name: str) -> Work:
    """Return `cdlm-lab apply` with a model that comes with the project."""

    def begin(folder: Path) -> None:
        lines = (json.dumps(APPLIED[name]).replace("{}", str(number)) for number in range(LINES))
        (folder / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(folder: Path) -> None:
        apply_lines(name, folder / "in.jsonl", folder / "out.jsonl")

    return Work(run, lambda folder: (folder / "out.jsonl").read_bytes(), begin)


WORKS: dict[str, Work] = {
    **{f"training:{kind}": training(kind) for kind in small_runs.KINDS},
    **{f"evaluation:{kind}": evaluation(kind) for kind in small_runs.KINDS},
    **{f"apply:{name}": applying(name) for name in APPLIED},
}


def attempt(run: Callable[[Path], None], folder: Path, *, seconds: float = 3600.0, event: int = 0) -> Attempt:
    """Run in a forked process, which is killed after so many seconds, or at its `event`-th use of a file."""
    log, noted = folder.parent / f"{folder.name}.log", folder.parent / f"{folder.name}.event"
    noted.unlink(missing_ok=True)
    if not (number := os.fork()):
        _be_child(run, folder, log, noted, event)
    deadline, status = time.monotonic() + seconds, (0, 0)
    while not status[0] and time.monotonic() < deadline:
        status = os.waitpid(number, os.WNOHANG)
        time.sleep(0.002)
    if not status[0]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        status = os.waitpid(number, 0)
    moment = noted.read_text(encoding="utf-8") if noted.exists() else f"after {seconds:.3f} s"
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").split("\n") if line.strip()]
    said = lines[-1].split("\r")[-1].strip()[:200] if lines else ""
    return Attempt(os.waitstatus_to_exitcode(status[1]), moment, said)


def _be_child(run: Callable[[Path], None], folder: Path, log: Path, noted: Path, event: int) -> None:
    code = 1
    try:
        with log.open("w", encoding="utf-8") as stream:
            sys.stdout = sys.stderr = stream
            if event:
                _die_at(event, folder, noted)
            run(folder)
            code = 0
    except BaseException:
        with log.open("a", encoding="utf-8") as stream:
            traceback.print_exc(file=stream)
    finally:
        os._exit(code)


def _die_at(event: int, folder: Path, noted: Path) -> None:
    left, own = event, str(folder)

    def count(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if name not in FILE_EVENTS or not str(arguments[0]).startswith(own):
            return
        left -= 1
        if left == 0:
            text = f"before {name} {os.path.relpath(str(arguments[0]), own)} (use {event} of a file)"
            number = os.open(noted, os.O_CREAT | os.O_WRONLY)
            os.write(number, text.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def undisturbed(work: Work, folder: Path) -> tuple[Any, float, int]:
    """Return the outcome of an undisturbed run, its seconds, and how often it uses a file."""
    folder.mkdir(parents=True)
    work.begin(folder)
    uses = 0

    def counted(folder: Path) -> None:
        nonlocal uses

        def count(name: str, arguments: tuple[Any, ...]) -> None:
            nonlocal uses
            uses += name in FILE_EVENTS and str(arguments[0]).startswith(str(folder))

        sys.addaudithook(count)
        work.run(folder)
        (folder.parent / "uses").write_text(str(uses), encoding="utf-8")

    start = time.monotonic()
    done = attempt(counted, folder)
    if done.code:
        raise RuntimeError(f"an undisturbed run fails: {done.said}")
    return work.outcome(folder), time.monotonic() - start, int((folder.parent / "uses").read_text())


def kills_of(name: str, count: int, folder: Path, *, seed: int = 0) -> Iterator[Kill]:
    """Kill runs of a work until there are `count` kills, and yield them run by run."""
    work, random, made = WORKS[name], np.random.default_rng([seed, *name.encode()]), 0
    expected, seconds, uses = undisturbed(work, folder / "undisturbed")
    number = 0
    while made < count:
        number += 1
        of_run = folder / f"run-{number}"
        of_run.mkdir()
        work.begin(of_run)
        attempts: list[Attempt] = []
        while made + len(attempts) < count and len(attempts) < KILLS_OF_A_RUN:
            by_time = (made + len(attempts)) % 2
            # The later attempts of a run have less left to do.
            moment = random.uniform(0, 1) / (1 + len(attempts))
            form = {"seconds": moment * seconds} if by_time else {"event": 1 + int(moment * uses)}
            tried = attempt(work.run, of_run, **form)
            if tried.code != -signal.SIGKILL:
                if tried.code:
                    attempts.append(tried)
                break
            attempts.append(tried)
        last = attempt(work.run, of_run)
        equal = last.code == 0 and work.outcome(of_run) == expected
        made += len(attempts)
        for tried, after in zip(attempts, [*attempts, last][1:], strict=True):
            yield Kill(work=name, moment=tried.moment, said=after.said, equal=equal)


def main(arguments: list[str] | None = None) -> int:
    """Kill each chosen work and write the record after each; 1 if a run did not end as undisturbed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("--kills", type=int, default=30, help="of each work")
    parser.add_argument("--only", nargs="*", default=list(WORKS), help="names such as apply:storyworld/cdlm")
    given = parser.parse_args(arguments)
    record: dict[str, Any] = {"commit": git_commit(), "kills": []}
    with tempfile.TemporaryDirectory() as top:
        for name in given.only:
            folder = Path(top) / name.replace("/", "-").replace(":", "-")
            for kill in kills_of(name, given.kills, folder):
                record["kills"].append(asdict(kill))
            of_name = [kill["equal"] for kill in record["kills"] if kill["work"] == name]
            print(f"{name}: {sum(of_name)} of {len(of_name)} kills end as undisturbed", flush=True)
            write_json(given.record, record)
            shutil.rmtree(folder)
    return int(not all(kill["equal"] for kill in record["kills"]))


if __name__ == "__main__":
    sys.exit(main())
