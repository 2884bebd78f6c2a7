"""Sizes and kinds of models that cannot be: refused when their form is made."""

from functools import partial
from typing import Any

import pytest
from model_cases import STATIC_FORM, TAGS

from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.tasks.joint.model import JointHead, PooledHead
from cdlm_lab.tasks.matching.model import HierarchicalConfig
from cdlm_lab.tasks.tagging.model import StaticTaggerConfig, TaggerHead

OF_WORDS = {"encoder": "gru", "vocabulary_size": 9}
FORMS: dict[Any, list[tuple[dict[str, Any], str]]] = {
    JointHead: [
        ({"kind": "AE_K"}, "^kind is 'AE_K'; it must be one of 'ie_1', 'ae_1', 'ie_k', 'ae_k'"),
        ({"kind": "ie_k", "layers": "deep"}, "^layers is 'deep'; it must be one of 'linear',"),
        ({"kind": "ie_k", "labels": 1}, "^labels is 1; it must be at least 2"),
        ({"kind": "ie_k", "sentences": 1}, "^sentences is 1"),
        ({"kind": "ie_k", "positions": "none"}, "^positions is 'none'"),
    ],
    PooledHead: [
        ({"pooling": "mean"}, "^pooling is 'mean'; it must be one of 'max', 'weighted_sum'"),
        ({"pooling": "max", "labels": 1}, "^labels is 1; it must be at least 2"),
        ({"pooling": "max", "length": 1}, "^length is 1"),
    ],
    partial(StaticTaggerConfig, **STATIC_FORM): [
        ({"size": 0}, "size is 0"),
        ({"tags": ()}, r"tags are \(\); give each tag once"),
        ({"tags": ("O", "O")}, "give each tag once"),
        ({"tags": "O"}, "give each tag once"),
        ({"context_encoder": "gru"}, "context_encoder is 'gru'; choose one of bilstm, linear"),
        ({"context_encoder": "linear", "context": False}, "'linear' needs context"),
    ],
    TaggerHead: [
        ({"tags": []}, r"tags are \[\]; give each tag once"),
        ({"tags": ["O", "B-PER", "O"]}, "give each tag once"),
        ({"tags": TAGS, "sequence_encoder": "gru"}, "sequence_encoder is 'gru'; it must be one of 'bilstm',"),
    ],
    HierarchicalConfig: [
        ({"encoder": "lstm"}, "encoder is 'lstm'; choose one of gru, vectors, average"),
        ({"cda": "full"}, "cda is 'full'; choose one of none, shallow, deep"),
        ({"encoder": "vectors", "cda": "deep"}, "attends to words, which encoder 'vectors' has not"),
        ({"encoder": "average", "cda": "shallow"}, "has no level to attend to"),
        ({"encoder": "gru"}, "vocabulary_size is 0"),
        ({"encoder": "vectors"}, "vector_size is 0"),
        (OF_WORDS | {"standardised": True}, "standardised is for encodings of sentences"),
    ],
    TinySizes: [
        ({"heads": 3}, r"hidden_size \(128\) must be divisible by heads \(3\)"),
        ({"vocabulary": 100}, "at least 263"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "given", "message"), [(kind, *one) for kind, some in FORMS.items() for one in some]
)
def test_what_cannot_be(kind: Any, given: dict, message: str):
    with pytest.raises(ValueError, match=message):
        kind(**given)
