"""Executed notebooks as pages: `notebooks/grids/pages.py`, and the pages that lie in data/results."""

import base64
import json
import re
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "results" / "notebooks"
MOST_BYTES = 6_000_000  # of all pages and pictures
SVG = base64.b64encode(b"<svg/>").decode()


def cell(kind: str, source: str, *outputs: dict, tags: tuple[str, ...] = ()) -> dict:
    return {"cell_type": kind, "source": [source], "metadata": {"tags": list(tags)}, "outputs": list(outputs)}


def html(text: str) -> dict:
    return {"output_type": "display_data", "data": {"text/html": text}}


NOTEBOOK = {
    "cells": [
        cell("markdown", "# T\n\n**Question.** Is it?\n\n**Answer.** stale\n\n**Paper.** [x](../data/a.md)"),
        cell("code", "a = 1  # one", tags=("parameters",)),
        cell("markdown", "## Scores\n\nSee [results](../data/results/cdlm.md)."),
        cell("code", "x", {"name": "stdout", "text": "\r 5%|#\r100%|##\nit is *so*\n"}),
        cell(
            "code",
            "x",
            html(f'<img alt="two bars" src="data:image/svg+xml;base64,{SVG}">'),
            tags=("picture",),
        ),
        cell("code", "x", html('<table style="a"><td style="text-align:right"><bdi>1</bdi></td></table>')),
        cell("code", "x", html('<div class="cdlm-view"><mark>seen</mark></div>')),
    ]
}


def test_a_page_begins_with_question_answer_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "draw", lambda browser, markup: b"png")
    page = pages.Page(number="03", folder=tmp_path, browser=None)
    text = pages.page_text(NOTEBOOK, page)
    title, question, answer, picture, *_ = text.split("\n\n")
    assert (title, question) == ("# T", "**Question.** Is it?")
    assert answer == pages.header_answer("03").replace("../data/results/", "../")
    assert picture.startswith("![Answer. A trained scorer is better")
    assert picture.endswith("Scores: two bars](03_1.svg)")
    assert (tmp_path / "03_1.svg").read_bytes() == b"<svg/>"
    assert (tmp_path / "03_2.png").read_bytes() == b"png"
    assert "![Scores: seen](03_2.png)" in text
    assert "it is \\*so\\*" in text
    assert "[results](../cdlm.md)" in text
    assert "[x](../../a.md)" in text
    assert '<table><td align="right">1</td></table>' in text
    assert "stale" not in text
    assert "%|" not in text


def test_headers_are_written_and_nothing_else_changes(tmp_path: Path):
    source = next((ROOT / "notebooks").glob("03_*.ipynb")).read_text(encoding="utf-8")
    answer = json.dumps(pages.header_answer("03"), ensure_ascii=False)[1:-1]
    file = tmp_path / "03_x.ipynb"
    file.write_text(source.replace(answer, "**Answer.** stale"), encoding="utf-8")
    assert pages.write_headers(tmp_path) == ["03_x.ipynb"]
    assert file.read_text(encoding="utf-8") == source
    assert pages.write_headers(tmp_path) == []
    assert "\n\n![" not in pages.header_text("03", tmp_path), "there is no page whose picture it could be"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ids=lambda path: path.stem
)
def test_every_notebook_has_a_page_with_its_pictures(path: Path):
    text = (FOLDER / f"{path.name[:2]}.md").read_text(encoding="utf-8")
    assert text.split("\n\n")[2] == pages.relinked(pages.header_answer(path.name[:2]))
    shown = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", text)
    assert shown
    assert all((FOLDER / name).is_file() for _, name in shown)
    assert {name for _, name in shown} == {one.name for one in FOLDER.glob(f"{path.name[:2]}_*")}
    picture = text.split("\n\n")[3]
    assert picture.startswith("!["), "the first screen has a picture"
    header = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    (in_notebook,) = [line for line in header if line.startswith("![")]
    assert in_notebook.rpartition("/")[2].strip() == picture.rpartition("](")[2], "and so has the notebook"
    assert pages.header_text(path.name[:2], FOLDER) in "".join(header)


def test_the_pages_are_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < MOST_BYTES
