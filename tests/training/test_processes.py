"""What `parallel` may say, and what several processes are started with. A sharded model computes, saves and
loads what it would whole; here in a group of one process (test_trainer_processes.py has two)."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist
from tiny_run import tiny_config
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import LongformerConfig

from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training import processes
from cdlm_lab.training.processes import Processes, is_sharded, shard, share_optimizer

WRITES_AND_FAILS = """
import os, sys, time
from pathlib import Path
from cdlm_lab.training.processes import end_with_parent, keep_fault
end_with_parent()
folder, rank = Path(sys.argv[1]), os.environ["RANK"]
(folder / f"pid-{rank}").write_text(str(os.getpid()))
if sys.argv[2] == "fail" and rank == "1":
    keep_fault(folder, ValueError("the loss is nan"))
    sys.exit(1)
time.sleep(float(sys.argv[3]))
"""

LISTENS = """
import json, os, sys
from pathlib import Path
import psutil, torch
import torch.distributed as dist
from cdlm_lab.training.processes import end_with_parent, join_others
end_with_parent()
join_others()
total = torch.ones(3)
dist.all_reduce(total)
me = psutil.Process()
listening = [
    one.laddr.ip
    for process in (me, me.parent())  # the parent is torchrun
    for one in process.net_connections("inet")
    if one.status == psutil.CONN_LISTEN
]
threads = [os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]]
Path(sys.argv[1], f"heard-{os.environ['RANK']}").write_text(json.dumps([total.tolist(), listening, threads]))
dist.barrier()
"""


@pytest.fixture
def run_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Runs one of the two modules above in two processes."""
    (tmp_path / "busy_module.py").write_text(WRITES_AND_FAILS)
    (tmp_path / "listening_module.py").write_text(LISTENS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]))
    return partial(processes.run_processes, Processes(here=2), folder=tmp_path)


def test_what_parallel_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(batch_size=32, micro_batch_size=2)
    assert Processes.of("", config=config) == Processes()
    assert Processes.of(" ddp 4 ", config=config) == Processes(here=4)
    assert Processes.of("fsdp 2", config=config) == Processes(sharded=True, here=2)
    several = Processes.of("fsdp 8 on 2 machines at node-0.local:29500", config=config)
    assert several == Processes(sharded=True, here=8, machines=2, meeting="node-0.local:29500")
    assert several.total == 16
    assert several.in_words == "16 processes on 2 machines, which share out the weights (FSDP)"
    machines = ("ddp 2 on 1 machines at a:1", "ddp 2 on 2 machines")
    for wrong in (4, None, "4", "ddp", "ddp 0", "ddp x", "dp 2", *machines):
        with pytest.raises(ParameterError, match=r"parallel is .*; write") as raised:
            Processes.of(wrong, config=config)
        assert "\n" not in str(raised.value)
    with pytest.raises(ParameterError, match=r"batch_size \(32\) must be a multiple of .* x 3 processes"):
        Processes.of("ddp 3", config=config)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Processes.of("ddp 2", config=config).here == 2
    assert Processes.of("ddp 4").here == 4, "as of a run of another machine"
    with pytest.raises(ParameterError, match="parallel is 'ddp 4', but this machine has 2 GPUs"):
        Processes.of("ddp 4", config=config)


def test_the_command_names_where_machines_or_processes_meet() -> None:
    command = Processes(here=8, machines=2, meeting="head:29500").command("a.module", ["runs/x"])
    assert command[-3:] == ["-m", "a.module", "runs/x"]
    assert "--nnodes 2 --rdzv-backend c10d --rdzv-endpoint head:29500 --nproc-per-node 8" in " ".join(command)
    shown = " ".join(Processes(here=2).command("a.module", [], file=Path("/x/meeting")))
    assert "store_type=file --rdzv-endpoint /x/meeting --local-addr 127.0.0.1 --nproc-per-node 2" in shown


@pytest.mark.slow
def test_on_one_machine_nobody_else_can_reach_them_and_they_share_its_threads(
    run_two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "4")  # as a grid sets them for a run of four cores
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    run_two(module="listening_module", arguments=[str(tmp_path)], look=lambda: None)
    for rank in "01":
        total, listening, threads = json.loads((tmp_path / f"heard-{rank}").read_text())
        assert threads == ["2", "2"]
        assert total == [2.0] * 3
        assert listening, "they speak over sockets, so some are seen if this test sees any"
        assert set(listening) <= {"127.0.0.1", "::1"}


@pytest.mark.slow
def test_the_fault_of_one_is_reported_and_none_is_left(run_two, tmp_path: Path) -> None:
    looks: list[int] = []
    run = partial(run_two, module="busy_module", look=lambda: looks.append(1))
    message = r"2 processes: ValueError: the loss is nan \(all their output: "
    with pytest.raises(RuntimeError, match=message) as shown:
        run(arguments=[str(tmp_path), "fail", "600"])
    assert "\n" not in str(shown.value)
    assert looks
    assert not [rank for rank in "01" if psutil.pid_exists(int((tmp_path / f"pid-{rank}").read_text()))]
    assert not run(arguments=[str(tmp_path), "", "0"]), "not stopped"


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(run_two, tmp_path: Path) -> None:
    starts = (
        "import sys; from pathlib import Path; from cdlm_lab.training.processes import *; "
        "run_processes(Processes(here=2), module='busy_module', arguments=[sys.argv[1], '', '600'], "
        "folder=Path(sys.argv[1]), look=lambda: None)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starts, str(tmp_path)])
    files = [tmp_path / "pid-0", tmp_path / "pid-1"]
    _until(lambda: all(file.is_file() and file.read_text() for file in files))
    family = [psutil.Process(int(file.read_text())) for file in files]
    launcher = family[0].parent()
    parent.kill()
    parent.wait()
    _until(lambda: not any(one.is_running() for one in [*family, launcher]))


def _until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def model() -> CrossDocumentLM:
    """Its embeddings are tied to its head."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "attention_window": [4, 4], "max_position_embeddings": 18}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return CrossDocumentLM(LongformerConfig(**sizes, **dropout, pad_token_id=1)).train()


def batch(*, global_tokens: bool) -> dict[str, Tensor]:
    ids = torch.arange(2, 18).reshape(2, 8)
    labels = torch.where(ids % 3 == 0, ids, -100)
    marks = (labels != -100).long() if global_tokens else torch.zeros_like(ids)
    masks = {"attention_mask": torch.ones_like(ids), "global_attention_mask": marks}
    return {"input_ids": ids, "labels": labels} | masks


def updated(model: nn.Module, optimizer: torch.optim.Optimizer, *, global_tokens: bool) -> float:
    optimizer.zero_grad()
    loss = model(**batch(global_tokens=global_tokens))["loss"]
    loss.backward()
    optimizer.step()
    return loss.item()


def assert_equal(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=0, atol=0, msg=name)


def test_the_layers_are_the_largest_list_of_modules(model: CrossDocumentLM) -> None:
    assert processes.layers_of(model) == list(model.longformer.encoder.layer)
    assert processes.layers_of(nn.Linear(2, 2)) == []


def test_updates_and_states_are_those_of_the_whole_model(model: CrossDocumentLM, group: None) -> None:
    """The first update has no global token, so that global projections must stay as they are."""
    whole = copy.deepcopy(model)
    shard(model)
    assert is_sharded(model)
    assert not is_sharded(whole)
    assert all(isinstance(weight, DTensor) for weight in model.parameters())
    own, theirs = (torch.optim.AdamW(one.parameters(), weight_decay=0.1) for one in (model, whole))
    share_optimizer(own, model)
    for marked in (False, True, True, False):
        assert updated(model, own, global_tokens=marked) == updated(whole, theirs, global_tokens=marked)
    (weights, actual), expected = processes.full_states(model, own), theirs.state_dict()
    assert_equal(weights, whole.state_dict())
    assert actual["param_groups"] == expected["param_groups"]
    for number, moments in expected["state"].items():
        assert_equal(actual["state"][number], moments)
    assert processes.full_states(whole, theirs) == (None, None)


def test_a_state_of_a_whole_model_is_loaded_into_a_sharded_one(model: CrossDocumentLM, group: None) -> None:
    whole = copy.deepcopy(model)
    theirs = torch.optim.AdamW(whole.parameters(), weight_decay=0.1)
    updated(whole, theirs, global_tokens=True)
    shard(model)
    own = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    share_optimizer(own, model)
    model.load_state_dict(whole.state_dict())
    own.load_state_dict(copy.deepcopy(theirs.state_dict()))  # it would share the tensors
    assert updated(model, own, global_tokens=True) == updated(whole, theirs, global_tokens=True)
    assert_equal(processes.full_states(model, own)[0], whole.state_dict())


def test_in_evaluation_outputs_are_left_as_they_are(model: CrossDocumentLM, group: None) -> None:
    expected = copy.deepcopy(model).eval()(**batch(global_tokens=True))["loss"]
    shard(model)
    with torch.no_grad():
        assert model.eval()(**batch(global_tokens=True))["loss"] == expected
