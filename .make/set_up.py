"""Make `.venv` and install the project into it, editable, with all its extras. Run by the Makefile.

Standard library only, since nothing is installed yet. What it does, in this order, saying so as it goes:

1. checks that this Python is one that pyproject.toml admits;
2. makes `.venv` (or takes the one there is) and puts the fast installer `uv` into it, or goes on with pip;
3. installs PyTorch, the build that fits the machine (`torch_sources` below): on Linux the wheel that pip
   finds by default carries gigabytes of CUDA, which a machine without a GPU has no use for;
4. installs the rest, registers the notebook kernel inside `.venv`, and writes the stamp that make looks for.

What the installers print goes to `set-up.log` in `.venv`; the end of it is shown if they fail. On a terminal
the stages share one line that counts the seconds; elsewhere each has its line.

Settings, all optional, as environment variables or on make's command line: `VENV` (where), `TORCH_BUILD`
(`auto`, `cpu`, or `default` = whatever the package index gives), `TORCH_CPU_INDEX` (where CPU wheels are
published). pip's own configuration (its files and PIP_* variables) is passed on to uv, which would ignore it.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "minilm,pan,corefud,test,lab,cluster"
STAMP = "set-up-done"
LOG = "set-up.log"  # in the virtual environment
LOG_LINES = 20  # of its end, shown after a failure
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # published by the PyTorch project
PROBE_SECONDS = 8  # how long to wait for the first answer of that index

# pip's setting -> uv's variable and what joins several values of it.
UV_VARIABLES = {
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "cert": ("SSL_CERT_FILE", " "),
}


def say(message: str, *, passing: bool = False) -> None:
    """Print one line at once, so that a person sees it before the work it announces. `passing`: on a
    terminal the next line takes its place."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        message = f"[set-up] {message}"
        print(f"\r\033[K{message[:width] if passing else message}", end="" if passing else "\n", flush=True)
    else:
        print(f"[set-up] {message}", flush=True)


def stop(message: str, log: Path | None = None) -> None:
    """End with exit code 1 and one line that says what is wrong and what to do, and the end of the log."""
    if log is not None and log.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        say(f"the end of {log}:")
        print("\n".join(f"    | {line}" for line in lines[-LOG_LINES:]), flush=True)
    elif sys.stdout.isatty():
        print(flush=True)  # what was shown in passing stays
    sys.exit(f"[set-up] {message}")


def quietly(doing: str, command: list[str], environ: dict[str, str], log: Path) -> int:
    """Run a command whose output goes to the end of a log, saying what it does; returns its exit code."""
    began, shown = time.monotonic(), sys.stdout.isatty()
    if not shown:
        say(doing)
    with log.open("a", encoding="utf-8") as out:
        print(f"=== {' '.join(map(str, command))}", file=out, flush=True)
        running = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.STDOUT)
        while True:
            if shown:
                say(f"{doing}: {time.monotonic() - began:.0f} s", passing=True)
            try:
                return running.wait(timeout=1 if shown else None)
            except subprocess.TimeoutExpired:
                continue


def python_bounds(requires_python: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """`">=3.11,<3.15"` -> ((3, 11), (3, 15)): first version admitted, first version not admitted."""
    found = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", requires_python.replace(" ", ""))
    if found is None:
        raise ValueError(f"requires-python must look like '>=3.11,<3.15', not {requires_python!r}")
    return (3, int(found[1])), (3, int(found[2]))


def check_python(requires_python: str) -> None:
    """Stop with a remedy unless this interpreter is one the project admits."""
    first, end = python_bounds(requires_python)
    here = sys.version_info[:2]
    if not first <= here < end:
        stop(
            f"this is Python {here[0]}.{here[1]} ({sys.executable}), but cdlm_lab needs {requires_python}. "
            "Name another one, for example: make run PYTHON=python3.12"
        )


def read_project() -> tuple[str, str]:
    """(requires-python, requirement on torch) from pyproject.toml, by pattern: tomllib came with 3.11."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return (
        re.search(r'^requires-python = "([^"]+)"', text, re.MULTILINE)[1],
        re.search(r'^\s*"(torch[^"a-z][^"]*)"', text, re.MULTILINE)[1],
    )


def pip_configuration(listing: str) -> dict[str, list[str]]:
    """What `pip config list` printed -> setting -> values; PIP_* wins over [install], that over [global]."""
    ranks = {":env:": 2, "install": 1, "global": 0}
    best: dict[str, tuple[int, list[str]]] = {}
    for line in listing.splitlines():
        found = re.fullmatch(r"(:env:|install|global)\.([\w-]+)=(.+)", line.strip())
        if found is None:
            continue
        section, name, value = found.groups()
        if name not in best or ranks[section] >= best[name][0]:
            best[name] = (ranks[section], ast.literal_eval(value).split())
    return {name: values for name, (_, values) in best.items()}


def uv_environment(pip_settings: dict[str, list[str]], environ: dict[str, str]) -> dict[str, str]:
    """`environ` with pip's settings under uv's names; what the user set for uv stays."""
    told = {}
    for name, (variable, joiner) in UV_VARIABLES.items():
        if pip_settings.get(name) and variable not in environ:
            told[variable] = joiner.join(pip_settings[name])
    if "UV_INDEX" in told:  # several indexes: take the best version of all of them, as pip does
        told.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return {**told, **environ}


def has_nvidia_gpu() -> bool:
    """True if the NVIDIA driver lists at least one GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout


def torch_sources(build: str, *, system: str, gpu: bool, cpu_index: str) -> list[tuple[str, list[str]]]:
    """Where to take PyTorch from, first choice first: (what to tell the user, arguments of the installer).

    `build`: 'auto' decides by the machine, 'cpu' and 'default' are the user's word. On macOS the default
    wheel is the CPU one. The first CPU source, `--no-index`, is what is installed already or lies in pip's
    find-links.
    """
    if build not in ("auto", "cpu", "default"):
        stop(f"TORCH_BUILD is {build!r}, must be auto, cpu or default")
    if build == "default" or (build == "auto" and (gpu or system == "Darwin")):
        size = "0.1 GB" if system == "Darwin" else "with CUDA, about 3 GB to download"
        return [(f"PyTorch from the package index ({size})", [])]
    sources = [
        ("PyTorch that is already here or in a folder of wheels known to pip", ["--no-index"]),
        (f"PyTorch, CPU build, from {cpu_index} (0.2 GB)", ["--index-url", cpu_index]),
    ]
    if build == "auto":
        sources.append(
            (
                "WARNING: no CPU build of PyTorch within reach; taking the default one, which on Linux\n"
                "         brings 3 GB of CUDA (7 GB on disk). Ctrl-C stops; TORCH_CPU_INDEX names a source",
                [],
            )
        )
    return sources


def answers(index: str) -> bool:
    """True if the package index answers within PROBE_SECONDS; only http addresses are asked."""
    if not index.startswith("http"):
        return True
    try:
        with urllib.request.urlopen(f"{index.rstrip('/')}/torch/", timeout=PROBE_SECONDS):
            return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # it does; the installer may know the certificate
    except (OSError, ValueError):
        return False


def make_environment(venv: Path) -> Path:
    """Make the virtual environment (or keep a working one) and return its interpreter."""
    python = venv / "bin" / "python"
    works = (
        python.exists()
        and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    )
    if not works:
        say(f"making a virtual environment with Python {platform.python_version()}", passing=True)
        if subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)]).returncode:
            stop(f"{sys.executable} -m venv failed; on Debian and Ubuntu: apt-get install python3-venv")
    return python


def find_installer(python: Path, log: Path) -> tuple[list[str], dict[str, str]]:
    """The install command (uv if it can be had, else pip) and the environment to run it in."""
    uv = python.parent / "uv"
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    if not uv.exists() and quietly("installing uv", [*pip, "--quiet", "uv"], dict(os.environ), log):
        say("uv could not be installed; going on with pip (2 to 3 minutes instead of half of one)")
        return pip, dict(os.environ)
    listing = subprocess.run(
        [str(python), "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout
    return (
        [str(uv), "pip", "install", "--python", str(python)],
        # As pip does; else Python compiles all of it when it is imported first.
        uv_environment(pip_configuration(listing), {"UV_COMPILE_BYTECODE": "1", **os.environ}),
    )


def install_torch(
    install: list[str], environ: dict[str, str], requirement: str, sources: list, log: Path
) -> None:
    """Try the sources in order until one gives PyTorch; stop if none does."""
    for said, arguments in sources:
        if "--index-url" in arguments and not answers(arguments[-1]):
            say(f"{arguments[-1]} does not answer")
            continue
        if said.startswith("WARNING"):
            say(said)
            said = "PyTorch from the package index"
        # Only torch itself: what it needs comes with the rest, from the usual index.
        command = [*install, "--no-deps", *arguments, requirement]
        if quietly(said, command, environ, log) == 0:
            return
    stop(f"PyTorch ({requirement}) could not be installed from any source; see {log}", log)


def install_all(venv: Path, requirement: str) -> None:
    """Everything into `venv`, with uv and, should that fail, once more with pip."""
    python = make_environment(venv)
    sources = torch_sources(
        os.environ.get("TORCH_BUILD") or "auto",
        system=platform.system(),
        gpu=has_nvidia_gpu(),
        cpu_index=os.environ.get("TORCH_CPU_INDEX") or TORCH_CPU_INDEX,
    )
    log = venv / LOG
    log.unlink(missing_ok=True)
    install, environ = find_installer(python, log)
    install_torch(install, environ, requirement, sources, log)
    doing = "installing the other packages (about 0.4 GB to download the first time)"
    project = ["--editable", f"{ROOT}[{EXTRAS}]"]
    if quietly(doing, [*install, *project], environ, log) == 0:
        return
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    if install[: len(pip)] == pip or quietly(f"{doing}, with pip", [*pip, *project], dict(os.environ), log):
        stop(f"the packages could not be installed; see {log}", log)


def register_kernel(python: Path) -> None:
    """Register the kernel `python3` inside the virtual environment, with its interpreter's full path."""
    name = ["--sys-prefix", "--name", "python3", "--display-name", "cdlm_lab"]
    if subprocess.run([python, "-m", "ipykernel", "install", *name], capture_output=True).returncode:
        stop(f"the notebook kernel was not registered; try: {python} -m ipykernel install {' '.join(name)}")
    spec = python.parent.parent / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel = json.loads(spec.read_text(encoding="utf-8"))
    # Errors only: else each unattended run begins with a warning that the loopback line is plain.
    kernel["argv"].append("--IPKernelApp.log_level=40")
    spec.write_text(json.dumps(kernel, indent=1), encoding="utf-8")


def main() -> None:
    """Set up `.venv`; safe to run again, and after an interruption."""
    began = time.monotonic()
    sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has every sign of a path
    requires_python, torch_requirement = read_project()
    check_python(requires_python)
    venv = ROOT / (os.environ.get("VENV") or ".venv")
    free = shutil.disk_usage(ROOT).free / 1e9
    say(f"once only: installs into {venv} and nowhere else; needs 2.5 GB of disk (free: {free:.0f} GB)")
    install_all(venv, torch_requirement)
    python = venv / "bin" / "python"
    register_kernel(python)
    version = subprocess.check_output(
        [python, "-c", "import torch; print(torch.__version__)"], text=True
    ).strip()
    (venv / STAMP).write_text(f"torch {version}\n", encoding="utf-8")
    size = sum(f.stat().st_size for f in venv.rglob("*") if f.is_file() and not f.is_symlink()) / 1e9
    say(f"done in {time.monotonic() - began:.0f} s: torch {version}, {size:.1f} GB in {venv}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("stopped; the same command goes on")
