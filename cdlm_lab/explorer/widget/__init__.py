"""The cross-document explorer: documents side by side, shaded by a model's attention for chosen words."""

from cdlm_lab.explorer.widget.content import Choices, Content, Example, Opened
from cdlm_lab.explorer.widget.records import Panel, Prediction, Selection, ShownDocument
from cdlm_lab.explorer.widget.widget import Explorer

__all__ = ["Choices", "Content", "Example", "Explorer", "Opened"]
__all__ += ["Panel", "Prediction", "Selection", "ShownDocument"]
