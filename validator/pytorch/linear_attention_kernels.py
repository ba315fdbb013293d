"""The compiled part of the package causal-conv1d, and Triton's kernels, for the Python of causal-conv1d, of
flash-linear-attention and of mamba-ssm, which Transformers and Megatron-LM take for linear attention and for Mamba-2
where they are installed: kernels write where they are told, and compute nothing."""

import importlib
import sys
import types

from corpus_row import Stop, has

COMPILED = "causal_conv1d_cuda"
OF_MAMBA = ("triton", "causal_conv1d", "mamba_ssm")
# What Transformers' classes call the heads of a Mamba-2 mixer.
HEADS = ("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")


def write_nothing(*_, **__):
    return None


def take_first(tuned, *_, **__):
    """A GPU would time the configurations: the first is taken."""
    tuned.best_config = tuned.configs[0]


def packages_of(config):
    """Whose Python runs, and what else Transformers computes by operators of PyTorch."""
    if getattr(config, "linear_num_key_heads", None):
        return ("triton", "fla", "causal_conv1d"), "linear attention"
    if config.model_type == "mamba2" or any(getattr(config, name, None) for name in HEADS):
        return OF_MAMBA, "Mamba-2"
    return (), None


def answer_gpu():
    """What mamba-ssm asks of a GPU. Autocast is the host's here."""
    import torch
    from cuda_on_host import H100, Stream
    asked = torch.is_autocast_enabled
    torch.cuda.get_device_properties = lambda *_: H100()
    torch.cuda.device = lambda *_: Stream()
    torch.is_autocast_enabled = lambda device="cpu": asked(device)
    torch.get_autocast_gpu_dtype = lambda: torch.get_autocast_dtype("cpu")


def compute_nothing():
    """Before anything that launches kernels is imported."""
    module = types.ModuleType(COMPILED)
    module.causal_conv1d_fwd = module.causal_conv1d_bwd = module.causal_conv1d_update = write_nothing
    sys.modules[COMPILED] = module
    if has("triton"):
        from triton.runtime import autotuner, jit
        jit.JITFunction.run = autotuner.Heuristics.run = write_nothing
        autotuner.Autotuner.run = take_first


def demand(packages, otherwise):
    """Ends where one of them cannot be imported, which a runtime would not say."""
    for package in packages:
        if not has(package):
            raise Stop(3, f"{sys.executable} lacks {package}, without which {otherwise}")
    if "mamba_ssm" in packages:
        try:
            importlib.import_module("mamba_ssm")
        except ImportError as error:
            raise Stop(3, f"mamba_ssm cannot be imported: {error}") from error


def stand_in(config):
    """Before the class of a model with linear attention or Mamba-2 is imported; nothing for others."""
    packages, what = packages_of(config)
    if not packages:
        return
    compute_nothing()
    if "mamba_ssm" in packages:
        answer_gpu()
    demand(packages, f"Transformers computes {what} by operators of PyTorch")
