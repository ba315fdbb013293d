"""How a plan's layout stands around the model: FSDP2's units as torchtitan cuts them, or DDP."""

from functools import partial

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten
KEPT = (
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    torch.ops._c10d_functional.reduce_scatter_tensor.default,
    aten.max.default,
)


def _selective_contexts():
    """Keeps attention and every second product of matrices."""
    products = {"forward": 0, "recompute": 0}

    def policy(context, operator, *_, **__):
        if operator == aten.mm.default:
            mode = "recompute" if context.is_recompute else "forward"
            products[mode] += 1
            kept = products[mode] % 2 == 1
        else:
            kept = operator in KEPT
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def apply_recompute(model, kind: str):
    if kind == "none":
        return
    extra = {"context_fn": _selective_contexts} if kind == "selective" else {}
    for layer in model.layers:
        run = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False, **extra)
        layer.forward = run


def mesh_of(layout: dict, device: str, world: int):
    """Shards alone, or replicas of sharding groups. Made of real tensors, so outside of fake ones."""
    hsdp = layout.get("hsdp") or world
    if hsdp < world:
        return init_device_mesh(device, (world // hsdp, hsdp), mesh_dim_names=("replica", "shard"))
    return init_device_mesh(device, (world,), mesh_dim_names=("shard",))


def apply_fsdp2(model, layout: dict, mesh):
    """Embedding, each layer, and final norm with head are units of their own; tied weights keep
    embedding, norm and head in one."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    reshards = layout["zero"] == 3
    shard = partial(fully_shard, mesh=mesh, mp_policy=policy)
    ends = [model.norm, model.head]
    first = [model.embedding] + ([] if model.s.gated else [model.positions])
    if model.s.tied:
        ends = first + ends
    else:
        shard(first, reshard_after_forward=reshards)
    for layer in model.layers:
        shard(layer, reshard_after_forward=reshards)
    shard(ends, reshard_after_forward=False)  # the backward pass begins with it
    shard(model, reshard_after_forward=reshards)
    return model


def apply_ddp(model, device: str, local_rank: int):
    ids = [local_rank] if device == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)
