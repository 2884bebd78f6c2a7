"""cdlm_lab: a workbench for reading several texts together. See README.md.

    import cdlm_lab
    model = cdlm_lab.load("storyworld/cdlm")

The public names are imported lazily: what one of them needs is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
_FROM = {
    "load": "cdlm_lab.apply.loading",
    "mine": "cdlm_lab.mining.mine",
    "replace_self_attention": "cdlm_lab.attention.layer",
}
__all__ = ["load", "mine", "replace_self_attention"]


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'cdlm_lab' has no attribute {name!r}")
    return getattr(import_module(_FROM[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
