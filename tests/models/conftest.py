"""Small random models of each kind; fixtures for each case of `model_cases`, with its model and batch."""

from pathlib import Path

import pytest
import torch
from model_cases import CASES, Batch, Case, Loaded, saved, word_tokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LongformerConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.encoders.encoder import TinySizes, load_language_model
from cdlm_lab.encoders.language_model import CrossDocumentLM

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "layer_norm_eps": 1e-2,  # large, so that tests fail if it is not copied
    "initializer_range": 0.2,  # with the usual 0.02, attention would be nearly uniform
}


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small BERT with its language-model head and 24 positions."""
    torch.manual_seed(0)
    tokenizer = word_tokenizer(pad=0)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=24, pad_token_id=0, **SIZES)
    return saved(tmp_path_factory.mktemp("bert"), BertForMaskedLM(config), tokenizer)


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small RoBERTa with its language-model head, 24 positions and the two rows before them."""
    torch.manual_seed(1)
    tokenizer = word_tokenizer(pad=1)
    config = RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=26, pad_token_id=1, type_vocab_size=1, **SIZES
    )
    return saved(tmp_path_factory.mktemp("roberta"), RobertaForMaskedLM(config), tokenizer)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small language model for 64 tokens, with its own vocabulary."""
    sizes = TinySizes(
        hidden_size=16, layers=2, heads=2, intermediate_size=32, vocabulary=300, initializer_range=0.2
    )
    parts = load_language_model("tiny", max_length=64, window=8, sizes=sizes)
    return saved(tmp_path_factory.mktemp("tiny"), *parts)


@pytest.fixture
def language_model() -> CrossDocumentLM:
    """A small CrossDocumentLM for 40 tokens, with our attention layers, in eval mode."""
    torch.manual_seed(2)
    config = LongformerConfig(
        vocab_size=55, max_position_embeddings=42, attention_window=[8, 8], pad_token_id=1, **SIZES
    )
    return replace_self_attention(CrossDocumentLM(config)).eval()


# ---- for each case, or for those that a test selects by `of_cases`


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def source(case: Case, request: pytest.FixtureRequest) -> Path | None:
    return request.getfixturevalue(case.encoder) if case.encoder else None


@pytest.fixture
def loaded(case: Case, source: Path | None) -> Loaded:
    return case.load(source)


@pytest.fixture
def model(case: Case, loaded: Loaded) -> PreTrainedModel:
    return loaded[0].double() if case.exact else loaded[0]


@pytest.fixture
def batch(case: Case, loaded: Loaded) -> Batch:
    return case.batch(loaded[1])
