"""A field for documents with mentions: one selects words to mark them, and clicks a mention to remove it."""

from importlib.resources import files

import anywidget
import traitlets

_STYLE = """
.cdlm-marks{white-space:pre-wrap;overflow-wrap:anywhere;max-height:340px;overflow-y:auto;padding:6px 8px;
border:1px solid #8c8c8c80;border-radius:4px;line-height:1.6;unicode-bidi:plaintext}
.cdlm-marks[hidden]{display:none}
.cdlm-marks mark{background:#3b8ed042;color:inherit;border-radius:3px;padding:1px 2px;cursor:pointer}
.cdlm-marks mark:hover{outline:2px solid #d64545}
.cdlm-marks-toggle{margin:2px 0 4px;cursor:pointer}
.cdlm-marks ~ textarea{width:100%;box-sizing:border-box}
"""


class MarkedText(anywidget.AnyWidget):
    """The field; `value` is the text with `<m>` and `</m>` around mentions, as one may also type it."""

    _esm = (files("cdlm_lab.views") / "marked_text.js").read_text(encoding="utf-8")
    _css = _STYLE
    value = traitlets.Unicode().tag(sync=True)
