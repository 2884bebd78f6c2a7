"""What a run needs on the machine before it starts: files, folders, models, GPUs.

A path to a `config.json` means a model: weights and tokenizer must lie beside it, in files that can be read,
and its checksum is that of all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cdlm_lab.data.files import sha256_of_file
from cdlm_lab.models.model_folder import CONFIG_FILE, fault_of_folder
from cdlm_lab.report.values import write_json

HUB = "hub:"


class Checksums:
    """Checksums of files and folders, remembered as long as size and time of a file stay.

    Args:
        memory: the file that remembers; it need not exist.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        try:
            self._known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._known = {}
        if not isinstance(self._known, dict):
            self._known = {}

    def of(self, need: str) -> str:
        """The checksum of a path (of a model: of all files in its folder), or the revision of a checkpoint of
        the hub.

        Raises:
            DataError: a file may not be read.
        """
        if need.startswith(HUB):
            return f"revision {_revision(need)}"
        path = Path(need)
        if path.is_file() and path.name != CONFIG_FILE:
            return self._of_file(path)
        digest = hashlib.sha256()
        if path.name == CONFIG_FILE:  # the same config may lie beside other weights
            path, inside = path.parent, path.parent.iterdir()
        else:
            inside = path.rglob("*")
        for file in sorted(inner for inner in inside if inner.is_file()):
            digest.update(f"{file.relative_to(path).as_posix()}\0{self._of_file(file)}\n".encode())
        return digest.hexdigest()

    def save(self) -> None:
        """Remember."""
        write_json(self._memory, self._known)

    def _of_file(self, path: Path) -> str:
        told, name = path.stat(), str(path.resolve())
        before = self._known.get(name)
        if isinstance(before, list) and before[:2] == [told.st_size, told.st_mtime_ns]:
            return before[2]
        self._known[name] = [told.st_size, told.st_mtime_ns, sha256_of_file(path)]
        return self._known[name][2]


def missing_need(need: str) -> str | None:
    """Why something is not there, and what to do; None if it is."""
    if need.startswith(HUB):
        name = need.removeprefix(HUB)
        if (revision := _revision(need)) is None:
            return f"{name} is not among the models in {_hub_folder()}: hf download {name}"
        return fault_of_folder(_snapshot(need, revision))
    path = Path(need)
    if not path.exists():
        return f"there is no {need}"
    if path.name == CONFIG_FILE:
        return fault_of_folder(path.parent)
    if path.is_dir() and not any(path.iterdir()):
        return f"{need} is empty"
    return None


def local_gpus(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The NVIDIA devices that this machine has, or that CUDA_VISIBLE_DEVICES leaves of them."""
    if "CUDA_VISIBLE_DEVICES" in environ:
        return [device for device in environ["CUDA_VISIBLE_DEVICES"].split(",") if device.strip()]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = listed.stdout.splitlines() if listed.returncode == 0 else []
    return [str(number) for number, _ in enumerate(line for line in lines if line.startswith("GPU"))]


def _hub_folder() -> Path:
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named)
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"


def _revision(need: str) -> str | None:
    """The commit of a checkpoint in the hub's cache; None if it is not there."""
    try:
        revision = (_cached(need) / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return revision if (_snapshot(need, revision) / CONFIG_FILE).exists() else None


def _cached(need: str) -> Path:
    return _hub_folder() / f"models--{need.removeprefix(HUB).replace('/', '--')}"


def _snapshot(need: str, revision: str) -> Path:
    return _cached(need) / "snapshots" / revision
