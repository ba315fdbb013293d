#!/usr/bin/env python3
"""Trains a model of Transformers for three steps as accelerate shards it with FSDP2, or wraps it in
DistributedDataParallel (--zero 0), both as they are installed, and writes what memory rank 0 took as one
row of a measured corpus, which script/accuracy reads. Tensors are fake, and collectives move nothing: neither a GPU nor its memory is needed.

    validator/pytorch/trace_transformers.py llama3-8b --gpus 8 --layers 4 --seq 4096 --out rows.jsonl

Exit codes: 0 traced, 2 the arguments cannot be run, 3 a package is missing.
"""

import argparse
import gc
import sys
from importlib.metadata import version
from types import SimpleNamespace

import linear_attention_kernels
import record_document
from corpus_row import Stop, configured_model, measured_part, notes_of, run
from no_gpu import start_ranks
from transformers_model import (batch_of, configuration, is_file, model_of, name_of, sees, tokens_of, units_of,
                                values_of)

STEPS = 3
# What Transformers calls the kernels of --attention.
IMPLEMENTATIONS = {"flash": "sdpa", "unfused": "eager"}


def read_arguments(words, more=None):
    """`more`: adds options of a program that runs the same for real."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", help="a name of presets/models, or a config.json, of which --record writes no row")
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    parser.add_argument("--seq", type=int, default=4096, help="tokens of a sample; images say it themselves")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1, help="micro-batches of a step")
    parser.add_argument("--recompute", choices=("none", "full"), default="none")
    parser.add_argument("--zero", type=int, choices=(0, 2, 3), default=3, help="0: replicas")
    parser.add_argument("--gradient-as-bucket-view", action="store_true", help="of replicas")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16", help="fp32: of replicas")
    parser.add_argument("--logits", choices=("dropped", "kept"), default="dropped")
    parser.add_argument("--reduce", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--sync-each-batch", action="store_true")
    parser.add_argument("--attention", choices=(*IMPLEMENTATIONS, "flash_attention_2"), default="flash")
    parser.add_argument("--optimizer", choices=("fused", "foreach"), default="fused")
    parser.add_argument("--out", help="append the row to this file (default: standard output)")
    parser.add_argument("--record", help="also write the last step as a program, which zeroplan takes as MODEL")
    if more:
        more(parser)
    arguments = parser.parse_args(words)
    if arguments.precision == "fp32" and arguments.zero != 0:
        raise Stop(2, "--precision fp32 is traced of replicas (--zero 0)")
    if arguments.zero == 0 and (arguments.logits, arguments.optimizer, arguments.record) != ("dropped", "fused", None):
        raise Stop(2, "replicas are traced with --logits dropped and --optimizer fused, and are not recorded")
    return arguments


def take_gpu_kernels(torch):
    """On the host PyTorch would take another attention kernel than a GPU's, and Transformers would
    look at positions, which have no values here, for sequences that are packed. The package flash-attn is not at
    hand: PyTorch's copy of its kernels stands in for it."""
    from transformers import PreTrainedModel, masking_utils, modeling_flash_attention_utils as flash

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
        if torch.is_autocast_enabled("cpu"):  # which has the function on its list, not the kernel
            query, key, value = (x.to(torch.bfloat16) for x in (query, key, value))
        if attn_mask is None:
            kernel = torch.ops.aten._scaled_dot_product_flash_attention
            return kernel(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        # Flash attention takes no mask. The kernels that do take numbers to add to the scores.
        if attn_mask.dtype == torch.bool:
            nothing, infinity = (torch.scalar_tensor(x, dtype=query.dtype) for x in (0.0, float("-inf")))
            attn_mask = torch.where(attn_mask, nothing, infinity)
        added = attn_mask.expand(*query.shape[:3], key.size(2))
        kernel = torch.ops.aten._scaled_dot_product_efficient_attention
        return kernel(query, key, value, added, torch.is_grad_enabled(), dropout_p, is_causal, scale=scale)[0]

    def token_by_token(query, key, value, dropout_p=0.0, causal=False, softmax_scale=None, window_size=(-1, -1),
                       softcap=0.0):
        heads = (x.transpose(1, 2) for x in (query, key, value))
        kernel = torch.ops.aten._scaled_dot_product_flash_attention
        return kernel(*heads, dropout_p, causal, False, scale=softmax_scale)[0].transpose(1, 2)

    torch.nn.functional.scaled_dot_product_attention = attention
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    flash._lazy_imports = lambda *_, **__: (token_by_token, token_by_token, None, None, None)
    flash._is_packed_sequence = lambda *_: False
    PreTrainedModel._flash_attn_import_error = lambda *_, **__: None


def sharded(model, arguments, mesh, torch, device="cpu"):
    """What Accelerator.prepare does with a model under FSDP2 and --mixed_precision bf16."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", cpu_ram_efficient_loading=False,
        reshard_after_forward=arguments.zero == 3, transformer_cls_names_to_wrap=units_of(model))
    plugin.set_mixed_precision("bf16")
    if arguments.reduce == "fp32":
        plugin.mixed_precision_policy = torch.distributed.fsdp.MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.bfloat16)
    accelerator = SimpleNamespace(
        is_main_process=False, mixed_precision="bf16", device=torch.device(device),
        state=SimpleNamespace(fsdp_plugin=plugin), torch_device_mesh=mesh,
        parallelism_config=SimpleNamespace(fsdp_dim_names=("dp_shard",)))
    return fsdp2_prepare_model(accelerator, model)


def prepared(config, arguments, mesh, torch):
    """The model of a rank, as accelerate prepares it."""
    from transformers import PreTrainedModel
    PreTrainedModel._init_weights = lambda *_: None  # changes values alone
    with torch.device("cpu" if arguments.zero == 0 else "meta"):
        model = model_of(config, torch, IMPLEMENTATIONS.get(arguments.attention, arguments.attention))
    if arguments.recompute == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if arguments.zero == 0:
        from replicas import replicated
        return replicated(model, arguments.gpus, arguments.gradient_as_bucket_view, arguments.precision)
    return sharded(model, arguments, mesh, torch).to_empty(device="cpu")


def pass_batch(model, arguments, torch):
    """One micro-batch, as Trainer.training_step runs it: the loss alone outlives compute_loss."""
    outputs = model(**batch_of(getattr(model, "module", model).config, arguments.micro_batch, arguments.seq, torch))
    loss = outputs["loss"]
    if arguments.logits == "dropped":
        del outputs
    loss.backward()


def within(model, optimizer, meter, torch):
    """Says to the meter which part of a step runs."""
    def call(phase, function):
        before, meter.phase = meter.phase, phase
        try:
            return function()
        finally:
            meter.phase = before

    backward, step, loss = torch.Tensor.backward, optimizer.step, model.loss_function
    model.loss_function = lambda *args, **kwargs: call("loss", lambda: loss(*args, **kwargs))
    torch.Tensor.backward = lambda loss: call("backward", lambda: backward(loss))
    optimizer.step = lambda: call("optimizer", step)


def train(model, optimizer, arguments, meter, torch):
    """Peaks by step."""
    from recorder import Recorder
    peaks = []
    within(getattr(model, "module", model), optimizer, meter, torch)
    for number in range(STEPS):
        last = number + 1 == STEPS
        meter.start_step(last)
        meter.phase = "forward"
        if last and arguments.record:
            Recorder(meter, [model], arguments.steps, record_document.group_namer(layout_of(arguments)))
        for i in range(arguments.steps):
            # Accelerator.no_sync.
            last = arguments.sync_each_batch or i + 1 == arguments.steps
            if arguments.zero == 0:
                model.require_backward_grad_sync = last
            else:
                model.set_requires_gradient_sync(last)
            pass_batch(model, arguments, torch)
        if meter.recorder:
            meter.recorder.name("gradients", [p.grad for p in model.parameters() if p.grad is not None])
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()
        peaks.append(meter.peak())
    return peaks


def runtime():
    """What every line of a grid needs."""
    import accelerate.utils.fsdp_utils  # noqa: F401
    import instruments  # noqa: F401
    import transformers.models.llama.modeling_llama  # noqa: F401


def trace(arguments):
    import torch
    from instruments import FakeMeter
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.device_mesh import init_device_mesh
    config = configuration(arguments)
    if sees(config) and not arguments.record:
        raise Stop(2, f"{arguments.model} reads images: --record FILE writes it as a program alone")
    arguments.seq = tokens_of(config, arguments.seq)
    take_gpu_kernels(torch)
    linear_attention_kernels.stand_in(config)
    start_ranks(0, arguments.gpus)
    mesh = init_device_mesh("cpu", (arguments.gpus,), mesh_dim_names=("dp_shard",))
    meter = FakeMeter()
    with FakeTensorMode(), meter:
        model = prepared(config, arguments, mesh, torch)
        model.train()
        if getattr(config, "tie_word_embeddings", False):
            meter.table = (config.vocab_size, config.hidden_size)
        optimizer = torch.optim.AdamW(model.parameters(), **{arguments.optimizer: True})
        peaks = train(model, optimizer, arguments, meter, torch)
        meter.name("parameters", model.parameters())
        for states in optimizer.state.values():
            meter.name("optimizer states", states.values())
    if meter.recorder:
        record(meter.recorder, model, arguments)
    return None if arguments.record and is_file(arguments.model) else row_of(arguments, peaks, meter, torch.__version__)


def layout_of(a):
    return record_document.layout(a.gpus, a.seq, a.micro_batch, a.steps, zero=a.zero, recompute=a.recompute)


def record(recorder, model, arguments):
    parameters = sum(p.numel() for p in model.parameters())
    record_document.write(arguments.record, recorder, record_document.head(
        name_of(arguments), parameters, model.config.num_hidden_layers, "transformers",
        ("transformers", "accelerate", "torch"), layout_of(arguments), 0))


def row_of(arguments, peaks, meter, torch_version):
    def short(package):
        return ".".join(version(package).split(".")[:2])

    model = configured_model(name_of(arguments), values_of(arguments))
    replicas = arguments.zero == 0
    settings = {"layers": "huggingface", "logits": arguments.logits,
                "training.mixed_precision_reduce": arguments.reduce,
                "sync_each_batch": "true" if arguments.sync_each_batch else "false",
                "optimizer.implementation": arguments.optimizer,
                "torch_version": short("torch"), "transformers_version": short("transformers"),
                "accelerate_version": short("accelerate")}
    if replicas:
        settings = {"gradient_as_bucket_view": "true" if arguments.gradient_as_bucket_view else "false"}
    own_kernels = arguments.attention not in IMPLEMENTATIONS
    if own_kernels:
        settings["attn_implementation"] = arguments.attention
    told = "".join(f"-{value}" for value in
                   (arguments.logits, arguments.reduce, arguments.optimizer))
    told += "-views" if arguments.gradient_as_bucket_view else ""
    told += "-fp32" if arguments.precision == "fp32" else ""
    return {
        "id": f"traced-{model['name']}-dp{arguments.gpus}-z{arguments.zero}-s{arguments.seq}"
              f"-b{arguments.micro_batch}x{arguments.steps}-{arguments.recompute}{told}"
              f"{'' if arguments.attention == 'flash' else '-' + arguments.attention}"
              f"{'-synced' if arguments.sync_each_batch else ''}-{short('accelerate')}",
        "family": "traced-ddp" if replicas else "traced-transformers", "complete": True,
        "source": "validator/pytorch/trace_transformers.py",
        "framework": "ddp" if replicas else "fsdp2",
        "framework_version": f"PyTorch {torch_version}, transformers {version('transformers')}, "
                             f"accelerate {version('accelerate')}",
        "settings": settings,
        "gpu": "H100-80GB", "n_gpus": arguments.gpus, "device": None, "ranks": "fake process group",
        "model": model, "seq": arguments.seq, "micro_batch": arguments.micro_batch,
        "global_batch": arguments.gpus * arguments.micro_batch * arguments.steps,
        "dp": arguments.gpus, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "sp": False,
        "zero": {"stage": arguments.zero, "shard_degree": arguments.gpus},
        "recompute": {"kind": arguments.recompute},
        "precision": {"bf16": "bf16 autocast", "fp32": "fp32"}[arguments.precision] if replicas else "bf16 compute; fp32 parameters, gradients and states",
        "optimizer": "AdamW", "attention": "flash" if own_kernels else arguments.attention, "compile": False,
        "measured": measured_part(meter, peaks, meter.now()),
        "outcome": "ran", "step_time_s": None, "notes": notes_of(meter, STEPS),
    }


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "transformers", "accelerate"), runtime))
