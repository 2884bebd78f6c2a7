"""Rules that hold for every model: a row alone is the row in its batch, padding is inert, every weight that
is read gets a gradient, micro-batches add up to the full batch, what is saved is loaded again, and it learns
by heart."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from model_cases import CASES, PARAGRAPHS, SENTENCES, TINY, Batch, Case, Loaded, learn, of_cases
from model_cases import saved as saved_in
from transformers import LongformerForMaskedLM, PreTrainedModel

from cdlm_lab.encoders.checkpoint import is_trained
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.tasks.coreference.examples import MENTION_END, MENTION_START
from cdlm_lab.tasks.joint.model import load_joint_model, load_pooled_pairs
from cdlm_lab.tasks.matching.model import DocumentMatcher, EncodedPair, FineTunedMatcher
from cdlm_lab.tasks.multihop.examples import QUESTION_MARKS
from cdlm_lab.tasks.tagging.model import StaticTagger

ON_ENCODER = [name for name, case in CASES.items() if case.encoder]
LOGITS = ("logits", "type_logits", "start_logits", "end_logits", "sentence_logits", "paragraph_logits")
FLOAT32 = ("loss", *LOGITS, "shares", "weights")
WITH_HEADS = [name for name, case in CASES.items() if case.plain]
QUERY = "longformer.encoder.layer.0.attention.self.query.weight"
NOT_EXACT = [name for name, case in CASES.items() if not case.exact]
MARKS = {"pair scorer": (MENTION_START, MENTION_END), "one-reading scorer": (MENTION_START, MENTION_END)}
MARKS |= {"question answerer": QUESTION_MARKS}
READ_GLOBALS = [
    ("pair classifier", [0], "the first token must be global: set it to 1 in global_attention_mask$"),
    ("pair scorer", [0, 15], r"\[CLS\] and the tokens of all mentions must be global"),
    ("one-reading scorer", [0, 10], r"\[CLS\] and the tokens of all mentions must be global"),
    (
        "question answerer",
        [0, PARAGRAPHS[2][1], SENTENCES[2][3]],
        r"\[CLS\], every <t> and every \[s\] must be global: set them to 1",
    ),
]
ON_TINY = [name for name, case in CASES.items() if case.encoder == "tiny"]


@pytest.fixture
def saved(loaded: Loaded, tmp_path: Path) -> Path:
    """As a training leaves it."""
    return saved_in(tmp_path / "saved", *(part for part in loaded if part is not None))


def without_labels(case: Case, batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in case.labels}


def assert_within(part: torch.Tensor, whole: torch.Tensor, message: str) -> None:
    """`part` is the beginning of `whole` in every dimension; in float64 to the last digits."""
    beginning = whole[tuple(map(slice, part.shape))]
    form = {"rtol": 0, "atol": 1e-11} if part.dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(part, beginning, **form, msg=lambda text: f"{message}: {text}")


def by_row(outputs: dict, rows: int) -> dict[str, torch.Tensor]:
    """What has a row for each row of the batch."""
    return {name: values for name, values in outputs.items() if name != "loss" and len(values) == rows}


@torch.no_grad()
def test_a_row_alone_is_the_row_in_its_batch(case: Case, model: PreTrainedModel, batch: Batch):
    output = model(**without_labels(case, batch))
    together = by_row(output, case.rows)
    assert output.loss is None
    assert "logits" in together or "type_logits" in together
    for row in range(case.rows):
        alone = model(**without_labels(case, case.row(batch, row)))
        for name, values in together.items():
            assert_within(alone[name][0], values[row], f"{name} of row {row}")
    logits = together.get("logits", together.get("type_logits"))
    assert logits.std(0).max() > 1e-3, "rows differ, or the test says nothing"


@torch.no_grad()
def test_padding_is_inert(case: Case, model: PreTrainedModel, batch: Batch):
    expected, wider = model(**batch), model(**case.wider(batch))
    torch.testing.assert_close(wider.loss, expected.loss, rtol=1e-4, atol=1e-5)
    for name, values in by_row(expected, case.rows).items():
        assert_within(values, wider[name], name)


def test_every_weight_that_is_read_gets_a_gradient(case: Case, model: PreTrainedModel, batch: Batch):
    model(**batch).loss.backward()
    weights = dict(model.named_parameters())
    without = {name for name, weight in weights.items() if weight.grad is None or not weight.grad.any()}
    expected = {name for name in weights if case.without and re.search(case.without, name)}
    # a bias on all keys, which the softmax cancels, has a gradient of rounding errors or none
    keys = {name for name in without - expected if name.endswith("self.key.bias")}
    assert without - keys == expected
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


def test_micro_batches_add_up_to_the_full_batch(case: Case, model: PreTrainedModel, batch: Batch):
    twin, total = copy.deepcopy(model), 0.0
    full = model(**batch).loss
    full.backward()
    assert type(model).accepts_loss_kwargs
    for row in range(case.rows):
        loss = twin(**case.row(batch, row), num_items_in_batch=torch.tensor(case.items)).loss
        loss.backward()
        total += loss.item()
    assert total == pytest.approx(full.item(), rel=1e-5)
    # losses are summed in float32 whatever the model's precision
    form = {"rtol": 1e-4, "atol": 1e-7} if case.exact else {"rtol": 1e-3, "atol": 2e-6}
    for (name, weight), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None and weight.grad.any():
            torch.testing.assert_close(other.grad, weight.grad, **form, msg=name)


@of_cases("pair classifier", "joint", "pooled", "static tagger", "dynamic tagger")
def test_the_loss_is_the_mean_cross_entropy_of_what_is_labelled(case: Case, model, batch: Batch):
    out, labels = model(**batch), batch["labels"]
    p = out.logits.double().softmax(-1)
    losses = [-math.log(p[(*at, labels[tuple(at)])].item()) for at in (labels >= 0).nonzero().tolist()]
    assert len(losses) == case.items
    assert out.loss.item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@of_cases("pair scorer", "matcher", "fine-tuned matcher")
def test_the_loss_of_pairs_is_their_mean_binary_cross_entropy(model: PreTrainedModel, batch: Batch):
    out = model(**batch)
    p = torch.sigmoid(out.logits.double())
    right = torch.where(batch["labels"] == 1, p, 1 - p)
    assert out.logits.shape == batch["labels"].shape
    assert out.loss.item() == pytest.approx(-right.log().mean().item(), rel=1e-5)


@of_cases("language model", "joint", "pooled", "paragraph", "static tagger", "dynamic tagger")
def test_without_anything_to_learn_the_loss_is_zero(model: PreTrainedModel, batch: Batch):
    loss = model(**batch | {"labels": torch.full_like(batch["labels"], -100)}).loss
    loss.backward()
    assert loss == 0
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert gradients
    assert not any(gradient.any() for gradient in gradients), "a NaN counts as true here, too"


@pytest.mark.parametrize(("case", "places", "message"), READ_GLOBALS, indirect=["case"])
def test_what_is_read_must_be_global(model: PreTrainedModel, batch: Batch, places: list[int], message: str):
    masks = {place: batch["global_attention_mask"].clone() for place in places}
    for place, mask in masks.items():
        mask[2, place] = 0
    for mask in (None, *masks.values()):
        with pytest.raises(ValueError, match=f"^{message}"):
            model(**batch | {"global_attention_mask": mask})


@of_cases(*NOT_EXACT)
@torch.no_grad()
def test_in_half_precision_losses_and_logits_are_float32(case: Case, model: PreTrainedModel, batch: Batch):
    exact = model(**batch).loss.item()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(**batch)
    outputs = [rounded]
    if case.full_head:
        assert (rounded.logits != rounded.logits.bfloat16()).any(), "the head computes in float32"
        outputs.append(copy.deepcopy(model).bfloat16()(**batch))
    for output in outputs:
        assert {values.dtype for name, values in output.items() if name in FLOAT32} == {torch.float32}
        assert output.loss.item() == pytest.approx(exact, rel=0.1)


def encoder_of(model: PreTrainedModel) -> tuple[object, str]:
    """The function, by object and name, that computes in half precision; what is above it is the head."""
    if isinstance(model, StaticTagger):
        return model, "_encoded"
    if isinstance(model, FineTunedMatcher):
        return model.matcher.encoder, "forward"
    return (model.encoder if isinstance(model, DocumentMatcher) else model.longformer), "forward"


@of_cases(*(name for name in CASES if not name.startswith("language model")))
@torch.no_grad()
def test_heads_compute_in_float32_from_the_rounded_states_of_the_encoder(case, loaded, batch, monkeypatch):
    """The logits in half precision are those of a head in full precision on what the encoder gave it."""
    model, states = loaded[0], []
    holder, name = encoder_of(model)
    original = getattr(holder, name)

    def rounded(*arguments, **options):
        with torch.autocast("cpu", torch.bfloat16):
            states.append(original(*arguments, **options))
        return states[-1]

    monkeypatch.setattr(holder, name, rounded)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(**batch)
    given = iter(list(states))
    monkeypatch.setattr(holder, name, lambda *arguments, **options: in_float32(next(given)))
    expected = model(**batch)
    for name in {*LOGITS, "attention", "cosine", "weights", "shares"} & {*expected.keys()}:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-6)


def in_float32(states: Any) -> Any:
    if isinstance(states, torch.Tensor):
        return states.float()
    if isinstance(states, EncodedPair):
        return EncodedPair(**{name: getattr(states, name).float() for name in states.__slots__})
    return type(states)(**{name: one.float() for name, one in states.items()})


def test_save_and_load_agree(case: Case, loaded: Loaded, batch: Batch, saved: Path, source: Path | None):
    assert [file.name for file in saved.glob("*.safetensors")] == ["model.safetensors"]
    assert not list(saved.glob("*.bin"))
    again, tokenizer = case.load(saved, **({"seed": 9} if source else {}))
    assert not any(module.training for module in again.modules())
    expected, outputs = loaded[0](**batch), again(**batch)
    for name, values in by_row(expected, case.rows).items():
        torch.testing.assert_close(outputs[name], values, rtol=0, atol=1e-6)
    weights = again.state_dict()
    assert weights.keys() == loaded[0].state_dict().keys()
    for name, weight in loaded[0].state_dict().items():
        assert torch.equal(weight, weights[name]), name
    if source is not None:
        kind = LongformerForMaskedLM if isinstance(again, CrossDocumentLM) else type(again)
        assert is_trained(str(saved), kind)
        assert not is_trained(str(source), type(again))
        assert tokenizer.get_vocab() == loaded[1].get_vocab()
        encoder = load_encoder(saved, max_length=12, window=8)[0].state_dict()
        read = {n: w for n, w in encoder.items() if "embeddings" not in n}
        assert {torch.equal(weights[f"longformer.{name}"], weight) for name, weight in read.items()} == {True}


@pytest.mark.parametrize("case", WITH_HEADS, indirect=True)
def test_a_trained_head_is_kept_and_another_refused(case: Case, source, loaded, saved: Path, batch: Batch):
    again, _ = case.plain(saved)
    torch.testing.assert_close(again(**batch).logits, loaded[0](**batch).logits, rtol=0, atol=1e-6)
    message = r"trained with \w+\(.*\), not \w+\(.*\); ask for that, or give no head$"
    with pytest.raises(ValueError, match=message):
        case.plain(saved, head=case.other)
    with pytest.raises(ValueError, match=f"not a trained {type(again).__name__}; give a head for it$"):
        case.plain(source)
    if case.plain in (load_joint_model, load_pooled_pairs):  # which may begin from one trained for a task
        again, weights = case.plain(saved, head=case.other, new_head=True)[0], loaded[0].state_dict()
        assert again.config.joint == asdict(case.other)
        assert torch.equal(again.longformer.encoder.layer[0].attention.self.query.weight, weights[QUERY])


@pytest.mark.parametrize("name", ON_ENCODER)
def test_the_head_is_drawn_from_the_seed_and_the_encoder_is_the_one_named(name: str, request):
    case = CASES[name]
    source, before = request.getfixturevalue(case.encoder), torch.get_rng_state()
    first, same, other = (case.load(source, seed=seed)[0].state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    moved = {name for name, weight in first.items() if not torch.equal(weight, other[name])}
    assert all(torch.equal(weight, same[name]) for name, weight in first.items())
    assert any(not name.startswith("longformer.") for name in moved) or "lm_head" in str([*first])
    encoder = load_encoder(source, max_length=16, window=8)[0].state_dict()
    for name, weight in encoder.items():
        if "embeddings" not in name:
            assert torch.equal(other[f"longformer.{name}"], weight), name


@pytest.mark.parametrize("name", MARKS)
def test_marks_are_words_of_their_own_drawn_from_the_seed(name: str, tiny: Path):
    (model, words), (same, _), (other, _) = (CASES[name].load(tiny, seed=seed) for seed in (0, 0, 1))
    marks = words.convert_tokens_to_ids(list(MARKS[name]))
    assert len({*marks, words.unk_token_id}) == len(marks) + 1
    assert words(f"a {MARKS[name][0]} b", add_special_tokens=False)["input_ids"].count(marks[0]) == 1
    rows = [one.longformer.get_input_embeddings().weight[marks] for one in (model, same, other)]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 128}, r"max_length \(128\) is longer than .* was made for \(64\)"),
        ({"window": 7}, r"window \(7\) must be even"),
        ({"window": 0}, r"window \(0\)"),
        ({"window": 66}, "wider than the longest sequence"),
        ({"dropout": 1.5}, "dropout"),
        ({"attention": "quick"}, "attention backend is 'quick'"),
    ],
)
@pytest.mark.parametrize("case", ON_TINY, indirect=True)
def test_what_cannot_be_loaded(case, source: Path, saved: Path, trained: bool, change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        case.load(saved if trained else source, **(TINY | change))


def test_it_learns_by_heart(case: Case, model: PreTrainedModel, batch: Batch):
    """What of it can be learned: an encoder's vectors alone may not tell words apart."""
    start = model(**batch).loss.item()
    assert learn(model, batch, steps=120, rate=case.rate, until=0.05).loss.item() < 0.1 * start
