#!/usr/bin/env python3
"""Runs three steps of Megatron-LM as it is on the path, and writes what memory a rank took as one row of a
measured corpus, which script/accuracy reads. Tensors are fake, and collectives move nothing: neither a GPU
nor its memory is needed. --megatron= are arguments of Megatron-LM's pretrain_gpt.py.

    validator/pytorch/trace_megatron.py llama3-8b --gpus 8 --out rows.jsonl --megatron="--num-layers 4 ..."
    validator/pytorch/trace_megatron.py --grid grid.txt --out rows.jsonl     # a run a line

Without it the words are a question to `zeroplan export` (a catalog model's name, --layers, options), whose
answer are the arguments: so are the lines of a grid. Exit codes: 0 traced, 1 a line of a grid was not, 2 the arguments cannot be run,
3 a package is missing.
"""

import argparse
import contextlib
import functools
import gc
import io
import logging
import shlex
import sys

from corpus_row import Stop, run
from megatron_question import exported


def read_arguments(words):
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("model", help="a name for the row")
    add("--gpus", type=int, required=True)
    add("--stage", type=int, default=0, help="of the pipeline, whose first rank is traced")
    add("--out", help="append the row to this file (default: standard output)")
    add("--megatron", help="all arguments of pretrain_gpt.py that matter, as one word")
    asks = "-h" in words or "--help" in words or any(word.startswith("--megatron") for word in words)
    arguments = parser.parse_args(words if asks else exported(words))
    arguments.megatron = shlex.split(arguments.megatron)
    return arguments


@functools.cache
def warm():
    """The meter, and the release of Transformer Engine: all that is imported once."""
    logging.disable(logging.WARNING)
    import typing

    import typing_extensions
    typing.override = typing_extensions.override  # Megatron-LM asks for it; Python 3.11 has none
    from megatron_engine import stand_in
    from megatron_gpu import HostMeter, take_gpus
    meter = HostMeter()
    take_gpus(meter)
    engine = stand_in()
    import megatron_step  # noqa: F401
    return meter, engine


def trace(arguments):
    meter, engine = warm()
    if engine is None and option(arguments.megatron, "--transformer-impl", "transformer_engine") != "local":
        raise Stop(3, f"{sys.executable} lacks transformer_engine (--set transformer_engine=local asks for "
                      "Megatron's own layers)")
    import megatron_step
    import torch
    from megatron_gpu import OnDevice, start_rank
    from megatron_row import STEPS, row_of
    from torch._subclasses.fake_tensor import FakeTensorMode
    stages = int(option(arguments.megatron, "--pipeline-model-parallel-size", 1))
    rank = arguments.stage * arguments.gpus // stages
    start_rank(rank, arguments.gpus)
    peaks = []
    silent = contextlib.redirect_stdout(io.StringIO())  # Megatron prints its arguments
    with silent, FakeTensorMode(allow_non_fake_inputs=True), OnDevice(), meter:
        args = megatron_step.parse(arguments.megatron, rank, arguments.gpus, engine)
        megatron_step.balance_experts(args)
        model, optimizer, step = megatron_step.trainer_of(args, meter)
        for number in range(STEPS):
            if number > 0:  # the first holds what it took to begin
                meter.start_step(number + 1 == STEPS)
            step(number)
            gc.collect()
            peaks.append(meter.peak())
        megatron_step.name_states(model, optimizer, meter)
    return row_of(arguments, args, peaks, meter, engine, torch.__version__)


def option(words, name, otherwise):
    return words[words.index(name) + 1] if name in words else otherwise


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "megatron.core", "megatron.training", "pretrain_gpt"), warm))
