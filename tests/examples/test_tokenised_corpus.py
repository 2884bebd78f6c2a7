from __future__ import annotations

import gc
import json
import multiprocessing
import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast, PythonBackend

from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.examples.cached_corpus import (
    CorpusCounts,
    corpus_fingerprint,
    read_cluster,
    read_counts,
    tokenise_clusters,
)


def a_cluster(name: str, *texts: str) -> Cluster:
    documents = tuple(Document(id=f"{name}{number}", text=text) for number, text in enumerate(texts))
    return Cluster(id=name, documents=documents)


CLUSTERS = [
    a_cluster("big", "w1 w2", "w3", "w4 w5 w6", "w7"),
    a_cluster("small", "w1", "w2"),
    a_cluster("hollow", "w1", " ", "w2", "\n"),
    a_cluster("just", "w8", "", "w9 w10", "w11"),
]


def build(tokenizer, cache: Path, clusters=CLUSTERS, **arguments):
    return tokenise_clusters(
        lambda: iter(clusters), tokenizer, cache_dir=cache, fingerprint="fp", **arguments
    )


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.name != ".fp.lock")


def test_any_number_of_processes_makes_the_same_corpus(tokenizer, tmp_path):
    many = [
        a_cluster(f"c{n}", *(f"w{n} w{n + d} {'w7 ' * (n % 3)}" if n % (d + 5) else " " for d in range(4)))
        for n in range(400)
    ]
    files, counts = [], []
    for processes in (1, 3):
        cache = tmp_path / str(processes)
        build(tokenizer, cache, many, processes=processes)
        files.append((cache / "fp" / "clusters.arrow").read_bytes())
        counts.append(read_counts(cache, fingerprint="fp"))
    assert files[0] == files[1]
    assert counts[0] == counts[1]
    assert 0 < counts[0].clusters_dropped < 400 < counts[0].documents


def test_rows_and_counts(tokenizer, tmp_path):
    corpus = build(tokenizer, tmp_path)
    assert corpus.column_names == ["cluster_id", "document_ids", "input_ids", "fact_ids"]
    assert corpus["cluster_id"][:] == ["big", "just"]
    assert corpus["document_ids"][:] == [["big0", "big1", "big2", "big3"], ["just0", "just2", "just3"]]
    assert [len(ids) for ids in corpus[0]["input_ids"]] == [2, 1, 3, 1]
    assert tokenizer.decode(corpus[1]["input_ids"][1]) == "w9 w10"
    assert read_counts(tmp_path, fingerprint="fp") == CorpusCounts(
        clusters_read=4,
        clusters_kept=2,
        clusters_dropped=2,
        minimum_documents=3,
        documents=7,
        empty_documents_removed=3,
        tokens=7 + 4,
        longest_document=3,
        documents_per_cluster={3: 1, 4: 1},
    )


def test_minimum_documents_is_a_parameter(tokenizer, tmp_path):
    assert build(tokenizer, tmp_path, minimum_documents=2)["cluster_id"][:] == [
        "big",
        "small",
        "hollow",
        "just",
    ]


def test_read_cluster_equals_the_plain_row(tokenizer, tmp_path):
    corpus = build(tokenizer, tmp_path, minimum_documents=1)
    for selection in (corpus, corpus.select([2, 0]), corpus.shuffle(seed=1)):
        for row in range(len(selection)):
            read = read_cluster(selection.with_format("arrow"), row)
            assert read.id == selection[row]["cluster_id"]
            assert list(read.document_ids) == selection[row]["document_ids"]
            assert [ids.tolist() for ids in read.input_ids] == selection[row]["input_ids"]
            assert [ids.tolist() for ids in read.fact_ids] == selection[row]["fact_ids"]
            assert read.input_ids[0].dtype == np.int32


def test_a_complete_corpus_is_reused_without_reading_the_source(tokenizer, tmp_path):
    first = build(tokenizer, tmp_path)

    def forbidden() -> Iterator[Cluster]:
        raise AssertionError("the source was read again")

    again = tokenise_clusters(forbidden, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert again.to_dict() == first.to_dict()


def test_an_error_in_the_source_passes_and_leaves_nothing(tokenizer, tmp_path):
    def broken() -> Iterator[Cluster]:
        yield from CLUSTERS
        raise ValueError("corpus.jsonl:7: no field 'documents'")

    with pytest.raises(ValueError, match=r"corpus\.jsonl:7"):
        tokenise_clusters(broken, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert leftovers(tmp_path) == []
    assert len(build(tokenizer, tmp_path)) == 2


def _killed_while_building(tokenizer, cache: Path) -> None:
    def clusters() -> Iterator[Cluster]:
        for number in range(200):  # more than are kept in memory, so that something is on disk
            yield a_cluster(str(number), "w1", "w2", "w3")
        os._exit(9)

    tokenise_clusters(clusters, tokenizer, cache_dir=cache, fingerprint="fp")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="dies by fork: until written for Windows")
def test_a_killed_build_is_not_taken_for_complete_and_is_cleared_away(tokenizer, tmp_path):
    child = multiprocessing.get_context("fork").Process(
        target=_killed_while_building, args=(tokenizer, tmp_path)
    )
    child.start()
    child.join(60)
    assert child.exitcode == 9
    assert [name for name in leftovers(tmp_path) if name.endswith(".building")], "nothing to clear away"
    assert len(build(tokenizer, tmp_path)) == 2
    assert leftovers(tmp_path) == ["fp"]


def test_a_folder_that_lost_a_file_is_made_again(tokenizer, tmp_path):
    build(tokenizer, tmp_path)
    (tmp_path / "fp" / "counts.json").unlink()
    assert len(build(tokenizer, tmp_path, CLUSTERS[:1])) == 1


def test_of_two_at_once_one_builds_and_the_other_waits(tokenizer, tmp_path):
    """Threads stand in for the processes of torchrun: a file lock keeps them apart just the same."""
    together = threading.Barrier(2)
    builds = []

    def clusters() -> Iterator[Cluster]:
        builds.append(threading.get_ident())
        for cluster in CLUSTERS:
            time.sleep(0.05)
            yield cluster

    def one() -> int:
        together.wait()
        return len(tokenise_clusters(clusters, tokenizer, cache_dir=tmp_path, fingerprint="fp"))

    with ThreadPoolExecutor(2) as pool:
        assert [job.result() for job in [pool.submit(one), pool.submit(one)]] == [2, 2]
    assert len(builds) == 1
    assert leftovers(tmp_path) == ["fp"]


def test_a_damaged_file_says_what_to_do(tokenizer, tmp_path):
    build(tokenizer, tmp_path)
    (tmp_path / "fp" / "clusters.arrow").write_bytes(b"not arrow")
    with pytest.raises(
        ValueError, match=r"clusters.arrow cannot be read .*; delete the folder .*fp and run again"
    ):
        build(tokenizer, tmp_path)


def test_no_cluster_large_enough(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="none of the 4 clusters has at least 9 non-empty documents; lower"):
        build(tokenizer, tmp_path, minimum_documents=9)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("name", ["", "../elsewhere", "a/b", "a b", "."])
def test_a_fingerprint_that_is_no_file_name(tokenizer, tmp_path, name):
    with pytest.raises(ValueError, match="is no file name"):
        tokenise_clusters(lambda: iter(CLUSTERS), tokenizer, cache_dir=tmp_path, fingerprint=name)


class Slow(PythonBackend):
    """The least of a tokenizer written in Python."""

    def get_vocab(self) -> dict[str, int]:
        return {"[PAD]": 0}

    @property
    def vocab_size(self) -> int:
        return 1


def test_other_bad_input(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="minimum_documents is 0"):
        build(tokenizer, tmp_path, minimum_documents=0)
    with pytest.raises(FileNotFoundError, match="there is no such tokenised corpus"):
        read_counts(tmp_path, fingerprint="never-made")
    with pytest.raises(ValueError, match="Slow is a slow tokenizer"):
        build(Slow(), tmp_path)


class TestFingerprint:
    def test_it_changes_with_everything_that_changes_the_tokens(self, tokenizer):
        other = BertTokenizerFast(
            vocab={"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "w1": 5}
        )
        prints = {
            corpus_fingerprint("a", tokenizer),
            corpus_fingerprint("b", tokenizer),
            corpus_fingerprint("a", tokenizer, minimum_documents=2),
            corpus_fingerprint("a", other),
        }
        assert len(prints) == 4
        assert all(len(name) == 32 and int(name, 16) >= 0 for name in prints)

    def test_it_stays_after_the_tokenizer_was_used_and_saved_and_loaded(self, tokenizer, tmp_path):
        before = corpus_fingerprint("a", tokenizer)
        tokenizer("w1 w2 w3", truncation=True, max_length=2, padding="max_length")
        assert corpus_fingerprint("a", tokenizer) == before
        tokenizer.save_pretrained(tmp_path)
        assert corpus_fingerprint("a", type(tokenizer).from_pretrained(tmp_path)) == before


class TestMemory:
    """Building streams: what is held does not grow with the corpus."""

    @staticmethod
    def clusters(count: int) -> Iterator[Cluster]:
        for number in range(count):
            yield a_cluster(str(number), *[" ".join(f"w{(number + n) % 300}" for n in range(40))] * 3)

    def test_rows_reach_the_disk_while_the_source_is_read(self, tokenizer, tmp_path):
        sizes = []

        def watched() -> Iterator[Cluster]:
            for number, cluster in enumerate(self.clusters(1000)):
                if number in (500, 999):
                    sizes.append(next(tmp_path.glob(".fp.*.building/clusters.arrow")).stat().st_size)
                yield cluster

        corpus = tokenise_clusters(watched, tokenizer, cache_dir=tmp_path, fingerprint="fp")
        final = (tmp_path / "fp" / "clusters.arrow").stat().st_size
        assert len(corpus) == 1000
        assert 0.4 < sizes[0] / final < 0.6
        assert 0.9 < sizes[1] / final < 1

    def test_peak_is_the_same_for_four_times_the_clusters(self, tokenizer, tmp_path):
        def peak(count: int, go: int) -> int:
            gc.collect()
            tracemalloc.start()
            tokenise_clusters(
                lambda: self.clusters(count), tokenizer, cache_dir=tmp_path, fingerprint=f"{count}-{go}"
            )
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

        peak(100, 0)  # pays for imports and caches
        few, many = ([peak(count, go) for go in range(3)] for count in (250, 1000))
        # the least of several: other threads of the tests allocate too
        assert min(many) < 1.3 * min(few)


def test_counts_are_plain_json(tokenizer, tmp_path):
    build(tokenizer, tmp_path)
    values = json.loads((tmp_path / "fp" / "counts.json").read_text(encoding="utf-8"))
    assert values["clusters_dropped"] == 2
    assert values["documents_per_cluster"] == {"3": 1, "4": 1}
