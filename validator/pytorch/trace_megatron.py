#!/usr/bin/env python3
"""Runs three steps of Megatron-LM as it is on the path, and writes what memory a rank took as one row of a
measured corpus, which script/accuracy reads. Tensors are fake, and collectives move nothing: neither a GPU
nor its memory is needed. --megatron= are arguments of Megatron-LM's pretrain_gpt.py, or, with
--hybrid-layer-pattern, of its pretrain_hybrid.py.

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
    add("--record", help="also write the last step as a program, which zeroplan takes as MODEL")
    add("--megatron", help="all arguments of Megatron-LM that matter, as one word")
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
    from cuda_on_host import HostMeter, take_gpus
    from megatron_record import listen_to_apex, listen_to_collectives, listen_to_kernels
    meter = HostMeter()
    take_gpus(meter)
    listen_to_collectives(meter)
    engine = stand_in(functools.partial(listen_to_kernels, meter))
    listen_to_apex(meter)
    import megatron_step  # noqa: F401
    return meter, engine


def trace(arguments):
    meter, engine = warm()
    if engine is None and option(arguments.megatron, "--transformer-impl", "transformer_engine") != "local":
        raise Stop(3, f"{sys.executable} lacks transformer_engine (--set transformer_engine=local asks for "
                      "Megatron's own layers)")
    import megatron_step
    import torch
    from cuda_on_host import OnDevice, start_rank
    from megatron.core.num_microbatches_calculator import get_num_microbatches
    from megatron_row import STEPS, row_of
    from record_document import group_namer
    from recorder import Recorder
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
            if number + 1 == STEPS and arguments.record:
                batches = get_num_microbatches()
                Recorder(meter, model, batches, group_namer(layout_of(args, arguments, batches)))
            step(number)
            gc.collect()
            peaks.append(meter.peak())
        megatron_step.name_states(model, optimizer, meter)
    if meter.recorder:
        record(meter.recorder, model, args, arguments, engine)
    return row_of(arguments, args, peaks, meter, engine, torch.__version__)


def layout_of(args, arguments, micro_batches):
    import record_document
    from megatron_row import recompute_of, stage_of
    return record_document.layout(
        arguments.gpus, args.seq_length, args.micro_batch_size, micro_batches, tp=args.tensor_model_parallel_size,
        pp=args.pipeline_model_parallel_size, cp=args.context_parallel_size, ep=args.expert_model_parallel_size,
        etp=args.expert_tensor_parallel_size if args.num_experts else 1, zero=stage_of(args),
        sequence_parallel=args.sequence_parallel, recompute=recompute_of(args)["kind"],
        precision="bf16" if args.bf16 else "fp16" if args.fp16 else "fp32",
        attention="unfused" if "unfused" in arguments.megatron else "flash")


def record(recorder, model, args, arguments, engine):
    import record_document
    from megatron_row import core_version
    parameters = sum(
        p.numel() * (args.tensor_model_parallel_size if getattr(p, "tensor_model_parallel", False) else 1)
        for chunk in model for p in chunk.parameters())
    first = record_document.head(arguments.model, parameters, args.num_layers, "megatron", ("torch",),
                                 layout_of(args, arguments, recorder.micro_batches), args.rank)
    first["runtime"]["versions"].update({"megatron-core": core_version,
                                         **({"transformer-engine": engine} if engine else {})})
    record_document.write(arguments.record, recorder, first)


def option(words, name, otherwise):
    return words[words.index(name) + 1] if name in words else otherwise


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "megatron.core", "megatron.training", "pretrain_gpt"), warm))
