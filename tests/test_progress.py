"""The bar is text, is spaced out in logs, says how much is left; which process this is; shared work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil
import pytest

from cdlm_lab import progress
from cdlm_lab.progress import Progress, is_first, processes_here, rank, shared_out, tracked

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}


class Clock:
    """Time that moves when it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_picture_a_second_at_first_and_fewer_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock)
    bar = Progress(total=10_000)
    monkeypatch.setattr(bar, "_time", clock)
    bar.start_t = bar.last_print_t = 0.0
    bar.miniters, bar.dynamic_miniters = 1, False
    drawn = []
    for seconds in range(1, 7_201):
        clock.now = float(seconds)
        bar.update(1)
        drawn.append(capsys.readouterr().out.count("\r"))
    bar.close()
    assert sum(drawn[:60]) >= 55  # the first minute: every second
    assert 39 <= sum(drawn[3_600:]) <= 43  # the second hour: 60 ln 2 = 41.6
    assert sum(drawn) < 400


def test_items_pass_through_and_are_counted(capsys: pytest.CaptureFixture[str]):
    """A list says itself how long it is, and a stream need not."""
    assert list(tracked(iter("abc"), desc="letters", unit="letter", total=3)) == ["a", "b", "c"]
    shown = capsys.readouterr().out
    assert "letters: 100%" in shown
    assert "3/3" in shown
    list(tracked([1, 2]))
    assert "2/2" in capsys.readouterr().out
    assert list(tracked([1, 2], initial=2)) + list(tracked([])) == [1, 2]
    assert not capsys.readouterr().out, "nothing is left to do"
    assert list(tracked(iter([1, 2]), total=0)) == [1, 2]
    shown = capsys.readouterr().out
    assert "2 items" in shown
    assert "%" not in shown


def test_the_environment_says_which_process_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert (rank(), is_first(), processes_here()) == (0, True, 1)
    monkeypatch.setenv("RANK", "0")
    assert is_first()
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert (rank(), is_first(), processes_here()) == (3, False, 4)


@pytest.mark.parametrize("size", [0, 5, 6, 400])
@pytest.mark.parametrize("processes", [1, 3])
def test_what_is_shared_out_comes_back_in_order(size: int, processes: int) -> None:
    offset = 7  # what a function refers to need not be fit to be sent
    results = list(shared_out(lambda n: (n + offset, os.getpid()), range(size), processes=processes, alone=5))
    assert [value for value, _ in results] == list(range(7, size + 7))
    own = [process == os.getpid() for _, process in results]
    assert own == ([True] * size if processes == 1 else [True] * 5 + [False] * (size - 5))[:size]


def test_items_are_read_little_ahead() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            read.append(number)
            yield number

    results = shared_out(abs, items(), processes=2, alone=0)
    assert next(results) == 0
    assert len(read) < 1000
    results.close()
    assert not _sharing()


def test_faults_of_the_items_and_of_the_function_are_passed_on() -> None:
    def broken() -> Iterator[int]:
        yield from range(100)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(shared_out(abs, broken(), processes=2, alone=0))
    with pytest.raises(ZeroDivisionError):
        list(shared_out(lambda n: 1 // n, range(-90, 90), processes=2, alone=0))
    assert not _sharing()


def test_one_that_is_killed_does_not_leave_the_others_waiting() -> None:
    def die(number: int) -> int:
        if number == 50:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(BrokenProcessPool):
        list(shared_out(die, range(1000), processes=2, alone=0))
    assert not _sharing()


def test_tokenizers_do_not_complain_of_forks() -> None:
    """As they do after they used threads."""
    program = (
        "import os; from tokenizers import Tokenizer, models; from cdlm_lab.progress import shared_out\n"
        "tokenizer = Tokenizer(models.WordLevel({'a': 0}, unk_token='a'))\n"
        "tokenizer.encode_batch(['a a'] * 100)\n"
        "encode = lambda text: len(tokenizer.encode_batch([text, text]))\n"
        "assert list(shared_out(encode, ['a'] * 300, processes=2)) == [2] * 300\n"
        "assert 'TOKENIZERS_PARALLELISM' not in os.environ"
    )
    environment = ENVIRONMENT.copy()
    del environment["TOKENIZERS_PARALLELISM"]
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_they_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path; from cdlm_lab.progress import shared_out\n"
        "def note(number):\n"
        "    Path(sys.argv[1], str(os.getpid())).touch()\n"
        "    time.sleep(0.05)\n"
        "list(shared_out(note, range(10**6), processes=2, alone=0))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], env=ENVIRONMENT)
    _until(lambda: len(list(tmp_path.iterdir())) == 2)
    family = [psutil.Process(int(file.name)) for file in tmp_path.iterdir()]
    parent.kill()
    parent.wait()
    _until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family))


def _sharing() -> list[psutil.Process]:
    """Those that share out work for this process."""
    return [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and child.cmdline() == psutil.Process().cmdline()
    ]


def _until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
