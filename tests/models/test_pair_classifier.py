"""The pair classifier: head and loss are as said; rows, padding, micro-batches and files change nothing."""

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LongformerForMaskedLM, LongformerForSequenceClassification

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.models.checkpoint import CheckpointError, is_trained
from cdlm_lab.models.encoder import TinySizes, load_encoder, load_language_model
from cdlm_lab.models.matching import PairClassifier, load_pair_classifier

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=32, vocabulary=300, initializer_range=0.2
)
LENGTHS = (40, 24, 33, 29)
Batch = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model to put the classifier on."""
    folder = tmp_path_factory.mktemp("encoder")
    model, tokenizer = load_language_model("tiny", max_length=64, window=8, sizes=SIZES)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def classifier(folder: Path) -> PairClassifier:
    return load_pair_classifier(folder, max_length=64, window=8)[0]


@pytest.fixture
def batch() -> Batch:
    """Four pairs, padded to 40; the first token is global."""
    made = {
        "input_ids": torch.randint(10, 290, (4, 40), generator=torch.Generator().manual_seed(0)),
        "attention_mask": torch.zeros(4, 40, dtype=torch.int64),
        "global_attention_mask": torch.zeros(4, 40, dtype=torch.int64),
        "labels": torch.tensor([1, 0, 0, 1]),
    }
    made["global_attention_mask"][:, 0] = 1
    for row, length in enumerate(LENGTHS):
        made["attention_mask"][row, :length] = 1
        made["input_ids"][row, length:] = 1  # the padding token
    return made


def rows_of(batch: Batch, rows: slice, *, width: int | None = None) -> Batch:
    """Some rows, cut to `width` tokens."""
    return {name: (t if name == "labels" else t[..., :width])[rows] for name, t in batch.items()}


def saved(model: PairClassifier, folder: Path, target: Path) -> Path:
    """The model and its tokenizer, as training leaves them."""
    model.save_pretrained(target)
    load_pair_classifier(folder, max_length=64, window=8)[1].save_pretrained(target)
    return target


def test_it_is_the_classifier_of_transformers(classifier: PairClassifier, batch: Batch):
    """Names, head and logits; whose last layer computes every token."""
    theirs = LongformerForSequenceClassification(classifier.config).eval()
    theirs.load_state_dict(classifier.state_dict())
    replace_self_attention(theirs)
    expected = theirs(**batch)
    found = classifier(**batch)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-5, atol=1e-6)
    assert found.logits.shape == (4, 2)


def test_the_loss_is_the_formula(classifier: PairClassifier, batch: Batch):
    out = classifier(**batch)
    p = out.logits.double().softmax(1)
    expected = -(p[0, 1].log() + p[1, 0].log() + p[2, 0].log() + p[3, 1].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert classifier(**{name: t for name, t in batch.items() if name != "labels"}).loss is None


def test_a_row_alone_is_the_row_in_its_batch_and_padding_is_inert(classifier: PairClassifier, batch: Batch):
    together = classifier(**batch).logits
    assert together.std(0).min() > 0.01, "rows differ, or the test says nothing"
    for row, length in enumerate(LENGTHS):
        alone = classifier(**rows_of(batch, slice(row, row + 1), width=length)).logits
        torch.testing.assert_close(alone[0], together[row], rtol=1e-4, atol=1e-5)
    other = {**batch, "input_ids": torch.where(batch["attention_mask"] == 0, 77, batch["input_ids"])}
    torch.testing.assert_close(classifier(**other).logits, together, rtol=1e-4, atol=1e-5)


def test_every_weight_that_is_read_gets_a_gradient(classifier: PairClassifier, batch: Batch):
    classifier(**batch).loss.backward()
    without = {
        name for name, weight in classifier.named_parameters() if weight.grad is None or not weight.grad.any()
    }
    # Only the first token is read, and it is global, so the last layer's local attention leads nowhere.
    local = "longformer.encoder.layer.1.attention.self"
    assert without == {
        f"{local}.{part}.{kind}" for part in ("query", "key", "value") for kind in ("weight", "bias")
    }


@pytest.mark.parametrize("trained", [False, True])
def test_a_whole_last_layer_changes_no_logit_and_no_gradient(folder, batch, tmp_path, trained):
    name = folder
    if trained:
        name = saved(load_pair_classifier(folder, max_length=64, window=8, seed=3)[0], folder, tmp_path)
    (model, _), (whole, _) = (
        load_pair_classifier(name, max_length=64, window=8, whole_last_layer=whole) for whole in (False, True)
    )
    inputs = {name: t for name, t in batch.items() if name != "labels"}
    texts = slice(1, 24)  # of every row
    assert not model.longformer(**inputs).last_hidden_state[:, texts].any()
    assert whole.longformer(**inputs).last_hidden_state[:, texts].any(-1).all()
    found, expected = model(**batch), whole(**batch)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-6)
    found.loss.backward()
    expected.loss.backward()
    for (name, weight), other in zip(model.named_parameters(), whole.parameters(), strict=True):
        if weight.grad is None:
            assert not other.grad.any(), name
        else:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("missing", ["all", "in one row"])
def test_the_first_token_must_be_global(classifier: PairClassifier, batch: Batch, missing: str):
    if missing == "all":
        batch["global_attention_mask"] = None
    else:
        batch["global_attention_mask"][2, 0] = 0
        batch["global_attention_mask"][2, 5] = 1
    with pytest.raises(
        ValueError, match=r"^the first token must be global: set it to 1 in global_attention_mask$"
    ):
        classifier(**batch)


def test_micro_batches_add_up_to_the_full_batch(classifier: PairClassifier, batch: Batch):
    twin = copy.deepcopy(classifier)
    classifier(**batch).loss.backward()
    for rows in (slice(0, 1), slice(1, 4)):
        twin(**rows_of(batch, rows), num_items_in_batch=torch.tensor(4)).loss.backward()
    for (name, weight), other in zip(classifier.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_it_learns_eight_pairs_by_heart(folder: Path):
    model, _ = load_pair_classifier(folder, max_length=64, window=8)
    ids = torch.randint(10, 290, (8, 20), generator=torch.Generator().manual_seed(1))
    is_global = torch.zeros(8, 20, dtype=torch.int64)
    is_global[:, 0] = 1
    labels = torch.tensor([1, 0, 0, 1, 0, 1, 1, 0])
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        out = model(ids, global_attention_mask=is_global, labels=labels)
        optimiser.zero_grad()
        out.loss.backward()
        optimiser.step()
    assert out.loss.item() < 0.05
    assert out.logits.argmax(1).tolist() == labels.tolist()


def test_save_and_load_agree(classifier: PairClassifier, folder: Path, batch: Batch, tmp_path: Path):
    saved(classifier, folder, tmp_path)
    assert is_trained(str(tmp_path), PairClassifier)
    assert not is_trained(str(folder), PairClassifier)
    again, words = load_pair_classifier(tmp_path, max_length=64, window=8, seed=9)
    assert torch.equal(again(**batch).logits, classifier(**batch).logits)
    assert not again.training
    assert {"<doc-s>", "</doc-s>"} <= words.get_vocab().keys()


def test_the_head_is_drawn_from_the_seed_and_the_encoder_is_the_one_named(folder: Path):
    before = torch.get_rng_state()
    (model, _), (same, _), (other, _) = (
        load_pair_classifier(folder, max_length=64, window=8, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert not any(module.training for module in model.modules())
    head, again, another = (m.classifier.dense.weight for m in (model, same, other))
    assert torch.equal(head, again)
    assert not torch.equal(head, another)
    encoder = load_encoder(folder, max_length=64, window=8)[0].state_dict()
    for name, weight in other.longformer.state_dict().items():
        assert torch.equal(weight, encoder[name]), name


def test_an_encoder_of_another_task_gets_two_logits_all_the_same(folder: Path, tmp_path: Path, batch: Batch):
    model = LongformerForMaskedLM.from_pretrained(folder)
    model.config.num_labels = 5
    model.save_pretrained(tmp_path)
    load_pair_classifier(folder, max_length=64, window=8)[1].save_pretrained(tmp_path)
    found, _ = load_pair_classifier(tmp_path, max_length=64, window=8)
    assert found.config.num_labels == 2
    assert found(**batch).logits.shape == (4, 2)


def test_a_trained_classifier_that_lacks_weights_is_refused(classifier, folder: Path, tmp_path: Path):
    saved(classifier, folder, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["classifier.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: classifier\.dense\.weight"):
        load_pair_classifier(tmp_path, max_length=64, window=8)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 128}, r"max_length \(128\) is longer than .* was made for \(64\)"),
        ({"window": 7}, "window"),
        ({"dropout": 1.5}, "dropout"),
        ({"attention": "quick"}, "unknown attention backend 'quick'"),
    ],
)
def test_what_cannot_be_loaded(classifier, folder, tmp_path, trained, change, message):
    name = saved(classifier, folder, tmp_path) if trained else folder
    with pytest.raises(ValueError, match=message):
        load_pair_classifier(name, **({"max_length": 64, "window": 8} | change))


def test_dropout_is_of_encoder_and_head(folder: Path):
    model, _ = load_pair_classifier(folder, max_length=64, window=8, dropout=0.25)
    assert model.classifier.dropout.p == 0.25
    assert model.longformer.embeddings.dropout.p == 0.25
