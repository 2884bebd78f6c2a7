"""Paragraphs in a memory-mapped file: rows, counts, building (of which test_tokenised_corpus tries more)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from transformers import BertTokenizerFast

from cdlm_lab.data.clusters import Paragraphed
from cdlm_lab.examples.cached_corpus import (
    FORMAT_VERSION,
    ParagraphCounts,
    corpus_fingerprint,
    paragraph_fingerprint,
    read_document,
    read_paragraph_counts,
    tokenise_paragraphs,
    tokenizer_fingerprint,
)
from cdlm_lab.examples.tokens import encode_pieces

DOCUMENTS = [
    Paragraphed(id="a", paragraphs=(("w1 w2", "w3"), ("w4 w5 w6",))),
    Paragraphed(id="empty", paragraphs=()),
    Paragraphed(id="b", paragraphs=((" ",), ("w7 [MASK]", " ", "w8"), (" ",), ("w9",))),
    Paragraphed(id="blank", paragraphs=((" ",), (" ", " "))),
]


def build(tokenizer, cache: Path, documents=DOCUMENTS, **arguments):
    return tokenise_paragraphs(
        lambda: iter(documents), tokenizer, cache_dir=cache, fingerprint="fp", **arguments
    )


def test_any_number_of_processes_makes_the_same_corpus(tokenizer, tmp_path):
    many = [
        Paragraphed(id=f"d{n}", paragraphs=tuple((f"w{n} w{p}", " ", "w3") for p in range(n % 4)))
        for n in range(400)
    ]
    files, counts = [], []
    for processes in (1, 3):
        cache = tmp_path / str(processes)
        build(tokenizer, cache, many, processes=processes)
        files.append((cache / "fp" / "paragraphs.arrow").read_bytes())
        counts.append(read_paragraph_counts(cache, fingerprint="fp"))
    assert files[0] == files[1]
    assert counts[0] == counts[1]
    assert (counts[0].documents_read, counts[0].documents_kept) == (400, 300)


def test_rows_and_counts(tokenizer, tmp_path):
    corpus = build(tokenizer, tmp_path)
    assert corpus.column_names == ["document_id", "paragraph_sizes", "input_ids"]
    assert corpus["document_id"][:] == ["a", "b"]
    assert corpus["paragraph_sizes"][:] == [[2, 1], [2, 1]]
    assert [[len(ids) for ids in row] for row in corpus["input_ids"]] == [[2, 1, 3], [4, 1, 1]]
    assert tokenizer.decode(corpus[0]["input_ids"][2]) == "w4 w5 w6"
    assert tokenizer.mask_token_id not in corpus[1]["input_ids"][0]  # somebody wrote it in a text
    assert read_paragraph_counts(tmp_path, fingerprint="fp") == ParagraphCounts(
        documents_read=4, documents_kept=2, paragraphs=4, sentences=6, tokens=12, longest_sentence=4
    )


def test_read_document_equals_the_plain_row(tokenizer, tmp_path):
    more = [
        Paragraphed(
            id=f"d{n}",
            paragraphs=tuple(tuple(f"w{n} w{p} w{s}" for s in range(p + 1)) for p in range(n % 5 + 1)),
        )
        for n in range(150)  # in several batches of the file
    ]
    corpus = build(tokenizer, tmp_path, more)
    for selection in (corpus, corpus.select([149, 0, 63, 64]), corpus.shuffle(seed=1)):
        rows = selection.with_format("arrow")
        for row in range(len(selection)):
            plain, read = selection[row], read_document(rows, row)
            assert read.id == plain["document_id"]
            sentences = [read.sentence(number) for number in range(len(read.paragraphs))]
            assert [ids.tolist() for ids in sentences] == plain["input_ids"]
            assert {ids.dtype for ids in sentences} == {np.dtype(np.int32)}
            assert len(read.tokens) == read.ends[-1] == sum(map(len, sentences))
            assert read.paragraphs.tolist() == [
                number for number, size in enumerate(plain["paragraph_sizes"]) for _ in range(size)
            ]


def test_tokens_are_those_of_the_joint_model(shipped_question_tokenizer, tmp_path):
    texts = ("Ada won the race.", "Bo came second, </s> later.")
    corpus = build(shipped_question_tokenizer, tmp_path, [Paragraphed(id="a", paragraphs=(texts,))])
    expected = encode_pieces(texts, shipped_question_tokenizer)
    assert corpus[0]["input_ids"] == [ids.tolist() for ids in expected]


def test_a_complete_corpus_is_reused_without_reading_the_source(tokenizer, tmp_path):
    first = build(tokenizer, tmp_path)

    def forbidden() -> Iterator[Paragraphed]:
        raise AssertionError("the source was read again")

    again = tokenise_paragraphs(forbidden, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert again.to_dict() == first.to_dict()


def test_an_error_in_the_source_passes_and_leaves_nothing(tokenizer, tmp_path):
    def broken() -> Iterator[Paragraphed]:
        yield from DOCUMENTS
        raise ValueError("corpus.jsonl:7: no field 'documents'")

    with pytest.raises(ValueError, match=r"corpus\.jsonl:7"):
        tokenise_paragraphs(broken, tokenizer, cache_dir=tmp_path, fingerprint="fp")
    assert [path.name for path in tmp_path.iterdir() if path.name != ".fp.lock"] == []


def test_bad_input(tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"none of the 2 documents has a sentence; those of fewer than 20 "):
        build(tokenizer, tmp_path, [DOCUMENTS[1], DOCUMENTS[3]])
    with pytest.raises(FileNotFoundError, match="no such tokenised corpus; make it with tokenise_paragraphs"):
        read_paragraph_counts(tmp_path, fingerprint="fp")
    with pytest.raises(ValueError, match="is no file name"):
        tokenise_paragraphs(lambda: iter(DOCUMENTS), tokenizer, cache_dir=tmp_path, fingerprint="../fp")


def test_the_fingerprint_changes_with_everything_that_changes_the_tokens(tokenizer):
    other = BertTokenizerFast(vocab={"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "w1": 5})
    prints = {
        paragraph_fingerprint("a", tokenizer),
        paragraph_fingerprint("b", tokenizer),
        paragraph_fingerprint("a", other),
        corpus_fingerprint("a", tokenizer),  # clusters of the same texts
        tokenizer_fingerprint(tokenizer, FORMAT_VERSION, "a"),  # and whatever else may be made of them
        tokenizer_fingerprint(tokenizer, "ab", "c"),
        tokenizer_fingerprint(tokenizer, "a", "bc"),
    }
    assert len(prints) == 7
    before = paragraph_fingerprint("a", tokenizer)
    tokenizer("w1 w2 w3", truncation=True, max_length=2, padding="max_length")
    assert paragraph_fingerprint("a", tokenizer) == before


def test_memory_is_the_same_for_four_times_the_documents(tokenizer, tmp_path):
    def documents(count: int) -> Iterator[Paragraphed]:
        for number in range(count):
            sentence = " ".join(f"w{(number + n) % 300}" for n in range(20))
            yield Paragraphed(id=str(number), paragraphs=((sentence,) * 4,) * 3)

    def peak(count: int, go: int) -> int:
        gc.collect()
        tracemalloc.start()
        tokenise_paragraphs(
            lambda: documents(count), tokenizer, cache_dir=tmp_path, fingerprint=f"{count}-{go}"
        )
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100, 0)  # pays for imports and caches
    few, many = ([peak(count, go) for go in range(2)] for count in (150, 600))
    # the least of several: other threads of the tests allocate too
    assert min(many) < 1.3 * min(few)
