"""A GPU that is not there, for code that asks torch.cuda itself: what it would answer, tensors on the host
that pass for its own, and collectives that move nothing."""

import functools
import os
import types

import linear_attention_kernels
import torch
import torch.distributed as dist
from compiled_functions import compile_as_kernels
from instruments import FakeMeter
from no_gpu import Nothing, take_gpu_kernels
from torch.overrides import TorchFunctionMode

HOST = torch.device("cpu")
NAMES = {torch.float32: "Float", torch.float16: "Half", torch.bfloat16: "BFloat16", torch.int64: "Long"}


class H100(Nothing):
    major, minor, name, warp_size, gcnArchName = 9, 0, "NVIDIA H100 80GB HBM3", 32, ""
    total_memory, multi_processor_count, L2_cache_size = 80 << 30, 132, 50 << 20


class Stream(Nothing):
    """Streams and events: what is asked of one has happened."""

    cuda_stream = stream_id = 0
    device, priority = HOST, 0

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def query(self):
        return True

    def elapsed_time(self, _):
        return 1.0

    def record_event(self, *_):
        return Stream()


class Generator(Nothing):
    def __getattr__(self, name):
        return (lambda *_: torch.empty(16, dtype=torch.uint8)) if name == "get_state" else lambda *_: self


def answer(module, **answers):
    for name, value in answers.items():
        setattr(module, name, value if isinstance(value, type) else lambda *_, v=value, **__: v)


def answer_cuda():
    cuda, stream = torch.cuda, Stream()
    answer(cuda, is_available=True, is_initialized=True, device_count=8, current_device=0, synchronize=None,
           set_device=None, get_device_properties=H100(), get_device_capability=(9, 0), empty_cache=None,
           get_device_name=H100.name, current_stream=stream, default_stream=stream, stream=stream,
           set_stream=None, Stream=Stream, Event=Stream, manual_seed=None, manual_seed_all=None,
           initial_seed=1, set_rng_state=None, memory_allocated=0, max_memory_allocated=0, memory_reserved=0,
           max_memory_reserved=0, memory_stats={}, reset_peak_memory_stats=None, ipc_collect=None,
           is_current_stream_capturing=False, is_bf16_supported=True, _lazy_init=None, _lazy_call=None,
           init=None)
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *_, **__: Generator().get_state()
    cuda.random.set_rng_state = cuda.set_rng_state
    cuda.nvtx = Nothing()
    cuda.default_generators = [Generator()] * 8
    cuda.device = lambda *_: stream
    answer(torch._C, _cuda_setDevice=None, _cuda_getDevice=0)
    torch.backends.cudnn.version = lambda: 92600


def place(device):
    """The host, which stands for every GPU."""
    on_gpu = isinstance(device, int) or str(device).startswith("cuda")
    return HOST if on_gpu and not isinstance(device, bool) else device


class HostMeter(FakeMeter):
    """Places what Python functions made below OnDevice, whose mode a backward pass within one suspends."""

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        if kwargs and "device" in kwargs:
            kwargs = {**kwargs, "device": place(kwargs["device"])}
        if kwargs and kwargs.get("pin_memory"):
            return self.pinned(function, args, kwargs)
        result = super().__torch_dispatch__(function, types_, args, kwargs)
        if self.paused and function is torch.ops.aten.native_dropout.default:
            self.see(result[1].untyped_storage(), function, result[1])  # a compiled function keeps it too
        return result

    def pinned(self, function, args, kwargs):
        """What is made to be copied to is the host's, though all tensors here pass for a GPU's."""
        made = function(*args, **{**kwargs, "pin_memory": False})
        self.leave_to_host(made.untyped_storage())
        return made


class OnDevice(TorchFunctionMode):
    """What is made on the GPU is made on the host."""

    def __torch_function__(self, function, types_, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = place(kwargs["device"])
        if function is torch.tensor:  # it pins by itself, where no mode sees it
            kwargs.pop("pin_memory", None)
        if function is torch.Tensor.to:
            args = (args[0], *(place(a) if isinstance(a, (str, torch.device)) else a for a in args[1:]))
        return function(*args, **kwargs)


def to_device(tensor, *_, **__):
    """A copy of what was the host's, as hosted() marks it; else the tensor itself."""
    return tensor.clone() if getattr(tensor, "of_host", False) else tensor


def hosted(tensor):
    tensor.of_host = True
    return tensor


def take_tensors_for_gpus():
    kind = torch.Tensor.type

    def type_(tensor, *args, **kwargs):
        return kind(tensor, *args, **kwargs) if args else f"torch.cuda.{NAMES.get(tensor.dtype, '')}Tensor"

    torch.Tensor.type = type_
    torch.Tensor.is_cuda = property(lambda _: True)
    torch.Tensor.cuda = to_device
    torch.Tensor.pin_memory = lambda tensor, *_, **__: tensor
    torch.Tensor.record_stream = lambda *_: None
    torch.nn.Module.cuda = lambda module, *_, **__: module
    # Gradients mean nothing: none is found to be infinite, and no branch depends on a value.
    torch.Tensor.__bool__ = lambda _: False
    torch.Tensor.__float__ = lambda _: 1.0
    torch.Tensor.__int__ = torch.Tensor.__index__ = lambda _: 0
    torch.nn.Module._apply = apply_in_place
    torch.nn.functional.dropout = dropout
    torch.optim.Optimizer._accelerator_graph_capture_health_check = lambda _: None  # asks the driver


def dropout(x, p=0.5, training=True, inplace=False):
    """The kernel of a GPU, whose mask has a byte an element."""
    return torch.native_dropout(x, p, training)[0] if training and p > 0 else x


def apply_in_place(module, function, recurse=True):
    """Module._apply, which for fake tensors would swap parameters that others hold."""
    for child in module.children():
        child._apply(function)
    with torch.no_grad():
        for parameter in module._parameters.values():
            if parameter is not None:
                made = function(parameter)
                if made is not parameter:
                    parameter.data = made
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = function(buffer)
    return module


class Done:
    def wait(self, *_):
        return True

    is_completed = wait


def answer_ranks():
    """Collectives that move nothing, with the arguments that NCCL's take."""
    import torch.distributed._tools.fake_collectives  # noqa: F401
    new_group = dist.new_group
    group = functools.wraps(new_group)(lambda ranks=None, *_, **__: new_group(ranks, backend="fake"))
    for name in ("all_gather_into_tensor", "_all_gather_base", "reduce_scatter_tensor", "_reduce_scatter_base",
                 "all_reduce", "all_gather", "reduce", "send", "recv", "isend", "irecv", "broadcast",
                 "all_to_all_single", "barrier"):
        for module in (dist, dist.distributed_c10d):
            setattr(module, name, lambda *_, **__: Done())
    dist.new_group = dist.distributed_c10d.new_group = group
    dist.P2POp = lambda *_, **__: None
    dist.batch_isend_irecv = lambda operations: [Done() for _ in operations]
    dist.get_backend = lambda *_: "nccl"
    dist.broadcast_object_list = lambda *_, **__: None

    def gather_objects(found, mine, *_, **__):
        found[:] = [mine] * len(found)
    dist.all_gather_object = gather_objects


def answer_extensions():
    """Kernels of Apex and Triton: they write where they are told, or what they give is allocated."""
    import sys
    gemm = types.ModuleType("fused_weight_gradient_mlp_cuda")
    gemm.wgrad_gemm_accum_fp32 = gemm.wgrad_gemm_accum_fp16 = lambda *_: None
    sys.modules[gemm.__name__] = gemm
    for name in ("scaled_upper_triang_masked_softmax_cuda", "scaled_masked_softmax_cuda", "scaled_softmax_cuda"):
        softmax = types.ModuleType(name)
        softmax.forward = lambda scores, *_: torch.empty_like(scores)
        softmax.backward = lambda gradient, *_: gradient
        softmax.get_batch_per_block = lambda *_: 1
        sys.modules[name] = softmax
    linear_attention_kernels.compute_nothing()


def take_gpus(meter):
    """What has to be answered before anything of Megatron or Transformer Engine is imported."""
    os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="8", MASTER_ADDR="localhost", MASTER_PORT="1",
                      CUDA_DEVICE_MAX_CONNECTIONS="1", TORCHDYNAMO_DISABLE="1")
    torch.autograd.set_multithreading_enabled(False)  # one thread knows the modes
    answer_cuda()
    take_tensors_for_gpus()
    take_gpu_kernels()
    compile_as_kernels(meter)
    answer_ranks()
    answer_extensions()


def start_rank(rank, world):
    """One process as one rank of many."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
