"""The cross-document explorer: documents side by side, shaded by a model's attention for chosen words."""
