"""The compiled part of the package causal-conv1d, and Triton's kernels, for the Python of causal-conv1d and of
flash-linear-attention, which Transformers takes for linear attention where both are installed: kernels write
where they are told, and compute nothing."""

import sys
import types

from corpus_row import Stop, has

COMPILED = "causal_conv1d_cuda"


def write_nothing(*_, **__):
    return None


def stand_in(config):
    """Before the class of a model with linear attention is imported; nothing for others."""
    if not getattr(config, "linear_num_key_heads", None):
        return
    for package in ("triton", "fla", "causal_conv1d"):
        if not has(package):
            raise Stop(3, f"{sys.executable} lacks {package}, without which Transformers computes linear attention "
                          "by operators of PyTorch")
    module = types.ModuleType(COMPILED)
    module.causal_conv1d_fwd = module.causal_conv1d_bwd = module.causal_conv1d_update = write_nothing
    sys.modules[COMPILED] = module
    from triton.runtime import autotuner, jit
    jit.JITFunction.run = autotuner.Autotuner.run = autotuner.Heuristics.run = write_nothing
