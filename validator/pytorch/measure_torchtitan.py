#!/usr/bin/env python3
"""Trains a model of torchtitan on this GPU as one rank of many, whose collectives move nothing, and writes
what memory that took and how long a step computed, as one row of a measured corpus, which
script/accuracy reads.

    validator/pytorch/measure_torchtitan.py llama3-8b --gpus 8 --seq 8192 --recompute op --compile --out rows.jsonl
    validator/pytorch/measure_torchtitan.py --grid grid_gpu_torchtitan.txt --out rows.jsonl      # a run a line

A gather copies the rank's own part as often as there are ranks, on its own stream: values are sane, and
little of the GPU's bandwidth is taken. Exit codes: 0 measured, 1 a line of a grid was not, 2 the arguments
cannot be run, 3 a package or a GPU is missing.
"""

import logging
import os
import sys
from importlib.metadata import version

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # which leaves the GPU to the process that a line is run in

import trace_torchtitan  # noqa: E402
from corpus_row import Stop, config_of, profiles, run  # noqa: E402

RELEASE = "0.2.2"


def more(parser):
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--float8", choices=("tensorwise", "rowwise", "rowwise_with_gw_hp"), help="linears of layers")
    profiles(parser)


def read_arguments(words):
    arguments = trace_torchtitan.read_arguments(words, more)
    if arguments.pp > 1 or arguments.ep > 1 or arguments.record:
        raise Stop(2, "--pp, --ep and --record are traced, not measured")
    return arguments


def titan():
    """What every line of a grid needs; a GPU is touched by none but the process that runs a line."""
    if version("torchtitan") != RELEASE:
        raise Stop(2, f"torchtitan {version('torchtitan')}: {RELEASE} can be measured")
    logging.disable(logging.WARNING)
    import gpu_steps  # noqa: F401
    import titan_02  # noqa: F401


def adjust(arguments):
    def change(job):
        job.compile.enable = arguments.compile
        if arguments.float8:
            job.model.converters = ["quantize.linear.float8"]
            options = job.quantize.linear.float8
            options.filter_fqns = ["output"]
            if arguments.float8 == "tensorwise":  # docs/float8.md
                options.enable_fsdp_float8_all_gather = options.precompute_float8_dynamic_scale_for_fsdp = True
            else:
                options.recipe_name = arguments.float8
    return change


def measure(arguments):
    titan()
    import titan_02 as runner
    import torch
    from gpu_steps import profile, run_steps, start_rank
    if not torch.cuda.is_available():
        raise Stop(3, "no GPU; trace_torchtitan.py needs none")
    if arguments.model not in runner.MODELS:
        raise Stop(2, f"torchtitan {RELEASE} has no {arguments.model}; it has {', '.join(runner.MODELS)}")
    config = config_of(arguments.model, arguments.layers)
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(arguments.gpus))
    start_rank(arguments.gpus)
    trainer, step = runner.trainer_of(arguments, adjust(arguments))
    trace_torchtitan.keep_gathered(trainer, arguments.no_reshard_layers)
    seconds, meter = run_steps(step)
    row = row_of(arguments, config, seconds, meter, torch.__version__)
    if arguments.profile:
        profile(step, os.path.join(arguments.profile, row["id"] + ".txt"))
    return row


def row_of(arguments, config, seconds, meter, torch_version):
    from gpu_steps import measured_row
    row = trace_torchtitan.row_of(arguments, config, RELEASE, [meter.peak()], meter, torch_version)
    row = measured_row(row, "torchtitan", seconds, meter)
    row["id"] = row["id"].replace("traced-titan", "gpu-titan") + (
        "-compiled" if arguments.compile else "") + (f"-{arguments.float8}" if arguments.float8 else "")
    row["compile"] = arguments.compile
    expands = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    row["settings"] |= {"compile.enable": str(arguments.compile).lower(), "expandable_segments": str(expands).lower()}
    row["notes"] += " Collectives move nothing."
    if arguments.float8:
        row["precision"] = "fp8"
        row["settings"]["float8.recipe_name"] = arguments.float8
        row["settings"]["float8.enable_fsdp_float8_all_gather"] = str(arguments.float8 == "tensorwise").lower()
    return row


if __name__ == "__main__":
    sys.exit(run(read_arguments, measure, ("torch", "torchtitan"), titan))
