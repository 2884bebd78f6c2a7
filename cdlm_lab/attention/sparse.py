"""Exact local + global attention in linear memory: the compact order, one fused kernel a block, merged by
log-sum-exp.

A local query's softmax runs over two sets of keys: the locals of its window and the row's globals. Each set
goes through PyTorch's fused CPU kernel on its own, which returns the output o and the log-sum-exp l of its
scores, and

    l = log(exp(l_window) + exp(l_global)),    o = exp(l_window - l) o_window + exp(l_global - l) o_global

is the joint softmax exactly. For the backward, the kernel's twin recomputes the probabilities of a set as
exp(score - l) and subtracts rowsum(do * o); handed the MERGED l and o it returns that set's exact share of
the gradient. Autograd cannot differentiate through the kernel's log-sum-exp, hence the
torch.autograd.Function.

Nothing of size length x length is ever held: for the backward only queries, keys, values, outputs and one
number a query. Dropout inside the attention is not supported by the kernel: see blockwise.py.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from cdlm_lab.attention.plan import Plan, Row


def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_global: Tensor,
    key_global: Tensor,
    value_global: Tensor,
    *,
    plan: Plan,
) -> tuple[Tensor, Tensor]:
    """Attention over packed tokens on the CPU; returns the outputs of the local and of the global tokens.

    `query`: (n_local, head, dim), in `plan.local_order`; `key`, `value`, `key_global`, `value_global`:
    (n_tokens, head, dim) in `plan.order`; `query_global`: (n_global, head, dim) in `plan.global_order`; none
    scaled. Returns (n_local, head, dim) and (n_global, head, dim). Float16, bfloat16, float32 and float64.
    """
    local_output = attend_from_locals(query, key, value, plan=plan)
    global_output = attend_from_globals(query_global, key_global, value_global, plan=plan)
    return local_output, global_output


def _of_locals(row: Row) -> slice:
    return slice(row.local_start, row.local_start + row.n_local)


def _statistics_dtype(query: Tensor) -> torch.dtype:
    return torch.promote_types(query.dtype, torch.float32)


def _heads_first(packed: Tensor) -> Tensor:
    """(token, head, dim) -> (1, head, token, dim): the kernel's layout, as a view."""
    return packed.transpose(0, 1).unsqueeze(0)


def _kernel(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """One fused call on packed slices. Returns output (1, head, query, dim) and log-sum-exp (1, head,
    query)."""
    output, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        _heads_first(query),
        _heads_first(key),
        _heads_first(value),
        0.0,
        False,
        attn_mask=None if bias is None else bias.to(query.dtype)[None, None],
        scale=1 / math.sqrt(query.shape[-1]),
    )
    return output, log_sum_exp


def _forward_row(query: Tensor, key: Tensor, value: Tensor, row: Row) -> tuple[Tensor, Tensor]:
    """Local queries of one row: output (head, n_local, dim) and log-sum-exp (head, n_local)."""
    row_query = query[_of_locals(row)]
    n_local, heads, dim = row_query.shape
    output = query.new_empty(heads, n_local, dim)
    log_sum_exp = query.new_empty(heads, n_local, dtype=_statistics_dtype(query))
    for block in row.blocks:
        queries = slice(block.query_start, block.query_end)
        keys = row.locals_(block.key_start, block.key_end)
        block_output, block_lse = _kernel(row_query[queries], key[keys], value[keys], block.bias)
        output[:, queries] = block_output[0]
        log_sum_exp[:, queries] = block_lse[0]
    if row.n_global:
        to_globals, globals_lse = _kernel(row_query, key[row.globals_], value[row.globals_], None)
        merged_lse = torch.logaddexp(log_sum_exp, globals_lse[0])
        output *= (log_sum_exp - merged_lse).exp()[..., None].to(output.dtype)
        output += to_globals[0] * (globals_lse[0] - merged_lse).exp()[..., None].to(output.dtype)
        log_sum_exp = merged_lse
    return output, log_sum_exp


def _backward_row(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    log_sum_exp: Tensor,
    row: Row,
    gradients: tuple[Tensor, ...],
) -> None:
    """Add one row's gradients into `gradients` (of query, key, value, packed)."""
    grad_query, grad_key, grad_value = gradients
    of_row = _of_locals(row)
    parts = [(0, row.n_local, row.globals_, None)] if row.n_global else []
    for block in row.blocks:
        keys = row.locals_(block.key_start, block.key_end)
        parts.append((block.query_start, block.query_end, keys, block.bias))
    for start, end, keys, bias in parts:
        queries = slice(of_row.start + start, of_row.start + end)
        part = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            _heads_first(grad_output[queries]),
            _heads_first(query[queries]),
            _heads_first(key[keys]),
            _heads_first(value[keys]),
            _heads_first(output[queries]),
            # the kernel reads this as contiguous memory whatever its strides say
            log_sum_exp[:, queries].contiguous()[None],
            0.0,
            False,
            attn_mask=None if bias is None else bias.to(query.dtype)[None, None],
            scale=1 / math.sqrt(query.shape[-1]),
        )
        grad_query[queries] += part[0][0].transpose(0, 1)
        grad_key[keys] += part[1][0].transpose(0, 1)
        grad_value[keys] += part[2][0].transpose(0, 1)


class _LocalQueries(torch.autograd.Function):
    """Outputs of all local queries: (n_local, head, dim)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: Plan) -> Tensor:
        output = torch.empty_like(query)
        log_sum_exp = query.new_empty(query.shape[1], query.shape[0], dtype=_statistics_dtype(query))
        for row in plan.rows:
            if row.n_local:
                row_output, row_lse = _forward_row(query, key, value, row)
                output[_of_locals(row)] = row_output.transpose(0, 1)
                log_sum_exp[:, _of_locals(row)] = row_lse
        ctx.save_for_backward(query, key, value, output, log_sum_exp)
        ctx.plan = plan
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        *packed, log_sum_exp = ctx.saved_tensors
        given = grad_output.dtype
        # Half precision goes through in float32: many blocks add into one gradient, and the kernel's twin for
        # bfloat16 takes half as long again as that for float32.
        query, key, value, output = (tensor.to(log_sum_exp.dtype) for tensor in packed)
        grad_output = grad_output.to(log_sum_exp.dtype)
        gradients = tuple(map(torch.zeros_like, (query, key, value)))
        for row in ctx.plan.rows:
            if row.n_local:
                _backward_row(grad_output, query, key, value, output, log_sum_exp, row, gradients)
        return *(gradient.to(given) for gradient in gradients), None


def attend_from_locals(query: Tensor, key: Tensor, value: Tensor, *, plan: Plan) -> Tensor:
    """Local queries over their windows and the globals of their row: (n_local, head, dim)."""
    return _LocalQueries.apply(query, key, value, plan)


def attend_from_globals(query: Tensor, key: Tensor, value: Tensor, *, plan: Plan) -> Tensor:
    """Global queries over every token of their row: (n_global, head, dim)."""
    outputs = []
    for row in plan.rows:
        if row.n_global:
            of_row = slice(row.global_start, row.global_start + row.n_global)
            attended = torch.nn.functional.scaled_dot_product_attention(
                _heads_first(query[of_row]), _heads_first(key[row.tokens]), _heads_first(value[row.tokens])
            )
            outputs.append(attended[0].transpose(0, 1))
    return torch.cat(outputs) if outputs else query
