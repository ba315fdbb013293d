"""What an operator that PyTorch dispatches is to a GPU: a matrix product, core attention, a kernel that moves
bytes, a collective, or nothing. As an entry of `operators` or `calls` of a recorded program."""

import torch
from torch.utils._pytree import tree_leaves

PRECISIONS = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32",
              torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8"}
# They make room, look, or wait, and run nothing.
NOTHING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "resize_",
           "_local_scalar_dense", "set_", "record_stream", "wait_tensor", "is_pinned", "_pin_memory", "_unsafe_view"}
# They read rows of their first argument, as many as they write.
BY_ROWS = {"embedding", "gather", "index", "index_select", "nll_loss_forward"}
WRITES_ALONE = {"copy_", "_foreach_copy_", "fill_", "zero_", "_foreach_zero_", "normal_", "uniform_", "random_"}
COLLECTIVES = {"allgather": "all-gather", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
               "allreduce": "all-reduce", "all_reduce": "all-reduce", "alltoall": "all-to-all",
               "all_to_all": "all-to-all", "broadcast": "broadcast"}


def bytes_of(tensor):
    """Once each, where it repeats by its strides."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().size())


def name_of(function):
    return function._schema.name.split("::")[1]


def bound(function, args, kwargs):
    """Values by the names of the operator's arguments."""
    names = [argument.name for argument in function._schema.arguments]
    return {**dict(zip(names, args)), **kwargs}


def tensors_in(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def is_view(function, result):
    """Its result is another look at what it was given."""
    returns = function._schema.returns
    aliases = returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return aliases or not (tensors_in(result) or function._schema.is_mutable)


def precision_of(tensor):
    return PRECISIONS.get(tensor.dtype, "fp32")


def product(name, first, second, result, m, n, k, groups=1):
    """One of (m x k) times (k x n), in so many groups."""
    transposed = first.dim() > 1 and first.stride(-1) != 1 and first.stride(-2) == 1
    return {"name": name, "precision": precision_of(first),
            "product": {"m": m, "n": n, "k": k, "groups": groups, "output_bytes": result.element_size(),
                        "columns_of_inputs": transposed}}


def grouped_product(name, values, result):
    """Tokens in order of their experts: tokens times weights, or two of tokens, whose product is a weight's."""
    first, second = values["self"], values["mat2"]
    if second.dim() == 3:
        groups, k, n = second.shape
        return product(name, first, second, result, max(1, first.shape[0] // groups), n, k, groups)
    groups, m, n = result.shape
    return product(name, first, second, result, m, n, max(1, first.shape[1] // groups), groups)


def convolution(name, weight, output, samples):
    """As a product of patches; weight [out, in of a group, kernel...]."""
    out, k = weight.shape[0], weight[0].numel()
    return product(name, output, weight, output, samples, out, k)


def products_of(name, function, values, result):
    """The matrix products that it is; none where it is something else."""
    if name in ("mm", "addmm", "_scaled_mm"):
        first = values["mat1"] if name == "addmm" else values["self"]
        second = values["mat2"]
        return [product(name, first, second, tensors_in(result)[0], *first.shape[:1], second.shape[1],
                        first.shape[1])]
    if name in ("bmm", "baddbmm"):
        first, second = (values["batch1"], values["batch2"]) if name == "baddbmm" else (values["self"],
                                                                                      values["mat2"])
        # As rows of one product, as attention that stores its scores is counted.
        return [product(name, first, second, result, first.shape[0] * first.shape[1], second.shape[2],
                        first.shape[2])]
    if name == "_grouped_mm":
        return [grouped_product(name, values, result)]
    depthwise = name.startswith("convolution") and values["groups"] > 1
    if name == "convolution" and not depthwise:
        samples = result.numel() // result.shape[1]
        return [convolution(name, values["weight"], result, samples)]
    if name == "convolution_backward" and not depthwise:
        gradient = values["grad_output"]
        samples = gradient.numel() // gradient.shape[1]
        wanted = sum(values["output_mask"][:2])
        return wanted * [convolution(name, values["weight"], gradient, samples)]
    return []


def attention_of(name, values):
    """Core attention that stores no scores; nothing where it is something else."""
    if "attention" not in name or "query" not in values:
        return None
    query, key, value = values["query"], values["key"], values["value"]
    return {"name": name, "precision": precision_of(query),
            "attention": {"batch": query.shape[0], "queries": query.shape[2], "keys": key.shape[2],
                          "heads": query.shape[1], "kv_heads": key.shape[1], "qk_width": query.shape[3],
                          "v_width": value.shape[3], "causal": bool(values.get("is_causal", False)),
                          "backward": name.endswith("backward"), "newest": "cudnn" in name}}


def moved_bytes(name, function, values, result):
    """What a kernel reads and writes of the device's memory."""
    if name == "all_gather_copy_in":  # into the rank's part of what it gives
        return 2 * sum(bytes_of(tensor) for tensor in values["all_gather_inputs"])
    if name == "index_put_":  # at few places of what may be large
        return sum(map(bytes_of, tensors_in(values["indices"]))) + 2 * bytes_of(values["values"])
    moved = 0
    for position, argument in enumerate(function._schema.arguments):
        given = tensors_in(values.get(argument.name))
        writes = argument.alias_info is not None and argument.alias_info.is_write
        reads = not (writes and (name in WRITES_ALONE or argument.kwarg_only))
        if name in BY_ROWS and position == 0 or name == "nll_loss_backward" and position == 1:
            reads = False
        moved += (reads + writes) * sum(bytes_of(tensor) for tensor in given)
    if not function._schema.is_mutable:
        made = sum(bytes_of(tensor) for tensor in tensors_in(result))
        moved += made * (2 if name in BY_ROWS else 1)
    return moved


def operators_of(function, args, kwargs, result):
    """The kernels that the operator runs, in order."""
    name = name_of(function)
    if name in NOTHING or is_view(function, result) and not function._schema.is_mutable:
        return []
    values = bound(function, args, kwargs)
    attention = attention_of(name, values)
    if attention:
        return [attention]
    products = products_of(name, function, values, result)
    if products:
        return products
    moved = moved_bytes(name, function, values, result)
    precision = next((precision_of(t) for t in tensors_in(result)), "bf16")
    return [{"name": name, "precision": precision, "moved_bytes": moved}] if moved else []


def ranks_of(values):
    """Of the group that a collective names."""
    from torch.distributed import ProcessGroup, get_process_group_ranks
    from torch.distributed.distributed_c10d import _resolve_process_group
    group = values.get("process_group", values.get("group_name"))
    group = _resolve_process_group(group) if isinstance(group, str) else ProcessGroup.unbox(group)
    return tuple(get_process_group_ranks(group))


def call_of(function, args, kwargs, result):
    """What it sends: the collective, bytes of its whole buffer, ranks of its group, and the tensors that it
    sends from and to; None where it sends nothing."""
    space, name = function._schema.name.split("::")
    if not space.startswith(("c10d", "_c10d")):
        return None
    what = next((known for word, known in COLLECTIVES.items() if word in name), None)
    if what is None:
        return None
    values = bound(function, args, kwargs)
    sides = tensors_in([v for key, v in values.items() if "group" not in key]) + tensors_in(result)
    payload = max(bytes_of(tensor) for tensor in sides)
    return {"collective": what, "payload_bytes": payload, "ranks": ranks_of(values), "sides": sides,
            "waits": space != "c10d"}
