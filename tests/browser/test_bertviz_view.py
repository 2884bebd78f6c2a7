"""bertviz's views in a real browser: drawn offline, whole, readable, and deaf to what the tokens say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdlm_lab.explorer.widget.bertviz import bertviz_html

# bertviz leaves a file open each time it draws
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")]
# Each would leave a global `h` behind: a script that ran, or an element of that name.
HOSTILE = ["<script>h=1</script>", "</script><b id=h>", "<img src=x onerror=h=1>", '";h=1;//', '"><b id=h>']
# Short enough for the model view, which shows twelve columns.
SHORT = ["<b id=h>", "</script>", "';h=1;//", "&lt;b&gt;", "]]>"]
OTHERS = ["\u05e9\u05dc\u05d5\u05dd", "\U0001f600", "storm", "\u202eabc"]
OVERRIDE = "\u2039U+202E\u203aabc"  # how the last of them is shown


class Opened:
    """A dark page with one view in it, and what it asked for."""

    def __init__(self, watched: Any, view_html: str, file: Path) -> None:
        page = f'<!DOCTYPE html><meta charset="utf-8"><body style="background:#111;color:#ddd">{view_html}'
        file.write_text(page, encoding="utf-8")
        self.watched, self.page, self.own, self.requests = watched, watched.page, file.as_uri(), []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.own)
        (self.frame,) = self.page.frames[1:]
        self.frame.wait_for_selector("svg line", state="attached")

    def texts(self) -> list[str]:
        return self.frame.locator("svg text").all_text_contents()

    def painted(self) -> None:
        """Wait until what is in the frame is on the screen as well."""
        self.frame.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
            "() => setTimeout(done, 300))))"
        )


@pytest.fixture
def opened(new_page: Callable[..., Any], tmp_path: Path) -> Callable[[str], Opened]:
    pytest.importorskip("bertviz", reason="needs bertviz: skipped until cdlm_lab[lab] is installed")
    viewport = {"width": 1100, "height": 1400}
    return lambda view_html: Opened(new_page(viewport=viewport), view_html, tmp_path / "view.html")


def weights(*shape: int) -> np.ndarray:
    exponents = np.exp(3 * np.random.default_rng(0).normal(size=shape))
    return exponents / exponents.sum(-1, keepdims=True)


def check_quiet(view: Opened) -> None:
    """Nothing of the tokens ran, neither in the frame nor around it, and nothing was asked of the network."""
    assert view.frame.evaluate("typeof h") == "undefined"
    assert view.page.evaluate("typeof h") == "undefined"
    assert view.frame.locator("b, img").count() == 0
    view.watched.check_quiet()
    assert [url for url in view.requests if url != view.own] == []


def check_readable(view: Opened) -> None:
    """All of the picture is inside the frame, on white whatever the page around it is."""
    fits = "document.documentElement.{0} <= {1}"
    assert view.frame.evaluate(fits.format("scrollHeight", "innerHeight")), "cut off below"
    assert view.frame.evaluate(fits.format("scrollWidth", "innerWidth")), "cut off on the right"
    left = "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().left))"
    assert view.frame.evaluate(left) >= 0, "cut off on the left"
    assert view.frame.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    view.painted()
    picture = view.page.screenshot(path=Path(view.own.removeprefix("file://")).with_suffix(".png"))
    assert len(picture) > 10_000, "an empty page makes a smaller picture"


def test_head_view(opened):
    queries, keys = [*HOSTILE, *OTHERS], [*SHORT, "W" * 10_000]
    attention = weights(2, 3, len(queries), len(keys))
    view = opened(bertviz_html(attention, query_tokens=queries, key_tokens=keys))
    assert view.frame.locator("svg line").count() == 3 * len(queries) * len(keys)
    assert view.texts() == [*HOSTILE, *OTHERS[:-1], OVERRIDE, *SHORT, "W" * 23 + "\u2026"]
    check_readable(view)
    before = view.frame.locator("svg line").first.get_attribute("stroke-opacity")
    assert view.frame.locator("#layer option").all_text_contents() == ["1", "2"]
    view.frame.locator("#layer").select_option("2")
    after = view.frame.locator("svg line").first.get_attribute("stroke-opacity")
    assert float(before) == pytest.approx(round(attention[0, 0, 0, 0], 3) / 3)
    assert float(after) == pytest.approx(round(attention[1, 0, 0, 0], 3) / 3)
    view.frame.locator("svg text", has_text="storm").hover()
    assert view.frame.locator("svg line[visibility=visible]").count() == 3 * len(keys)
    check_quiet(view)


@pytest.mark.parametrize(("layers", "heads"), [(3, 12), (1, 1)])
def test_model_view(opened, layers, heads):
    tokens = [*SHORT, *OTHERS]
    attention = weights(layers, heads, len(tokens), len(tokens))
    view = opened(bertviz_html(attention, query_tokens=tokens, key_tokens=tokens, view="model"))
    assert view.frame.locator("svg line").count() == layers * heads * len(tokens) ** 2
    check_readable(view)
    view.frame.locator("svg > g").first.locator("rect").last.click()
    view.frame.wait_for_selector("svg text.token")
    assert view.frame.locator("svg text.token").all_text_contents() == [*SHORT, *OTHERS[:-1], OVERRIDE] * 2
    check_readable(view)
    check_quiet(view)


def test_even_what_got_in_would_not_run_nor_reach_the_network(opened):
    view = opened(bertviz_html(weights(1, 1, 2, 2), query_tokens=["a", "b"], key_tokens=["a", "b"]))
    refused = view.frame.evaluate(
        """async () => {
            const refused = [];
            const add = (name, properties) => document.body.append(
                Object.assign(document.createElement(name), properties));
            const settled = new Promise(done => document.addEventListener(
                "securitypolicyviolation",
                event => refused.push(event.effectiveDirective) === 5 && done()));
            add("script", {textContent: "window.h = 1"});
            add("div", {innerHTML: "<p onclick='window.h = 1'>"});
            document.querySelector("p").click();
            add("img", {src: "http://127.0.0.1:9/x.png"});
            add("iframe", {src: "http://127.0.0.1:9/"});
            await fetch("http://127.0.0.1:9/").catch(() => null);
            await settled;
            return refused.sort();
        }"""
    )
    assert refused == ["connect-src", "frame-src", "img-src", "script-src-attr", "script-src-elem"]
    assert view.frame.evaluate("typeof h") == "undefined"
    with pytest.raises(Exception, match="cross-origin"):  # the page around it is out of reach
        view.frame.evaluate("parent.document.title")
