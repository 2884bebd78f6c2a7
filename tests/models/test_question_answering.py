"""The question answerer: what its heads read, and its loss by worked numbers."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from model_cases import (
    ANSWER_LABELS,
    LENGTHS,
    OCCURRENCES,
    PARAGRAPH_LABELS,
    PARAGRAPHS,
    SENTENCE_LABELS,
    SENTENCES,
    TYPES,
    Batch,
    learn,
    question,
    questions,
)

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.examples.questions import (
    QUESTION_MARKS,
    SPAN,
    YES,
    EncodedQuestions,
    QuestionCollate,
    QuestionExamples,
    question_marks_of,
)
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.question_answering import LOSS_WEIGHTS, QuestionAnswerer, decode, load_question_answerer
from cdlm_lab.training.checkpoints import save_model


@pytest.fixture
def batch() -> Batch:
    return questions()


FORM = {"max_length": 64, "window": 8}
HEADS = ("type_head", "span_head", "sentence_head", "paragraph_head")


@pytest.fixture
def answerer(tiny: Path) -> QuestionAnswerer:
    return load_question_answerer(tiny, **FORM)[0]


class Says(torch.nn.Module):
    """A head that says the same whatever it reads."""

    def __init__(self, logits: list) -> None:
        super().__init__()
        self.logits = torch.tensor(logits, dtype=torch.float32)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        assert states.shape[:-1] == self.logits.shape[:-1], "it reads other tokens than it should"
        return self.logits


def said(model: QuestionAnswerer, *, odds: dict[str, list]) -> QuestionAnswerer:
    """The heads say logarithms of `odds`."""
    for name, values in odds.items():
        setattr(model, name, Says(np.log(np.array(values, dtype=float)).tolist()))
    return model


WORKED = {
    "input_ids": torch.full((2, 8), 20),
    "attention_mask": torch.ones(2, 8, dtype=torch.int64),
    "global_attention_mask": torch.tensor([[1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 1, 0, 0, 0, 0, 0]]),
    "answerable": torch.tensor([[False, False, False, True, True, True, True, False]] * 2),
    "paragraph_positions": torch.tensor([[1, 7], [1, -1]]),
    "sentence_positions": torch.tensor([[2, 7], [2, -1]]),
    "labels": torch.tensor([SPAN, YES]),
    # tokens 4 and 6 start an answer, tokens 5 and 6 end one
    "answer_positions": torch.tensor([[[4, 5], [6, 6]], [[-1, -1], [-1, -1]]]),
    "sentence_labels": torch.tensor([[1, 0], [0, -100]]),
    "paragraph_labels": torch.tensor([[1, 0], [1, -100]]),
}
SPANS = [[9, 9], [9, 9], [9, 9], [1, 5], [2, 1], [3, 1], [4, 3], [9, 9]]  # odds of start and end
ODDS = {
    "type_head": [[1, 2, 1], [1, 3, 1]],
    "span_head": [SPANS, SPANS],
    "sentence_head": [[[3], [1]], [[1 / 4], [7]]],
    "paragraph_head": [[[4], [1 / 9]], [[2], [7]]],
}
# Of the first question: SPAN has 1 of 4; starts have 2 + 4 of 10, ends 1 + 3 of 10, where nothing counts that
# is not answerable. Of the second: YES has 3 of 5, and there is no span.
PARTS = {
    "type": -math.log(1 / 4) - math.log(3 / 5),
    "span": -(math.log(6 / 10) + math.log(4 / 10)) / 2,
    "sentence": -(math.log(3 / 4) + math.log(1 / 2)) / 2 - math.log(4 / 5),
    "paragraph": -(math.log(4 / 5) + math.log(9 / 10)) / 2 - math.log(2 / 3),
}


def test_the_loss_of_a_worked_example(answerer: QuestionAnswerer):
    model = said(answerer, odds=ODDS)
    assert model(**WORKED).loss.item() == pytest.approx(sum(PARTS.values()) / 2, rel=1e-5)
    assert model(**WORKED, num_items_in_batch=8).loss.item() == pytest.approx(sum(PARTS.values()) / 8)


@pytest.mark.parametrize("name", LOSS_WEIGHTS)
def test_each_loss_has_its_weight(answerer: QuestionAnswerer, name: str):
    model = said(answerer, odds=ODDS)
    model.config.loss_weights = dict.fromkeys(LOSS_WEIGHTS, 0.0) | {name: 3.0}
    assert model(**WORKED).loss.item() == pytest.approx(3 * PARTS[name] / 2, rel=1e-5)


def test_a_start_of_two_occurrences_counts_once(answerer: QuestionAnswerer):
    """Else its probability would count twice, and the loss could fall below 0."""
    model = said(answerer, odds=ODDS)
    positions = torch.tensor([[[4, 5], [4, 6]], [[-1, -1], [-1, -1]]])
    span = -(math.log(2 / 10) + math.log(4 / 10)) / 2
    expected = (sum(PARTS.values()) - PARTS["span"] + span) / 2
    assert model(**WORKED | {"answer_positions": positions}).loss.item() == pytest.approx(expected, rel=1e-5)


def slow_loss(out, number: int) -> float:
    """The loss of a question of `question`, number by number."""

    def binary(logits: list[float], labels: list[int]) -> float:
        p = [1 / (1 + math.exp(-logit)) for logit in logits]
        return sum(-math.log(x if y else 1 - x) for x, y in zip(p, labels, strict=True)) / len(labels)

    total = 0.0
    types = [math.exp(x) for x in out.type_logits[number].tolist()]
    total -= math.log(types[TYPES[number]] / sum(types))
    if TYPES[number] == SPAN and OCCURRENCES[number]:
        for side, logits in ((0, out.start_logits), (1, out.end_logits)):
            p = [math.exp(x) for x in logits[number].tolist()]  # 0 where no answer can be
            right = {occurrence[side] for occurrence in OCCURRENCES[number]}
            total -= math.log(sum(p[n] for n in right) / sum(p)) / 2
    sentences = out.sentence_logits[number, : len(SENTENCES[number])].tolist()
    paragraphs = out.paragraph_logits[number, : len(PARAGRAPHS[number])].tolist()
    total += binary(sentences, SENTENCE_LABELS[number])
    return total + binary(paragraphs, PARAGRAPH_LABELS[number])


def test_the_loss_is_the_definition(answerer: QuestionAnswerer, batch: Batch):
    out = answerer(**batch)
    assert out.loss.item() == pytest.approx(sum(slow_loss(out, number) for number in range(4)) / 4, rel=1e-5)
    assert (
        answerer(**{name: values for name, values in batch.items() if name not in ANSWER_LABELS}).loss is None
    )


def test_only_span_questions_with_an_occurrence_have_a_span_loss(answerer: QuestionAnswerer, batch: Batch):
    def gradient(*numbers: int) -> torch.Tensor:
        answerer.zero_grad()
        answerer(**questions(*numbers)).loss.backward()
        return answerer.span_head[0].weight.grad

    assert gradient(0).any()
    for others in ((1,), (2,), (3,), (1, 2, 3), (1, 3)):
        assert not gradient(*others).any(), others


def test_what_the_heads_read(answerer: QuestionAnswerer, batch: Batch):
    out = answerer(**batch)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "global_attention_mask")}
    states = answerer.longformer(**inputs).last_hidden_state
    for number, length in enumerate(LENGTHS):
        spans = answerer.span_head(states[number])
        answerable = question(number)["answerable"]
        for side, logits in enumerate((out.start_logits, out.end_logits)):
            torch.testing.assert_close(logits[number, :length][answerable], spans[:length, side][answerable])
            assert (logits[number, :length][~answerable] == -torch.inf).all()
            assert (logits[number, length:] == -torch.inf).all()
        torch.testing.assert_close(out.type_logits[number], answerer.type_head(states[number, 0]))
        for logits, head, places in (
            (out.sentence_logits, answerer.sentence_head, SENTENCES[number]),
            (out.paragraph_logits, answerer.paragraph_head, PARAGRAPHS[number]),
        ):
            torch.testing.assert_close(logits[number, : len(places)], head(states[number, places])[:, 0])
            assert (logits[number, len(places) :] == -torch.inf).all()


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_two_layers_with_gelu(tiny: Path, name: str):
    model, _ = load_question_answerer(tiny, **FORM, dropout=0.25)
    first, squash, dropout, last = getattr(model, name)
    outputs = {"type_head": 3, "span_head": 2}.get(name, 1)
    assert (first.in_features, first.out_features, last.in_features, last.out_features) == (
        16,
        16,
        16,
        outputs,
    )
    assert isinstance(squash, torch.nn.GELU)
    assert dropout.p == 0.25
    assert first.weight.std().item() == pytest.approx(0.2, rel=0.2), "the encoder's initializer_range"
    assert not first.bias.any()


@pytest.mark.parametrize("numbers", [(1,), (2, 3), (3,), (1, 2, 3)])
def test_questions_without_a_span_give_no_nan(answerer: QuestionAnswerer, numbers: tuple[int, ...]):
    out = answerer(**questions(*numbers))
    assert out.loss.isfinite()
    out.loss.backward()
    for name, weight in answerer.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name


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


@pytest.mark.parametrize("missing", ["all", "[CLS]", "a title", "a sentence"])
def test_what_is_read_must_be_global(answerer: QuestionAnswerer, batch: Batch, missing: str):
    if missing == "all":
        batch["global_attention_mask"] = None
    else:
        place = {"[CLS]": 0, "a title": PARAGRAPHS[2][1], "a sentence": SENTENCES[2][3]}[missing]
        batch["global_attention_mask"][2, place] = 0
    with pytest.raises(
        ValueError, match=r"^\[CLS\], every <t> and every \[s\] must be global: set them to 1"
    ):
        answerer(**batch)


@pytest.mark.parametrize("side", [0, 1])
def test_an_answer_must_be_where_one_can_be(answerer: QuestionAnswerer, batch: Batch, side: int):
    batch["answer_positions"][0, 1, side] = SENTENCES[0][2]
    with pytest.raises(ValueError, match="an answer starts or ends where none can be"):
        answerer(**batch)


@pytest.mark.parametrize("missing", ANSWER_LABELS[1:])
def test_labels_come_together(answerer: QuestionAnswerer, batch: Batch, missing: str):
    del batch[missing]
    with pytest.raises(ValueError, match="give all four or none"):
        answerer(**batch)


def test_loss_weights_and_marks_are_saved(
    answerer: QuestionAnswerer, tiny: Path, batch: Batch, tmp_path: Path
):
    _, tokenizer = load_question_answerer(tiny, **FORM)
    answerer.config.loss_weights["span"] = 2.0
    save_model(answerer, tokenizer, tmp_path)
    again, words = load_question_answerer(tmp_path, **FORM, seed=9)
    expected, actual = answerer(**batch), again(**batch)
    assert all(torch.equal(values, actual[name]) for name, values in expected.items())
    assert again.config.loss_weights == LOSS_WEIGHTS | {"span": 2.0}
    assert question_marks_of(words) == question_marks_of(tokenizer)


def test_loss_weights_of_other_names_are_refused(answerer: QuestionAnswerer):
    answerer.config.loss_weights = {"type": 1.0, "answer": 2.0}
    with pytest.raises(
        ValueError, match=r"names type, answer; give one of each of type, span, sentence, par"
    ):
        QuestionAnswerer(answerer.config)
    assert set(LOSS_WEIGHTS.values()) == {1.0}


def test_marks_and_heads_are_drawn_from_the_seed_and_the_encoder_is_the_one_named(tiny: Path):
    before = torch.get_rng_state()
    (model, words), (same, _), (other, _) = (
        load_question_answerer(tiny, **FORM, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert not any(module.training for module in model.modules())
    marks = words.convert_tokens_to_ids(list(QUESTION_MARKS))
    assert len({*marks, words.unk_token_id}) == 7
    embeddings = [m.longformer.get_input_embeddings().weight for m in (model, same, other)]
    assert torch.equal(embeddings[0][marks], embeddings[1][marks])
    assert not torch.equal(embeddings[0][marks], embeddings[2][marks])
    for name in HEADS:
        drawn, again, another = (getattr(m, name)[0].weight for m in (model, same, other))
        assert torch.equal(drawn, again)
        assert not torch.equal(drawn, another)
    encoder = load_encoder(tiny, **FORM)[0]
    known = encoder.get_input_embeddings().num_embeddings
    for name, weight in encoder.state_dict().items():
        actual = other.longformer.state_dict()[name]
        assert torch.equal(actual[:known] if "word_embeddings" in name else actual, weight), name


def four_questions() -> list[MultihopQuestion]:
    """Two with a span, one yes, one no; the paragraph with the answer is not always the first."""
    paragraphs = (
        Paragraph(title="The mill", sentences=("The mill burnt.", " Ana Berg ran it.")),
        Paragraph(title="Ana Berg", sentences=("Ana Berg is from  LUND.", " She is 40.")),
        Paragraph(title="The bridge", sentences=("It fell.",)),
    )
    needed = (("The mill", 1), ("Ana Berg", 0))
    wanted = (
        ("Where is she from who ran the mill?", paragraphs, "LUND", needed),
        ("What burnt that Ana Berg ran?", paragraphs[::-1], "The mill", (("The mill", 0), ("The mill", 1))),
        ("Did the bridge fall?", paragraphs, "yes", (("The bridge", 0),)),
        ("Is she 50 who ran the mill?", paragraphs[::-1], "no", (("The mill", 1), ("Ana Berg", 1))),
    )
    return [
        MultihopQuestion(id=f"q{n}", text=text, paragraphs=given, answer=answer, supporting=supporting)
        for n, (text, given, answer, supporting) in enumerate(wanted)
    ]


def test_it_learns_four_questions_by_heart():
    """All of it together: the encoder that comes with the project, examples, batches, loss, decoding."""
    model, tokenizer = load_question_answerer("storyworld/longformer", max_length=128, window=32)
    questions = four_questions()
    examples = QuestionExamples(
        questions=questions,
        encoded=EncodedQuestions(questions, tokenizer),
        special=from_tokenizer(tokenizer),
        marks=question_marks_of(tokenizer),
        max_length=128,
    )
    batch = QuestionCollate(pad_token_id=tokenizer.pad_token_id)([examples[n] for n in range(4)])
    out = learn(model, batch, steps=25, rate=3e-3)
    assert out.loss.item() < 0.01
    for number, wanted in enumerate(questions):
        answer = decode(wanted, examples.describe(number), out.row(number))
        assert answer.text == wanted.answer
        actual = {(wanted.paragraphs[paragraph].title, sentence) for paragraph, sentence in answer.supporting}
        assert actual == set(wanted.supporting)
