"""The device of models: the GPU where there is one."""

import pytest
import torch

from cdlm_lab.models.checkpoint import default_device


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_where_there_is_one(monkeypatch, there: bool, expected: str):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert default_device() == expected
