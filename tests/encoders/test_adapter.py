"""LoRA adapters: what is trained, that a run that stopped goes on equally, and what a folder opens as."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from model_cases import scored
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cdlm_lab.encoders.adapter import ADAPTER_WEIGHTS, attach, attached, merge
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.model_folder import ADAPTER_CONFIG, fault_of_folder, is_model
from cdlm_lab.errors import Stopped
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference.model import load_pair_scorer
from cdlm_lab.tasks.tagging.model import TaggerHead, load_dynamic_tagger
from cdlm_lab.training.checkpoints import write_model
from cdlm_lab.training.fine_tuning import config_of_passes, fine_tune
from cdlm_lab.training.trainer import TrainingJob

FORM = {"max_length": 64, "window": 32}
BASE = "storyworld/cdlm"
LEARNED = r"lora_|scorer.|trainable_tokens_delta"


def batch_of(rows: list[int]) -> dict[str, Tensor]:
    batch = scored() | {"labels": torch.tensor([1, 0, 0, 1])}
    batch["input_ids"][:, 1] = 1024  # <m>, whose embedding is trained
    return {name: values[[row % 4 for row in rows]] for name, values in batch.items()}


def job(base: str = BASE, **changes: Any) -> TrainingJob:
    model, tokenizer = load_pair_scorer(base, seed=3, dropout=0.1, **FORM)
    form = {"batch_size": 4, "micro_batch_size": 2, "learning_rate": 0.01, "warmup_steps": 0, "seed": 0}
    form |= {"precision": "float32", "adapter": "lora"} | changes
    config = config_of_passes(items=16, epochs=2, **form)
    rows = list(range(32))
    examples = {"train_examples": rows, "validation_examples": rows[:4]}
    return TrainingJob(model=model, tokenizer=tokenizer, **examples, collate=batch_of, config=config)


@torch.no_grad()
def logits(model: torch.nn.Module) -> Tensor:
    batch = batch_of([0, 1, 2, 3])
    return model.eval()(**{name: values for name, values in batch.items() if name != "labels"}).logits


def no_log(record: dict) -> None:
    """Show nothing."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingJob, Path]:
    made, folder = job(), tmp_path_factory.mktemp("adapter")
    fine_tune(made, folder=folder, on_log=no_log)
    return made, folder


@pytest.fixture
def model_folder(trained: tuple[TrainingJob, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained[1] / "model", tmp_path / "model"))


def test_it_begins_as_the_model_was_and_only_it_and_the_head_get_gradients():
    made = job()
    before, names = logits(made.model), set(made.model.state_dict())
    attach(made.model, made.tokenizer, "lora", seed=0)
    wrapped = attached(made.model)
    attach(made.model, made.tokenizer, "lora", seed=0)
    assert attached(made.model) is wrapped, "once"
    torch.testing.assert_close(logits(made.model), before)
    for name, weight in made.model.named_parameters():
        if ".lora_B." in name:  # at 0 they hide A
            torch.nn.init.normal_(weight, std=0.02)
    made.model(**batch_of([0, 1, 2, 3])).loss.backward()
    given = {name for name, one in made.model.named_parameters() if one.grad is not None and one.grad.any()}
    may = {name for name, one in made.model.named_parameters() if one.requires_grad}
    assert all(any(part in name for part in LEARNED.split("|")) for name in may)
    # the last layer reads by its global projections alone
    assert {name for name in may - given if "layer.2.attention.self" not in name} == set()
    assert all(one.grad is None for name, one in made.model.named_parameters() if name not in may)
    merge(made.model)
    assert set(made.model.state_dict()) == names
    assert all(weight.requires_grad for weight in made.model.parameters())


def test_the_trained_model_is_what_its_folder_opens_as(trained: tuple[TrainingJob, Path]):
    made, folder = trained
    new = job().model
    assert logits(made.model).sub(logits(new)).abs().max() > 0.01, "it has learned"
    assert attached(made.model) is None
    files = {file.name for file in (folder / "model").iterdir()}
    assert files == {
        ADAPTER_CONFIG,
        ADAPTER_WEIGHTS,
        "config.json",
        *("tokenizer.json", "tokenizer_config.json"),
    }
    assert fault_of_folder(folder / "model") is None
    assert is_model(folder / "model")
    opened, tokenizer = load_pair_scorer(folder / "model", **FORM)
    assert type(opened) is type(made.model)
    assert tokenizer.convert_tokens_to_ids("<m>") == 1024
    torch.testing.assert_close(logits(opened), logits(made.model), rtol=1e-5, atol=1e-5)
    size = sum(file.stat().st_size for file in (folder / "model").glob("*.safetensors"))
    assert size < 4 * sum(weight.numel() for weight in opened.parameters()), "smaller than the model"


def test_another_task_begins_with_its_encoder(trained: tuple[TrainingJob, Path]):
    made, folder = trained
    encoder, _ = load_encoder(folder / "model", **FORM)
    weights = made.model.longformer.state_dict()
    assert all(torch.allclose(one, weights[name], atol=1e-6) for name, one in encoder.state_dict().items())
    onward = job(str(folder / "model"))
    attach(onward.model, onward.tokenizer, "lora", seed=0)  # an adapter on an adapter
    assert attached(onward.model).peft_config["default"].base_model_name_or_path == str(folder / "model")


def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_been(trained, tmp_path: Path):
    made, stopped = job(), False

    def stop(record: dict) -> None:
        nonlocal stopped
        if record["step"] == 3 and not stopped:
            stopped = True
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        fine_tune(made, folder=tmp_path, on_log=stop)
    assert not (tmp_path / "model").exists()
    fine_tune(job(), folder=tmp_path, on_log=no_log)
    one, other = (load_file(folder / "model" / ADAPTER_WEIGHTS) for folder in (tmp_path, trained[1]))
    assert one.keys() == other.keys()
    assert all(one[name].equal(other[name]) for name in one)


def test_one_reading_has_one_and_plain_peft_opens_it(tmp_path: Path):
    model, tokenizer = load_pair_scorer(BASE, scorer="one-reading", **FORM)
    attach(model, tokenizer, "lora", seed=0)
    for weight in (one for one in model.parameters() if one.requires_grad):
        torch.nn.init.normal_(weight, std=0.05)
    batch = {name: values for name, values in batch_of([0, 1]).items() if name != "labels"}
    pairs = torch.tensor([[False, True], [False, False]]).expand(2, 2, 2)
    with torch.no_grad():
        before = model.eval()(**batch, pair_mask=pairs).logits
        write_model(model, tokenizer, tmp_path)
        opened, _ = load_pair_scorer(tmp_path, scorer="one-reading", **FORM)
        torch.testing.assert_close(opened(**batch, pair_mask=pairs).logits, before, rtol=1e-4, atol=1e-4)
        base, _ = load_pair_scorer(BASE, **FORM)
        theirs = PeftModel.from_pretrained(base, str(tmp_path)).merge_and_unload()
    weights = opened.state_dict()
    assert all(torch.allclose(one, weights[name], atol=1e-5) for name, one in theirs.state_dict().items())


def test_a_tagger_has_one_too(tmp_path: Path):
    head = TaggerHead(tags=["O", "B-A", "I-A"], context=False, sequence_encoder="none")
    model, tokenizer = load_dynamic_tagger(BASE, head=head, **FORM)
    attach(model, tokenizer, "lora", seed=0)
    for weight in (one for one in model.parameters() if one.requires_grad):
        torch.nn.init.normal_(weight, std=0.05)
    write_model(model, tokenizer, tmp_path)
    merge(model)
    opened, _ = load_dynamic_tagger(tmp_path, **FORM)
    assert opened.config.tagger["tags"] == ["O", "B-A", "I-A"]
    assert all(
        torch.allclose(one, other, atol=1e-6)
        for one, other in zip(opened.parameters(), model.parameters(), strict=True)
    )


def other_base(folder: Path) -> None:
    values = json.loads((folder / ADAPTER_CONFIG).read_text())
    values["base_model_name_or_path"] = "storyworld/rand-cdlm"
    (folder / ADAPTER_CONFIG).write_text(json.dumps(values))


def no_base(folder: Path) -> None:
    values = json.loads((folder / ADAPTER_CONFIG).read_text())
    values["base_model_name_or_path"] = str(folder / "gone")
    (folder / ADAPTER_CONFIG).write_text(json.dumps(values))


def a_part(folder: Path) -> None:
    with safe_open(folder / ADAPTER_WEIGHTS, framework="pt") as opened:
        metadata = opened.metadata()
    weights = load_file(folder / ADAPTER_WEIGHTS)
    weights.popitem()
    save_file(weights, folder / ADAPTER_WEIGHTS, metadata=metadata)


def cut(folder: Path) -> None:
    (folder / ADAPTER_WEIGHTS).write_bytes((folder / ADAPTER_WEIGHTS).read_bytes()[:-9])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (other_base, "made on storyworld/rand-cdlm, which has changed since; train it again"),
        (no_base, "was made on .*gone, which cannot be opened: .*neither a folder"),
        (a_part, "adapter_model.safetensors does not fit"),
        (cut, "its safetensors cannot be read"),
    ],
)
def test_what_cannot_be_opened_is_one_line(damage: Callable[[Path], None], message: str, model_folder: Path):
    damage(model_folder)
    with pytest.raises(CheckpointError, match=message) as fault:
        load_pair_scorer(model_folder, **FORM)
    assert "\n" not in str(fault.value)


def test_what_cannot_have_one_is_one_line():
    model, tokenizer = load_pair_scorer("tiny", **FORM)
    with pytest.raises(ParameterError, match="its base would be drawn from a seed"):
        attach(model, tokenizer, "lora", seed=0)
