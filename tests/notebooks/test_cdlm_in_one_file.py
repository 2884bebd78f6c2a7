"""CDLM in one file: its loss and gradients are the library's, it needs no other package, it runs."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.packed import replace_self_attention

FILE = Path(__file__).resolve().parents[2] / "notebooks" / "cdlm_in_one_file.py"
SETTINGS = {"longest": 80, "window": 8}


@pytest.fixture(scope="module")
def one_file() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cdlm_in_one_file", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short_and_needs_torch_and_transformers_alone() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 350
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert imported - sys.stdlib_module_names == {"torch", "transformers", "tokenizers"}


@pytest.mark.parametrize("hidden_are_global", [True, False], ids=["CDLM", "Local CDLM"])
def test_its_loss_and_gradients_are_the_librarys(one_file: ModuleType, hidden_are_global: bool) -> None:
    events = one_file.invented_events(4, seed=1)
    tokenizer = one_file.word_tokenizer([text for event in events for text in event], most=200)
    torch.manual_seed(0)
    size = tokenizer.get_vocab_size()
    plain = one_file.small_longformer(size, **SETTINGS)
    for weight in plain.parameters():  # global projections differ from the local ones
        weight.data += 0.05 * torch.randn(weight.shape)
    ours = CrossDocumentLM(plain.config)
    ours.load_state_dict(plain.state_dict())
    replace_self_attention(ours)
    theirs = one_file.with_masks(plain).double()
    generator, hidden = torch.Generator().manual_seed(0), []
    for event in events:
        ids = one_file.pack([one.ids for one in tokenizer.encode_batch(event)], longest=80)
        hidden.append(one_file.hide(ids, vocabulary=size, generator=generator))
    batch = one_file.batch_of(hidden, hidden_are_global=hidden_are_global)
    assert (batch["labels"] != one_file.NOT_HIDDEN).sum() > 20
    losses = one_file.loss_of(theirs, batch), ours.double()(**batch).loss
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-6), "its logits are rounded to float32"
    for loss in losses:
        loss.backward()
    # where each gradient is found: the module names of one layer differ by nothing
    gradients = [{name: one.grad for name, one in model.named_parameters()} for model in (theirs, ours)]
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        other = gradients[1][name]
        if gradient is None or other is None:  # projections that no token uses
            assert not any(one is not None and one.any() for one in (gradient, other)), name
            continue
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-6, msg=name)


def test_a_sequence_and_its_hidden_words_are_the_papers(one_file: ModuleType) -> None:
    packed = one_file.pack([[10, 11, 12], [13]], longest=9)
    assert packed.tolist() == [1, 5, 10, 6, 5, 13, 6, 2], "an equal share: one token each"
    ids = torch.full((100_000,), 20)
    read, labels = one_file.hide(ids, vocabulary=1000, generator=torch.Generator().manual_seed(0))
    hidden = labels != one_file.NOT_HIDDEN
    assert hidden.float().mean().item() == pytest.approx(0.15, abs=0.01)
    shares = [(read[hidden] == one).float().mean().item() for one in (one_file.MASK, 20)]
    assert shares == pytest.approx([0.8, 0.1], abs=0.01)
    assert (read[~hidden] == 20).all()


def test_it_trains_on_a_folder_of_folders_of_texts(one_file: ModuleType, tmp_path: Path) -> None:
    for number, event in enumerate(one_file.invented_events(12, seed=3)):
        (tmp_path / f"event{number}").mkdir()
        for report, text in enumerate(event):
            (tmp_path / f"event{number}" / f"{report}.txt").write_text(text, encoding="utf-8")
    small = ["--steps", "2", "--base", "1", "--longest", "64"]
    command = [sys.executable, str(FILE), str(tmp_path), *small]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"perplexity .*\n  Local CDLM +[\d.]+\n  CDLM +[\d.]+\n$", said)
    with pytest.raises(SystemExit, match="1 folders with at least two"):
        one_file.read_events(_only(tmp_path / "few"))


def _only(folder: Path) -> Path:
    (folder / "event").mkdir(parents=True)
    for name in "ab":
        (folder / "event" / f"{name}.txt").write_text("text", encoding="utf-8")
    return folder
