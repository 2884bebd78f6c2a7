"""A small random valid input for every reader, and how it is read; test_files_damaged damages the inputs."""

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from readme_examples import EXAMPLES

from cdlm_lab.data.clusters import open_corpus, passed_over
from cdlm_lab.data.convert.pair_csv import read_pair_csv
from cdlm_lab.data.files import DataError, open_bytes, read_word_vectors
from cdlm_lab.data.marked import pasted_documents, read_marked_documents
from cdlm_lab.data.reading import open_records, read_records
from cdlm_lab.data.records import PassedOver
from cdlm_lab.tasks.coreference.clustering import read_predicted_topics

Files = dict[str, bytes]
Chance = random.Random
Read = Callable[[Path], tuple[object, int]]  # folder -> (what is read, number of losses that are reported)
WORDS = "Fire broke out in the old mill at noon , Müller said on 3 May".split()  # noqa: SIM905
PAGE = b"<!DOCTYPE html>\n<html><head><title>Not Found</title></head>\n<body>Not Found</body></html>\n"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


class Reader(NamedTuple):
    """`gold`: True = no file of an input is plain text, so that reading a web page in its place must fail."""

    files: Callable[[Chance], Files]
    read: Read
    gold: bool


READERS: dict[str, Reader] = {}


def of(name: str, read: Read, *, gold: bool = True) -> Callable[[Callable[[Chance], Files]], Any]:
    """Decorator that adds a function, which makes a random valid input, to READERS."""

    def _add(files: Callable[[Chance], Files]) -> Callable[[Chance], Files]:
        READERS[name] = Reader(files, read, gold)
        return files

    return _add


def plain(read: Callable[[Path], Any], name: str = "") -> Read:
    """Wrap a reader that reports no losses; it reads the file `name`, or the folder."""

    def _read(folder: Path) -> tuple[object, int]:
        content = read(folder / name if name else folder)
        return (list(content) if isinstance(content, Iterator) else content), 0

    return _read


def folder_of(path: Path, files: Files) -> Path:
    """Write files into a folder and return it."""
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def words(rng: Chance, count: int = 6) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def lines(*rows: object) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def json_lines(*records: object) -> bytes:
    return lines(*map(json.dumps, records))


def _every_split(path: Path) -> tuple[object, int]:
    """Read all splits of a corpus as a run does; errors about splits without clusters are ignored."""
    clusters = []
    for split in ("train", "validation", "test"):
        try:
            clusters += open_corpus(str(path), split=split)
        except DataError as error:
            if error.field != "split":
                raise
    if not clusters:
        raise DataError(path, "no cluster of any split", "add some")
    return clusters, len(passed_over(str(path)))


def _records(task: str) -> Read:
    """Read all records of a corpus, in whichever split they are, as a run does."""

    def _read(folder: Path) -> tuple[object, int]:
        counted, records = PassedOver(), []
        opened = open_records(task, folder)
        for split in opened.splits:
            records += read_records(task, folder, split, passed_over=counted)
        unknown = sum(len(getattr(one, "unknown_supporting", ())) for one in records)
        return records, unknown + sum(count for count, _ in counted.counts.values())

    return _read


# One's own rows and all published formats, as notebooks/README.md shows them.
for _name, _example in EXAMPLES.items():
    _read = _every_split if _example.task == "clusters" else _records(_example.task)
    READERS[_name] = Reader(lambda rng, one=_example: one.as_bytes(), _read, gold=True)
    if _example.form in ("ecb_plus", "scisumm") or "a.tsv" in _name:  # plain texts, for pre-training
        READERS[f"{_name} as clusters"] = Reader(READERS[_name].files, _every_split, gold=False)


@of("cluster_folder", _every_split, gold=False)
def cluster_folder(rng: Chance) -> Files:
    count = rng.randint(2, 3)
    return {
        f"{cluster}/{name}.txt": lines(words(rng), words(rng))
        for cluster in ("flood", "strike")
        for name in range(count)
    }


@of("marked_documents", plain(lambda path: read_marked_documents(path, kind="event")), gold=False)
def marked(rng: Chance) -> Files:
    text = lines(f"A <m>fire</m> {words(rng)}.", "", "The <m>blaze at the <m>mill</m></m>.")
    return {"a.txt": text, "b.txt": text}


def _pasted(path: Path) -> object:
    with open_bytes(path) as stream:
        return pasted_documents(stream.read().decode("utf-8", "surrogateescape"), source=str(path))


@of("pasted_documents", plain(_pasted, "box.txt"), gold=False)
def pasted(rng: Chance) -> Files:
    return {"box.txt": lines("== a ==", words(rng), "", "== b ==", words(rng))}


def _pairs(folder: Path) -> object:
    positions = folder / "positions.csv"
    return [list(read_pair_csv(folder / "pairs.csv", positions=one)) for one in (None, positions)]


@of("pair_csv", plain(_pairs))
def pair_csv(rng: Chance) -> Files:
    rows = [f'{n % 2},"{words(rng)} \x01. He said ""no"".\n{words(rng)}.","{words(rng)}."' for n in range(4)]
    return {"pairs.csv": lines(*rows), "positions.csv": lines("1,0", "3,0,1")}


def _vectors(path: Path) -> object:
    names, values = read_word_vectors(path)
    return names, values.tolist()


@of("word_vectors", plain(_vectors, "v.txt"))
def vectors(rng: Chance) -> Files:
    head = rng.choice([[], ["3 4"]])
    rows = (f"{word} 0.5 -1.25e-3 2 {rng.random():.3f}" for word in ("the", "of", "–"))
    return {"v.txt": lines(*head, *rows)}


@of("predicted_topics", plain(read_predicted_topics, "topics.json"))
def topics(rng: Chance) -> Files:
    return {"topics.json": json.dumps([["1_1ecb", "1_2ecb"], ["2_1ecb"]]).encode()}


def paper(*sentences: str) -> bytes:
    rows = [f'<S sid ="{n}" ssid = "1">{sentence}</S>' for n, sentence in enumerate(sentences)]
    return lines("<PAPER>", rows[0], '<SECTION title="x" number = "1">', *rows[1:], "</SECTION></PAPER>")


@of("cl_scisumm", _records("collection"))
def scisumm(rng: Chance) -> Files:
    row = (
        "Citance Number: 1 | Reference Article:  R00-0001.xml | Citing Article:  C01-0001.xml | "
        "Citation Offset:  ['1'] | Citation Text:  x | Reference Offset:  ['1'] | Annotator:  N |"
    )
    head = "Citance Number,Citing Article,Citation Offset,Citation Text,Citation Text Clean,Reference Offset"
    task, net = "cl_scisumm_2018", "scisummnet_2019"
    citing = paper("Parsing", "We parse as they did.", words(rng))
    files = {"scisummnet_citation_pairs.tsv": lines("citing_id\tcited_id", "N00-0001\tN00-0002")}
    for folder, name in (("Training-Set-2018/R00-0001", "R00-0001"), ("Test-Set-2018/T00-0001", "T00-0001")):
        files[f"{task}/{folder}/Reference_XML/{name}.xml"] = paper(f"Of {name}", f"Of {words(rng)}")
        files[f"{task}/{folder}/Citance_XML/C01-0001.xml"] = citing
    files[f"{task}/Training-Set-2018/R00-0001/annotation/R00-0001.ann.txt"] = lines(row)
    answer = '1,C01-0001,0,x,"We parse as they did",1'
    files[f"{task}/Test-Set-2018/T00-0001/annotation/T00-0001.csv"] = lines(head, answer)
    quoted = [{"citing_paper_id": "N00-0001", "raw_text": "We follow them as all do."}]
    for name in ("N00-0001", "N00-0002"):
        files[f"{net}/{name}/Reference_XML/{name}.xml"] = paper(f"On {name}", "We follow them as all do.")
        files[f"{net}/{name}/citing_sentences.json"] = json.dumps(quoted).encode()
    return files


@of("scisumm_archives", _records("collection"))
def packed_scisumm(rng: Chance) -> Files:
    """Make the input of `cl_scisumm`, with both collections as tar archives."""
    files = scisumm(rng)
    packed = {"scisummnet_citation_pairs.tsv": files.pop("scisummnet_citation_pairs.tsv")}
    for collection in ("cl_scisumm_2018", "scisummnet_2019"):
        buffer, form = io.BytesIO(), rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
        with tarfile.open(fileobj=buffer, mode="w:xz", format=form) as tar:
            for name in filter(lambda name: name.startswith(collection), files):
                member = tarfile.TarInfo(name)
                member.size = len(files[name])
                tar.addfile(member, io.BytesIO(files[name]))
        packed[f"{collection}.tar.xz"] = buffer.getvalue()
    return packed
