"""Publishing a model on the Hugging Face hub, by the hub's own method."""

from __future__ import annotations

import os
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

from cdlm_lab.encoders.checkpoint import CheckpointError, first_line
from cdlm_lab.training.trained import folder_of_run

CARD = "README.md"


def push_to_hub(name: str | os.PathLike[str], repo_id: str, *, private: bool = True) -> str:
    """Upload the folder of a model, one that comes with the project or a folder of yours, with its card and
    licence; returns the address. `repo_id`: such as "me/events", created if it is not there. You log in once
    by `hf auth login`. Raises CheckpointError if the folder has no card, or the hub refuses."""
    folder = folder_of_run(os.fspath(name))
    if not (folder / CARD).is_file():
        raise CheckpointError(f"{name}: no {CARD} in {folder}; write its card there, with the licence, first")
    files = ["**/training/checkpoint-*/**", "**/.*"]
    try:
        hub = HfApi()
        hub.create_repo(repo_id, private=private, exist_ok=True)
        done = hub.upload_folder(
            repo_id=repo_id, folder_path=Path(folder), ignore_patterns=files, commit_message=f"Model {name}"
        )
    except (HfHubHTTPError, LocalTokenNotFoundError, OSError, ValueError) as error:
        raise CheckpointError(f"{repo_id}: the hub did not take {name}: {first_line(error)}") from error
    return str(done.commit_url)
