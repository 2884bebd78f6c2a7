"""Corpora as the notebooks name them: settings checked, splits apart, equal masks for every variant."""

from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.experiments.corpora import CorpusSettings, held_out_examples, tokenised_split, training_examples
from cdlm_lab.experiments.pretraining import Prepared
from cdlm_lab.experiments.variants import VARIANTS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"packing": "whole"}, "packing is 'whole'; choose one of whole_documents"),
        ({"train_clusters": 0}, "train_clusters is 0, but storyworld has no end"),
        ({"held_out_clusters": -1}, "held_out_clusters is -1; write 0 for all"),
        ({"max_length": "512"}, "max_length"),
    ],
)
def test_settings_that_cannot_be_are_refused(corpus: CorpusSettings, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(corpus, **change)


def test_splits_share_no_cluster(corpus: CorpusSettings, prepared: Prepared) -> None:
    seen: set[str] = set()
    for name in ("train", "validation", "test"):
        split = tokenised_split(corpus, name, tokenizer=prepared.tokenizer)
        texts = {str(documents) for documents in split.clusters["input_ids"]}
        assert not texts & seen
        seen |= texts


def test_every_variant_is_measured_on_the_same_masked_tokens(
    corpus: CorpusSettings, prepared: Prepared
) -> None:
    split = prepared.validation_split
    examples = [
        held_out_examples(split, corpus, variant=variant, tokenizer=prepared.tokenizer, name="validation")[3]
        for variant in VARIANTS.values()
    ]
    for example in examples[1:]:
        np.testing.assert_array_equal(example["labels"], examples[0]["labels"])
        np.testing.assert_array_equal(example["input_ids"], examples[0]["input_ids"])
    counts = [int(example["global_attention_mask"].sum()) for example in examples]
    masked = int((examples[0]["labels"] != -100).sum())
    prefix = -(-15 * len(examples[0]["input_ids"]) // 100)
    assert counts == [0, 0, masked, prefix, masked]


def test_rand_reads_unrelated_documents_and_cdlm_related_ones(
    corpus: CorpusSettings, prepared: Prepared
) -> None:
    for name, clusters in (("rand-cdlm", False), ("cdlm", True)):
        examples = training_examples(
            prepared.train_split, corpus, variant=VARIANTS[name], tokenizer=prepared.tokenizer, size=4
        )
        ids = examples.describe(0).cluster_ids
        assert len(ids) >= 3
        assert (len(set(ids)) == 1) is clusters
