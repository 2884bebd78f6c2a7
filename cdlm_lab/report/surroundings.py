"""What a run ran on: versions, hardware, peak memory, commit. Imports nothing that is not imported
already."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import cdlm_lab
from cdlm_lab.ranks import usable_cores

PACKAGES = ("torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python, cdlm_lab and those of PACKAGES that are installed."""
    found = {"python": platform.python_version(), "cdlm_lab": cdlm_lab.__version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores (of the machine, and those that the process may use), bytes of memory, CUDA
    devices."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_available": usable_cores(),
        "memory": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "cuda": [_cuda().get_device_name(n) for n in range(_cuda().device_count())] if _cuda() else [],
    }


def peak_memory() -> dict[str, int]:
    """The most bytes that this process held: "cpu" resident, and "cuda" allocated by torch on its busiest
    device."""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"cpu": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if cuda := _cuda():
        peak["cuda"] = max(cuda.max_memory_allocated(n) for n in range(cuda.device_count()))
    return peak


def git_commit() -> str | None:
    """The commit of the checkout that cdlm_lab runs from, with "-dirty" if it was changed since; None without
    one."""
    source = Path(__file__).resolve()
    try:
        # An installed copy may lie inside somebody else's checkout, which says nothing about it.
        _git("ls-files", "--error-unmatch", source.name, folder=source.parent)
        commit = _git("rev-parse", "HEAD", folder=source.parent)
        changed = _git("status", "--porcelain", "--untracked-files=no", folder=source.parent)
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("-dirty" if changed else "")


def _git(*command: str, folder: Path) -> str:
    done = subprocess.run(
        ["git", *command], cwd=folder, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cuda() -> Any:
    """torch.cuda if torch was used and sees a device, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None
