"""bertviz's head view and model view of a few tokens, without network access and with tokens shown as text.

bertviz fetches d3, jQuery and require.js from the network when it draws, and pastes the tokens into a script.
Here bertviz's drawing code runs in an iframe with a copy of the libraries (see vendor/README.md), and two
lines replace require.js. The tokens never pass through bertviz's HTML: bertviz receives placeholders, and the
text is put into its data afterwards, escaped. The iframe has an origin of its own and no network, and runs
only the scripts whose checksums its policy lists. A view is static HTML: it survives saving and exporting,
but JupyterLab removes iframes from notebooks that are not trusted.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.views.html import FRAME, LIGHT_ARROWS, STILL_POLICY, muted, visible, whole_page

VENDOR = Path(__file__).with_name("vendor")
LIBRARIES = ("jquery-3.7.1.slim.min.js", "d3-5.16.0.min.js")
SUPPORTED = "bertviz>=1.4,<2"  # as in pyproject.toml
# Of require.js, bertviz calls nothing but `requirejs([names], draw)`.
INSTEAD_OF_REQUIRE = (
    "var libraries={jquery:window.jQuery,d3:window.d3};"
    "var requirejs=(names,draw)=>draw(...names.map(name=>libraries[name]));"
)
LEAST_COLUMNS = 8  # of the model view, which would draw a small number of heads as large as the page
MOST_TOKENS = {"head": 64, "model": 48}  # view -> most query and key tokens together
LONGEST = {"head": 24, "model": 12}  # view -> greatest width of a token's text, in columns
_HOW = {
    "head": "One colour per head: click a square to switch its head off or on, double-click to see it alone. "
    "Point at a token to see only its lines.",
    "model": "One small picture per layer and head: click it to read the tokens.",
}
# bertviz's output up to its data: [script of require.js] [page] [require.config] [code up to the data].
_BEFORE_DATA = re.compile(
    r'\A\s*<script src="[^"]*"></script>(?P<page>.*?)<script type="text/javascript">'
    r"(?P<notice>.*?)require\.config\(\{.*?\}\);\s*"
    r"(?P<code>requirejs\(\['jquery', 'd3'\],.*?const params = )",
    re.DOTALL,
)
# bertviz draws on white: in a dark notebook the picture's brightness is inverted and its hues are kept.
_DARK = (
    "<style>[data-jp-theme-light=false] .cdlm-bertviz iframe,.vscode-dark .cdlm-bertviz iframe"
    "{filter:invert(0.93) hue-rotate(180deg)}</style>"
) + LIGHT_ARROWS
# The head view's left-hand tokens end at 102 pixels, too little for long ones: the picture is moved right.
_STYLE = """
:root{color-scheme:light}
body{margin:8px;background:#fff;color:#000;font:13px 'Helvetica Neue',Helvetica,Arial,sans-serif}
#vis svg{display:block;overflow:visible}
.head #vis svg{margin:6px 0 0 90px;width:calc(100% - 90px)}
"""
_POLICY = f"{STILL_POLICY}; base-uri 'none'; form-action 'none'"


def bertviz_html(
    attention: np.ndarray, *, query_tokens: Sequence[str], key_tokens: Sequence[str], view: str = "head"
) -> str:
    """Return one of bertviz's two views as self-contained HTML.

    Weights between two sentences are small, as each token distributes a total of 1 over the whole text. All
    lines are therefore scaled by one factor that makes the largest opaque; the caption states the factor.

    `attention`: (layer, head, query, key), in [0, 1]. Query tokens are drawn on the left and key tokens on
    the right, both as untrusted texts. `view`: `head` shows one layer at a time with all heads on top of each
    other, `model` all layers and heads side by side. Raises ModuleNotFoundError, which says how to install
    bertviz, and RuntimeError if the installed release writes its views in an unknown format."""
    texts = [list(query_tokens), list(key_tokens)]
    if (count := sum(map(len, texts))) > MOST_TOKENS[view]:
        other = f", or take the head view (up to {MOST_TOKENS['head']})" if view == "model" else ""
        most = f"at most {MOST_TOKENS[view]} tokens in all, got {count}"
        raise ValueError(f"the {view} view shows {most}: choose fewer or shorter sentences{other}")
    weights = np.asarray(attention, dtype=np.float64)  # of which rounded numbers have few digits
    largest = weights.max()
    strength = float(f"{1 / largest:.2g}") if 0 < largest < 0.9 else 1.0  # 1 where it hardly matters
    try:
        page, scripts = _drawn(np.round(np.minimum(weights * strength, 1), 3), texts, view)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RuntimeError(
            f"bertviz {version('bertviz')} writes its views in a way that is not known here ({error}); "
            f'install another release: pip install "{SUPPORTED}"'
        ) from error
    layers, heads, queries, keys = weights.shape
    title = f"bertviz {view} view: {queries} by {keys} tokens, {layers} layers of {heads} heads"
    caption = "Lines are attention weights, those on the left look at those on the right"
    caption += f"; the largest is {largest:.2g}"
    if strength != 1:
        factor = f"{int(strength):,}" if strength >= 10 else f"{strength:.2g}"
        caption += f", and all lines are drawn {factor} times as strong as their weights"
    look = f"width:100%;height:{_height(weights, view)}px;{FRAME};background:#fff;color-scheme:light"
    inside = whole_page(page, title=title, policy=_POLICY, style=_STYLE, name=view, scripts=scripts)
    document = html.escape(inside)
    frame = f'<iframe sandbox="allow-scripts" title="{title}" style="{look}" srcdoc="{document}"></iframe>'
    return f'<div class="cdlm-bertviz">{_DARK}{frame}{muted(f"{caption}. {_HOW[view]}")}</div>'


def _drawn(weights: np.ndarray, texts: list[list[str]], view: str) -> tuple[str, list[str]]:
    """Return the HTML of bertviz's page, and the scripts that draw in it in the order in which they run."""
    written = _written_by_bertviz(weights, view)
    match = _BEFORE_DATA.match(written)
    data, end = json.JSONDecoder().raw_decode(written, match.end())
    (shown,), name = data["attention"], data["root_div_id"]
    if {"attn", "left_text", "right_text"} - set(shown):
        raise KeyError("attention")
    for side, tokens in zip(("left_text", "right_text"), texts, strict=True):
        shown[side] = [_label(text, LONGEST[view]) for text in tokens]
    data["root_div_id"] = "bertviz"  # bertviz's random id is not needed by a view alone in an iframe
    for numbered in {"include_layers", "include_heads"} & set(data):  # bertviz counts from 0, users from 1
        data[numbered] = [number + 1 for number in data[numbered]]
    if data.get("layer") is not None:
        data["layer"] += 1
    if "total_heads" in data:
        data["total_heads"] = max(data["total_heads"], LEAST_COLUMNS)
    page = match["page"].replace(name, data["root_div_id"])
    # bertviz repeats the data in a comment, which is skipped up to the end of the line.
    code = written[written.index("\n", end) + 1 : written.rindex("</script>", end)]
    # Escaped, so that the JSON is valid JavaScript too and contains no characters that HTML interprets.
    text = json.dumps(data, separators=(",", ":"))
    text = re.sub("[<>&]", lambda character: f"\\u{ord(character[0]):04x}", text)
    libraries = [(VENDOR / name).read_text(encoding="utf-8") for name in LIBRARIES]
    return page, [*libraries, INSTEAD_OF_REQUIRE, f"{match['notice']}{match['code']}{text};\n{code}"]


def _written_by_bertviz(weights: np.ndarray, view: str) -> str:
    """Return bertviz's HTML for these weights, with a placeholder for each token."""
    try:
        import bertviz
        import bertviz.util
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "bertviz":
            raise
        remedy = f'install it: pip install "{SUPPORTED}", or all of "cdlm_lab[lab]"'
        raise ModuleNotFoundError(f"this view needs bertviz; {remedy}", name="bertviz") from None
    left, right = (["?"] * count for count in weights.shape[2:])
    options: dict[str, Any] = {"display_mode": "light"}
    if view == "head":  # open on the first layer within 5% of the largest total weight
        of_layers = weights.sum((1, 2, 3))
        options = {"layer": int((of_layers >= 0.95 * of_layers.max()).argmax())}
    # bertviz needs tensors: they are made by the torch that it imports, so this module imports none
    options["cross_attention"] = [bertviz.util.torch.from_numpy(layer[None]) for layer in weights]
    draw = getattr(bertviz, f"{view}_view")
    return draw(decoder_tokens=left, encoder_tokens=right, **options, html_action="return").data


def _label(text: str, longest: int) -> str:
    """Return a token's label: without control characters, never empty, at most `longest` columns wide."""
    bare = text.strip()
    if not bare:
        return "".join("\u23ce" if one == "\n" else "\u2423" for one in text[:longest]) or "\u2205"
    shown = visible(" ".join(bare[: 4 * longest].split()))
    columns = 0
    for i, character in enumerate(shown):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > longest or (columns == longest and i + 1 < len(shown)):
            return shown[:i] + "\u2026"
    return shown


def _height(weights: np.ndarray, view: str) -> int:
    """Height of the iframe in pixels, from constants in bertviz's drawing code, with space around it."""
    layers, heads, *sides = weights.shape
    if view == "head":
        needed = max(sides) * 22.5 + 30 + 24  # tokens, coloured squares, choice of the layer
    else:
        thumbnails = layers * (max(sides) * 84 / max(heads, LEAST_COLUMNS) + 10) + 38
        needed = max(thumbnails, max(sides) * 18 + 55)  # or the one picture that a click has enlarged
    return round(needed) + 44
