"""The question answerer: what its heads read, and its loss by worked numbers."""

import math
from pathlib import Path

import model_cases as cases
import pytest
import torch
from model_cases import (
    OCCURRENCES,
    PARAGRAPHS,
    SENTENCES,
    TINY,
    TYPES,
    Batch,
    questions,
    saved,
)
from torch import Tensor

from cdlm_lab.tasks.multihop.examples import (
    SPAN,
)
from cdlm_lab.tasks.multihop.model import QuestionAnswerer, load_question_answerer


@pytest.fixture
def batch() -> Batch:
    return questions()


@pytest.fixture
def answerer(tiny: Path) -> QuestionAnswerer:
    return load_question_answerer(tiny, **TINY)[0]


@pytest.mark.parametrize(("trained", "others"), [(0, [2]), (2, [1, 3])])
def test_the_paragraph_types_of_a_trained_one_are_kept_and_others_refused(
    trained: int, others: list[int], tiny: Path, tmp_path: Path
):
    model, tokenizer = load_question_answerer(tiny, paragraph_types=trained, **TINY)
    folder = saved(tmp_path / "trained", model, tokenizer)
    for given in (0, trained):
        again, _ = load_question_answerer(folder, paragraph_types=given, **TINY)
        assert again.config.paragraph_types == trained
        table = model.longformer.embeddings.token_type_embeddings.weight
        assert torch.equal(again.longformer.embeddings.token_type_embeddings.weight, table)
    for other in others:
        message = f"trained with paragraph_types {trained}, not {other}; give {trained}$"
        with pytest.raises(ValueError, match=message):
            load_question_answerer(folder, paragraph_types=other, **TINY)


def slow_loss(out, number: int) -> float:
    """The loss of a question of `questions`, number by number."""

    def binary(logits: Tensor, labels: list[int]) -> float:
        p = [1 / (1 + math.exp(-logit)) for logit in logits[number, : len(labels)].tolist()]
        return sum(-math.log(x if y else 1 - x) for x, y in zip(p, labels, strict=True)) / len(labels)

    types = [math.exp(x) for x in out.type_logits[number].tolist()]
    total = -math.log(types[TYPES[number]] / sum(types))
    if TYPES[number] == SPAN and OCCURRENCES[number]:
        for side, logits in ((0, out.start_logits), (1, out.end_logits)):
            p = [math.exp(x) for x in logits[number].tolist()]  # 0 where no answer can be
            right = {occurrence[side] for occurrence in OCCURRENCES[number]}
            total -= math.log(sum(p[n] for n in right) / sum(p)) / 2
    total += binary(out.sentence_logits, cases.SENTENCE_LABELS[number])
    return total + binary(out.paragraph_logits, cases.PARAGRAPH_LABELS[number])


def test_the_loss_is_the_definition(answerer: QuestionAnswerer, batch: Batch):
    out = answerer(**batch)
    assert out.loss.item() == pytest.approx(sum(slow_loss(out, number) for number in range(4)) / 4, rel=1e-5)


def test_only_span_questions_with_an_occurrence_have_a_span_loss(answerer: QuestionAnswerer):
    def gradient(*numbers: int) -> Tensor:
        answerer.zero_grad()
        answerer(**questions(*numbers)).loss.backward()
        for name, weight in answerer.named_parameters():
            assert weight.grad is None or weight.grad.isfinite().all(), name
        return answerer.span_head[0].weight.grad

    assert gradient(0).any()
    for others in ((1,), (2,), (3,), (1, 2, 3), (1, 3), (2, 3)):
        assert not gradient(*others).any(), others


def test_what_the_heads_read(answerer: QuestionAnswerer, batch: Batch):
    out = answerer(**batch)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "global_attention_mask")}
    states = answerer.longformer(**inputs).last_hidden_state
    for number, length in enumerate(cases.LENGTHS):
        spans = answerer.span_head(states[number])
        answerable = cases.question(number)["answerable"]
        for side, logits in enumerate((out.start_logits[number], out.end_logits[number])):
            torch.testing.assert_close(logits[:length][answerable], spans[:length, side][answerable])
            assert (logits[:length][~answerable] == -torch.inf).all()
            assert (logits[length:] == -torch.inf).all()
        torch.testing.assert_close(out.type_logits[number], answerer.type_head(states[number, 0]))
        for logits, head, places in (
            (out.sentence_logits, answerer.sentence_head, SENTENCES[number]),
            (out.paragraph_logits, answerer.paragraph_head, PARAGRAPHS[number]),
        ):
            torch.testing.assert_close(logits[number, : len(places)], head(states[number, places])[:, 0])
            assert (logits[number, len(places) :] == -torch.inf).all()


def test_paragraphs_have_token_types_of_their_own(tiny: Path, batch: Batch):
    plain, typed = (load_question_answerer(tiny, paragraph_types=n, **TINY)[0] for n in (0, 2))
    types = typed._token_types(batch["input_ids"], batch["paragraph_positions"])
    for row, starts in enumerate(batch["paragraph_positions"].tolist()):
        before = [sum(0 <= start <= place for start in starts) for place in range(types.shape[1])]
        assert types[row].tolist() == [min(count, 2) for count in before]
    assert types.max() == 2
    assert plain(**batch).start_logits.ne(typed(**batch).start_logits).any()


def test_questions_without_sentences_or_text_give_no_nan(answerer: QuestionAnswerer):
    batch = questions(3)
    batch["answerable"][:] = False
    for name in ("sentence_positions", "sentence_labels"):
        batch[name] = batch[name][:, :0]
    out = answerer(**batch)
    out.loss.backward()
    assert out.loss.isfinite()
    assert out.sentence_logits.shape == (1, 0)
    for name, weight in answerer.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name
