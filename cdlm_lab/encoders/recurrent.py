"""Recurrent layers over padded sequences, as matching and tagging have them above a frozen encoder."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def contextualised(rnn: nn.GRU | nn.LSTM, states: Tensor, mask: Tensor) -> Tensor:
    """Run the GRU or LSTM over each row of `states` (rows, items, size) separately: (rows, items, 2 *
    hidden), 0 at padding. `mask`: (rows, items), True = item, False = padding, which must come last."""
    lengths = mask.sum(dim=1)
    rows = lengths.nonzero().flatten()
    output = states.new_zeros(*mask.shape, 2 * rnn.hidden_size)
    if not len(rows):
        return output
    packed = pack_padded_sequence(states[rows], lengths[rows].cpu(), batch_first=True, enforce_sorted=False)
    read, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True, total_length=mask.shape[1])
    return output.index_copy(0, rows, read.to(output.dtype))
