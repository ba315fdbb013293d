"""What a GPU would have been asked, answered for fake tensors on the host: which kernels run, and what
the host would read from the device. Nothing here allocates what a GPU would not."""

import warnings

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
              enable_gqa=False):
    """The kernel that PyTorch takes on a GPU: flash attention; cuDNN's where the values are not as
    wide as the keys, which flash attention refuses. Both keep q, k, v, output and a row statistic,
    and both take fewer heads of keys as they are."""
    assert attn_mask is None, "flash attention takes no mask"
    if query.size(-1) != value.size(-1):
        keeps = torch.is_grad_enabled() and query.requires_grad
        return aten._scaled_dot_product_cudnn_attention(
            query, key, value, None, keeps, dropout_p, is_causal, False, scale=scale)[0]
    return aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, is_causal, False, scale=scale)[0]


class Norm(torch.autograd.Function):
    """RMSNorm as one kernel, as a GPU has it; on the host it is a chain of fp32 operators."""

    @staticmethod
    def forward(context, x, shape, weight, eps):
        with torch._C._AutoDispatchBelowAutograd():
            result, statistics = aten._fused_rms_norm(x, shape, weight, eps)
        context.save_for_backward(x, weight, statistics)
        context.shape = shape
        context.mark_non_differentiable(statistics)
        return result, statistics

    @staticmethod
    def backward(context, gradient, _):
        x, weight, statistics = context.saved_tensors
        wanted = [context.needs_input_grad[0], context.needs_input_grad[2]]
        grad_x, grad_weight = aten._fused_rms_norm_backward(
            gradient, x, context.shape, statistics, weight, wanted)
        return grad_x, None, grad_weight, None


def norm(x, normalized_shape, weight=None, eps=None):
    """One kernel where input and weight have one type, else a chain, as on a GPU."""
    if weight is not None and weight.dtype != x.dtype:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + (eps or 1e-6))
        return scaled.type_as(x) * weight
    return aten._fused_rms_norm(x, normalized_shape, weight, eps)[0]


def histogram(values, bins=100, min=0, max=0):  # noqa: A002  torch.histc's names
    """Of whole numbers, which only a GPU counts."""
    return values.new_empty(bins)


class Autocast(torch.autocast):
    """Takes fp32, as on a GPU; on the host PyTorch turns itself off where it is asked for."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            super().__init__(device_type, dtype, enabled, cache_enabled)
        self._enabled = self._enabled or (enabled and dtype == torch.float32)


LIBRARY = torch.library.Library("aten", "IMPL")


def take_gpu_kernels():
    LIBRARY.impl("_fused_rms_norm", Norm.apply, "AutogradCPU")
    F.scaled_dot_product_attention = attention
    F.rms_norm = torch.rms_norm = norm
    torch.histc = histogram
    torch.autocast = Autocast
    # They change values alone, by operators that fake tensors would have to compute.
    for name in ("trunc_normal_", "normal_"):
        setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)


def answer_reads(routed_tokens):
    """What the host reads of the device: numbers that mean nothing, and the splits of a router that
    sends every expert as many tokens."""
    def splits(self):
        parts = self.numel()
        return [routed_tokens // parts] * parts

    FakeTensor.tolist = splits
    FakeTensor.item = lambda self: 1.0 if self.dtype.is_floating_point else 1


class Reducer:
    """PyTorch's reducer, but for buckets that it would make anew in the order of the first backward pass: all ranks
    would have to agree on that order. They hold as much."""

    def __init__(self, reducer):
        self.reducer = reducer

    def __getattr__(self, name):
        return getattr(self.reducer, name)

    def _rebuild_buckets(self):
        return False


def outside(function):
    """The same function, on real tensors."""
    def call(*args, **kwargs):
        with _disable_current_modes():
            return function(*args, **kwargs)
    return call


def build_meshes_outside_modes():
    """A mesh of ranks holds real tensors, whose values are read."""
    from torch.distributed.device_mesh import DeviceMesh
    for name in ("__init__", "__getitem__", "_flatten", "_unflatten", "get_group",
                 "get_local_rank", "get_coordinate", "_get_all_submeshes", "_create_sub_mesh",
                 "_get_slice_mesh_layout"):
        if hasattr(DeviceMesh, name):
            setattr(DeviceMesh, name, outside(getattr(DeviceMesh, name)))
    DeviceMesh.mesh = property(outside(DeviceMesh.mesh.fget))
    if hasattr(DeviceMesh, "_concatenate"):
        DeviceMesh._concatenate = staticmethod(outside(DeviceMesh._concatenate))


def start_ranks(rank, world):
    """One process as one rank of many; collectives move nothing."""
    import torch.distributed._tools.fake_collectives  # noqa: F401  collectives on fake tensors
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    build_meshes_outside_modes()


class Nothing:
    """Takes every call and does nothing: logs, checkpoints, metrics."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class Logs(Nothing):
    """A metrics processor that never logs."""

    ntokens_since_last_log = 0

    def __init__(self, *_):
        self.color, self.data_loading_times = Nothing(), []
        self.device_memory_monitor = self

    device_name = "H100"

    def get_peak_stats(self):
        return Peaks()

    def should_log(self, _):
        return False


class Peaks:
    max_reserved_gib = max_reserved_pct = 0.0
