"""Where models run unless someone says otherwise."""

from __future__ import annotations

import torch


def default_device() -> str:
    """`cuda` where there is a GPU, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"
