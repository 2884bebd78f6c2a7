"""The tables of README.md and data/results are what the recorded runs say; the Python of README.md runs."""

import doctest
import json
import math
import re
import warnings
from pathlib import Path

import pytest
from page_tables import TABLES
from result_pages import stale_tables, tables_shown

from cdlm_lab.progress import bars_after
from cdlm_lab.views.answers import ForeignText

ROOT = Path(__file__).resolve().parents[1]
TIME = r"\b(?:\d+|half an?|an?|two|three) (?:s|min|seconds?|minutes?|hours?|nights?|days?)\b"
READMES = (ROOT / "README.md", *sorted((ROOT / "data" / "results").glob("*.md")))


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: f"{readme.parent.name}/{readme.stem}")
def test_no_table_is_stale(readme: Path):
    stale = stale_tables(readme)
    assert not stale, "\n".join(stale)


def test_every_table_is_shown():
    assert set(TABLES) <= {name for readme in READMES for name in tables_shown(readme)}


def test_readme_is_short_and_its_links_lead_somewhere():
    for readme in (*READMES, ROOT / "notebooks" / "README.md", ROOT / "cdlm_lab" / "README.md"):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", readme.read_text(encoding="utf-8")):
            assert link.startswith("http") or (readme.parent / link).exists(), f"{readme}: {link}"
    lines = READMES[0].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if line.startswith("|") and len(line) > 100] == []
    overview = (ROOT / "data" / "results" / "README.md").read_text(encoding="utf-8")
    assert len(overview.split()) <= 3_000


def test_each_contradiction_is_told_in_300_words():
    page = (ROOT / "data" / "results" / "contradictions.md").read_text(encoding="utf-8")
    sections = re.sub(r"^(<!--|\|).*$", "", page, flags=re.MULTILINE).split("\n## ")[1:]
    assert len(sections) == 6
    for section in sections:
        assert len(section.split()) <= 300, section[:60]
        assert section.count("**What decides**") == 1, "one experiment decides"


def test_no_time_of_the_readme_is_shorter_than_what_was_measured_and_none_is_in_no_file():
    text = re.sub(r"(?<=\w)\n(?=\w)", " ", READMES[0].read_text(encoding="utf-8"))  # paragraphs are one line
    recorded = json.loads((ROOT / "data" / "results" / "times.json").read_text(encoding="utf-8"))
    for one in recorded["times"]:
        assert one["said"] in text, one["said"]
        text = text.replace(one["said"], "")
        assert max(one["seconds"]) <= one["at_most"] if one["seconds"] else one["why"], one["said"]
    rows = re.findall(r"^\| \[(\d\d) .* \| (\d+) min \|$", text, re.MULTILINE)
    assert [number for number, _ in rows] == [*recorded["notebooks"]]
    for (number, minutes), one in zip(rows, recorded["notebooks"].values(), strict=True):
        assert max(one["seconds"]) < 60 * int(minutes) + 30 if one["seconds"] else one["why"], number
    assert re.findall(TIME, re.sub(r"^\|.*", "", text, flags=re.MULTILINE)) == []


@pytest.mark.parametrize(("readme", "least"), [(READMES[0], 10), (ROOT / "cdlm_lab" / "README.md", 11)])
def test_what_the_python_of_a_readme_shows_is_what_comes(
    readme: Path, least: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ROOT)
    shown = "\n".join(re.findall(r"```pycon\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL))
    differences: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    examples = doctest.DocTestParser().get_doctest(shown, {}, "README", str(readme), 0)
    with warnings.catch_warnings(), bars_after(math.inf):
        warnings.simplefilter("error", ForeignText)
        runner.run(examples, out=differences.append)
    assert runner.summarize(verbose=False).attempted >= least
    assert not differences, "".join(differences)
