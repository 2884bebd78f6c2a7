"""cdlm_lab: a workbench for reading several texts together. See README.md.

    import cdlm_lab
    model = cdlm_lab.load("storyworld/answers")
    model.rank("How many miners were killed?", ["The blast killed 75 miners.", "It was opened in 1974."])

The stable interface is what stands here: `load`, and the verbs of what it returns (`encode`, `fill`,
`attention`, `clusters`, `score`, `align`, `answer`, `tag`, `rank`, `verify`), with the fields of their
answers; `ask_box`; `explore`; `mine`; `push_to_hub`; and `replace_self_attention`. A name of these that is to
go, or to mean something else, works on for one minor version, in which it raises a `DeprecationWarning` that
says what to write instead; CHANGELOG.md names it. All other modules may move from one version to the next.

Public names are imported lazily. If PyTorch is not loaded yet, its threads are told to spin a tenth as long
as usual before they sleep (GOMP_SPINCOUNT): as fast alone, and 2.6 times as fast where cores are shared.
"""

import os
from importlib import import_module
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # read when PyTorch loads OpenMP
__version__ = "0.1.0"
_FROM = {
    "ask_box": "cdlm_lab.views.ask",
    "explore": "cdlm_lab.explorer.any_encoder",
    "find_mentions": "cdlm_lab.apply.loading",
    "load": "cdlm_lab.apply.loading",
    "mine": "cdlm_lab.mining.mine",
    "push_to_hub": "cdlm_lab.apply.hub",
    "replace_self_attention": "cdlm_lab.encoders.packed",
}
__all__ = ["ask_box", "explore", "find_mentions", "load", "mine", "push_to_hub", "replace_self_attention"]


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'cdlm_lab' has no attribute {name!r}")
    return getattr(import_module(_FROM[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
