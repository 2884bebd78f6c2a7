"""Answering a question over several paragraphs read together: a Longformer with four heads (CDLM sections 3.4
and C.3, whose model is that of Beltagy et al. 2020, appendix D), and decoding its logits into the answer.

Each head is Linear, GELU, dropout, Linear. They predict: at `[CLS]` the type, whether the answer is a span,
yes or no; for every token how well the answer starts and ends there; at the `[s]` of every sentence whether
it supports the answer; and at the `<t>` of every paragraph whether it has such a sentence.

The loss of a question is the weighted sum of

- type: cross entropy;
- span: mean of the losses of starts and of ends, each -log of the summed probabilities of all occurrences of
  the answer (the sum objective of Clark and Gardner 2018; "OR" in Beltagy et al. 2020). The softmax runs over
  all tokens of titles and sentences. There is none where the answer is yes or no, or does not occur;
- sentence and paragraph: mean binary cross entropy over those of the question.

Choices where the papers are silent: means rather than sums, weights of 1. Longformer has one token type; with
`paragraph_types` the question has the first and each paragraph one of its own, like the segments of BERT: a
small model does not find a name of one paragraph in another without. In the released code the optimiser gets
only the encoder, so its heads stay as initialised; spans may run from one paragraph into another, answers are
put together from tokens, and the two paragraphs are chosen by their sentences alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Unpack
from unicodedata import east_asian_width

import numpy as np
import torch
from scipy.special import expit, logsumexp, softmax
from torch import Tensor, nn
from transformers import LongformerConfig, PreTrainedTokenizerFast
from transformers.utils import ModelOutput

from cdlm_lab.attention.plan import Plan
from cdlm_lab.data.records import MultihopQuestion
from cdlm_lab.encoders.checkpoint import is_trained
from cdlm_lab.encoders.encoder import EncoderWithHead, LoadOptions, load_encoder_with_head, widen_token_types
from cdlm_lab.encoders.language_model import Items, over_items
from cdlm_lab.encoders.precision import as_weights, found_on_cpu, in_full
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.tasks.multihop.examples import QUESTION_MARKS, QUESTION_TYPES, SPAN, TITLE, QuestionSequence

LOSS_WEIGHTS = {"type": 1.0, "span": 1.0, "sentence": 1.0, "paragraph": 1.0}


@dataclass
class QuestionOutput(ModelOutput):
    """What `QuestionAnswerer` returns, float32."""

    loss: Tensor | None = None  # (), summed losses of the questions over their number; None without labels
    type_logits: Tensor | None = None  # (batch, 3), in the order of QUESTION_TYPES
    start_logits: Tensor | None = None  # (batch, seq); -inf where no answer can start
    end_logits: Tensor | None = None  # (batch, seq); -inf where no answer can end
    sentence_logits: Tensor | None = None  # (batch, sentences); the sigmoid is a probability, -inf at padding
    paragraph_logits: Tensor | None = None  # (batch, paragraphs), in the same form

    def row(self, number: int) -> dict[str, np.ndarray]:
        """The logits of one question by name, padding included, in the form that `decode` takes."""
        return {
            name: values[number].detach().cpu().numpy() for name, values in self.items() if name != "loss"
        }


class QuestionAnswerer(EncoderWithHead):
    """A Longformer with four heads. In its config `loss_weights` weights the losses named in LOSS_WEIGHTS,
    and `paragraph_types` is the number of token types for paragraphs."""

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        config.loss_weights = dict(getattr(config, "loss_weights", None) or LOSS_WEIGHTS)
        config.paragraph_types = getattr(config, "paragraph_types", 0)
        self.type_head = _head(config, outputs=len(QUESTION_TYPES))
        self.span_head = _head(config, outputs=2)
        self.sentence_head = _head(config, outputs=1)
        self.paragraph_head = _head(config, outputs=1)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq), [CLS] first
        attention_mask: Tensor | None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor,  # (batch, seq), 1 = global: [CLS], every <t> and every [s]
        answerable: Tensor,  # (batch, seq) bool, True = token of a title or a sentence
        paragraph_positions: Tensor,  # (batch, paragraphs), of each <t>; -1 = padding
        sentence_positions: Tensor,  # (batch, sentences), of each [s]; -1 = padding
        labels: Tensor | None = None,  # (batch,), SPAN, YES or NO; None = no loss
        answer_positions: Tensor | None = None,  # (batch, occurrences, 2), first and last token; -1 = padding
        sentence_labels: Tensor | None = None,  # (batch, sentences), 1 = needed to answer, -100 = padding
        paragraph_labels: Tensor | None = None,  # (batch, paragraphs), 1 = needed, -100 = padding
        plan: Plan | None = None,  # of the masks; None = the encoder makes it
        num_items_in_batch: Items = None,  # questions of the whole effective batch
    ) -> QuestionOutput:
        """Answer a batch of questions. Raises ValueError when a token that a head reads is not global."""
        positions = (paragraph_positions, sentence_positions)
        if global_attention_mask is None or _reads_local(global_attention_mask, *positions):
            raise ValueError(
                "[CLS], every <t> and every [s] must be global: set them to 1 in global_attention_mask"
            )
        types = self._token_types(input_ids, paragraph_positions)
        masks = (attention_mask, global_attention_mask)
        states = self.longformer(input_ids, *masks, types, plan=plan).last_hidden_state
        with in_full(states.device):
            states = as_weights(states, self.span_head)
            spans = self.span_head(states).float().masked_fill(~answerable[..., None], -torch.inf)
            out = QuestionOutput(
                type_logits=self.type_head(states[:, 0]).float(),
                start_logits=spans[..., 0],
                end_logits=spans[..., 1],
                sentence_logits=_logits_at(sentence_positions, states, self.sentence_head),
                paragraph_logits=_logits_at(paragraph_positions, states, self.paragraph_head),
            )
        if labels is None:
            return out
        parts = _losses(out, labels, answer_positions, sentence_labels, paragraph_labels)
        total = sum(self.config.loss_weights[name] * part.sum() for name, part in parts.items())
        loss = over_items(total, items=len(labels), num_items_in_batch=num_items_in_batch)
        return QuestionOutput(loss=loss, **out)

    def _token_types(self, input_ids: Tensor, paragraph_positions: Tensor) -> Tensor | None:
        """(batch, seq): 0 before the first `<t>`, then the number of the paragraph from 1, at most
        `paragraph_types`; None if paragraphs have no types of their own."""
        if not self.config.paragraph_types:
            return None
        starts = torch.zeros_like(input_ids)
        starts.scatter_add_(1, paragraph_positions.clamp(min=0), (paragraph_positions >= 0).long())
        return starts.cumsum(1).clamp(max=self.config.paragraph_types)


def _head(config: LongformerConfig, *, outputs: int) -> nn.Sequential:
    size = config.hidden_size
    return nn.Sequential(
        nn.Linear(size, size), nn.GELU(), nn.Dropout(config.hidden_dropout_prob), nn.Linear(size, outputs)
    )


def _reads_local(global_mask: Tensor, *positions: Tensor) -> bool:
    """Whether `[CLS]` or any of `positions` is not global."""
    places = torch.cat([global_mask.new_zeros((len(global_mask), 1)), *positions], dim=1)
    return found_on_cpu((global_mask.gather(1, places.clamp(min=0)) != 1) & (places >= 0))


def _logits_at(positions: Tensor, states: Tensor, head: nn.Module) -> Tensor:
    """One logit for each of `positions` (batch, n) in `states` (batch, seq, dim); -inf at position -1."""
    rows = torch.arange(len(states), device=states.device)[:, None]
    read = states[rows, positions.clamp(min=0)]  # (batch, n, dim)
    return head(read).squeeze(-1).float().masked_fill(positions < 0, -torch.inf)


def _losses(
    out: QuestionOutput, labels: Tensor, answers: Tensor, sentences: Tensor, paragraphs: Tensor
) -> dict[str, Tensor]:
    """The losses by the names of LOSS_WEIGHTS, (batch,) each; `span` has one per question with a span."""
    asks_span = (labels == SPAN) & (answers >= 0).any(-1).any(-1)
    starts, ends = (
        _loss_of_any(logits[asks_span], answers[asks_span, :, side])
        for side, logits in enumerate((out.start_logits, out.end_logits))
    )
    return {
        "type": nn.functional.cross_entropy(out.type_logits, labels.long(), reduction="none"),
        "span": (starts + ends) / 2,
        "sentence": _mean_binary_loss(out.sentence_logits, sentences),
        "paragraph": _mean_binary_loss(out.paragraph_logits, paragraphs),
    }


def _loss_of_any(logits: Tensor, positions: Tensor) -> Tensor:
    """-log of the summed probabilities of `positions` (rows, n), at least one in each row, -1 = padding,
    under `logits` (rows, seq), -inf = not answerable: (rows,). A repeated position counts once."""
    right = torch.zeros_like(logits, dtype=torch.bool)
    row, column = (positions >= 0).nonzero(as_tuple=True)
    right[row, positions[row, column]] = True
    # The gradient of a row of only -inf would be nan, so rows without an occurrence must not come here.
    return logits.logsumexp(-1) - logits.masked_fill(~right, -torch.inf).logsumexp(-1)


def _mean_binary_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean binary cross entropy over the labels of each row, (batch,); 0 for a row without labels."""
    counted = labels != NOT_MASKED
    # Padding's logits of -inf would give a loss and gradient of nan; 0 does not, and is not counted.
    each = nn.functional.binary_cross_entropy_with_logits(
        logits.masked_fill(~counted, 0.0), labels.clamp(min=0).float(), reduction="none"
    )
    return (each * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def load_question_answerer(
    name_or_path: str | os.PathLike[str], *, paragraph_types: int = 0, **options: Unpack[LoadOptions]
) -> tuple[QuestionAnswerer, PreTrainedTokenizerFast]:
    """A question answerer on top of any encoder, or a trained one from its folder, and its tokenizer.
    QUESTION_MARKS are added to the tokenizer; their embeddings and the heads are drawn from the seed.
    `paragraph_types`: number of paragraphs with a token type of their own, in the order of the sequence; an
    encoder that already has as many token types keeps them. 0 = none, or those of a trained question
    answerer. Raises ValueError for another number than that of a trained one."""
    model, tokenizer = load_encoder_with_head(QuestionAnswerer, name_or_path, marks=QUESTION_MARKS, **options)
    name = os.fspath(name_or_path)
    if paragraph_types and is_trained(name, QuestionAnswerer):
        if (own := model.config.paragraph_types) != paragraph_types:
            raise ValueError(f"{name}: trained with paragraph_types {own}, not {paragraph_types}; give {own}")
    elif paragraph_types:
        widen_token_types(model.longformer, paragraph_types + 1, seed=options.get("seed", 0))
        model.config.paragraph_types = paragraph_types
    return model, tokenizer


# ---- from logits to answers
#
# The answer is the span with the largest sum of start and end logit, among those that start at one of the
# best starts and end at one of the best ends, taken from the original text and extended to whole words;
# where the predicted type is "yes" or "no", that is the answer instead.

COUNT, MOST_TOKENS = 20, 30

SentenceName = tuple[int, int]  # number of the paragraph, and of the sentence within it


class SpanCandidate(NamedTuple):
    """Tokens `first` to `last` of a sequence, both included."""

    first: int
    last: int
    score: float  # start logit of `first` plus end logit of `last`


class Place(NamedTuple):
    """Characters [start, end) of a paragraph's title or text."""

    paragraph: int
    part: Literal["title", "body"]
    start: int
    end: int


class AnswerSpan(NamedTuple):
    """A candidate answer to a question."""

    text: str
    score: float  # start logit of its first token plus end logit of its last
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedAnswer:
    """A model's answer to a question."""

    text: str  # "yes", "no", or the best span as it stands in the paragraphs
    type: str  # one of QUESTION_TYPES
    type_probabilities: dict[str, float]  # of each type in QUESTION_TYPES
    place: Place | None  # of the answer; None for yes and no
    n_best: tuple[AnswerSpan, ...]  # distinct spans, best first, whatever the type
    sentence_probabilities: dict[SentenceName, float]  # that each sentence supports the answer
    paragraph_probabilities: tuple[float, ...]  # that a paragraph has such a sentence
    supporting: tuple[SentenceName, ...]  # sentences predicted as support, ascending
    # Of the answer: that of its type, for a span times those of its first and last token; None = not known.
    probability: float | None = None


def best_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    sequence: QuestionSequence,
    *,
    count: int = COUNT,
    most_tokens: int = MOST_TOKENS,
) -> list[SpanCandidate]:
    """All spans from one of the `count` best starts to one of the `count` best ends that may be an answer,
    best first; ties go to the one that starts first, then to the one that ends first.

    A span may be an answer if it lies in the title or in one sentence of a paragraph and has at most
    `most_tokens` tokens, marks not counted. If there is none, the token with the best sum of both logits is
    returned. Raises ValueError when no token of the sequence is answerable.
    """
    starts, ends = (np.asarray(logits, dtype=np.float64) for logits in (start_logits, end_logits))
    places = np.flatnonzero(sequence.answerable)
    if not len(places):
        raise ValueError("no token of the sequence can be an answer; leave the question out")
    best_starts, best_ends = (places[np.argsort(-of[places], kind="stable")[:count]] for of in (starts, ends))
    first, last = (grid.ravel() for grid in np.meshgrid(best_starts, best_ends))
    text_token = np.cumsum(sequence.answerable)
    valid = (
        (first <= last)
        & (text_token[last] - text_token[first] < most_tokens)
        & (sequence.paragraph[first] == sequence.paragraph[last])
        & (sequence.sentence[first] == sequence.sentence[last])
    )
    first, last = first[valid], last[valid]
    if not len(first):
        first = last = places[[np.argmax((starts + ends)[places])]]
    scores = starts[first] + ends[last]
    return [
        SpanCandidate(first=int(first[n]), last=int(last[n]), score=float(scores[n]))
        for n in np.lexsort((last, first, -scores))
    ]


def decode(
    question: MultihopQuestion,
    sequence: QuestionSequence,
    outputs: Mapping[str, np.ndarray],
    *,
    support: str = "threshold",
    most_tokens: int = MOST_TOKENS,
    count: int = COUNT,
) -> DecodedAnswer:
    """Decode the answer to a question from `outputs`, its logits as `QuestionOutput.row` returns them.

    Args:
        support: "threshold": sentences with a probability above 0.5, or the best one if there is none.
            "two_paragraphs": the same within each of the two paragraphs with the largest sum of their own
            logit and that of their best sentence, ties to the first.
        most_tokens: maximum number of tokens in a span.
        count: of best starts and of best ends; `n_best` has at most as many spans.
    """
    candidates = best_spans(
        outputs["start_logits"], outputs["end_logits"], sequence, count=count, most_tokens=most_tokens
    )
    by_place: dict[Place, AnswerSpan] = {}  # the best of the spans that cover the same words
    for candidate in candidates:
        span = answer_span(question, sequence, candidate)
        by_place.setdefault(span.place, span)
    n_best = tuple(by_place.values())[:count]
    types = softmax(np.asarray(outputs["type_logits"], dtype=np.float64))
    kind = QUESTION_TYPES[int(np.argmax(types))]
    sentences, paragraphs = (
        np.asarray(outputs[f"{part}_logits"], dtype=np.float64).tolist() for part in ("sentence", "paragraph")
    )
    names = [(int(paragraph), int(sentence)) for paragraph, sentence in sequence.sentence_names]
    logits = dict(zip(names, sentences, strict=False))
    paragraphs = paragraphs[: len(sequence.paragraph_positions)]
    read = np.flatnonzero(sequence.answerable)
    ends = [np.asarray(outputs[f"{end}_logits"], dtype=np.float64)[read] for end in ("start", "end")]
    of_span = float(np.exp(n_best[0].score - sum(map(logsumexp, ends)))) if kind == "span" else 1.0
    return DecodedAnswer(
        text=n_best[0].text if kind == "span" else kind,
        type=kind,
        type_probabilities=dict(zip(QUESTION_TYPES, types.tolist(), strict=True)),
        place=n_best[0].place if kind == "span" else None,
        n_best=n_best,
        sentence_probabilities={name: float(expit(logit)) for name, logit in logits.items()},
        paragraph_probabilities=tuple(expit(paragraphs).tolist()),
        supporting=_supporting(logits) if support == "threshold" else _of_two_paragraphs(logits, paragraphs),
        probability=float(types.max()) * of_span,
    )


def answer_span(
    question: MultihopQuestion, sequence: QuestionSequence, candidate: SpanCandidate
) -> AnswerSpan:
    """The text of a span, extended to whole words, as it stands in its paragraph."""
    number = int(sequence.paragraph[candidate.first])
    in_title = sequence.sentence[candidate.first] == TITLE
    paragraph = question.paragraphs[number]
    source = paragraph.title if in_title else paragraph.text
    start, end = int(sequence.offsets[candidate.first, 0]), int(sequence.offsets[candidate.last, 1])
    while _inside_word(source, start):
        start -= 1
    while _inside_word(source, end):
        end += 1
    place = Place(number, "title" if in_title else "body", start, end)
    return AnswerSpan(source[start:end], candidate.score, place)


def _inside_word(text: str, place: int) -> bool:
    """True if the characters on both sides of `place` belong to one word; wide characters, such as Chinese
    ones, never do, since they are written without spaces."""
    around = text[max(place - 1, 0) : place + 1]
    return len(around) == 2 and all(one.isalnum() and east_asian_width(one) not in "WF" for one in around)


def _supporting(logits: Mapping[SentenceName, float]) -> tuple[SentenceName, ...]:
    """Sentences with a probability above 0.5 (a logit above 0), or the best one if there is none."""
    best_first = sorted(logits, key=lambda name: (-logits[name], name))
    return tuple(sorted(name for name in best_first if logits[name] > 0)) or tuple(best_first[:1])


def _of_two_paragraphs(
    logits: Mapping[SentenceName, float], paragraphs: list[float]
) -> tuple[SentenceName, ...]:
    """The supporting sentences within each of the two best paragraphs with sentences in the sequence."""
    by_paragraph: dict[int, dict[SentenceName, float]] = {}
    for name, logit in logits.items():
        by_paragraph.setdefault(name[0], {})[name] = logit
    scores = {number: paragraphs[number] + max(of.values()) for number, of in by_paragraph.items()}
    chosen = sorted(scores, key=lambda number: (-scores[number], number))[:2]
    return tuple(name for number in sorted(chosen) for name in _supporting(by_paragraph[number]))
