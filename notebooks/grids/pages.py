"""Executed notebooks as Markdown pages with still pictures, which a code host shows without running anything.

    cdlm-lab run notebooks/grids/pages.yaml     # every notebook as it opens, 20 minutes on 2 CPU cores
    python notebooks/grids/pages.py runs/pages  # writes data/results/notebooks

A page begins with the question, its answer and one picture, that of the cell with the tag `picture`. Figures
become SVG; text on coloured grounds is drawn as PNG by Chromium, which playwright (both needed) controls.
`--headers notebooks` writes the answers of the recorded runs and the first picture of each page into the
headers of the notebooks.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdlm_lab.data.files import replaced_file
from cdlm_lab.parameters import path_argument
from cdlm_lab.results.answer import HEADER, header_answer
from cdlm_lab.views.html import FONT, lines_of
from cdlm_lab.views.tables import markdown_text

LONGEST = 20_000  # characters of a table: code hosts show no page of more than some 500,000
WIDTH, TALLEST = 980, 1400  # pixels of a drawn view; the rest of a longer one is left out
NOTEBOOKS = Path(__file__).resolve().parents[1]
PAGES = NOTEBOOKS.parent / "data/results/notebooks"
FIRST = "picture"  # tag of the cell whose picture the page begins with
_FIGURE = re.compile(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]+)"[^>]*>')
_DRAWN = re.compile(r"background|<iframe|cdlm-view")  # HTML whose meaning is in its looks
_PROGRESS = re.compile(r"\d%\|| step |^step |^tokenising|^written: |^training in ")
_KEPT = {"align", "colspan", "open"}  # attributes of HTML
_LOOSE = {"bdi", "span", "small", "u", "font"}  # elements that a code host drops
Cell = Mapping[str, Any]
TOO_LONG = (
    "*Tables too long for this page: they are in the notebook, and on [the pages of results](../README.md).*"
)


@dataclass(kw_only=True)
class Page:
    """A page while it is made: its number, such as "03", and the folder into which its pictures go."""

    number: str
    folder: Path
    browser: Any  # of playwright
    pictures: int = 0
    first: str = ""  # the picture that the page begins with, in Markdown
    heading: str = ""  # of the section
    blocks: list[str] = field(default_factory=list)

    def add(self, cell: Cell) -> None:
        """Add a cell: its text, or what it shows."""
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ (.+)$", source, re.MULTILINE)
            self.heading = headings[-1] if headings else self.heading
            self.blocks.append(relinked(source))
        elif "parameters" in _tags(cell):
            self.blocks.append(_folded("The parameters it was run with", f"```python\n{source}\n```"))
        else:
            shown = [text for output in cell["outputs"] for text in self._shown(output)]
            pictures = [text for text in shown if text.startswith("![")]
            if FIRST in _tags(cell) and pictures and not self.first:
                self.first = pictures[0]
                shown.remove(self.first)
            self.blocks += shown

    def _shown(self, output: Cell) -> Iterator[str]:
        if output.get("name") == "stdout":
            lines = [line.rpartition("\r")[2] for line in "".join(output["text"]).split("\n")]
            lines = [line for line in lines if line.strip() and not _PROGRESS.search(line)]
            yield "  \n".join(markdown_text(line) for line in lines)
        markup = "".join(output.get("data", {}).get("text/html", ""))
        if figures := _FIGURE.findall(markup):
            for alt, data in figures:
                yield self._picture(html.unescape(alt), "svg", base64.b64decode(data))
        elif _DRAWN.search(markup):
            text = " ".join(lines_of(markup))
            yield self._picture(text[:300], "png", draw(self.browser, markup))
        elif markup:
            table = plain(markup)
            yield table if len(table) <= LONGEST else TOO_LONG

    def _picture(self, alt: str, suffix: str, content: bytes) -> str:
        self.pictures += 1
        file = self.folder / f"{self.number}_{self.pictures}.{suffix}"
        file.write_bytes(content)
        words = " ".join(re.sub(r"[\[\]<>*`]", " ", f"{self.heading}: {alt}").split())
        return f"![{words}]({file.name})"


def draw(browser: Any, markup: str) -> bytes:
    """Draw HTML on white as a PNG of WIDTH, at most TALLEST high; the scripts of frames run."""
    tab = browser.new_page(viewport={"width": WIDTH, "height": 200}, color_scheme="light")
    style = f"body{{margin:10px;background:#fff;color:#222;font:14px {FONT}}}"
    tab.set_content(f"<!doctype html><style>{style}</style>{markup}")
    tab.wait_for_timeout(4000 if "<iframe" in markup else 50)
    height = min(tab.evaluate("document.documentElement.scrollHeight"), TALLEST)
    tab.set_viewport_size({"width": WIDTH, "height": height})
    picture = tab.screenshot()
    tab.close()
    return picture


def plain(markup: str) -> str:
    """HTML as a code host keeps it: without styles, scripts and links to files in their own addresses."""
    from bs4 import BeautifulSoup  # imported here, as only this page maker needs it

    soup = BeautifulSoup(markup, "html.parser")
    for tag in soup.find_all(["style", "script"]):
        tag.decompose()
    for link in soup.find_all("a", download=True):
        if link.parent:
            link.parent.decompose()
    for tag in soup.find_all(True):
        right = "text-align:right" in str(tag.get("style", "")).replace(" ", "")
        tag.attrs = {name: value for name, value in tag.attrs.items() if name in _KEPT}
        if right and tag.name in ("td", "th"):
            tag["align"] = "right"
        if tag.name in _LOOSE:
            tag.unwrap()
    return " ".join(str(soup).split())


def page_text(notebook: Mapping[str, Any], page: Page) -> str:
    """The page of a notebook (nbformat 4, executed); its pictures are written on the way."""
    head, *cells = notebook["cells"]
    title, question, *rest = "".join(head["source"]).split("\n\n")
    answer = header_answer(page.number)
    page.heading = title.removeprefix("# ")
    for cell in cells:
        page.add(cell)
    if not page.first:  # no cell has the tag, or it shows no picture
        page.first = next((text for text in page.blocks if text.startswith("![")), "")
        page.blocks = [text for text in page.blocks if text != page.first]
    rest = [text for text in rest if not HEADER.match(text) and not text.startswith("![")]
    picture = re.sub(r"^!\[", lambda _: f"![{_finding(answer)} ", page.first)
    name = next(NOTEBOOKS.glob(f"{page.number}_*.ipynb")).name
    link = f"This is [{name}](../../../notebooks/{name}) as it was run; `make lab` opens it."
    top = [title, question, answer, picture, _folded("Paper, data, cost", "\n\n".join(rest)), link]
    return "\n\n".join(filter(None, map(str.strip, [*map(relinked, top), *page.blocks]))) + "\n"


def _finding(answer: str) -> str:
    """The answer of a header as the words of a picture."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|[*]", r"\1", answer.partition("Recorded results")[0]).strip()


def _tags(cell: Cell) -> Sequence[str]:
    return cell["metadata"].get("tags", ())


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def relinked(text: str) -> str:
    """Links of a notebook as they read from the folder of the pages."""
    return text.replace("](../data/results/", "](../").replace("](../data/", "](../../")


def write_pages(executed: Sequence[Path], folder: Path) -> list[str]:
    """Write the page of each executed notebook; returns a line on each."""
    from playwright.sync_api import sync_playwright  # imported here, as only this page maker needs it

    folder.mkdir(parents=True, exist_ok=True)
    lines, path = [], next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for file in executed:
            notebook = json.loads(file.read_text(encoding="utf-8"))
            number = notebook["cells"][0]["id"].partition("-")[0]
            for old in folder.glob(f"{number}_*"):
                old.unlink()
            page = Page(number=number, folder=folder, browser=browser)
            with replaced_file(folder / f"{number}.md") as opened:
                opened.write(page_text(notebook, page))
            lines.append(f"{folder / f'{number}.md'}: {page.pictures} pictures")
        browser.close()
    return lines


def header_text(number: str, folder: Path) -> str:
    """What is written into the header of a notebook: its answer, and below it the picture that its page in
    `folder` begins with, if there is one."""
    answer, page = header_answer(number), folder / f"{number}.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    picture = next((block for block in text.split("\n\n") if block.startswith("![")), "")
    words, _, name = picture.removeprefix("![").removesuffix(")").rpartition("](")
    words = words.removeprefix(_finding(answer)).strip()
    return f"{answer}\n\n![{words}](../data/results/notebooks/{name})" if name else answer


def write_headers(notebooks: Path, folder: Path = PAGES) -> list[str]:
    """Write answers and pictures (`header_text`) into the headers of notebooks; returns the names of those
    that changed."""
    changed = []
    for file in sorted(notebooks.glob("[0-9]*.ipynb")):
        text = file.read_text(encoding="utf-8")
        notebook = json.loads(text)
        head = notebook["cells"][0]
        source = HEADER.sub(lambda _, n=file.name[:2]: header_text(n, folder), "".join(head["source"]))
        head["source"] = source.splitlines(keepends=True)
        if (new := json.dumps(notebook, ensure_ascii=False, indent=1) + "\n") != text:
            file.write_text(new, encoding="utf-8")
            changed.append(file.name)
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Write headers or pages; prints what was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=path_argument, nargs="?", help="folder of executed notebooks")
    parser.add_argument("--into", type=path_argument, default=PAGES)
    parser.add_argument("--headers", type=path_argument, metavar="NOTEBOOKS")
    chosen = parser.parse_args(arguments)
    if chosen.headers:
        print("\n".join(write_headers(chosen.headers, chosen.into)) or "no header has changed")
    if chosen.runs:
        executed = sorted(chosen.runs.rglob("executed.ipynb")) or sorted(chosen.runs.glob("[0-9]*.ipynb"))
        print("\n".join(write_pages(executed, chosen.into)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
