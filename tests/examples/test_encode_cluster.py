from __future__ import annotations

import logging

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from cdlm_lab.data.records import Cluster, Document, Fact
from cdlm_lab.examples.cached_corpus import encode_cluster


def cluster(*documents: Document) -> Cluster:
    return Cluster(id="c", documents=documents)


def texts(row, tokenizer) -> list[str]:
    return [" ".join(tokenizer.convert_ids_to_tokens(ids.tolist())) for ids in row["input_ids"]]


def test_tokens_without_special_ones_and_documents_without_text_left_out(tokenizer):
    row, _ = encode_cluster(
        cluster(
            Document(id="a", text="w1 w2"),
            Document(id="b", text=" \n\t"),
            Document(id="d", text=""),
            Document(id="e", text="w3"),
        ),
        tokenizer,
    )
    assert row["cluster_id"] == "c"
    assert row["document_ids"] == ["a", "e"]
    assert texts(row, tokenizer) == ["w1 w2", "w3"]
    assert [facts.tolist() for facts in row["fact_ids"]] == [[-1, -1], [-1]]
    assert {array.dtype for array in [*row["input_ids"], *row["fact_ids"]]} == {np.dtype(np.int32)}


def test_a_cluster_without_any_text_gives_an_empty_row(tokenizer):
    assert encode_cluster(cluster(Document(id="a", text=" ")), tokenizer)[0]["input_ids"] == []


def test_facts_are_numbered_by_first_appearance_and_shared_across_documents(tokenizer):
    #              0    5  8       16
    first = Document(
        id="a",
        text="w10 w11 w12 w13 w14",
        facts=(
            Fact(start=12, end=15, id="late"),
            Fact(start=0, end=7, id="early"),
        ),
    )
    second = Document(
        id="b",
        text="w1 w10 w11",
        facts=(
            Fact(start=0, end=2, id="new"),
            Fact(start=3, end=10, id="early"),
        ),
    )
    row, _ = encode_cluster(cluster(first, second), tokenizer)
    assert [facts.tolist() for facts in row["fact_ids"]] == [[0, 0, -1, 1, -1], [2, 0, 0]]


def test_a_token_belongs_to_a_fact_if_its_characters_overlap(tokenizer):
    #          w10 = [0, 3), w11 = [4, 7), w12 = [8, 11)
    def numbers(*facts: Fact) -> list[int]:
        row, _ = encode_cluster(cluster(Document(id="a", text="w10 w11 w12", facts=facts)), tokenizer)
        return row["fact_ids"][0].tolist()

    assert numbers(Fact(start=4, end=7, id="x")) == [-1, 0, -1]
    assert numbers(Fact(start=3, end=8, id="x")) == [-1, 0, -1], "touching is not overlapping"
    assert numbers(Fact(start=2, end=9, id="x")) == [0, 0, 0], "one character is enough"
    assert numbers(Fact(start=3, end=4, id="x")) == [-1, -1, -1], "a space is no token"
    overlapping = Fact(start=4, end=11, id="b"), Fact(start=0, end=7, id="a")
    assert numbers(*overlapping) == [0, 0, 1], "the fact that starts first wins"


def test_word_pieces_and_bytes_of_a_fact(tokenizer):
    """Byte-level BPE as in RoBERTa: several pieces a word, and letters of several bytes."""
    rules = Tokenizer(models.BPE())
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    rules.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(vocab_size=270, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    rules.train_from_iterator(["the mayor of the town"], trainer)
    bpe = PreTrainedTokenizerFast(tokenizer_object=rules)
    text = "the mayor Žofie Qu of the"
    fact = Fact(start=text.index("Ž"), end=text.index(" of"), id="name")
    row, _ = encode_cluster(cluster(Document(id="a", text=text, facts=(fact,))), bpe)
    inside = row["input_ids"][0][row["fact_ids"][0] == 0]
    assert bpe.decode(inside.tolist()).strip() == "Žofie Qu"
    assert len(inside) > 2
    assert not (row["fact_ids"][0] == 0).all()


def test_special_tokens_written_in_a_text_are_text(tokenizer):
    row, _ = encode_cluster(cluster(Document(id="a", text="w1 [MASK] w2 </doc-s> w3")), tokenizer)
    special = {tokenizer.mask_token_id, tokenizer.convert_tokens_to_ids("</doc-s>")}
    assert not special & set(row["input_ids"][0].tolist())
    # ... and the tokenizer is as it was
    assert tokenizer("[MASK]", add_special_tokens=False)["input_ids"] == [tokenizer.mask_token_id]


def test_long_documents_are_encoded_in_full_and_in_silence(tokenizer, caplog, capfd):
    logging.getLogger("transformers").addHandler(caplog.handler)
    try:
        row, _ = encode_cluster(cluster(Document(id="a", text="w1 " * 50)), tokenizer)
    finally:
        logging.getLogger("transformers").removeHandler(caplog.handler)
    assert len(row["input_ids"][0]) == 50 > tokenizer.model_max_length
    assert "longer than" not in caplog.text + capfd.readouterr().err
