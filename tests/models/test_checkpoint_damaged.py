"""A model folder with one file damaged loads as if nothing had happened, or is refused in one line that names
the folder.

Every damage is one that no program would write: a wrong type, a number that cannot be, a file cut off or of
another kind. A weight that is another finite number, or a setting left out for its default, nobody can see.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_language_model

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
    told = ""
    try:
        found = computed(folder)
    except CheckpointError as error:
        told = str(error)
    if told:
        assert "\n" not in told
        assert told.startswith(str(folder))
        assert told.encode(), "can be printed"
        return "refused"
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True)), "loads as another model"
    return "equal"


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """The way to every value of a JSON document; of a long list or object to the first five in it."""
    yield at
    inside = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(inside)[:5] if len(inside) > 40 else inside:
        yield from places(value[key], (*at, key))


def changed(document: Any, at: tuple, value: Any) -> Any:
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
    file.write_text(json.dumps(changed(document, at, chance.choice(WRONG))))


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
    expected, chance, found = computed(whole), random.Random(f"{name} {seed}"), Counter()
    own = spoil_weights if name == "model.safetensors" else spoil_value
    folder = Path(shutil.copytree(whole, tmp_path / "damaged"))
    for number in range(DAMAGES):
        shutil.copyfile(whole / name, folder / name)
        (spoil_bytes if number % 10 == 0 else own)(folder / name, chance)
        try:
            found[outcome(folder, expected)] += 1
        except Exception as error:
            kept = shutil.copyfile(folder / name, tmp_path / f"{number}")
            raise AssertionError(f"damage {number}, kept as {kept}: {error!r}") from error
    assert found["refused"] > DAMAGES / 2, found
