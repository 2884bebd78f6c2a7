"""Tokenised corpora: the rows of both kinds; corpora are built once and read safely."""

import errno
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
from transformers import BertTokenizerFast, PythonBackend

from cdlm_lab.data.cache import cache_folder
from cdlm_lab.data.records import Cluster, Document, Fact, Paragraphed
from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.examples.cached_corpus import (
    FORMAT_VERSION,
    CorpusCounts,
    ParagraphCounts,
    corpus_fingerprint,
    encode_cluster,
    paragraph_fingerprint,
    read_cluster,
    read_counts,
    read_document,
    tokenise_clusters,
    tokenise_paragraphs,
    tokenizer_fingerprint,
)
from cdlm_lab.parameters import ParameterError


def a_cluster(name: str, *texts: str) -> Cluster:
    documents = tuple(Document(id=f"{name}{number}", text=text) for number, text in enumerate(texts))
    return Cluster(id=name, documents=documents)


def of_one(text: str, *facts: Fact) -> Cluster:
    return Cluster(id="c", documents=(Document(id="a", text=text, facts=facts),))


CLUSTERS = [
    a_cluster("big", "w1 w2", "w3", "w4 w5 w6", "w7"),
    a_cluster("small", "w1", "w2"),
    a_cluster("hollow", "w1", " ", "w2", "\n"),
    a_cluster("just", "w8", "", "w9 w10", "w11"),
]
PARAGRAPHS = [
    Paragraphed(id="a", paragraphs=(("w1 w2", "w3"), ("w4 w5 w6",))),
    Paragraphed(id="empty", paragraphs=()),
    Paragraphed(id="b", paragraphs=((" ",), ("w7 [MASK]", " ", "w8"), (" ",), ("w9",))),
    Paragraphed(id="blank", paragraphs=((" ",), (" ", " "))),
]


def numbered_cluster(n: int) -> Cluster:
    texts = (f"w{n % 300} w{(n + d) % 300} {'w7 ' * (n % 3)}" if n % (d + 5) else " " for d in range(4))
    return a_cluster(f"c{n}", *texts)


def numbered_paragraphs(n: int) -> Paragraphed:
    return Paragraphed(id=f"d{n}", paragraphs=tuple((f"w{n % 300} w{p}", " ", "w3") for p in range(n % 4)))


def long_cluster(n: int) -> Cluster:
    return a_cluster(str(n), *[" ".join(f"w{(n + i) % 300}" for i in range(40))] * 3)


def long_paragraphs(n: int) -> Paragraphed:
    return Paragraphed(id=str(n), paragraphs=((" ".join(f"w{(n + i) % 300}" for i in range(20)),) * 4,) * 3)


@dataclass(frozen=True)
class Kind:
    """A kind of corpus: how it is made and read, some records, the nth of many, and of many long ones."""

    make: Callable[..., Any]
    counts: type[Any]
    file: str
    records: list[Any]
    nth: Callable[[int], Any]
    long: Callable[[int], Any]
    rows: int  # of `records`

    def build(self, tokenizer, cache: Path, records: Any = None, **options):
        source = self.records if records is None else records
        return self.make(lambda: iter(source), tokenizer, cache_dir=cache, fingerprint="fp", **options)


KINDS = {
    "clusters": Kind(
        tokenise_clusters, CorpusCounts, "clusters.arrow", CLUSTERS, numbered_cluster, long_cluster, 2
    ),
    "paragraphs": Kind(
        tokenise_paragraphs, ParagraphCounts, "paragraphs.arrow", PARAGRAPHS,
        numbered_paragraphs, long_paragraphs, 2,
    ),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def build(tokenizer, tmp_path) -> Callable[..., Any]:
    """`build(...)` makes a corpus of CLUSTERS."""
    return lambda *given, **options: KINDS["clusters"].build(tokenizer, tmp_path, *given, **options)


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.name != ".fp.lock")


def test_tokens_without_special_ones_and_documents_without_text_left_out(tokenizer):
    row, empty = encode_cluster(a_cluster("c", "w1 w2", " \n\t", "", "w3"), tokenizer)
    assert (row["cluster_id"], row["document_ids"], empty) == ("c", ["c0", "c3"], 2)
    texts = [" ".join(tokenizer.convert_ids_to_tokens(ids.tolist())) for ids in row["input_ids"]]
    assert texts == ["w1 w2", "w3"]
    assert [facts.tolist() for facts in row["fact_ids"]] == [[-1, -1], [-1]]
    assert {array.dtype for array in [*row["input_ids"], *row["fact_ids"]]} == {np.dtype(np.int32)}
    assert encode_cluster(a_cluster("c", " "), tokenizer)[0]["input_ids"] == []


def test_facts_are_numbered_by_first_appearance_and_shared_across_documents(tokenizer):
    def document(name: str, text: str, **facts: str) -> Document:
        places = {fact: text.index(inside) for fact, inside in facts.items()}
        made = tuple(Fact(start=places[one], end=places[one] + len(facts[one]), id=one) for one in facts)
        return Document(id=name, text=text, facts=made)

    first = document("a", "w10 w11 w12 w13 w14", late="w13", early="w10 w11")
    second = document("b", "w1 w10 w11", new="w1", early="w10 w11")
    row, _ = encode_cluster(Cluster(id="c", documents=(first, second)), tokenizer)
    assert [facts.tolist() for facts in row["fact_ids"]] == [[0, 0, -1, 1, -1], [2, 0, 0]]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        #          w10 = [0, 3), w11 = [4, 7), w12 = [8, 11)
        ([(4, 7)], [-1, 0, -1]),
        ([(3, 8)], [-1, 0, -1]),  # touching is not overlapping
        ([(2, 9)], [0, 0, 0]),  # one character is enough
        ([(3, 4)], [-1, -1, -1]),  # a space is no token
        ([(4, 11), (0, 7)], [0, 0, 1]),  # the fact that starts first wins
    ],
)
def test_a_token_belongs_to_a_fact_if_its_characters_overlap(tokenizer, spans, expected):
    facts = [Fact(start=start, end=end, id=f"f{start}") for start, end in spans]
    row, _ = encode_cluster(of_one("w10 w11 w12", *facts), tokenizer)
    assert row["fact_ids"][0].tolist() == expected


def test_word_pieces_and_bytes_of_a_fact():
    """Byte-level BPE as in RoBERTa: several subwords per word, and letters of several bytes."""
    bpe, text = load_tokenizer("tiny"), "the mayor Žofie Qu of the"
    fact = Fact(start=text.index("Ž"), end=text.index(" of"), id="name")
    row, _ = encode_cluster(of_one(text, fact), bpe)
    inside = row["input_ids"][0][row["fact_ids"][0] == 0]
    assert bpe.decode(inside.tolist()).strip() == "Žofie Qu"
    assert len(inside) > 2
    assert not (row["fact_ids"][0] == 0).all()


def test_rows_of_clusters(build, tokenizer, tmp_path):
    corpus = build()
    assert corpus.column_names == ["cluster_id", "document_ids", "input_ids", "fact_ids"]
    assert corpus["cluster_id"][:] == ["big", "just"]
    assert corpus["document_ids"][:] == [["big0", "big1", "big2", "big3"], ["just0", "just2", "just3"]]
    assert [len(ids) for ids in corpus[0]["input_ids"]] == [2, 1, 3, 1]
    assert tokenizer.decode(corpus[1]["input_ids"][1]) == "w9 w10"
    counts = {
        "clusters_read": 4,
        "clusters_kept": 2,
        "clusters_dropped": 2,
        "minimum_documents": 3,
        "documents": 7,
        "empty_documents_removed": 3,
        "tokens": 7 + 4,
        "longest_document": 3,
    }
    assert read_counts(tmp_path, CorpusCounts, fingerprint="fp") == CorpusCounts(
        **counts, documents_per_cluster={3: 1, 4: 1}
    )
    values = json.loads((tmp_path / "fp" / "counts.json").read_text(encoding="utf-8"))
    assert values == counts | {"documents_per_cluster": {"3": 1, "4": 1}}


def test_rows_of_paragraphs(tokenizer, tmp_path):
    corpus = KINDS["paragraphs"].build(tokenizer, tmp_path)
    assert corpus.column_names == ["document_id", "paragraph_sizes", "input_ids"]
    assert corpus["document_id"][:] == ["a", "b"]
    assert corpus["paragraph_sizes"][:] == [[2, 1], [2, 1]]
    assert [[len(ids) for ids in row] for row in corpus["input_ids"]] == [[2, 1, 3], [4, 1, 1]]
    assert tokenizer.decode(corpus[0]["input_ids"][2]) == "w4 w5 w6"
    assert tokenizer.mask_token_id not in corpus[1]["input_ids"][0]  # somebody wrote it in a text
    assert read_counts(tmp_path, ParagraphCounts, fingerprint="fp") == ParagraphCounts(
        documents_read=4, documents_kept=2, paragraphs=4, sentences=6, tokens=12, longest_sentence=4
    )


def test_read_cluster_equals_the_plain_row(build):
    corpus = build(minimum_documents=1)
    for selection in (corpus, corpus.select([2, 0]), corpus.shuffle(seed=1)):
        for row, plain in enumerate(selection):
            read = read_cluster(selection.with_format("arrow"), row)
            assert (read.id, list(read.document_ids)) == (plain["cluster_id"], plain["document_ids"])
            assert [ids.tolist() for ids in read.input_ids] == plain["input_ids"]
            assert [ids.tolist() for ids in read.fact_ids] == plain["fact_ids"]
            assert read.input_ids[0].dtype == np.int32


def test_read_document_equals_the_plain_row(tokenizer, tmp_path):
    more = [  # in several batches of the file
        Paragraphed(
            id=f"d{n}",
            paragraphs=tuple(tuple(f"w{n} w{p} w{s}" for s in range(p + 1)) for p in range(n % 5 + 1)),
        )
        for n in range(150)
    ]
    corpus = KINDS["paragraphs"].build(tokenizer, tmp_path, more)
    for selection in (corpus, corpus.select([149, 0, 63, 64]), corpus.shuffle(seed=1)):
        rows = selection.with_format("arrow")
        for row, plain in enumerate(selection):
            read = read_document(rows, row)
            assert read.id == plain["document_id"]
            sentences = [read.sentence(number) for number in range(len(read.paragraphs))]
            assert [ids.tolist() for ids in sentences] == plain["input_ids"]
            assert {ids.dtype for ids in sentences} == {np.dtype(np.int32)}
            assert len(read.tokens) == read.ends[-1] == sum(map(len, sentences))
            sizes = enumerate(plain["paragraph_sizes"])
            assert read.paragraphs.tolist() == [number for number, size in sizes for _ in range(size)]


def test_any_number_of_processes_makes_the_same_corpus(kind, tokenizer, tmp_path):
    files, counts = [], []
    for processes in (1, 3):
        cache = tmp_path / str(processes)
        kind.build(tokenizer, cache, map(kind.nth, range(400)), processes=processes)
        files.append((cache / "fp" / kind.file).read_bytes())
        counts.append(read_counts(cache, kind.counts, fingerprint="fp"))
    assert files[0] == files[1]
    assert counts[0] == counts[1]
    dropped = {CorpusCounts: "clusters_kept", ParagraphCounts: "documents_kept"}[type(counts[0])]
    assert 0 < getattr(counts[0], dropped) < 400


def test_a_complete_corpus_is_reused_without_reading_the_source(kind, tokenizer, tmp_path):
    first = kind.build(tokenizer, tmp_path)

    def forbidden() -> Iterator[Any]:
        raise AssertionError("the source was read again")

    again = kind.make(forbidden, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert again.to_dict() == first.to_dict()


def test_an_error_in_the_source_passes_and_leaves_nothing(kind, tokenizer, tmp_path):
    def broken() -> Iterator[Any]:
        yield from kind.records
        raise ValueError("corpus.jsonl:7: no field 'documents'")

    with pytest.raises(ValueError, match=r"^corpus\.jsonl:7: no field 'documents'$"):
        kind.make(broken, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert leftovers(tmp_path) == []
    assert len(kind.build(tokenizer, tmp_path)) == kind.rows


def test_the_cache_is_in_the_users_folder_or_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CDLM_LAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == platformdirs.user_cache_path("cdlm_lab")
    assert cache_folder().is_relative_to(tmp_path)
    monkeypatch.setenv("CDLM_LAB_CACHE", "~/there")
    assert cache_folder() == tmp_path / "there"
    assert cache_folder(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("CDLM_LAB_CACHE", "s3://bucket")
    with pytest.raises(ParameterError, match=r"^CDLM_LAB_CACHE is 's3://bucket', an address"):
        cache_folder()


def test_a_cache_that_cannot_be_written_is_one_line(kind, tokenizer, tmp_path):
    cannot = r": the cache cannot be written \(.+\); set CDLM_LAB_CACHE to a folder with"
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ParameterError, match=f"^{re.escape(str(cache))}{cannot} free space$"):
            kind.build(tokenizer, cache)

    def full() -> Iterator[Any]:
        yield from kind.records
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        ParameterError, match=r"written \(No space left on device\); set CDLM_LAB_CACHE to a "
    ):
        kind.make(full, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert leftovers(tmp_path) == ["file"]


def test_a_folder_that_lost_a_file_is_made_again(kind, tokenizer, tmp_path):
    kind.build(tokenizer, tmp_path)
    for name in ("counts.json", kind.file):
        (tmp_path / "fp" / name).unlink()
        assert len(kind.build(tokenizer, tmp_path, kind.records[:1])) == 1


def test_a_damaged_file_says_what_to_do(kind, tokenizer, tmp_path):
    kind.build(tokenizer, tmp_path)
    (tmp_path / "fp" / kind.file).write_bytes(b"not arrow")
    wanted = rf"{kind.file} cannot be read .*; delete the folder .*fp and run again"
    with pytest.raises(ValueError, match=wanted):
        kind.build(tokenizer, tmp_path)


def test_of_two_at_once_one_builds_and_the_other_waits(kind, tokenizer, tmp_path):
    """Threads replace the processes of torchrun: a file lock separates them just the same."""
    together = threading.Barrier(2)
    builds = []

    def records() -> Iterator[Any]:
        builds.append(threading.get_ident())
        for record in kind.records:
            time.sleep(0.05)
            yield record

    def one() -> int:
        together.wait()
        return len(kind.make(records, tokenizer, cache_dir=tmp_path, fingerprint="fp"))

    with ThreadPoolExecutor(2) as pool:
        assert [job.result() for job in [pool.submit(one), pool.submit(one)]] == [kind.rows] * 2
    assert len(builds) == 1
    assert leftovers(tmp_path) == ["fp"]


def test_rows_reach_the_disk_while_the_source_is_read(kind, tokenizer, tmp_path):
    sizes = []

    def watched() -> Iterator[Any]:
        for number in range(1000):
            if number in (500, 999):
                sizes.append(next(tmp_path.glob(f".fp.unfinished/{kind.file}")).stat().st_size)
            yield kind.long(number)

    corpus = kind.make(watched, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    final = (tmp_path / "fp" / kind.file).stat().st_size
    assert len(corpus) == 1000
    assert 0.4 < sizes[0] / final < 0.6
    assert 0.9 < sizes[1] / final < 1


@pytest.mark.parametrize("name", ["", "../elsewhere", "a/b", "a b", "."])
def test_a_fingerprint_that_is_no_file_name(kind, tokenizer, tmp_path, name):
    with pytest.raises(ValueError, match="is no file name"):
        kind.make(lambda: iter(kind.records), tokenizer, cache_dir=tmp_path, fingerprint=name)


def test_bad_input(kind, tokenizer, build, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such tokenised corpus; tokenise it first"):
        read_counts(tmp_path, kind.counts, fingerprint="never-made")
    empty = [PARAGRAPHS[1], PARAGRAPHS[3]]
    for call, message in (
        (lambda: kind.build(Slow(), tmp_path), "Slow is a slow tokenizer"),
        (lambda: build(minimum_documents=0), "minimum_documents is 0"),
        (lambda: build(minimum_documents=9), "none of the 4 clusters has at least 9 non-empty documents;"),
        (lambda: KINDS["paragraphs"].build(tokenizer, tmp_path, empty), "none of the 2 documents has a"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert leftovers(tmp_path) == []


class Slow(PythonBackend):
    """The minimum of a tokenizer written in Python."""

    def get_vocab(self) -> dict[str, int]:
        return {"[PAD]": 0}

    @property
    def vocab_size(self) -> int:
        return 1


def test_a_fingerprint_changes_with_everything_that_changes_the_tokens(tokenizer):
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "w1": 5}
    other = BertTokenizerFast(vocab=vocabulary)
    prints = [
        *(
            make(*given)
            for make in (corpus_fingerprint, paragraph_fingerprint)
            for given in (("a", tokenizer), ("b", tokenizer), ("a", other))
        ),
        corpus_fingerprint("a", tokenizer, minimum_documents=2),
        tokenizer_fingerprint(tokenizer, FORMAT_VERSION, "a"),  # whatever else may be made of the texts
        tokenizer_fingerprint(tokenizer, "ab", "c"),
        tokenizer_fingerprint(tokenizer, "a", "bc"),
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in prints)


@pytest.mark.parametrize("make", [corpus_fingerprint, paragraph_fingerprint])
def test_a_fingerprint_stays_after_the_tokenizer_was_used_and_saved_and_loaded(make, tokenizer, tmp_path):
    before = make("a", tokenizer)
    tokenizer("w1 w2 w3", truncation=True, max_length=2, padding="max_length")
    assert make("a", tokenizer) == before
    tokenizer.save_pretrained(tmp_path)
    assert make("a", type(tokenizer).from_pretrained(tmp_path)) == before
