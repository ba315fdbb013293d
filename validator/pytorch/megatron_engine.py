"""Stands in for Transformer Engine's C++ extension. Its Python, with all that it saves for backward, is
the installed one; a kernel here only allocates what csrc/extensions/*.cpp allocates as its results
(TransformerEngine main @d0067d0da). What kernels allocate inside is not there."""

import enum
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import types

import torch

NAME = "transformer_engine_torch"


class DType(enum.IntEnum):
    """Of NVTEDType (transformer_engine.h) what Python is told."""

    kByte = 0
    kInt32 = 2
    kFloat32 = 4
    kFloat16 = 5
    kBFloat16 = 6
    kFloat8E4M3 = 7
    kFloat8E5M2 = 8
    kFloat4E2M1 = 10


TYPES = {0: torch.uint8, 2: torch.int32, 4: torch.float32, 5: torch.float16,
         6: torch.bfloat16}


def type_of(kind):
    return kind if isinstance(kind, torch.dtype) else TYPES[int(kind)]


def make(shape, kind):
    return torch.empty(tuple(shape), dtype=type_of(kind), device="cpu")


def like(tensor, *_, **__):
    return make(tensor.shape, tensor.dtype)


def statistic(x):
    """fp32, one a row."""
    return make((x.numel() // x.shape[-1],), torch.float32)


def layernorm_fwd(x, weight, bias, eps, out, quantizer, kind, *_):
    return [make(x.shape, kind) if out is None else out, statistic(x), statistic(x)]


def rmsnorm_fwd(x, weight, eps, out, quantizer, kind, *_):
    return [make(x.shape, kind) if out is None else out, None, statistic(x)]


def layernorm_bwd(gradient, x, mean, deviation, weight, *_):
    return [like(x), like(weight), like(weight)]


def rmsnorm_bwd(gradient, x, deviation, weight, *_):
    return [like(x), like(weight)]


def generic_gemm(a, transposed_a, b, transposed_b, out, quantizer, kind, bias, bias_kind, gelu, gelu_input,
                 gradient, *_, extra_output=None, **__):
    """Column-major: rows are b's, columns a's; of a weight gradient those of both."""
    if out is None:
        columns = a.shape[0] if transposed_a else a.shape[-1]
        rows = (b.shape[-1],) if transposed_b else b.shape[:-1]
        out = make((*rows, columns), a.dtype if kind is None else kind)
    bias_gradient = make(b.shape[-1:], bias.dtype) if bias is not None and gradient else None
    before_gelu = like(out) if gelu and not gradient else None
    return out, bias_gradient, before_gelu, extra_output


def te_general_grouped_gemm(a, transposed_a, b, transposed_b, out, kind, splits, bias, *_):
    return bias  # into `out`


def bgrad_quantize(gradient, *_):
    return make(gradient.shape[-1:], gradient.dtype), gradient


def fused_attn_fwd(longest, *arguments):
    """Releases differ in what comes between; of the tensors the first are two of lengths, q, k and v."""
    lengths, _, query, _, value = [a for a in arguments if isinstance(a, torch.Tensor)][:5]
    output = make((*query.shape[:-1], value.shape[-1]), query.dtype)
    packed = query.dim() == 3
    rows = query.shape[:2] if packed else (lengths.shape[0] - 1, query.shape[2], longest)
    return [output, make((*rows, 1), torch.float32), make((2,), torch.int64)]


def fused_attn_bwd(*arguments):
    """Gradients of what was one tensor are one tensor: the last layout among the arguments is theirs."""
    query, key, value = [a for a in arguments if isinstance(a, torch.Tensor)][2:5]
    layout = [a.name for a in arguments if isinstance(a, Member) and a.kind == "NVTE_QKV_Layout"][-1]
    inner = layout.split("_", 1)[1]
    shape = list(query.shape)
    if "3" in inner:
        place = -2 if inner.endswith("3HD") else -1
        whole = make([*shape[:place], 3, *shape[place:]], query.dtype)
        gradients = whole.unbind(place - 1)
    elif "2" in inner:
        shape = list(key.shape)
        place = -2 if inner.endswith("2HD") else -1
        pair = make([*shape[:place], 2, *shape[place:]], key.dtype)
        gradients = (like(query), *pair.unbind(place - 1))
    else:
        gradients = like(query), like(key), like(value)
    return [*gradients, None, None]


def activation(parts):
    return lambda x, *_, **__: make((*x.shape[:-1], x.shape[-1] // parts), x.dtype)


def of_gradient(gradient, x, *_, **__):
    return like(x)


def in_place(gradient, *_, **__):
    return gradient


def multi_tensor_l2norm(chunk, overflow, lists, per_tensor=False, *_):
    return make((1,), torch.float32), make((len(lists[0]) if per_tensor else 0,), torch.float32)


class Member(int):
    """A value of an enumeration of the extension."""

    def __new__(cls, kind, name, value):
        member = super().__new__(cls, value)
        member.kind, member.name = kind, name
        return member


class Enumeration(type):
    """Has every member that is asked for, numbered as they come."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, Member(cls.__name__, name, len(cls.__members__)))
        return vars(cls)[name]

    @property
    def __members__(cls):
        return {name: value for name, value in vars(cls).items() if isinstance(value, Member)}


def absent(name):
    def kernel(*_, **__):
        raise NotImplementedError(f"nothing stands in for Transformer Engine's kernel {name}")
    return kernel


class Extension(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if not name[0].isupper():
            return absent(name)
        made = Enumeration(name, (), {"__init__": lambda *_, **__: None})
        setattr(self, name, made)
        return made


def extension():
    module = Extension(NAME)
    for name, kernel in globals().items():
        if isinstance(kernel, types.FunctionType) and kernel.__module__ == __name__:
            setattr(module, name, kernel)
    module.DType = DType
    for parts, names in ((1, "gelu relu silu qgelu srelu"),
                         (2, "swiglu geglu reglu qgeglu sreglu glu clamped_swiglu")):
        for name in names.split():
            setattr(module, name, activation(parts))
    for name in "gelu relu silu qgelu srelu swiglu geglu reglu qgeglu sreglu glu".split():
        setattr(module, "d" + name, of_gradient)
    module.fused_rope_forward = module.fused_rope_backward = like
    for kind in ("softmax", "masked_softmax", "aligned_causal_masked_softmax", "upper_triang_masked_softmax"):
        setattr(module, f"scaled_{kind}_forward", like)
        setattr(module, f"scaled_{kind}_backward", in_place)
    for name in ("adam", "adam_param_remainder", "adam_fp8", "adam_capturable", "adam_capturable_master", "sgd",
                 "scale", "scale_tensor", "unscale_l2norm", "compute_scale_and_scale_inv"):
        setattr(module, f"multi_tensor_{name}", lambda *_: None)
    module.get_fused_attn_backend = lambda *_, **__: module.NVTE_Fused_Attn_Backend.NVTE_F16_arbitrary_seqlen
    for name, value in (("get_cublasLt_version", 130400), ("get_cudnn_version", 92600),
                        ("get_num_cublas_streams", 4), ("get_stream_priority_range", (0, -5)),
                        ("ubuf_built_with_mpi", False), ("device_supports_multicast", True)):
        setattr(module, name, lambda *_, v=value: v)
    return module


def release():
    """Of the Transformer Engine that is installed, or whose source is on the path; None without one."""
    for name in ("transformer_engine", "transformer_engine_cu13", "transformer_engine_cu12"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    found = importlib.util.find_spec("transformer_engine")
    if not found or not found.origin:
        return None
    source = pathlib.Path(found.origin).parent.parent / "build_tools" / "VERSION.txt"
    return source.read_text(encoding="utf-8").strip() if source.exists() else None


def stand_in(listen):
    """Puts itself where the extension would be loaded, once `listen` was called with it. Returns the release."""
    installed = release()
    if installed is None:
        return None
    os.environ.update(NVTE_PROJECT_BUILDING="1", NVTE_TORCH_COMPILE="0",  # loads no library of CUDA
                      NVTE_CPU_OFFLOAD_V1="1")  # as Megatron-LM asks for where it offloads; else it says nothing
    ask = importlib.metadata.version

    def version(name):
        return installed if name.replace("_", "-").startswith("transformer-engine") else ask(name)
    importlib.metadata.version = version
    sys.modules[NAME] = extension()
    listen(sys.modules[NAME])  # before anyone keeps a function of it
    # The package loads the extension while it is imported, so its part that does comes first, alone.
    package = types.ModuleType("transformer_engine")
    package.__path__ = [str(pathlib.Path(importlib.util.find_spec("transformer_engine").origin).parent)]
    sys.modules["transformer_engine"] = package
    common = importlib.import_module("transformer_engine.common")
    common.load_framework_extension = lambda _: None
    del sys.modules["transformer_engine"]
    importlib.import_module("transformer_engine").common = common
    know_fake_tensors()
    return installed


def know_fake_tensors():
    """Its choice of attention looks at the class of its inputs."""
    attention = importlib.import_module("transformer_engine.pytorch.attention.dot_product_attention.utils")
    choose = attention.get_attention_backend

    def get_attention_backend(parameters):
        parameters.qkv_type = torch.Tensor
        return choose(parameters)
    attention.get_attention_backend = get_attention_backend
