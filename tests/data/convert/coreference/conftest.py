"""Fixtures of the tests of coreference files."""

import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def unpacked(real_data, tmp_path_factory) -> Callable[[str], Path]:
    """`unpacked("ecbplus/x.tar.gz")` returns a folder with the contents of an archive of the real data."""

    @cache
    def _unpacked(archive: str) -> Path:
        folder, name = archive.split("/")
        unpacked = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(real_data(folder) / name) as opened:
            opened.extractall(unpacked, filter="data")
        return unpacked

    return _unpacked
