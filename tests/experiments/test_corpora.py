"""Corpora as the notebooks name them: splits apart, equal masks for every variant, files passed over."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.examples.tokens import token_texts
from cdlm_lab.experiments.cluster_corpora import (
    VARIANTS,
    held_out_examples,
    tokenised_split,
    training_examples,
)
from cdlm_lab.experiments.pretraining import Prepared, Settings, facts_of, read


def test_splits_share_no_cluster(small: Settings, prepared: Prepared, cache: Path) -> None:
    seen: set[str] = set()
    for name in ("train", "validation", "test"):
        split = tokenised_split(small, name, tokenizer=prepared.tokenizer)
        texts = {str(documents) for documents in split.clusters["input_ids"]}
        assert not texts & seen
        seen |= texts


def test_every_variant_is_measured_on_the_same_masked_tokens(small: Settings, prepared: Prepared) -> None:
    split = prepared.validation_split
    examples = [
        held_out_examples(split, small, variant=variant, tokenizer=prepared.tokenizer, name="validation")[3]
        for variant in VARIANTS.values()
    ]
    for example in examples[1:]:
        np.testing.assert_array_equal(example["labels"], examples[0]["labels"])
        np.testing.assert_array_equal(example["input_ids"], examples[0]["input_ids"])
    counts = [int(example["global_attention_mask"].sum()) for example in examples]
    masked = int((examples[0]["labels"] != -100).sum())
    prefix = -(-15 * len(examples[0]["input_ids"]) // 100)
    assert counts == [0, 0, masked, prefix, masked]


def test_rand_reads_unrelated_documents_and_cdlm_related_ones(small: Settings, prepared: Prepared) -> None:
    for name, clusters in (("rand-cdlm", False), ("cdlm", True)):
        examples = training_examples(
            prepared.train_split, small, variant=VARIANTS[name], tokenizer=prepared.tokenizer, size=4
        )
        ids = examples.describe(0).cluster_ids
        assert len(ids) >= 3
        assert (len(set(ids)) == 1) is clusters


class TestMasking:
    def test_words_are_masked_in_training_and_tokens_in_evaluation(
        self, small: Settings, prepared: Prepared
    ) -> None:
        settings = replace(small, masking="whole_words")
        tokenizer = prepared.tokenizer
        parts = {"variant": VARIANTS["cdlm"], "tokenizer": tokenizer}
        given = training_examples(prepared.train_split, settings, size=40, **parts)
        for index in range(40):
            example = given.describe(index)
            starts = token_texts(tokenizer, example.packed.input_ids)[1] | example.packed.is_special
            line_end = example.packed.input_ids == tokenizer.convert_tokens_to_ids("Ċ")
            starts[1:] |= example.packed.is_special[:-1]
            changes = example.masked[1:] != example.masked[:-1]
            assert not (changes & ~(starts | line_end)[1:]).any(), "a word is masked in part"
        held_out = [
            held_out_examples(prepared.validation_split, choice, name="validation", **parts)
            for choice in (small, settings)
        ]
        for index in range(6):
            np.testing.assert_array_equal(*(examples[index]["input_ids"] for examples in held_out))
            np.testing.assert_array_equal(*(examples[index]["labels"] for examples in held_out))

    def test_tokens_are_what_it_is_without_saying(self, small: Settings, prepared: Prepared) -> None:
        assert small.masking == "tokens"
        assert prepared.train_examples.continues is None


def test_single_passages_are_the_same_under_longformer_and_local_cdlm(
    small: Settings, prepared: Prepared, cache: Path, tmp_path: Path
) -> None:
    """Doc-ARC's format: a passage by itself in each example, every one of them once a pass."""
    for split, count in (("train", 7), ("dev", 2)):
        (tmp_path / split).mkdir()
        text = "".join(f"word{number}\tNULL\n" * 80 + "\n" for number in range(count))
        (tmp_path / split / "book.tsv").write_text(text)
    settings = replace(
        small, corpus=str(tmp_path), train_clusters=0, held_out_clusters=0, minimum_documents=1
    )
    split = tokenised_split(settings, "train", tokenizer=prepared.tokenizer, cache=cache)
    assert split.counts.documents_per_cluster == {1: 7}
    given = [
        training_examples(split, settings, variant=VARIANTS[name], tokenizer=prepared.tokenizer, size=14)
        for name in ("longformer", "local-cdlm")
    ]
    for index in range(14):
        one, other = (examples[index] for examples in given)
        assert all(np.array_equal(one[name], other[name]) for name in one)
        assert not one["global_attention_mask"].any()
    for start in (0, 7):
        seen = [given[0].describe(index).document_ids for index in range(start, start + 7)]
        assert sorted(seen) == [(f"book/{number}",) for number in range(1, 8)]
    held_out = tokenised_split(settings, "validation", tokenizer=prepared.tokenizer, cache=cache)
    assert len(held_out.clusters) == 2


def test_files_passed_over_are_printed_and_stand_in_facts_and_report(
    small: Settings, prepared: Prepared, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train/a/1.txt", "train/a/2.TXT", "train/a/3.html", "train/notes.md", "loose.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("The mayor asked for calm.")
    settings = replace(small, corpus=str(tmp_path), minimum_documents=2)
    split = tokenised_split(settings, "train", tokenizer=prepared.tokenizer, cache=cache)
    assert list(split.clusters[0]["document_ids"]) == ["1", "2"]
    named = "3: loose.txt, train/notes.md, train/a/3.html"
    capsys.readouterr()
    for name in ("validation/b/1.txt", "validation/b/2.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("The mayor asked for calm.")
    read(settings, cache=cache)
    assert capsys.readouterr().out.count(f"{tmp_path}: files passed over: {named}") == 1, "not once a split"
    assert dict(facts_of(replace(prepared, train_split=split)))["files passed over"] == named
    assert "files passed over" not in dict(facts_of(prepared))
