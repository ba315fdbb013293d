#!/usr/bin/env python3
"""Trains a model of torchtitan for three steps, as it is installed, and writes what memory a rank took
as one row of a measured corpus, which script/accuracy reads. Tensors are fake, and collectives move
nothing: neither a GPU nor its memory is needed.

    validator/pytorch/trace_torchtitan.py llama3-8b --gpus 8 --layers 4 --seq 4096 --out rows.jsonl
    validator/pytorch/trace_torchtitan.py --grid grid.txt --out rows.jsonl     # a run a line

Exit codes: 0 traced, 1 a line of a grid was not, 2 the arguments cannot be run, 3 a package is missing.
"""

import argparse
import gc
import logging
import os
import sys
from importlib.metadata import version

import record_document
from corpus_row import Stop, config_of, measured_part, model_part, notes_of, run

STEPS = 3
# The last day whose code a release has.
RELEASES = {"0.2.2": "2026-02-20", "0.3.0": "2026-08-19"}


def read_arguments(words, more=None):
    """`more`: adds options of a program that runs the same for real."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("model", help="a name of presets/models")
    add("--gpus", type=int, required=True)
    add("--layers", type=int, help="fewer layers than the model has")
    add("--seq", type=int, required=True)
    add("--micro-batch", type=int, default=1)
    add("--steps", type=int, default=1, help="micro-batches of a step")
    for name in ("tp", "cp", "pp", "vpp", "ep"):
        add(f"--{name}", type=int, default=1)
    add("--replicas", type=int, default=1, help="of the shards: HSDP")
    add("--stage", type=int, default=0, help="of the pipeline, whose first rank is traced")
    add("--recompute", default="none", help="none, full, op, or N: every Nth layer whole")
    add("--reshard", choices=("default", "always", "never"), default="default")
    add("--recompute-num-layers", type=int, default=0, help="the first ones alone, of 0.3")
    add("--selective-rest", action="store_true", help="the others by operator")
    add("--no-reshard-layers", type=int, default=0, help="the last ones stay gathered")
    add("--stored", choices=("fp32", "bf16"), default="fp32")
    add("--computed", choices=("fp32", "bf16"), default="bf16")
    add("--optimizer", choices=("fused", "foreach", "for-loop"), default="fused")
    add("--whole-logits", action="store_true", help="disable_loss_parallel")
    add("--no-graphs", action="store_true", help="disable_cuda_graphs, of 0.3")
    add("--out", help="append the row to this file (default: standard output)")
    add("--record", help="also write the last step as a program, which zeroplan takes as MODEL")
    if more:
        more(parser)
    arguments = parser.parse_args(words)
    arguments.dp = arguments.gpus // (arguments.tp * arguments.cp * arguments.pp)
    return arguments


def titan():
    """The release that is installed, and what runs it."""
    release = version("torchtitan")
    if release not in RELEASES:
        raise Stop(2, f"torchtitan {release}: {' and '.join(RELEASES)} can be traced")
    logging.disable(logging.WARNING)
    import instruments  # noqa: F401
    import torch
    torch._utils._get_available_device_type = lambda: "cpu"  # asked while torchtitan is imported
    return release, __import__("titan_02" if release.startswith("0.2") else "titan_03")


def mark_phases(trainer, meter, torch):
    meter.mark(torch.autograd.graph, "_engine_run_backward", "backward")
    meter.mark(torch.autograd, "_engine_run_backward", "backward")
    meter.mark(trainer, "loss_fn", "loss")
    meter.mark(trainer.optimizers, "step", "optimizer")


def trace(arguments):
    release, runner = titan()
    import torch
    from instruments import FakeMeter
    from no_gpu import answer_reads, start_ranks, take_gpu_kernels
    from recorder import Recorder
    from torch._subclasses.fake_tensor import FakeTensorMode
    config = config_of(arguments.model, arguments.layers)
    if arguments.model not in runner.MODELS:
        raise Stop(2, f"torchtitan {release} has no {arguments.model}; it has {', '.join(runner.MODELS)}")
    rank = arguments.stage * arguments.gpus // arguments.pp
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(arguments.gpus))
    torch.autograd.set_multithreading_enabled(False)  # one thread knows the modes
    start_ranks(rank, arguments.gpus)
    take_gpu_kernels()
    tokens = arguments.micro_batch * arguments.seq // arguments.cp // arguments.tp
    answer_reads(tokens * config.get("num_experts_per_tok", 0))
    meter = FakeMeter()
    with FakeTensorMode(allow_non_fake_inputs=True), meter:
        trainer, step = runner.trainer_of(arguments)
        keep_gathered(trainer, arguments.no_reshard_layers)
        mark_phases(trainer, meter, torch)
        peaks = []
        for number in range(STEPS):
            last = number + 1 == STEPS
            meter.start_step(last)
            meter.phase = "forward"
            if last and arguments.record:
                Recorder(meter, trainer.model_parts, arguments.steps,
                         record_document.group_namer(layout_of(arguments)))
            step()
            gc.collect()
            peaks.append(meter.peak())
        name_states(trainer, meter)
    if meter.recorder:
        record(meter.recorder, trainer, arguments, config, rank)
    return row_of(arguments, config, release, peaks, meter, torch.__version__)


def keep_gathered(trainer, number):
    """As if fully_shard had been told so of these layers."""
    layers = [layer for part in trainer.model_parts for layer in part.layers.values()]
    for layer in layers[len(layers) - number:]:
        layer.set_reshard_after_forward(False)


def name_states(trainer, meter):
    parameters = [p for part in trainer.model_parts for p in part.parameters()]
    meter.name("parameters", parameters)
    meter.name("gradients", [p.grad for p in parameters if p.grad is not None])
    for optimizer in trainer.optimizers.optimizers:
        for states in optimizer.state.values():
            meter.name("optimizer states", [s for s in states.values() if hasattr(s, "dtype")])


def layout_of(a):
    return record_document.layout(
        a.gpus, a.seq, a.micro_batch, a.steps, tp=a.tp, pp=a.pp, vpp=a.vpp, cp=a.cp, ep=a.ep,
        zero=2 if a.reshard == "never" else 3, sequence_parallel=a.tp > 1,
        recompute=a.recompute if a.recompute in ("none", "full") else "selective",
        precision=a.computed, **({"hsdp": a.dp // a.replicas} if a.replicas > 1 else {}))


def record(recorder, trainer, arguments, config, rank):
    parameters = sum(p.numel() for part in trainer.model_parts for p in part.parameters())
    record_document.write(arguments.record, recorder, record_document.head(
        arguments.model, parameters, model_part(arguments.model, config)["layers"], "torchtitan",
        ("torchtitan", "torch"), layout_of(arguments), rank, expandable_segments=True))  # run_train.sh


def settings_of(arguments, release):
    settings = {"recipe_date": RELEASES[release], "training.dtype": arguments.stored,
                "training.mixed_precision_param": arguments.computed,
                "parallelism.loss_parallel": "false" if arguments.whole_logits else "true",
                "optimizer.implementation": arguments.optimizer,
                "torch_version": ".".join(version("torch").split(".")[:2])}
    if arguments.reshard == "always":
        settings["parallelism.fsdp_reshard_after_forward"] = "always"
    if arguments.recompute not in ("none", "full"):
        settings["activation_checkpoint.selective_ac_option"] = arguments.recompute
    if arguments.selective_rest:
        settings["selective_rest"] = "true"
    for name in ("recompute_num_layers", "no_reshard_layers"):
        if getattr(arguments, name):
            settings[name] = str(getattr(arguments, name))
    if release >= "0.3":
        settings["training.disable_cuda_graphs"] = "true" if arguments.no_graphs else "recipe"
    return settings


def identity(arguments, model, release):
    a = arguments
    parts = [model["name"], f"dp{a.dp}", f"s{a.seq}", f"b{a.micro_batch}x{a.steps}", a.recompute]
    parts += [f"{name}{getattr(a, name)}" for name in ("tp", "cp", "pp", "vpp", "ep")
              if getattr(a, name) > 1]
    parts += [f"hsdp{a.replicas}"] if a.replicas > 1 else []
    parts += [f"stage{a.stage}"] if a.pp > 1 else []
    parts += [a.reshard] if a.reshard != "default" else []
    parts += [f"first{a.recompute_num_layers}"] if a.recompute_num_layers else []
    parts += ["selective-rest"] if a.selective_rest else []
    parts += [f"gathered{a.no_reshard_layers}"] if a.no_reshard_layers else []
    parts += [a.optimizer] if a.optimizer != "fused" else []
    parts += [f"stored-{a.stored}"] if a.stored != "fp32" else []
    parts += [f"computed-{a.computed}"] if a.computed != "bf16" else []
    parts += ["whole-logits"] if a.whole_logits else []
    parts += ["no-graphs"] if a.no_graphs else []
    return "-".join(["traced-titan", release, *parts])


def row_of(arguments, config, release, peaks, meter, torch_version):
    a, model = arguments, model_part(arguments.model, config)
    kind = a.recompute if a.recompute in ("none", "full") else "selective"
    measured = measured_part(meter, peaks, meter.now())
    measured["rank"] = a.stage * a.gpus // a.pp
    return {
        "id": identity(a, model, release), "family": "traced-torchtitan", "complete": True,
        "source": "validator/pytorch/trace_torchtitan.py", "framework": "fsdp2",
        "framework_version": f"PyTorch {torch_version}, torchtitan {release}",
        "settings": settings_of(a, release),
        "gpu": "H100-80GB", "n_gpus": a.gpus, "device": None, "ranks": "fake process group",
        "model": model, "seq": a.seq, "micro_batch": a.micro_batch,
        "global_batch": a.dp * a.micro_batch * a.steps,
        "dp": a.dp, "tp": a.tp, "pp": a.pp, "vpp": a.vpp, "cp": a.cp, "ep": a.ep, "sp": a.tp > 1,
        "zero": {"stage": 2 if a.reshard == "never" else 3,
                 "shard_degree": a.dp * a.cp // a.replicas},
        "recompute": {"kind": kind},
        "precision": "fp32" if a.computed == "fp32" else "bf16",
        "optimizer": "AdamW", "attention": "flash", "compile": False,
        "measured": measured, "outcome": "ran", "step_time_s": None,
        "notes": notes_of(meter, STEPS),
    }


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "torchtitan"), titan))
