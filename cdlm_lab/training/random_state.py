"""The state of torch's random generators, of all processes, in one safetensors file without pickle.

Only torch's are kept: nothing in the library draws from the global generators of Python or NumPy.
"""

from __future__ import annotations

from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from torch import Tensor

RANDOM_STATE_FILE = "random_state.safetensors"


def gather_random_state(accelerator: Accelerator) -> dict[str, Tensor]:
    """The states of all processes, "cpu" and, where there is one, "cuda": uint8 (process, bytes). All must
    call it."""
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(accelerator.device)
    gathered = {
        name: accelerator.gather(state[None].to(accelerator.device)) for name, state in states.items()
    }
    return {name: state.cpu().contiguous() for name, state in gathered.items()}


def save_random_state(states: dict[str, Tensor], checkpoint: Path) -> None:
    """Write what `gather_random_state` gave into the folder of a checkpoint."""
    save_file(states, checkpoint / RANDOM_STATE_FILE)


def load_random_state(checkpoint: Path, accelerator: Accelerator) -> bool:
    """Set the generators of this process as they were; False if the checkpoint knows no such process, as when
    it was written by fewer, and nothing was set."""
    states = load_file(checkpoint / RANDOM_STATE_FILE)
    process = accelerator.process_index
    cuda = accelerator.device.type == "cuda"
    if process >= len(states["cpu"]) or (cuda and "cuda" not in states):
        return False
    torch.set_rng_state(states["cpu"][process].clone())
    if cuda:
        torch.cuda.set_rng_state(states["cuda"][process].clone(), accelerator.device)
    return True
