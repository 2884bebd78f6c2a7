"""Setup of all tests: no network access, skips with a reason for tests that cannot run here, and the real
data where they are installed."""

import gc
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest_plugins = ["example_fixtures", "model_fixtures", "run_fixtures"]  # of tests/fixtures
DATA = Path(__file__).resolve().parents[1] / "data"

# Set before anything imports transformers or datasets, which read these variables at import.
for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ[_name] = "1"
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# For models this small a second thread only waits, for a long time on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Background processes of a shell ignore SIGINT from the start, but the tests of interrupts need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

try:
    from hypothesis import settings
except ModuleNotFoundError:  # tests that need hypothesis fail with their own message
    pass
else:
    # No deadline, as slow machines are no failure; the same examples everywhere, so that failures reproduce.
    settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
    settings.load_profile("repeatable")


@pytest.fixture
def forbid() -> Callable[[Path], AbstractContextManager[None]]:
    """A context in which nobody may read a path; where the tests run as root, it runs as another user."""

    @contextmanager
    def forbidden(path: Path) -> Iterator[None]:
        mode, user = path.stat().st_mode, os.geteuid()
        path.chmod(0)
        if user == 0:
            for above in path.parents[:-1]:
                if above.owner() == "root" and not above.stat().st_mode & 0o001:
                    above.chmod(above.stat().st_mode | 0o055)  # pytest's folders are its user's alone
            os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(user)
            path.chmod(mode)

    return forbidden


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _has_browser() -> bool:
    return any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


def pytest_collection_finish() -> None:
    """Exclude all objects made by imports from garbage collection, of which each training does one."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose mark cannot be met on this machine (by default such tests are deselected anyway)."""
    if item.get_closest_marker("gpu") and not _has_cuda():
        pytest.skip("needs a CUDA device: skipped until the machine has one")
    if item.get_closest_marker("browser") and not _has_browser():
        pytest.skip("needs Chromium: skipped until it is installed")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests, and the programs that they start, keep tokenised corpora apart from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDLM_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Let threads take turns a hundred times as often as usual, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """`real_data("ecbplus")` returns a folder of real data, or skips the test if that is missing."""
    folder = Path(os.environ.get("CDLM_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

    def _real_data(name: str) -> Path:
        if not (folder / name).is_dir():
            pytest.skip(f"skipped until the data is present: {folder / name} (or below CDLM_LAB_DATA)")
        return folder / name

    return _real_data


@dataclass
class Card:
    """The card data/<name>/README.md, with `count train clusters: 2712`, `sha256 x.jsonl.xz: 3354...`."""

    fields: dict[str, str]
    counts: dict[str, int]
    checksums: dict[str, str]
    text: str

    def present(self, folder: Path) -> list[str]:
        """Return those files of the card that are in a folder, after checking their checksums."""
        present = [name for name in self.checksums if (folder / name).is_file()]
        for name in present:
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == self.checksums[name], name
        return present


@pytest.fixture(scope="session")
def card() -> Callable[[str], Card]:
    """`card("wikiqa")` returns the data card of a data set."""

    def _card(name: str) -> Card:
        _, block, text = (DATA / name / "README.md").read_text(encoding="utf-8").split("---\n", 2)
        pairs = dict(line.split(": ", 1) for line in block.splitlines() if line.strip())
        counts, checksums = (
            {key.removeprefix(kind): value for key, value in pairs.items() if key.startswith(kind)}
            for kind in ("count ", "sha256 ")
        )
        fields = {key: value for key, value in pairs.items() if not key.startswith(("count ", "sha256 "))}
        return Card(fields, {key: int(value) for key, value in counts.items()}, checksums, text)

    return _card
