"""What every reader keeps: the same input reads the same, compressed, from Windows, with a byte order mark;
and a file that is empty, missing, a folder or cut off is refused in one line that names it."""

import gzip
import lzma
import random
from pathlib import Path

import pytest
from valid_inputs import READERS, Files

from cdlm_lab.data.files import DataError

# Known by their names, plain or compressed; the others are given by their path, or are read as they lie.
COMPRESSED = (
    *(
        "cluster_folder", "multi_news", "allsides", "neus", "docarc", "docarc_passages", "litbank",
        "ner_conll",
    ),
    *("jnlpba_iob2", "wikiqa", "trecqa_xml", "asnq", "fever", "fm2", "fever_symmetric", "linked_collection"),
)  # fmt: skip
# Files of theirs may be missing or nothing: a folder of documents is then smaller, a paper without text is
# counted. What is typed into a box is no file.
TOLERANT = {
    "missing": (
        "cluster_folder", "docarc", "docarc_passages", "ecb_plus_topics", "marked_documents",
    ),
    "empty": ("cluster_folder",),
    "folder": ("cluster_folder",),
    "binary": ("pasted_documents",),
}  # fmt: skip


def folder_of(tmp_path: Path, files: Files) -> Path:
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("name", READERS)
def test_reading_twice_gives_the_same(name, tmp_path):
    reader = READERS[name]
    folder = folder_of(tmp_path, reader.files(random.Random(name)))
    assert reader.read(folder) == reader.read(folder)


@pytest.mark.parametrize(
    "change", [lambda data: data.replace(b"\n", b"\r\n"), lambda data: b"\xef\xbb\xbf" + data]
)
@pytest.mark.parametrize("name", [name for name in READERS if "archives" not in name])
def test_files_of_windows(name, tmp_path, change):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    expected = reader.read(folder_of(tmp_path / "a", files))
    changed = reader.read(folder_of(tmp_path / "b", {one: change(data) for one, data in files.items()}))
    assert changed == expected


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_files(name, tmp_path, ending, pack):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    expected = reader.read(folder_of(tmp_path / "a", files))
    packed = {one if one.endswith("tagset") else f"{one}{ending}": files[one] for one in files}
    packed = {one: pack(data) if one.endswith(ending) else data for one, data in packed.items()}
    assert reader.read(folder_of(tmp_path / "b", packed)) == expected


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("fault", ["empty", "missing", "folder", "binary"])
def test_faulty_files(name, tmp_path, fault):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    errors = []
    for number, one in enumerate(files):
        folder = folder_of(tmp_path / str(number), files)
        path = folder / one
        if fault == "binary":
            path.write_bytes(b"a\0b")
        elif fault == "empty":
            path.write_bytes(b"")
        else:
            path.unlink()
            if fault == "folder":
                path.mkdir()
        try:
            reader.read(folder)
        except DataError as error:
            errors.append((error, folder))
    for error, folder in errors:
        assert str(error).isprintable()
        assert error.path.is_relative_to(folder)
        assert "; " in str(error)  # what is wrong, and what to do
    assert errors or name in (*TOLERANT[fault], "scisumm_corpus")
