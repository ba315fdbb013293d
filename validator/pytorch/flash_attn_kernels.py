"""The compiled part of the package flash-attn 2.6, for its Python: what its kernels allocate and give, and
nothing that they compute (csrc/flash_attn/flash_api.cpp; its Triton kernels are answered as others are)."""

import sys
import types

import torch

MODULE = "flash_attn_2_cuda"


def fp32(like, *shape):
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def forward(q, k, v, statistics, asks_probabilities):
    """Heads are wide enough: nothing is padded."""
    out = torch.empty_like(q)
    assert not asks_probabilities, "dropout is not trained with"
    return out, q, k, v, out, statistics, None, torch.empty(2, dtype=torch.int64, device=q.device)


def dense_forward(q, k, v, *rest):
    samples, tokens, heads, _ = q.shape
    return forward(q, k, v, fp32(q, samples, heads, tokens), rest[-2])


def packed_forward(q, k, v, *rest):
    tokens, heads, _ = q.shape
    return forward(q, k, v, fp32(q, heads, tokens), rest[-2])


def gradients(q, k, v, rows, deltas):
    """Of queries in fp32, of keys and values for each head of the queries where these are more."""
    heads, width = q.shape[-2:]
    room = [fp32(q, *rows, heads, -(-width // 32) * 32)]
    if k.shape[-2] != heads:
        room += [k.new_empty((*k.shape[:-2], heads, width)) for _ in (k, v)]
    del room
    return deltas


def dense_backward(_, q, k, v, __, ___, dq, dk, dv, *____):
    samples, tokens, heads, _ = q.shape
    rows = -(-tokens // 128) * 128
    return dq, dk, dv, gradients(q, k, v, (samples, rows), fp32(q, samples, heads, rows))


def packed_backward(_, q, k, v, __, ___, dq, dk, dv, starts, *____):
    tokens, heads, _ = q.shape
    rows = tokens + 128 * (starts.numel() - 1)
    return dq, dk, dv, gradients(q, k, v, (rows,), fp32(q, heads, rows))


def stand_in():
    """Before flash_attn is imported."""
    module = types.ModuleType(MODULE)
    module.fwd, module.bwd = dense_forward, dense_backward
    module.varlen_fwd, module.varlen_bwd = packed_forward, packed_backward
    sys.modules[MODULE] = module
