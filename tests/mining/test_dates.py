"""Dates as they are written in the wild."""

import datetime

import pytest

from cdlm_lab.mining.dates import day_of, iso, order_of

TODAY = datetime.date(2026, 11, 29)
EVENT = datetime.date(2018, 8, 29).toordinal()


@pytest.mark.parametrize(
    "date",
    [
        *("2018-08-29", "2018-8-29", "2018/08/29", "2018.08.29", "20180829", " 2018-08-29 "),
        *("2018-08-29T23:59:59+02:00", "2018-08-29 10:00", "2018-08-29T10:00:00Z"),
        *("8/29/18", "8/29/2018", "08-29-2018", "29/8/2018", "29.8.2018", "29.08.18"),
        *("August 29, 2018", "Aug. 29, 2018", "29 August 2018", "29th August, 2018", "Aug 29th 2018"),
        *("Wed, 29 Aug 2018 10:00:00 GMT", "Wednesday, August 29, 2018", "1535540400", "1535540400000"),
        "٢٠١٨-٠٨-٢٩",
    ],
)
def test_one_day_in_many_notations(date: str):
    assert iso(day_of(date, today=TODAY)) == "2018-08-29"


@pytest.mark.parametrize(
    "date",
    [
        *(
            "1397-06-07",
            "2561-08-29",
            "平成30年8月29日",
            "0001-11-30",
            "2050-09-30",
        ),  # other calendars, mistakes
        *("", "unknown", "2018", "2018-13-01", "2018-02-30", "31/31/2018", "99999999999999999999", "1/2"),
        *("May I help you 2018", "24 Smarch 2018"),
    ],
)
def test_what_is_no_date_of_the_calendar_is_none(date: str):
    assert day_of(date, today=TODAY) is None


@pytest.mark.parametrize(
    ("pile", "expected"),
    [
        (["8/29/18", "8/9/18"], "month first"),
        (["29/8/18", "8/9/18"], "day first"),
        (["29/8/18", "8/29/18"], "unknown"),
        (["8/9/18", "2018-08-29"], "month first"),
        (["29.8.2018", "8/29/18"], "month first"),  # a point is always between day and month
    ],
)
def test_a_pile_says_whether_the_month_comes_first(pile: list[str], expected: str):
    assert order_of(pile) == expected


def test_a_date_that_can_be_read_in_two_ways_follows_the_pile_or_is_none():
    read = {order: day_of("8/9/18", order=order, today=TODAY) for order in ("month first", "day first")}
    assert [iso(day) for day in read.values()] == ["2018-08-09", "2018-09-08"]
    assert day_of("8/9/18", order="unknown", today=TODAY) is None
    assert day_of("8/29/18", order="unknown", today=TODAY) == EVENT
    assert iso(day_of("8/8/18", order="unknown", today=TODAY)) == "2018-08-08"


@pytest.mark.parametrize(("years", "expected"), [("99", 1999), ("18", 2018), ("45", 2045)])
def test_two_digits_of_a_year(years: str, expected: int):
    assert (
        datetime.date.fromordinal(day_of(f"1/31/{years}", today=datetime.date(2045, 12, 1))).year == expected
    )
