"""Preparing and training one variant: what is shown before, what is left behind, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.examples.tokens import token_texts
from cdlm_lab.experiments import pretraining
from cdlm_lab.experiments.pretraining import (
    Prepared,
    Settings,
    cost_of_step,
    example_view,
    facts_of,
    loss_of_text,
    preview,
    summary,
)
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import read_report
from cdlm_lab.training.checkpoints import MODEL_FOLDER


@pytest.mark.parametrize("variant", ["cdlm", "local-cdlm"])
def test_a_run_leaves_a_model_that_opens_in_plain_huggingface(
    variant: str, tmp_path: Path, small: Settings, cache: Path
) -> None:
    settings = replace(small, variant=variant, run_folder=str(tmp_path / "run"))
    prepared = pretraining.prepare(settings, cache=cache)
    records = []
    result = pretraining.train(prepared, on_log=records.append)
    report = pretraining.report(prepared, pretraining.evaluate(prepared, result))
    assert result.steps == 4
    assert {"loss", "eval_perplexity"} <= {key for record in records for key in record}
    folder = tmp_path / "run" / MODEL_FOLDER
    plain = LongformerForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert "<doc-s>" in tokenizer.get_vocab()
    ids = torch.tensor([tokenizer("The mayor asked for calm.")["input_ids"]])
    with torch.no_grad():
        theirs, ours = plain.eval()(ids).logits, prepared.model.eval()(ids).logits
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4)
    attention = plain.longformer.encoder.layer[0].attention.self
    copied = torch.equal(attention.query.weight, attention.query_global.weight)
    assert copied is (variant == "local-cdlm"), "only models without globals get them from the local weights"
    saved = read_report(tmp_path / "run")
    scores = {(row.system, row.metric): row for row in saved.rows}
    assert scores[variant, "perplexity"].clusters == 6
    assert scores["", "training_tokens"].value == result.tokens
    assert saved.tables["history"] == [dict(record) for record in result.history]
    assert saved.data["train_clusters"] == 20
    assert saved.data["files_passed_over"] == "none"
    assert summary(report).startswith(f"{variant}/perplexity: ")
    assert summary(report).endswith(f"trained on {result.tokens:,} tokens; model: {folder}")


def test_preparing_trains_nothing_and_says_what_will_be(prepared: Prepared) -> None:
    facts = dict(facts_of(prepared))
    assert facts["precision"] == "float32"
    assert facts["training"].startswith("4 steps of 2 examples")
    assert "20 for training" in facts["clusters"]
    lost = loss_of_text(prepared)
    assert lost.examples == 8, "steps x batch size"
    assert 0 < lost.share_lost < 1, "256 tokens hold a part of 3 to 6 reports"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"variant": "longformer", "model": "some/folder"},
            "variant is 'longformer', which is the base itself: 'some/folder' has a language-model head",
        ),
        ({"variant": "bigbird"}, "variant is 'bigbird'; it must be one of 'longformer', 'local-cdlm'"),
        ({"dropout": "0.1"}, "dropout"),
        ({"packing": "whole"}, "packing is 'whole'; it must be one of 'whole_documents'"),
        ({"masking": "words"}, "masking is 'words'; it must be one of 'tokens', 'w"),
        ({"train_clusters": 0}, "train_clusters is 0, but storyworld has no end"),
        ({"held_out_clusters": -1}, "held_out_clusters is -1; write 0 for all"),
        ({"max_length": "512"}, "max_length"),
    ],
)
def test_settings_that_cannot_be(small: Settings, change: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        replace(small, **change)


def test_preview_is_the_example(prepared: Prepared) -> None:
    shown, example = example_view(prepared, index=1), prepared.train_examples.describe(1)
    assert shown.masked.sum() == (example.labels != -100).sum()
    np.testing.assert_array_equal(shown.global_, shown.masked)
    assert sum(document.cut for document in shown.documents) == sum(example.packed.lost_tokens)
    assert shown.tokens[0] == "<s>"
    replaced = [shown.replacement[i] for i in np.flatnonzero(shown.masked)]
    assert 0.6 < np.mean([text == "<mask>" for text in replaced]) < 0.97, "80% are masks"
    html = preview(prepared).data
    assert "cdlm on storyworld" in html
    assert "4 steps of 2 examples" in html


def test_preview_names_a_cost(prepared: Prepared) -> None:
    memory, seconds = cost_of_step(prepared)
    # 1.5 million weights, gradients and two moments are 24 MB; activations of 256 tokens are less than 1 GB
    assert 20e6 < memory < 1e9
    assert 1e-3 < seconds < 100


def test_tokens_of_byte_level_bpe(prepared: Prepared) -> None:
    ids = prepared.tokenizer("The mayor", add_special_tokens=True)["input_ids"]
    texts, starts = token_texts(prepared.tokenizer, ids)
    assert texts == ["<s>", "The", "mayor", "</s>"]
    assert starts.tolist() == [True, True, True, True]
    inside = token_texts(prepared.tokenizer, prepared.tokenizer("Qzxv")["input_ids"])[1]
    assert not inside[2:-1].any(), "pieces inside a word start none"


def test_tokens_of_wordpiece() -> None:
    class WordPiece:
        all_special_tokens = ("[CLS]",)

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [["[CLS]", "un", "##seen", "sea"][i] for i in ids]

    texts, starts = token_texts(WordPiece(), [0, 1, 2, 3])
    assert texts == ["[CLS]", "un", "seen", "sea"]
    assert starts.tolist() == [True, True, False, True]


@pytest.mark.parametrize("index", [-1, 8])
def test_an_example_that_is_not_there(prepared: Prepared, index: int) -> None:
    with pytest.raises(IndexError, match="there are 8"):
        example_view(prepared, index=index)
