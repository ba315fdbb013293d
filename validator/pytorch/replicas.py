"""A model of Transformers under DistributedDataParallel, as Accelerator.prepare_model wraps it with --mixed_precision
bf16 (accelerate 1.15.0 accelerator.py), on fake tensors and with collectives that move nothing."""

from types import MethodType

import torch
import torch.nn.parallel.distributed as parallel
from accelerate.utils import convert_outputs_to_fp32
from no_gpu import Reducer


LIBRARY = torch.library.Library("aten", "IMPL")


def cast_as_on_gpu():
    """Autocast of a GPU has powers and norms run in fp32, that of the host has not
    (aten/src/ATen/autocast_mode.h, AT_FORALL_FP32 and its lists for the host)."""
    def in_fp32(function):
        def call(x, *args, **kwargs):
            with torch.autocast("cpu", enabled=False):
                return function(x.float(), *args, **kwargs)
        return call

    LIBRARY.impl("pow.Tensor_Scalar", in_fp32(torch.pow), "AutocastCPU")
    LIBRARY.impl("layer_norm", in_fp32(torch.layer_norm), "AutocastCPU")


def reduce_nothing(_, bucket):
    """In the place of an all-reduce, which is in place too."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def replicated(model, ranks, views, precision):
    """`views`: gradients are views of the buckets. Accelerate leaves the model of a rank alone unwrapped."""
    parallel._verify_param_shape_across_processes = parallel._sync_module_states = lambda *_, **__: None
    if precision == "bf16":
        cast_as_on_gpu()
        autocast = torch.autocast("cpu", dtype=torch.bfloat16)
        model.forward = MethodType(autocast(model.forward.__func__), model)
        model.forward = MethodType(convert_outputs_to_fp32(model.forward.__func__), model)
    if ranks == 1:
        return model
    replica = parallel.DistributedDataParallel(model, gradient_as_bucket_view=views)
    replica.register_comm_hook(None, reduce_nothing)
    replica.reducer = Reducer(replica.reducer)
    return replica
