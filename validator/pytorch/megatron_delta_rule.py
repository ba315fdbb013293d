"""Megatron's linear attention, whose compiled functions are not of one piece: one calls a kernel of
flash-linear-attention, which keeps what it needs, and one breaks at a norm of Transformer Engine, which it cannot
look into."""

import functools
import types

import torch
from megatron.core.ssm.gated_delta_net import common


def take_apart(meter):
    if not common.HAVE_FLA:
        return
    from fla.modules.l2norm import l2norm_fwd
    norm, gate_output = common.l2norm, common._GDNBase._apply_gated_norm

    def norm_of_heads(x):
        if torch.is_grad_enabled():
            return norm(x)
        kept = meter.seen(l2norm_fwd)(x)
        meter.held.extend(kept)
        return kept[0]

    @functools.wraps(gate_output)
    def norm_and_gate(self, x, gate):
        normed = self.out_norm(x.reshape(-1, x.shape[-1]))
        rest = types.SimpleNamespace(out_norm=lambda y: y, act_fn=self.act_fn)
        return gate_output(rest, normed, gate)

    common.l2norm, common._GDNBase._apply_gated_norm = norm_of_heads, norm_and_gate
