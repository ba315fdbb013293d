#!/usr/bin/env python3
"""Says what PyTorch's compiler keeps for the backward pass of the functions that Megatron-Core's linear and gated
attention compile: Dynamo traces Megatron's own code on fake tensors, and the partitioner chooses as it does for a GPU.
compiled_functions.py has what it found. Exit codes: 0 as there, 1
otherwise, 3 a package is missing.

    validator/pytorch/kept_by_compiler.py     # with Megatron-LM and flash-linear-attention
"""

import logging
import sys
import types

from corpus_row import has

TOKENS, KEY_HEADS, VALUE_HEADS, WIDTH = 1024, 4, 8, 128


def listen(kept):
    """A backend of Dynamo: AOTAutograd with Inductor's decompositions and partitioner, and graphs as they are."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    def partition(joint, inputs, **options):
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **options)
        results = options["num_fwd_outputs"]
        saved = next(node for node in forward.graph.nodes if node.op == "output").args[0][results:]
        kept.append([node for node in saved if getattr(node, "op", None)])
        return forward, backward
    return aot_autograd(fw_compiler=lambda graph, _: graph.forward, bw_compiler=lambda graph, _: graph.forward,
                        partition_fn=partition, decompositions=select_decomp_table())


def projected(torch):
    """What one projection gave, cut into queries, keys and values, gate, writing rate and decay."""
    keys, values = KEY_HEADS * WIDTH, VALUE_HEADS * WIDTH
    widths = (2 * keys + values, values, VALUE_HEADS, VALUE_HEADS)
    whole = torch.empty(1, TOKENS, sum(widths), dtype=torch.bfloat16, requires_grad=True)
    return torch.split(whole, widths, -1)


def vector(torch, *shape):
    return torch.empty(*shape, dtype=torch.bfloat16, requires_grad=True)


def functions(torch):
    """Each with what it is called with: Megatron's own, but for what Dynamo cannot look into."""
    import torch.nn.functional as F
    from megatron.core.ssm.gated_delta_net.gdn import GatedDeltaNet
    from megatron.core.transformer.attention import Attention
    module = types.SimpleNamespace(
        qk_dim_local_tp=KEY_HEADS * WIDTH, v_dim_local_tp=VALUE_HEADS * WIDTH, key_head_dim=WIDTH, value_head_dim=WIDTH,
        num_value_heads=VALUE_HEADS, num_key_heads=KEY_HEADS, cp_size=1, use_qk_l2norm=True, act_fn=F.silu,
        out_norm=lambda normed: normed)
    module._compute_gates = types.MethodType(GatedDeltaNet._compute_gates, module)
    mixed, gate, beta, alpha = projected(torch)
    convolved = vector(torch, *mixed.shape)
    heads = (1, TOKENS, VALUE_HEADS, WIDTH)
    yield GatedDeltaNet._prepare_input_for_gated_delta_rule, (
        module, convolved, gate.reshape(heads), vector(torch, VALUE_HEADS), vector(torch, VALUE_HEADS), 1, TOKENS, beta,
        alpha)
    yield GatedDeltaNet._apply_gated_norm, (module, vector(torch, TOKENS * VALUE_HEADS, WIDTH),
                                            vector(torch, TOKENS * VALUE_HEADS, WIDTH))
    yield Attention._apply_output_gate, (module, vector(torch, TOKENS, 1, VALUE_HEADS * WIDTH),
                                         vector(torch, TOKENS, 1, VALUE_HEADS, WIDTH))


def shape_of(node):
    return tuple(node.meta["val"].shape)


def answer():
    missing = [name for name in ("torch", "triton", "fla", "megatron.core") if not has(name)]
    if missing:
        print(f"kept_by_compiler: error: {sys.executable} lacks {', '.join(missing)}", file=sys.stderr)
        return 3
    import torch
    import torch.utils._triton as triton
    from compiled_functions import KEPT
    from torch._subclasses.fake_tensor import FakeTensorMode
    logging.disable(logging.WARNING)  # Triton's, which finds no driver to look into its kernels
    triton.has_triton = triton.has_triton_package = lambda *_, **__: True
    same = True
    with FakeTensorMode(allow_non_fake_inputs=True):
        for function, arguments in functions(torch):
            name, kept = function.__name__, []
            plain = getattr(function, "_torchdynamo_orig_callable", function)
            torch.compile(plain, backend=listen(kept))(*arguments)
            tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
            # Dynamo has an order of its own for the inputs, which their shapes tell apart.
            inputs = sorted(shape_of(node) for node in kept[0] if node.op == "placeholder")
            made = [shape_of(node) for node in kept[0] if node.op != "placeholder"]
            print(f"{name}: of its inputs {inputs}, and what it makes {made}; {len(kept)} graph(s)")
            same = same and len(kept) == 1 and inputs == sorted(tuple(tensors[place].shape) for place in KEPT[name])
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(answer())
