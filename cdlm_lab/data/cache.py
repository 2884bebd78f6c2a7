"""Where what is made of corpora is kept: converted records, tokenised texts."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from cdlm_lab.parameters import local_path

CACHE_VARIABLE = "CDLM_LAB_CACHE"  # of the environment


def cache_folder(given: str | Path = "") -> Path:
    """The folder of converted and tokenised corpora: `given`, else that of the environment's CDLM_LAB_CACHE,
    else `cdlm_lab` in the user's cache folder. Processes and machines may share it; it may be deleted."""
    if named := str(given) or os.environ.get(CACHE_VARIABLE):
        return Path(local_path(named, CACHE_VARIABLE))
    return platformdirs.user_cache_path("cdlm_lab")
