"""Recurrent layers over padded rows."""

import torch
from torch import nn

from cdlm_lab.encoders.recurrent import contextualised


def test_rows_of_a_gru_do_not_see_each_other():
    gru, states = nn.GRU(3, 2, batch_first=True, bidirectional=True), torch.randn(3, 4, 3)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
    actual = contextualised(gru, states, mask)
    torch.testing.assert_close(actual[2, :2], gru(states[2:, :2])[0][0])
    assert not actual[1].any()
    assert not actual[2, 2:].any()
