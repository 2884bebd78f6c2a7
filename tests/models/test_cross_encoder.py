"""The pair scorer: vector and loss are the paper's; rows, padding, micro-batches and files change nothing."""

import copy
from pathlib import Path

import pytest
import torch

from cdlm_lab.examples.mention_pairs import MENTION_END, MENTION_START
from cdlm_lab.models.checkpoint import CheckpointError, is_trained
from cdlm_lab.models.coreference import PairScorer, load_pair_scorer, pair_vectors
from cdlm_lab.models.encoder import TinySizes, load_language_model

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=32, vocabulary=300, initializer_range=0.2
)
Batch = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model to put the scorer on."""
    folder = tmp_path_factory.mktemp("encoder")
    model, tokenizer = load_language_model("tiny", max_length=64, window=8, sizes=SIZES)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def scorer(folder: Path) -> PairScorer:
    return load_pair_scorer(folder, max_length=64, window=8)[0]


@pytest.fixture
def batch() -> Batch:
    """Four pairs of 24 to 40 tokens, padded to 40; mentions of 1 to 3 tokens are global."""
    generator = torch.Generator().manual_seed(0)
    lengths = [40, 24, 33, 29]
    made = {
        "input_ids": torch.randint(10, 290, (4, 40), generator=generator),
        "attention_mask": torch.zeros(4, 40, dtype=torch.int64),
        "global_attention_mask": torch.zeros(4, 40, dtype=torch.int64),
        "mention_mask": torch.zeros(4, 2, 40, dtype=torch.bool),
        "labels": torch.tensor([1.0, 0.0, 0.0, 1.0]),
    }
    for row, length in enumerate(lengths):
        made["attention_mask"][row, :length] = 1
        made["input_ids"][row, length:] = 1  # the padding token
        made["global_attention_mask"][row, [0, 5]] = 1
        for mention, start in enumerate((6, 15)):
            where = slice(start, start + 1 + (row + mention) % 3)
            made["mention_mask"][row, mention, where] = True
            made["global_attention_mask"][row, where] = 1
    return made


def rows_of(batch: Batch, rows: slice, *, width: int | None = None) -> Batch:
    """Some rows, cut to `width` tokens."""
    return {name: (t if name == "labels" else t[..., :width])[rows] for name, t in batch.items()}


def test_the_vector_is_s_and_sums_and_their_product():
    states = torch.tensor([[[9.0, 8.0], [1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]])
    mask = torch.tensor([[[False, True, True, False], [False, False, False, True]]])
    # s = (9, 8), m_i = (1 + 3, 2 - 4), m_j = (5, 6), product = (20, -12)
    assert pair_vectors(states, mask).tolist() == [[9.0, 8.0, 4.0, -2.0, 5.0, 6.0, 20.0, -12.0]]


def test_the_mlp_has_one_hidden_layer_of_1024_and_tanh(scorer: PairScorer):
    first, squash, last = scorer.scorer
    assert (first.in_features, first.out_features, last.out_features) == (4 * 16, 1024, 1)
    assert isinstance(squash, torch.nn.Tanh)


def test_the_loss_is_the_formula(scorer: PairScorer, batch: Batch):
    out = scorer(**batch)
    p = torch.sigmoid(out.logits.double())
    expected = -(p[0].log() + (1 - p[1]).log() + (1 - p[2]).log() + p[3].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert out.logits.shape == (4,)
    assert scorer(**{name: t for name, t in batch.items() if name != "labels"}).loss is None


def test_a_row_alone_is_the_row_in_its_batch_and_padding_is_inert(scorer: PairScorer, batch: Batch):
    together = scorer(**batch).logits
    for row, length in enumerate([40, 24, 33, 29]):
        alone = scorer(**rows_of(batch, slice(row, row + 1), width=length)).logits
        torch.testing.assert_close(alone[0], together[row], rtol=1e-4, atol=1e-5)
    other = {**batch, "input_ids": torch.where(batch["attention_mask"] == 0, 77, batch["input_ids"])}
    torch.testing.assert_close(scorer(**other).logits, together, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_in_half_precision_logits_and_loss_are_float32(scorer: PairScorer, batch: Batch):
    exact = scorer(**batch)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = scorer(**batch)
    assert (rounded.logits != rounded.logits.bfloat16()).any()  # the head computes in float32
    assert rounded.loss.dtype == rounded.logits.dtype == torch.float32
    assert rounded.loss.item() == pytest.approx(exact.loss.item(), rel=0.1)


def test_every_weight_that_is_read_gets_a_gradient(scorer: PairScorer, batch: Batch):
    scorer(**batch).loss.backward()
    without = {
        name for name, weight in scorer.named_parameters() if weight.grad is None or not weight.grad.any()
    }
    # Whatever the scorer reads is global, so the last layer's local attention leads nowhere.
    local = "longformer.encoder.layer.1.attention.self"
    assert without == {
        f"{local}.{part}.{kind}" for part in ("query", "key", "value") for kind in ("weight", "bias")
    }


@pytest.mark.parametrize("trained", [False, True])
def test_a_whole_last_layer_would_change_nothing(
    scorer: PairScorer, folder: Path, batch: Batch, tmp_path: Path, trained: bool
):
    if trained:
        scorer.save_pretrained(tmp_path)
        load_pair_scorer(folder, max_length=64, window=8)[1].save_pretrained(tmp_path)
        scorer = load_pair_scorer(tmp_path, max_length=64, window=8)[0]
    whole = copy.deepcopy(scorer)
    del whole.longformer.encoder.layer[-1].forward  # its class's own: every token
    found, expected = scorer(**batch), whole(**batch)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-6)
    found.loss.backward()
    expected.loss.backward()
    for (name, weight), other in zip(scorer.named_parameters(), whole.parameters(), strict=True):
        if weight.grad is None:
            assert not other.grad.any(), name
        else:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("missing", ["all", "[CLS]", "a mention"])
def test_what_is_read_must_be_global(scorer: PairScorer, batch: Batch, missing: str):
    if missing == "all":
        batch["global_attention_mask"] = None
    else:
        batch["global_attention_mask"][2, 0 if missing == "[CLS]" else 15] = 0
    with pytest.raises(ValueError, match=r"\[CLS\] and the tokens of both mentions must be global"):
        scorer(**batch)


def test_micro_batches_add_up_to_the_full_batch(scorer: PairScorer, batch: Batch):
    twin = copy.deepcopy(scorer)
    scorer(**batch).loss.backward()
    for rows in (slice(0, 1), slice(1, 4)):
        twin(**rows_of(batch, rows), num_items_in_batch=4).loss.backward()
    for (name, weight), other in zip(scorer.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_it_learns_eight_pairs_by_heart(folder: Path):
    model, _ = load_pair_scorer(folder, max_length=64, window=8)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(10, 290, (8, 20), generator=generator)
    mention = torch.zeros(8, 2, 20, dtype=torch.bool)
    mention[:, 0, 4], mention[:, 1, 12] = True, True
    is_global = mention.any(1).long()
    is_global[:, 0] = 1
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1, 1, 0])
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        loss = model(ids, global_attention_mask=is_global, mention_mask=mention, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05


def test_save_and_load_agree(scorer: PairScorer, folder: Path, batch: Batch, tmp_path: Path):
    _, tokenizer = load_pair_scorer(folder, max_length=64, window=8)
    scorer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert is_trained(str(tmp_path), PairScorer)
    assert not is_trained(str(folder), PairScorer)
    again, words = load_pair_scorer(tmp_path, max_length=64, window=8)
    assert torch.equal(again(**batch).logits, scorer(**batch).logits)
    assert words.get_vocab() == tokenizer.get_vocab()


def test_the_marks_are_words_of_their_own_drawn_from_the_seed(folder: Path):
    before = torch.get_rng_state()
    (model, tokenizer), (same, _), (other, _) = (
        load_pair_scorer(folder, max_length=64, window=8, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    marks = tokenizer.convert_tokens_to_ids([MENTION_START, MENTION_END])
    assert len({*marks, tokenizer.unk_token_id}) == 3
    assert tokenizer(f"a {MENTION_START} b", add_special_tokens=False)["input_ids"].count(marks[0]) == 1
    rows = [m.longformer.get_input_embeddings().weight[marks] for m in (model, same, other)]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert torch.equal(model.scorer[0].weight, same.scorer[0].weight)
    assert not torch.equal(model.scorer[0].weight, other.scorer[0].weight)


def test_a_trained_scorer_that_lacks_weights_is_refused(scorer: PairScorer, folder: Path, tmp_path: Path):
    from safetensors.torch import load_file, save_file

    scorer.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["scorer.2.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: scorer\.2\.weight"):
        load_pair_scorer(tmp_path, max_length=64, window=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 128}, r"max_length \(128\) is longer than .* was made for \(64\)"),
        ({"window": 7}, "window"),
        ({"window": 66}, "wider than the longest sequence"),
        ({"dropout": 1.5}, "dropout"),
    ],
)
def test_a_trained_scorer_is_loaded_with_the_checks_of_an_encoder(
    scorer: PairScorer, folder: Path, tmp_path: Path, change: dict, message: str
):
    _, tokenizer = load_pair_scorer(folder, max_length=64, window=8)
    scorer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_pair_scorer(tmp_path, **({"max_length": 64, "window": 8} | change))


def test_no_mention_mask_no_score(scorer: PairScorer, batch: Batch):
    with pytest.raises(ValueError, match="mention_mask is missing"):
        scorer(batch["input_ids"])
