"""Tells a recorder what Megatron-LM computes and sends where PyTorch dispatches nothing: kernels of Transformer
Engine and Apex that have a stand-in, functions that are compiled, and collectives that are answered."""

import functools
import sys

import torch
import torch.distributed as dist
from record_operators import bytes_of, precision_of, tensors_in

GATHERS = {"all_gather_into_tensor": "all-gather", "_all_gather_base": "all-gather"}
SCATTERS = {"reduce_scatter_tensor": "reduce-scatter", "_reduce_scatter_base": "reduce-scatter"}
OTHERS = {"all_reduce": "all-reduce", "all_to_all_single": "all-to-all", "broadcast": "broadcast"}


def unique_bytes(tensors):
    return sum(bytes_of(tensor) for tensor in {id(tensor): tensor for tensor in tensors}.values())


def moved(name, arguments, result):
    moves = unique_bytes(tensors_in(arguments) + tensors_in(result))
    return [{"name": name, "precision": "bf16", "moved_bytes": moves}] if moves else []


def gemm(name, a, transposed_a, b, transposed_b, out, accumulates):
    """Column-major: rows are b's, columns a's."""
    columns = a.shape[0] if transposed_a else a.shape[-1]
    depth = a.numel() // columns
    sums = accumulates and out.dtype == torch.float32  # it reads them too
    return {"name": name, "precision": precision_of(a),
            "product": {"m": b.numel() // depth, "n": columns, "k": depth, "groups": 1,
                        "output_bytes": 8 if sums else out.element_size(), "columns_of_inputs": bool(transposed_b)}}


def generic_gemm(arguments, values, result):
    a, transposed_a, b, transposed_b, out = arguments[:5]
    return [gemm("gemm", a, transposed_a, b, transposed_b, result[0] if out is None else out, out is not None)]


def grouped_gemm(arguments, values, result):
    a, transposed_a, b, transposed_b, out = arguments[:5]
    each = [gemm("grouped gemm", x, transposed_a, y, transposed_b, out[min(i, len(out) - 1)], False)
            for i, (x, y) in enumerate(zip(a, b))]
    each[0]["product"]["groups"] = len(each)
    return each[:1]


def attention(backward):
    def shape_of(arguments, values, result):
        lengths, _, query, key, value = [a for a in arguments if isinstance(a, torch.Tensor)][:5]
        batch = lengths.shape[0] - 1

        def positions(x):
            return x.numel() // (x.shape[-1] * x.shape[-2] * batch)
        return [{"name": "fused attention", "precision": precision_of(query),
                 "attention": {"batch": batch, "queries": positions(query), "keys": positions(key),
                               "heads": query.shape[-2], "kv_heads": key.shape[-2], "qk_width": query.shape[-1],
                               "v_width": value.shape[-1], "causal": True, "backward": backward, "newest": True}}]
    return shape_of


def update(name):
    """Of lists of gradients, parameters, moments ...: all but the gradients are written too."""
    def shape_of(arguments, values, result):
        lists = next((a for a in arguments if isinstance(a, (list, tuple)) and a and isinstance(a[0], (list, tuple))),
                     [])
        moves = sum((1 if i == 0 and "adam" in name else 2) * unique_bytes(tensors) for i, tensors in enumerate(lists))
        if "norm" in name:
            moves = sum(unique_bytes(tensors) for tensors in lists)
        return [{"name": name, "precision": "fp32", "moved_bytes": moves}] if moves else []
    return shape_of


SHAPES = {"generic_gemm": generic_gemm, "te_general_grouped_gemm": grouped_gemm,
          "fused_attn_fwd": attention(False), "fused_attn_bwd": attention(True)}


def told(meter, function, shape_of):
    """The same function; what it works on is told."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        if meter.recorder and not meter.paused:
            for operator in shape_of(args, kwargs, result):
                meter.recorder.works(operator)
        return result
    return call


def moving(name):
    return lambda arguments, values, result: moved(name, arguments, result)


def listen_to_kernels(meter, engine):
    """Those of Transformer Engine's extension; what only asks, or makes no tensor, moves nothing."""
    for name, function in list(vars(engine).items()):
        if not callable(function) or isinstance(function, type) or name.startswith(("_", "get_", "make", "like",
                                                                                   "type_of", "statistic")):
            continue
        shape_of = SHAPES.get(name)
        if not shape_of:
            shape_of = update(name) if name.startswith("multi_tensor") else moving(name)
        setattr(engine, name, told(meter, function, shape_of))


def listen_to_apex(meter):
    apex = sys.modules["fused_weight_gradient_mlp_cuda"]

    def accumulated(args, kwargs, result):
        inputs, gradient, sums = args[:3]
        return [gemm("wgrad", inputs, False, gradient, True, sums, True)]
    for name in ("wgrad_gemm_accum_fp32", "wgrad_gemm_accum_fp16"):
        setattr(apex, name, told(meter, getattr(apex, name), accumulated))


def listen_to_collectives(meter):
    """What Megatron asks to be sent, and whether it asks for the end later."""
    def listening(name, what, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if meter.recorder:
                tensors = tensors_in([*args, *kwargs.values()])
                group = kwargs.get("group") or next((a for a in args if isinstance(a, dist.ProcessGroup)), None)
                ranks = tuple(dist.get_process_group_ranks(group or dist.group.WORLD))
                if tensors and len(ranks) > 1:
                    waits = not kwargs.get("async_op", False)
                    meter.recorder.sends(what, max(map(bytes_of, tensors)), ranks, tensors, waits)
            return function(*args, **kwargs)
        return call

    for name, what in {**GATHERS, **SCATTERS, **OTHERS}.items():
        found = listening(name, what, getattr(dist, name))
        for module in (dist, dist.distributed_c10d):
            setattr(module, name, found)
