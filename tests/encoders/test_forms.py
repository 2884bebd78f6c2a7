"""Sizes and kinds of models that cannot be: refused when their form is made."""

import pytest
from model_cases import STATIC_FORM, TAGS

from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.tasks.joint.model import JointHead, PooledHead
from cdlm_lab.tasks.matching.model import HierarchicalConfig
from cdlm_lab.tasks.tagging.model import StaticTaggerConfig, TaggerHead

OF_WORDS = {"encoder": "gru", "vocabulary_size": 9}
FORMS = [
    (JointHead, {"kind": "AE_K"}, "^kind is 'AE_K'; it must be one of 'ie_1', 'ae_1', 'ie_k', 'ae_k'"),
    (JointHead, {"kind": "ie_k", "layers": "deep"}, "^layers is 'deep'; it must be one of 'linear',"),
    (JointHead, {"kind": "ie_k", "labels": 1}, "^labels is 1; it must be at least 2"),
    (JointHead, {"kind": "ie_k", "sentences": 1}, "^sentences is 1"),
    (JointHead, {"kind": "ie_k", "positions": "none"}, "^positions is 'none'"),
    (PooledHead, {"pooling": "mean"}, "^pooling is 'mean'; it must be one of 'max', 'weighted_sum'"),
    (PooledHead, {"pooling": "max", "labels": 1}, "^labels is 1; it must be at least 2"),
    (PooledHead, {"pooling": "max", "length": 1}, "^length is 1"),
    (StaticTaggerConfig, STATIC_FORM | {"size": 0}, "size is 0"),
    (StaticTaggerConfig, STATIC_FORM | {"tags": ()}, r"tags are \(\); give each tag once"),
    (StaticTaggerConfig, STATIC_FORM | {"tags": ("O", "O")}, "give each tag once"),
    (StaticTaggerConfig, STATIC_FORM | {"tags": "O"}, "give each tag once"),
    (
        StaticTaggerConfig,
        STATIC_FORM | {"context_encoder": "gru"},
        "context_encoder is 'gru'; choose one of bilstm, linear",
    ),
    (
        StaticTaggerConfig,
        STATIC_FORM | {"context_order": "sentences"},
        "context_order is 'sentences'; choose one of target, sentence",
    ),
    (
        StaticTaggerConfig,
        STATIC_FORM | {"context_encoder": "linear", "context": False},
        "'linear' needs context",
    ),
    (TaggerHead, {"tags": []}, r"tags are \[\]; give each tag once"),
    (TaggerHead, {"tags": ["O", "B-PER", "O"]}, "give each tag once"),
    (
        TaggerHead,
        {"tags": TAGS, "sequence_encoder": "gru"},
        "sequence_encoder is 'gru'; it must be one of 'bilstm', 'none'",
    ),
    (HierarchicalConfig, {"encoder": "lstm"}, "encoder is 'lstm'; choose one of gru, vectors, average"),
    (HierarchicalConfig, {"cda": "full"}, "cda is 'full'; choose one of none, shallow, deep"),
    (
        HierarchicalConfig,
        {"encoder": "vectors", "cda": "deep"},
        "attends to words, which encoder 'vectors' has not",
    ),
    (HierarchicalConfig, {"encoder": "average", "cda": "shallow"}, "has no level to attend to"),
    (HierarchicalConfig, {"encoder": "gru"}, "vocabulary_size is 0"),
    (HierarchicalConfig, {"encoder": "vectors"}, "vector_size is 0"),
    (HierarchicalConfig, OF_WORDS | {"standardised": True}, "standardised is for encodings of sentences"),
    (TinySizes, {"heads": 3}, r"hidden_size \(128\) must be divisible by heads \(3\)"),
    (TinySizes, {"vocabulary": 100}, "at least 263"),
]


@pytest.mark.parametrize(("kind", "given", "message"), FORMS)
def test_what_cannot_be(kind: type, given: dict, message: str):
    with pytest.raises(ValueError, match=message):
        kind(**given)
