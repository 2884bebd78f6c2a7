"""What every reader keeps: the same input reads the same, compressed, from Windows, with a byte order mark;
and a file that is empty, missing, a folder, binary, not UTF-8, a page or a pointer of Git LFS is refused in
one line that names it."""

import gzip
import lzma
import random

import pytest
from readme_examples import EXAMPLES
from valid_inputs import PAGE, POINTER, READERS, folder_of

from cdlm_lab.data.files import DataError

# Read compressed as they are plain: all but XML of ECB+ and SciSumm, JSON of Cattan et al. and parquet, which
# are only known by their whole names, and what is given by its path.
COMPRESSED = [
    name
    for name, one in EXAMPLES.items()
    if one.form not in ("ecb_plus", "scisumm", "cattan", "ucdcr")
    and "91.txt" not in name
    and "toks" not in name
]
CONTENTS = {"empty": b"", "binary": b"a\0b", "page": PAGE, "pointer": POINTER}
NO_GOLD = [name for name, reader in READERS.items() if not reader.gold]
# Files of theirs may be missing or nothing: a folder of documents is then smaller, a paper without text is
# counted, as are bytes that are not UTF-8 in it. What is typed into a box is no file.
TOLERANT = {
    "missing": [
        *("cluster_folder", "marked_documents", "ecb_plus 36_1ecb.xml as clusters"),
        *(_SPLITS := ("fever bert_dev.json", "fm2 fm2_dev.jsonl", "clusters train.txt.src")),
    ],
    "empty": ["cluster_folder"],
    "folder": ["cluster_folder", *_SPLITS],  # the others are read without it
    "binary": ["pasted_documents"],
    "latin": ["scisumm N00-0001.xml", "cl_scisumm"],
    "page": NO_GOLD,
    "pointer": NO_GOLD,
}


@pytest.mark.parametrize("name", READERS)
def test_the_same_files_and_those_of_windows_read_the_same(name, tmp_path):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    folder = folder_of(tmp_path / "a", files)
    expected = reader.read(folder)
    assert reader.read(folder) == expected
    for number, (old, new) in enumerate([(b"\n", b"\r\n"), (b"", b"\xef\xbb\xbf")]):
        if "archives" not in name and "ucdcr" not in name:
            changed = {one: data.replace(old, new, -1 if old else 1) for one, data in files.items()}
            assert reader.read(folder_of(tmp_path / str(number), changed)) == expected


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_files(name, tmp_path, ending, pack):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    expected = reader.read(folder_of(tmp_path / "a", files))
    packed = {f"{one}{ending}": pack(data) for one, data in files.items() if not one.endswith("tagset")}
    kept = {one: data for one, data in files.items() if one.endswith("tagset")}
    assert reader.read(folder_of(tmp_path / "b", packed | kept)) == expected


@pytest.mark.parametrize("fault", TOLERANT)
@pytest.mark.parametrize("name", READERS)
def test_faulty_files(name, tmp_path, fault):
    reader = READERS[name]
    files = reader.files(random.Random(name))
    expected, before = reader.read(folder_of(tmp_path / "whole", files))
    refused = 0
    for number, one in enumerate(files):
        folder = folder_of(tmp_path / str(number), files)
        path = folder / one
        if fault in ("missing", "folder"):
            path.unlink()
            if fault == "folder":
                path.mkdir()
        else:
            path.write_bytes(CONTENTS.get(fault, files[one] + b"caf\xe9\n"))
        try:
            content, losses = reader.read(folder)
            taken_for_gold = content != expected and losses <= before
            assert not taken_for_gold or not reader.gold or fault not in ("page", "pointer"), one
        except DataError as error:
            message, place, refused = str(error), error.path, refused + 1
            checks = message.isprintable(), place.is_relative_to(folder), "; " in message
            assert all(checks), message  # what is wrong, and what to do
    assert refused or name in (*TOLERANT[fault], "scisumm N00-0001.xml as clusters")
