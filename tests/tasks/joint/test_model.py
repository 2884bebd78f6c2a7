"""Joint reading and pooled pairs: embeddings are those of plain BERT and RoBERTa with every sentence padded,
heads and poolings are the equations, every token sees every other; the file of a pre-trained head.
Pre-training with paragraphs: its loss is the formula, and what is saved is a plain language model with a head
beside it."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from model_cases import (
    CLAIM,
    LAYOUT,
    LENGTH,
    MASKED,
    PARAGRAPH_FORM,
    PARAGRAPH_HEADS,
    PIECES,
    Batch,
    K,
    Loaded,
    of_cases,
    own_token_types,
    row_of,
    saved,
    sequences,
    some_pairs,
)
from safetensors.torch import save_file
from torch import nn
from transformers import AutoTokenizer, BertModel, LongformerConfig, LongformerForMaskedLM, RobertaModel

from cdlm_lab.encoders.checkpoint import CheckpointError, is_trained, own_randomness
from cdlm_lab.encoders.encoder import load_encoder, load_language_model, widen_token_types
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.tasks.joint import model as joint
from cdlm_lab.tasks.joint.model import (
    HEAD_FILE,
    JointHead,
    JointHeadLayers,
    JointModel,
    ParagraphModel,
    PooledPairs,
    load_joint_model,
    load_paragraph_model,
    save_paragraph_model,
)

# ---- heads and their files


def layers_of(seed: int, *, size: int = 12, **form: str | int) -> JointHeadLayers:
    with own_randomness(seed):
        return JointHeadLayers(JointHead(**form), LongformerConfig(hidden_size=size))


@pytest.mark.parametrize(
    ("kind", "layers", "weights"),
    # 2 labels on 12 numbers or 24; the hidden layer is as wide as what it reads, as in the released code
    [
        ("ie_1", "linear", 12 * 2 + 2),
        ("ae_1", "linear", 12 * 2 + 2),
        ("ie_k", "linear", 12 * 2 + 2),
        ("ae_k", "linear", 24 * 2 + 2),
        ("ie_k", "tanh", 12 * 12 + 12 + 12 * 2 + 2),
        ("ae_k", "tanh", 24 * 24 + 24 + 24 * 2 + 2),
    ],
)
def test_the_layers_of_a_head(kind: str, layers: str, weights: int):
    made = layers_of(0, kind=kind, layers=layers)
    assert sum(weight.numel() for weight in made.parameters()) == weights
    names = ["Dropout", "Linear", "Tanh", "Dropout", "Linear"] if layers == "tanh" else ["Linear"]
    assert [type(layer).__name__ for layer in made.layers] == names


@pytest.mark.parametrize("layers", ["linear", "tanh"])
def test_a_head_starts_from_the_file_of_one_of_its_form(tmp_path: Path, layers: str):
    written = layers_of(0, kind="ae_k", layers=layers, length=20)
    assert joint.paragraph_head(str(tmp_path)) is None
    joint.write_head(written, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [HEAD_FILE]
    form, weights = joint.paragraph_head(str(tmp_path))
    assert form == written.form
    assert weights.keys() == written.state_dict().keys()
    # the layout may be another: the head does not know of it
    head = layers_of(1, kind="ae_k", layers=layers, sentences=3)
    assert joint.start_from_paragraph_head(head, str(tmp_path))
    for name, weight in head.state_dict().items():
        assert torch.equal(weight, written.state_dict()[name]), name


@pytest.mark.parametrize(
    "other", [{"kind": "ie_k"}, {"kind": "ae_k", "labels": 3}, {"kind": "ae_k", "layers": "tanh"}]
)
def test_a_head_of_another_form_stays_as_drawn(tmp_path: Path, other: dict):
    joint.write_head(layers_of(0, kind="ae_k"), tmp_path)
    head, untouched = layers_of(1, **other), layers_of(1, **other)
    assert not joint.start_from_paragraph_head(head, str(tmp_path))
    for name, weight in head.state_dict().items():
        assert torch.equal(weight, untouched.state_dict()[name]), name


def test_files_that_are_no_head_or_of_another_encoder(tmp_path: Path):
    file = tmp_path / HEAD_FILE
    message = rf"^{re.escape(str(file))}: no head of paragraph pre-training \(.*\); save the model again$"
    save_file({"layers.0.weight": torch.zeros(2, 12)}, file)  # which does not say what it is
    with pytest.raises(CheckpointError, match=message):
        joint.paragraph_head(str(tmp_path))
    joint.write_head(layers_of(0, kind="ie_k"), tmp_path)
    other = rf"^{re.escape(str(tmp_path))}: {HEAD_FILE} is not of the encoder beside it; remove it"
    with pytest.raises(CheckpointError, match=other):
        joint.start_from_paragraph_head(layers_of(1, kind="ie_k", size=16), str(tmp_path))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=message):
        joint.paragraph_head(str(tmp_path))


# ---- positions, windows and token types

ROOM = 40
HEAD = JointHead(kind="ie_1", sentences=4, length=10)


@pytest.fixture
def longformer(language_model: CrossDocumentLM, roberta: Path, tmp_path: Path) -> Path:
    """A Longformer with 40 positions."""
    saved(tmp_path / "longformer", language_model, AutoTokenizer.from_pretrained(roberta))
    return tmp_path / "longformer"


def test_lengths(longformer: Path, bert: Path):
    def lengths(name: str | Path, tokens: int) -> tuple:
        return tuple(joint.lengths_for(str(name), tokens=tokens).values())

    assert joint.lengths_for("minilm", tokens=384) == {"max_length": 768, "window": 768}
    assert (lengths("tiny", 20), lengths(bert, 20)) == ((40, 40), (40, 40))
    assert [lengths(longformer, tokens) for tokens in (15, 39)] == [(30, 30), (40, 40)]
    assert lengths("storyworld/cdlm", 384) == (512, 512), "fewer positions than the window"
    with pytest.raises(CheckpointError, match="reads 40 tokens, but the sentences may have 41 together;"):
        lengths(longformer, 41)


def changed(model, ids: torch.Tensor) -> list[bool]:
    """Return which last hidden states change if the last token changes."""
    other = ids.clone()
    other[0, -1] += 1
    with torch.no_grad():
        states, others = (model(tokens).last_hidden_state[0] for tokens in (ids, other))
    return (states - others).abs().gt(1e-6).any(1).tolist()


@pytest.mark.parametrize("attention", ["auto", "huggingface"])
def test_a_longformer_with_few_positions_sees_all(longformer: Path, attention: str):
    """40 positions allow a window of 40, which is 20 on each side; two layers would hide such a limit."""
    ids = torch.randint(10, 50, (1, ROOM), generator=torch.Generator().manual_seed(0))
    model, _ = load_joint_model(longformer, head=HEAD, attention=attention)
    assert model.config.attention_window == [80, 80]
    model.longformer.encoder.layer = model.longformer.encoder.layer[:1]
    assert changed(model.longformer, ids) == [True] * 40


def test_token_types_are_widened_with_copies_and_never_narrowed(bert: Path):
    encoder, _ = load_encoder(bert, max_length=24, window=24)
    first = encoder.embeddings.token_type_embeddings.weight.detach().clone()
    assert len(first) == 2
    widen_token_types(encoder, 5)
    table = encoder.embeddings.token_type_embeddings.weight
    assert table.requires_grad
    assert torch.equal(table, torch.stack([first[0], *[first[1]] * 4]))
    widen_token_types(encoder, 3)
    assert encoder.embeddings.token_type_embeddings.weight is table
    assert encoder.config.type_vocab_size == 5
    with torch.no_grad():
        table[3] = 7.0
    assert table[4].ne(7).all(), "copies, not one row seen several times"


# ---- joint reading


def padded(batch: Batch, *, pad: int) -> Batch:
    """Return the same sentences, each padded to L, in the input format of plain BERT."""
    rows, tokens = len(batch["input_ids"]), (K + 1) * LENGTH
    made = {
        "input_ids": torch.full((rows, tokens), pad),
        "attention_mask": torch.zeros(rows, tokens, dtype=torch.long),
        "token_type_ids": torch.arange(K + 1).repeat_interleave(LENGTH).repeat(rows, 1),
        "position_ids": torch.arange(tokens).repeat(rows, 1),
    }
    for row in range(rows):
        kept = batch["attention_mask"][row].bool()
        sentence = batch["token_type_ids"][row][kept]
        for number in sentence.unique().tolist():
            ids = batch["input_ids"][row][kept][sentence == number]
            place = slice(number * LENGTH, number * LENGTH + len(ids))
            made["input_ids"][row, place] = ids
            made["attention_mask"][row, place] = 1
    return made


@torch.no_grad()
@pytest.mark.parametrize("positions", ["strided", "compact"])
@pytest.mark.parametrize("attention", ["auto", "huggingface"])
@pytest.mark.parametrize(("name", "plain_class"), [("bert", BertModel), ("roberta", RobertaModel)])
def test_embeddings_are_those_of_the_plain_model_with_every_sentence_padded(
    name, plain_class, attention, positions, request: pytest.FixtureRequest
):
    folder = request.getfixturevalue(name)
    head = JointHead(kind="ie_k", positions=positions, **LAYOUT)
    model, tokenizer = own_token_types(load_joint_model(folder, head=head, attention=attention))
    plain = plain_class.from_pretrained(folder, add_pooling_layer=False).eval()
    plain.embeddings.token_type_embeddings = model.longformer.embeddings.token_type_embeddings
    batch = sequences(tokenizer, positions=positions)
    theirs = padded(batch, pad=tokenizer.pad_token_id)
    if positions == "compact":  # as RoBERTa numbers tokens by itself, skipping padding
        theirs["position_ids"] = (theirs["attention_mask"].cumsum(1) - 1).clamp(min=0)
    if name == "roberta":
        theirs["position_ids"] += tokenizer.pad_token_id + 1
    expected = plain(**theirs).last_hidden_state[:, ::LENGTH]
    present = batch["starts"] >= 0
    assert present.sum() == 8
    actual = model(**batch).embeddings
    torch.testing.assert_close(actual[present], expected[present], rtol=1e-4, atol=1e-5)
    assert not actual[~present].any()


def by_formula(model: JointModel, embeddings: torch.Tensor, row: int) -> list[torch.Tensor]:
    """Compute the logits of a group, for each of its labels, in the order of section 3.3."""
    head = model.head.form

    def labelled(vector: torch.Tensor) -> torch.Tensor:
        linear = [layer for layer in model.head.layers if isinstance(layer, nn.Linear)]
        if head.layers == "tanh":
            vector = torch.tanh(linear[0].weight @ vector + linear[0].bias)
        return linear[-1].weight @ vector + linear[-1].bias

    read = zip(PIECES[row], embeddings[row], strict=True)
    first, *others = [None if pieces is None else e for pieces, e in read]
    present = [first, *[e for e in others if e is not None]]
    if head.kind == "ie_1":
        return [labelled(first)]
    if head.kind == "ae_1":
        return [labelled(sum(present) / len(present))]
    none = torch.zeros(2)
    if head.kind == "ie_k":
        return [none if e is None else labelled(e) for e in others]
    return [none if e is None else labelled(torch.cat([first, e])) for e in others]


@of_cases("joint")
def test_heads_are_the_equations(model: JointModel, batch: Batch):
    out = model(**batch)
    of_candidates = model.head.form.kind.endswith("k")
    assert out.logits.shape == ((3, K, 2) if of_candidates else (3, 3))
    for row in range(3):
        actual = out.logits[row] if of_candidates else out.logits[row][None]
        expected = torch.stack(by_formula(model, out.embeddings, row))
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.05, "all the same would show nothing"


@pytest.mark.parametrize("kind", ["ie_k", "ae_k"])
def test_an_absent_candidate_leaves_nothing(bert: Path, kind: str):
    model, tokenizer = load_joint_model(bert, head=JointHead(kind=kind, **LAYOUT))
    batch = sequences(tokenizer, [[3, 4, None]])
    out = model(**batch, labels=torch.tensor([[1, -100]]))
    assert not out.logits[0, 1].any()
    assert out.loss.item() == pytest.approx(-out.logits[0, 0].log_softmax(-1)[1].item(), rel=1e-6)
    out.loss.backward()
    used = model.longformer.embeddings.token_type_embeddings.weight.grad.any(1)
    assert used.tolist() == [True, True, False]


def test_other_sentences_than_the_head_reads_are_refused(bert: Path):
    model, tokenizer = load_joint_model(bert, head=JointHead(kind="ie_1", sentences=4, length=6))
    message = r"^the sequences have 3 sentences, the model reads 4; write them by"
    with pytest.raises(ValueError, match=message):
        model(**sequences(tokenizer))


# ---- pooled pairs


def by_loops(model: PooledPairs, batch: Batch) -> tuple[torch.Tensor, list[float]]:
    """Compute the claims' logits and the pairs' shares, with each pair encoded separately."""
    read = []
    for row in range(len(CLAIM)):
        width = int(batch["attention_mask"][row].sum())
        names = ("input_ids", "token_type_ids", "position_ids")
        ids, types, positions = (batch[name][row : row + 1, :width] for name in names)
        output = model.longformer(ids, token_type_ids=types, position_ids=positions + 1)
        read.append(output.last_hidden_state[0, 0])
    logits, shares = [], []
    for claim in range(3):
        own = [e for e, number in zip(read, CLAIM, strict=True) if number == claim]
        if model.score is None:
            pooled = torch.stack([max(values) for values in zip(*own, strict=True)])
            best = [max(range(len(own)), key=lambda i, d=d: own[i][d]) for d in range(len(pooled))]
            weights = [best.count(i) / len(best) for i in range(len(own))]
        else:
            powers = [math.exp(model.score.weight[0] @ e) for e in own]
            weights = [power / sum(powers) for power in powers]
            pooled = sum(weight * e for weight, e in zip(weights, own, strict=True))
        logits.append(model.classifier.weight @ pooled + model.classifier.bias)
        shares += weights
    return torch.stack(logits), shares


@of_cases("pooled")
def test_pooling_equals_loops_over_pairs(model: PooledPairs, batch: Batch):
    assert batch["claim"].tolist() == CLAIM
    assert not model(**batch).shares.requires_grad
    model.requires_grad_(False)
    out = model(**batch)
    logits, shares = by_loops(model, batch)
    torch.testing.assert_close(out.logits, logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.shares, torch.tensor(shares), rtol=1e-4, atol=1e-5)
    assert out.logits.std(0).min() > 0.01, "claims differ, or the test says nothing"
    assert out.shares[:3].std() > 0.01
    assert out.shares[3:].tolist() == [1, 1]
    order = [3, 1, 4, 0, 2]
    mixed = model(**some_pairs(batch, order, [1, 0, 2]))
    torch.testing.assert_close(mixed.logits, out.logits[[1, 0, 2]], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mixed.shares, out.shares[order], rtol=1e-4, atol=1e-5)


def test_gradients_of_both_poolings_are_those_of_differences():
    generator = torch.Generator().manual_seed(0)
    read = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(5, generator=generator, dtype=torch.float64, requires_grad=True)
    claim = torch.tensor([1, 0, 1, 1, 0])
    assert torch.autograd.gradcheck(lambda x: joint.largest(x, claim, claims=2)[0], read)
    assert torch.autograd.gradcheck(lambda x, s: joint.weighted_sum(x, s, claim, claims=2), (read, scores))


# ---- pre-training with paragraphs

LENGTHS = {"max_length": 24, "window": 24}


def without_labels(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in ("labels", "mlm_labels")}


@of_cases("paragraph")
def test_the_loss_is_the_formula(model: ParagraphModel, batch: Batch):
    out = model(**batch)
    p = out.logits.double().softmax(-1)
    right = [(0, 0, 1), (0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1)]
    mspp = sum(-math.log(p[at].item()) for at in right) / 6
    positions = batch["position_ids"] + model.config.pad_token_id + 1
    form = {"token_type_ids": batch["token_type_ids"], "position_ids": positions}
    states = model.longformer(batch["input_ids"], batch["attention_mask"], **form).last_hidden_state
    words = model.lm_head(states).double().log_softmax(-1)
    means = [
        sum(-words[row, at, batch["mlm_labels"][row, at]].item() for at in masked) / max(len(masked), 1)
        for row, masked in enumerate(MASKED)
    ]
    mlm = (3 * means[0] + 2 * means[1] + 1 * means[2]) / 6
    assert means[2] == 0, "nothing is masked there"
    assert out.parts.keys() == set(ParagraphModel.loss_parts)
    assert out.parts["mspp"].item() == pytest.approx(mspp, rel=1e-5)
    assert out.parts["mlm"].item() == pytest.approx(mlm, rel=1e-5)
    assert out.loss.item() == pytest.approx(mlm + mspp, rel=1e-5)
    assert out.loss.requires_grad
    assert not any(part.requires_grad for part in out.parts.values())
    bare = model(**without_labels(batch))
    assert (bare.loss, bare.parts) == (None, None)
    assert torch.equal(bare.logits, out.logits)
    rows = [model(**row_of(batch, row), num_items_in_batch=6).parts for row in range(3)]
    for name, part in out.parts.items():
        assert sum(of_row[name].item() for of_row in rows) == pytest.approx(part.item(), rel=1e-5)


@of_cases("paragraph")
def test_what_is_saved_is_a_plain_language_model(loaded: Loaded, tmp_path: Path):
    model, tokenizer = loaded
    types = model.longformer.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        types[3] += 0.5
    folder = tmp_path / "new" / "model"
    save_paragraph_model(model, tokenizer, folder)
    plain, report = LongformerForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    assert plain.config.architectures == ["LongformerForMaskedLM"]
    assert plain.config.type_vocab_size == 4
    assert not hasattr(plain.config, "joint")
    assert hasattr(model.config, "joint"), "the model at hand is as it was"
    for again in (plain, load_language_model(folder, **LENGTHS)[0]):
        for name, weight in again.state_dict().items():
            assert torch.equal(weight, model.state_dict()[name]), name
    encoder, words = load_encoder(folder, **LENGTHS)
    assert torch.equal(encoder.embeddings.token_type_embeddings.weight[3], types[3])
    assert words.get_vocab() == tokenizer.get_vocab()


@of_cases("paragraph")
def test_training_goes_on_from_what_is_saved_and_from_a_checkpoint(loaded, batch: Batch, tmp_path: Path):
    model, tokenizer = loaded
    head, expected = model.head.form, model(**batch)
    save_paragraph_model(model, tokenizer, tmp_path / "plain")
    model.save_pretrained(tmp_path / "checkpoint")  # as the trainer does
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    assert is_trained(str(tmp_path / "checkpoint"), ParagraphModel)
    for folder, given in (("plain", head), ("checkpoint", head), ("checkpoint", None)):
        again, _ = load_paragraph_model(tmp_path / folder, head=given, seed=8)
        assert torch.equal(again(**batch).loss, expected.loss), folder
    with pytest.raises(ValueError, match="not a trained ParagraphModel; give a head for it"):
        load_paragraph_model(tmp_path / "plain")
    joint, _ = load_joint_model(tmp_path / "plain", head=head)
    assert torch.equal(joint(**without_labels(batch)).logits, expected.logits)


@of_cases("paragraph")
def test_a_joint_model_keeps_the_head_of_its_kind_alone(loaded: Loaded, tmp_path: Path):
    model, tokenizer = loaded
    head = model.head.form
    save_paragraph_model(model, tokenizer, tmp_path)
    alone = shutil.copytree(tmp_path, tmp_path / "alone", ignore=lambda *_: [HEAD_FILE, "alone"])
    joint, drawn = (load_joint_model(folder, head=head, seed=5)[0] for folder in (tmp_path, alone))
    for name, weight in model.head.state_dict().items():
        assert torch.equal(joint.head.state_dict()[name], weight), name
        assert torch.equal(drawn.head.state_dict()[name], weight) == name.endswith("bias"), name
    for name, weight in model.longformer.state_dict().items():
        assert torch.equal(drawn.longformer.state_dict()[name], weight), name
    claims = JointHead(kind="ie_1", labels=3, **PARAGRAPH_FORM)
    assert load_joint_model(tmp_path, head=claims)[0].head.layers[0].weight.shape == (3, 32)
    fewer = JointHead(kind=head.kind, layers=head.layers, sentences=2, length=6)
    pairwise, _ = load_joint_model(tmp_path, head=fewer)
    assert torch.equal(pairwise.head.layers[-1].weight, model.head.layers[-1].weight)
    assert pairwise.config.type_vocab_size == 4


@pytest.mark.parametrize(
    ("form", "named"), [({"kind": "ie_1"}, "ie_1 of 2"), ({"kind": "ae_k", "labels": 3}, "ae_k of 3")]
)
def test_only_a_head_of_candidates_of_two_labels(bert: Path, form: dict, named: str):
    message = rf"^the head is {named} labels; paragraphs need ie_k or ae_k of two$"
    with pytest.raises(ValueError, match=message):
        load_paragraph_model(bert, head=JointHead(**form, **PARAGRAPH_FORM))


def test_an_encoder_alone_gets_a_language_model_head_with_a_warning(bert: Path, tmp_path: Path):
    saved(tmp_path, BertModel.from_pretrained(bert), load_encoder(bert, **LENGTHS)[1])
    with pytest.warns(UserWarning, match="a new one was drawn from seed 4"):
        model, _ = load_paragraph_model(tmp_path, head=PARAGRAPH_HEADS["ie_k"], seed=4)
    assert model.lm_head.decoder.weight is model.get_input_embeddings().weight
