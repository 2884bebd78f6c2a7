"""The cross-document explorer: documents side by side, shaded by where a model looks from chosen words."""

from cdlm_lab.widgets.explorer.records import Panel, Prediction, Selection, ShownDocument
from cdlm_lab.widgets.explorer.widget import Explorer

__all__ = ["Explorer", "Panel", "Prediction", "Selection", "ShownDocument"]
