#!/usr/bin/env python3
"""Trains a model of Transformers on this GPU, as accelerate prepares it, and writes what memory that took and
how long a step was, as one row of a measured corpus, which script/accuracy reads. Alone (--gpus 1 --zero 0),
or as one rank of many under FSDP2, whose collectives move nothing.

    validator/pytorch/measure_transformers.py qwen2.5-0.5b --gpus 1 --zero 0 --seq 2048 --out rows.jsonl
    validator/pytorch/measure_transformers.py llama3-8b --gpus 8 --layers 8 --seq 4096 --out rows.jsonl

Exit codes: 0 measured, 1 a line of a grid was not, 2 the arguments cannot be run, 3 a package or a GPU is missing.
"""

import os
import sys

import trace_transformers
from corpus_row import Stop, profiles, run
from transformers_model import batch_of, configuration, is_file, model_of


def read_arguments(words):
    arguments = trace_transformers.read_arguments(words, profiles)
    if arguments.record or is_file(arguments.model):
        raise Stop(2, "--record and config.json are traced, not measured")
    if arguments.zero == 0 and arguments.gpus > 1:
        raise Stop(2, "replicas are measured one alone; they agree on their shapes by collectives")
    return arguments


def prepared(config, arguments, torch):
    """The model of a rank, as accelerate prepares it."""
    attention = "eager" if arguments.attention == "unfused" else "sdpa"
    alone = arguments.zero == 0
    with torch.device("cuda" if alone else "meta"):
        model = model_of(config, torch, attention)
    if arguments.recompute == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if alone:
        from accelerate import Accelerator
        return Accelerator(mixed_precision="bf16" if arguments.precision == "bf16" else "no").prepare(model)
    from gpu_steps import start_rank
    from torch.distributed.device_mesh import init_device_mesh
    start_rank(arguments.gpus)
    mesh = init_device_mesh("cuda", (arguments.gpus,), mesh_dim_names=("dp_shard",))
    model = trace_transformers.sharded(model, arguments, mesh, torch, "cuda").to_empty(device="cuda")
    with torch.no_grad():
        for tensor in list(model.parameters()):
            tensor.to_local().normal_(std=0.02)
        for module in model.modules():  # its buffers are not parameters
            if hasattr(module, "original_inv_freq"):
                module.inv_freq.copy_(1 / 1e4 ** torch.linspace(0, 1, module.inv_freq.numel()))
    return model


def measure(arguments):
    import torch
    from gpu_steps import measured_row, profile, run_steps
    if not torch.cuda.is_available():
        raise Stop(3, "no GPU; trace_transformers.py needs none")
    config = configuration(arguments)
    model = prepared(config, arguments, torch)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), **{arguments.optimizer: True})

    def step():
        for i in range(arguments.steps):
            if arguments.zero != 0:
                model.set_requires_gradient_sync(arguments.sync_each_batch or i + 1 == arguments.steps)
            with torch.device("cuda"):
                batch = batch_of(config, arguments.micro_batch, arguments.seq, torch)
            outputs = model(**batch)
            loss = outputs["loss"]
            if arguments.logits == "dropped":
                del outputs
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()

    seconds, meter = run_steps(step)
    row = trace_transformers.row_of(arguments, [meter.peak()], meter, torch.__version__)
    row = measured_row(row, "transformers", seconds, meter)
    row["id"] = row["id"].replace("traced-", "gpu-transformers-")
    if arguments.zero == 0:
        row["ranks"] = "one GPU"
    else:
        row["notes"] += " Collectives move nothing."
    if arguments.profile:
        profile(step, os.path.join(arguments.profile, row["id"] + ".txt"))
    return row


# Transformers asks for the GPU while it is imported, which each line's process then does by itself.
if __name__ == "__main__":
    sys.exit(run(read_arguments, measure, ("torch", "transformers", "accelerate"), lambda: None))
