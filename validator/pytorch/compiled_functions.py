"""Compiled functions as one kernel forward and one backward: between these lives what the compiler keeps."""

import functools

import torch
from megatron_record import moved
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

# Of functions whose results depend on several tensors: the places of those kept, as kept_by_compiler.py finds.
KEPT = {"_prepare_input_for_gated_delta_rule": (2, 3, 5), "_apply_gated_norm": (0, 1), "_apply_output_gate": (0, 1)}


def note(meter, name, arguments, results):
    """Of what a kernel makes, results alone are memory."""
    if meter.paused:
        return
    for result in tree_leaves(results):
        if isinstance(result, torch.Tensor):
            meter.see(result.untyped_storage(), name, result)
    if meter.recorder:
        for operator in moved(name, arguments, results):
            meter.recorder.works(operator)


class Shape:
    """Of a tensor that is not kept."""

    def __init__(self, tensor):
        self.size, self.stride, self.dtype = tensor.size(), tensor.stride(), tensor.dtype

    def make(self):
        return torch.empty_strided(self.size, self.stride, dtype=self.dtype)


class OneKernel(torch.autograd.Function):
    """A function of tensors alone, which gives a list of them."""

    @staticmethod
    def forward(ctx, meter, name, function, places, *tensors):
        ctx.meter, ctx.name, ctx.function = meter, name, function
        meter.held = []
        results = meter.unseen(function)(*tensors)
        ctx.own = meter.held  # what a kernel within saves for itself
        ctx.inputs = [tensor.detach() if i in places else Shape(tensor) for i, tensor in enumerate(tensors)]
        note(meter, name, tensors, results)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        wanted = ctx.needs_input_grad[4:]

        def again():
            inputs = [x.make() if isinstance(x, Shape) else x.detach() for x in ctx.inputs]
            for tensor, needed in zip(inputs, wanted):
                tensor.requires_grad_(needed)
            with torch.enable_grad():
                results = ctx.function(*inputs)
            asked = [tensor for tensor, needed in zip(inputs, wanted) if needed]
            found = iter(torch.autograd.grad(results, asked, gradients, allow_unused=True))
            return [next(found) if needed else None for needed in wanted]

        results = ctx.meter.unseen(again)()
        note(ctx.meter, f"{ctx.name} backward", gradients, results)
        ctx.inputs = ctx.own = None
        return None, None, None, None, *results


def as_one_kernel(meter, function):
    name, places = function.__name__, KEPT[function.__name__]

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, shape = tree_flatten((args, kwargs))
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        shapes = []

        def of_tensors(*tensors):
            filled = list(leaves)
            for i, tensor in zip(at, tensors):
                filled[i] = tensor
            values, named = tree_unflatten(filled, shape)
            results, made = tree_flatten(function(*values, **named))
            shapes[:] = [made]
            return results

        tensors = [leaves[i] for i in at]
        for i in at:
            leaves[i] = None  # else of_tensors would keep them
        results = OneKernel.apply(meter, name, of_tensors, places, *tensors)
        return tree_unflatten(list(results), shapes[0])
    return call


def kept_input(inputs):
    """Hooks of autograd: a compiled function of one tensor keeps that, and makes again what lies between it and the
    result. Of others it depends on the compiler: what is not a result is not counted."""
    tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    own = tensors[0] if len(tensors) == 1 else None

    def pack(saved):
        between = own is not None and saved.untyped_storage()._cdata != own.untyped_storage()._cdata
        return saved, own if between else None

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed[0])


def compile_as_kernels(meter):
    """torch.compile and torch.jit.script."""
    def compiled(function=None, *_, **__):
        if function is None:
            return compiled
        if function.__name__ in KEPT:
            return as_one_kernel(meter, function)
        inside = meter.unseen(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            with kept_input((args, kwargs)):
                results = inside(*args, **kwargs)
            note(meter, function.__name__, (args, kwargs), results)
            return results
        return call

    torch.compile = torch.jit.script = compiled
