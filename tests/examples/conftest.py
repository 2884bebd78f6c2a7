"""A tokenizer of 300 words with BERT's special tokens, and small corpora in it; sequences of questions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cdlm_lab.data.convert.questions import MultihopQuestion
from cdlm_lab.data.records import Cluster, Document, Fact
from cdlm_lab.examples.cached_corpus import tokenise_clusters
from cdlm_lab.tasks.multihop.examples import (
    QUESTION_MARKS,
    QuestionSequence,
    encode_question,
    question_marks_of,
    question_sequence,
)
from cdlm_lab.examples.tokens import SpecialTokens, from_tokenizer
from cdlm_lab.encoders.encoder import load_tokenizer

WORDS = [f"w{number}" for number in range(300)]


def build_tokenizer(words: list[str] = WORDS) -> PreTrainedTokenizerFast:
    vocabulary = {
        text: number for number, text in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    }
    rules = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=rules,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        unk_token="[UNK]",
        model_max_length=16,
    )
    tokenizer.add_tokens(["<doc-s>", "</doc-s>"], special_tokens=True)
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer()


@pytest.fixture(scope="session")
def special(tokenizer) -> SpecialTokens:
    return from_tokenizer(tokenizer)


@pytest.fixture(scope="session")
def question_tokenizer(tokenizer) -> PreTrainedTokenizerFast:
    """The tokenizer of whole words, with the special tokens of questions added."""
    marked = copy.deepcopy(tokenizer)
    marked.add_tokens(list(QUESTION_MARKS), special_tokens=True)
    return marked


@pytest.fixture(scope="session")
def shipped_question_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer that comes with the project, with the special tokens of questions added."""
    marked = load_tokenizer("storyworld/cdlm")
    marked.add_tokens(list(QUESTION_MARKS), special_tokens=True)
    return marked


@pytest.fixture(scope="session")
def sequence_of() -> Callable[..., QuestionSequence]:
    """`sequence_of(question, tokenizer)` encodes a question; the tokenizer has the marks of questions."""

    def _sequence_of(
        question: MultihopQuestion, tokenizer: PreTrainedTokenizerFast, max_length: int = 512
    ) -> QuestionSequence:
        return question_sequence(
            encode_question(question, tokenizer),
            special=from_tokenizer(tokenizer),
            marks=question_marks_of(tokenizer),
            max_length=max_length,
        )

    return _sequence_of


def numbered_clusters(count: int, *, sizes: tuple[int, ...] = (3, 4, 5)) -> Iterator[Cluster]:
    """Yield clusters in which document d of cluster c is the fact `w299` and then 5 + d times `w<c>`."""
    for c in range(count):
        documents = tuple(
            Document(
                id=f"c{c}d{d}",
                text=f"w299 {' '.join([f'w{c}'] * (5 + d))}",
                facts=(Fact(start=0, end=4, id="f"),),
            )
            for d in range(sizes[c % len(sizes)])
        )
        yield Cluster(id=f"c{c}", documents=documents)


@pytest.fixture
def tokenised(tmp_path: Path, tokenizer) -> Callable[..., Dataset]:
    """Function that tokenises clusters into a new cache."""

    def made(clusters: list[Cluster], *, minimum_documents: int = 1) -> Dataset:
        return tokenise_clusters(
            lambda: iter(clusters),
            tokenizer,
            cache_dir=tmp_path / "cache",
            fingerprint=f"corpus{len(list(tmp_path.glob('cache/*')))}",
            minimum_documents=minimum_documents,
        )

    return made


@pytest.fixture
def forty(tokenised) -> Dataset:
    """Forty clusters of 3, 4 or 5 documents (see `numbered_clusters`)."""
    return tokenised(list(numbered_clusters(40)))
