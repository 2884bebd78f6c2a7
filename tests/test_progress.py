"""The bar is text, is spaced out in logs, and says how much is left."""

import pytest

from cdlm_lab import progress
from cdlm_lab.progress import Progress, tracked


class Clock:
    """Time that moves when told."""

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
    assert list(tracked(iter("abc"), desc="letters", unit="letter", total=3)) == ["a", "b", "c"]
    told = capsys.readouterr().out
    assert "letters: 100%" in told
    assert "3/3" in told


def test_a_list_says_itself_how_long_it_is_and_a_stream_need_not(capsys: pytest.CaptureFixture[str]):
    list(tracked([1, 2]))
    assert "2/2" in capsys.readouterr().out
    assert list(tracked(iter([1, 2]), total=0)) == [1, 2]
    told = capsys.readouterr().out
    assert "2it" in told
    assert "%" not in told
