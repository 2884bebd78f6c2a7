"""A question and its paragraphs in tokens, with the characters that each token of a paragraph was made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.data.multihop_questions import MultihopQuestion, Paragraph

from .encoded_by_id import EncodedById

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedParagraph:
    """A paragraph in tokens, without special ones.

    Offsets are half-open ranges of characters. White space around a token is none of its characters, and what
    is nothing but white space has an empty range. Several tokens may be of one character, as the bytes of an
    accented letter; each has all of it.

    Attributes:
        title_ids: int32 (title tokens,).
        title_offsets: int32 (title tokens, 2), characters of the title.
        ids: int32 (tokens,), of all sentences.
        offsets: int32 (tokens, 2), characters of `Paragraph.text`.
        sentence: int32 (tokens,), number of the sentence of each, ascending.
        sentence_count: sentences of the paragraph, those without any token too.
    """

    title_ids: np.ndarray
    title_offsets: np.ndarray
    ids: np.ndarray
    offsets: np.ndarray
    sentence: np.ndarray
    sentence_count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedQuestion:
    """A question in tokens, without special ones.

    Attributes:
        id: of the question.
        question_ids: int32 (tokens,).
        paragraphs: in the order of the question's.
    """

    id: str
    question_ids: np.ndarray
    paragraphs: tuple[EncodedParagraph, ...]


_Text = tuple[np.ndarray, np.ndarray]  # ids (tokens,) and offsets (tokens, 2) of one text


def encode_question(question: MultihopQuestion, tokenizer: PreTrainedTokenizerBase) -> EncodedQuestion:
    """Tokenise the question, each title and each sentence by itself, each as if a space stood before it.

    Args:
        tokenizer: a fast one, which says where in the text each token stands.
    """
    texts = [question.text]
    for paragraph in question.paragraphs:
        texts += [paragraph.title, *paragraph.sentences]
    encoded = iter(_encoded(texts, tokenizer))
    question_ids, _ = next(encoded)
    return EncodedQuestion(
        id=question.id,
        question_ids=question_ids,
        paragraphs=tuple(_paragraph(paragraph, encoded) for paragraph in question.paragraphs),
    )


class EncodedQuestions(EncodedById[MultihopQuestion, EncodedQuestion]):
    """Questions by their ids; errors as of `EncodedById`."""

    def __init__(self, questions: Iterable[MultihopQuestion], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(questions, lambda one: encode_question(one, tokenizer), kind="questions")


def _paragraph(paragraph: Paragraph, encoded: Iterator[_Text]) -> EncodedParagraph:
    """Of the next encoded texts: its title, then its sentences."""
    title_ids, title_offsets = next(encoded)
    sentences = [next(encoded) for _ in paragraph.sentences]
    starts = np.cumsum([0, *map(len, paragraph.sentences)])
    return EncodedParagraph(
        title_ids=title_ids,
        title_offsets=title_offsets,
        ids=np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in sentences)]),
        offsets=np.concatenate(
            [
                np.empty((0, 2), np.int32),
                # From the sentence's own characters to the paragraph's.
                *(spans + np.int32(start) for (_, spans), start in zip(sentences, starts, strict=False)),
            ]
        ),
        sentence=np.repeat(np.arange(len(sentences), dtype=np.int32), [len(ids) for ids, _ in sentences]),
        sentence_count=len(sentences),
    )


def _encoded(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[_Text]:
    """Ids and offsets of each text; one of white space alone has no tokens."""
    encoded = tokenizer(
        # With the space a byte-level BPE reads the first word as within a text, whatever its settings.
        [f" {text.strip()}" if text.strip() else "" for text in texts],
        add_special_tokens=False,
        split_special_tokens=True,  # a "[s]" or "</doc-s>" that somebody wrote in an article is text
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return [
        (np.array(ids, dtype=np.int32), _own_characters(text, spans))
        for text, ids, spans in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ]


def _own_characters(text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """int32 (tokens, 2), characters of `text`, from those of ` {text.strip()}`, without white space around
    them; whether a byte-level BPE counts the space before a word differs between tokenizers."""
    first = len(text) - len(text.lstrip())
    own = []
    for start, end in spans:
        # The space put in front is no character of the text.
        low, high = (max(place + first - 1, first) for place in (start, end))
        low += len(text[low:high]) - len(text[low:high].lstrip())
        own.append((low, low + len(text[low:high].strip())))
    return np.array(own, dtype=np.int32).reshape(-1, 2)
