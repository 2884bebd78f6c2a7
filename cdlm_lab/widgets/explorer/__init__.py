"""The cross-document explorer: documents side by side, shaded by a model's attention for chosen words."""

from cdlm_lab.widgets.explorer.content import Choices, Content, Example, Opened
from cdlm_lab.widgets.explorer.records import Panel, Prediction, Selection, ShownDocument
from cdlm_lab.widgets.explorer.widget import Explorer

__all__ = ["Choices", "Content", "Example", "Explorer", "Opened"]
__all__ += ["Panel", "Prediction", "Selection", "ShownDocument"]
