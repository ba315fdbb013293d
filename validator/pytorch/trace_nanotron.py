#!/usr/bin/env python3
"""Runs three steps of nanotron as it is on the path, and writes what memory a rank took as one row of a
measured corpus, which script/accuracy reads. Tensors are fake, and collectives move nothing: neither a GPU
nor its memory is needed.

    validator/pytorch/trace_nanotron.py llama3-8b --gpus 8 --layers 4 --seq 4096 --out rows.jsonl
    validator/pytorch/trace_nanotron.py --grid grid.txt --out rows.jsonl     # a run a line

Exit codes: 0 traced, 1 a line of a grid was not, 2 the arguments cannot be run, 3 a package is missing.
"""

import argparse
import contextlib
import functools
import gc
import io
import logging
import os
import sys
import tempfile

from corpus_row import Stop, config_of, measured_part, model_part, notes_of, run

STEPS = 3


def read_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("model", help="a name of presets/models")
    add("--gpus", type=int, required=True)
    add("--layers", type=int, help="fewer layers than the model has")
    add("--seq", type=int, required=True)
    add("--micro-batch", type=int, default=1)
    add("--steps", type=int, default=1, help="micro-batches of a step")
    add("--tp", type=int, default=1)
    add("--pp", type=int, default=1)
    add("--stage", type=int, default=0, help="of the pipeline, whose first rank is traced")
    add("--zero", type=int, choices=(0, 1), default=1)
    add("--engine", choices=("1f1b", "afab"), default="1f1b")
    add("--tp-mode", choices=("REDUCE_SCATTER", "ALL_REDUCE"), default="REDUCE_SCATTER")
    add("--keep-gathered", action="store_true", help="tp_recompute_allgather: false")
    add("--recompute", choices=("none", "full"), default="none")
    add("--z-loss", action="store_true")
    add("--no-log", action="store_true", help="log_attn_probs of Qwen2Config: false")
    add("--optimizer", choices=("fused", "for-loop"), default="fused")
    add("--out", help="append the row to this file (default: standard output)")
    arguments = parser.parse_args(words)
    arguments.dp = arguments.gpus // (arguments.tp * arguments.pp)
    return arguments


@functools.cache
def warm():
    """The meter, and nanotron: all that is imported once."""
    logging.disable(logging.WARNING)
    import flash_attn_kernels
    from cuda_on_host import HostMeter, take_gpus
    meter = HostMeter()
    take_gpus(meter)
    flash_attn_kernels.stand_in()
    import nanotron_step
    nanotron_step.stand_in()
    return meter, nanotron_step


MODELS = {"2024-12": ("llama", "mistral"), "2025-06": ("llama", "mistral", "qwen2", "smollm3")}


def model_config(arguments, config, release):
    """`model_config` of nanotron's configuration."""
    a = arguments
    heads = config["num_attention_heads"]
    values = {"hidden_size": config["hidden_size"], "intermediate_size": config["intermediate_size"],
              "num_hidden_layers": config["num_hidden_layers"], "num_attention_heads": heads,
              "num_key_value_heads": config.get("num_key_value_heads") or heads,
              "vocab_size": config["vocab_size"], "max_position_embeddings": a.seq,
              "tie_word_embeddings": config.get("tie_word_embeddings", False), "rope_theta": 10000.0,
              "hidden_act": "silu", "rms_norm_eps": 1e-5}
    if a.z_loss:
        values.update(z_loss_enabled=True, z_loss_coefficient=1e-5)
    if release == "2024-12":
        return {**values, "is_llama_config": True}
    return {**values, "is_qwen2_config": True, "attention_bias": config["model_type"] == "qwen2",
            "log_attn_probs": not a.no_log}


def document(arguments, config, release):
    """nanotron's configuration."""
    a = arguments
    return {
        "general": {"project": "trace", "run": "trace", "seed": 1, "ignore_sanity_checks": True},
        "checkpoints": {"checkpoint_interval": 1000, "checkpoints_path": "checkpoints"},
        "data_stages": [{"name": "all", "start_training_step": 1, "data": {"dataset": None, "seed": 1}}],
        "logging": {"log_level": "error", "log_level_replica": "error"},
        "model": {"dtype": "bfloat16", "init_method": {"std": 0.02}, "make_vocab_size_divisible_by": 1,
                  "ddp_bucket_cap_mb": 25, "model_config": model_config(a, config, release)},
        "optimizer": {
            "accumulate_grad_in_fp32": True, "clip_grad": 1.0, "weight_decay": 0.01, "zero_stage": a.zero,
            "learning_rate_scheduler": {"learning_rate": 1e-4, "lr_warmup_steps": 2, "lr_warmup_style": "linear",
                                        "lr_decay_style": "cosine", "min_decay_lr": 1e-5},
            "optimizer_factory": {"name": "adamW", "adam_beta1": 0.9, "adam_beta2": 0.95, "adam_eps": 1e-8,
                                  "torch_adam_is_fused": a.optimizer == "fused"}},
        "parallelism": {
            "dp": a.dp, "tp": a.tp, "pp": a.pp, "pp_engine": a.engine, "tp_mode": a.tp_mode,
            "tp_linear_async_communication": a.tp_mode == "REDUCE_SCATTER",
            "recompute_layer": a.recompute == "full", "tp_recompute_allgather": not a.keep_gathered},
        "tokenizer": {"tokenizer_name_or_path": "none"},
        "tokens": {"sequence_length": a.seq, "micro_batch_size": a.micro_batch, "train_steps": 100,
                   "batch_accumulation_per_replica": a.steps, "limit_test_batches": 0, "limit_val_batches": 0,
                   "val_check_interval": -1},
    }


def written(values):
    """A file of it, which the trainer reads."""
    import yaml
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        yaml.dump(values, file)
    return file.name


def trace(arguments):
    meter, nanotron_step = warm()
    import torch
    from cuda_on_host import OnDevice, start_rank
    from no_gpu import answer_reads
    from torch._subclasses.fake_tensor import FakeTensorMode
    config = config_of(arguments.model, arguments.layers)
    release = nanotron_step.release()
    if config["model_type"] not in MODELS[release]:
        raise Stop(2, f"nanotron of {release} has no class for {arguments.model}")
    # Ranks: pipeline, then data, then tensor, as nanotron's ParallelContext orders them.
    rank = arguments.stage * arguments.gpus // arguments.pp
    start_rank(rank, arguments.gpus)
    os.environ["LOCAL_RANK"] = str(rank % 8)
    answer_reads(0)
    path = written(document(arguments, config, release))
    peaks = []
    try:
        with contextlib.redirect_stdout(io.StringIO()), FakeTensorMode(allow_non_fake_inputs=True), OnDevice(), meter:
            trainer, step = nanotron_step.trainer_of(path, meter)
            gc.collect()
            for number in range(STEPS):
                meter.start_step(number + 1 == STEPS)
                step(number)
                gc.collect()
                peaks.append(meter.peak())
            nanotron_step.name_states(trainer, meter)
    finally:
        os.remove(path)
    return row_of(arguments, config, peaks, meter, release, torch.__version__)


def settings_of(a, release):
    settings = {"version": release}
    if a.keep_gathered:
        settings["tp_recompute_allgather"] = "false"
    if a.z_loss:
        settings["z_loss_enabled"] = "true"
    if a.no_log:
        settings["log_attn_probs"] = "false"
    return settings


def identity(a, model, release):
    parts = [model["name"], f"dp{a.dp}", f"s{a.seq}", f"b{a.micro_batch}x{a.steps}", f"z{a.zero}", a.recompute]
    parts += [f"{name}{getattr(a, name)}" for name in ("tp", "pp") if getattr(a, name) > 1]
    parts += [f"stage{a.stage}", a.engine] if a.pp > 1 else []
    parts += ["all-reduce"] if a.tp > 1 and a.tp_mode == "ALL_REDUCE" else []
    parts += [name for name in ("keep-gathered", "z-loss", "no-log")
              if getattr(a, name.replace("-", "_"))]
    parts += [a.optimizer] if a.optimizer != "fused" else []
    return "-".join(["traced-nanotron", release, *parts])


def row_of(arguments, config, peaks, meter, release, torch_version):
    a, model = arguments, model_part(arguments.model, config)
    measured = measured_part(meter, peaks, meter.now())
    measured["rank"] = a.stage * a.gpus // a.pp
    return {
        "id": identity(a, model, release), "family": "traced-nanotron", "complete": True,
        "source": "validator/pytorch/trace_nanotron.py", "framework": "nanotron",
        "framework_version": f"PyTorch {torch_version}, nanotron of {release}",
        "settings": settings_of(a, release),
        "gpu": "H100-80GB", "n_gpus": a.gpus, "device": None, "ranks": "fake process group",
        "model": model, "seq": a.seq, "micro_batch": a.micro_batch,
        "global_batch": a.dp * a.micro_batch * a.steps,
        "dp": a.dp, "tp": a.tp, "pp": a.pp, "vpp": 1, "cp": 1, "ep": 1,
        "sp": a.tp > 1 and a.tp_mode == "REDUCE_SCATTER",
        "schedule": {"1f1b": "1f1b", "afab": "gpipe"}[a.engine] if a.pp > 1 else None,
        "zero": {"stage": a.zero, "shard_degree": a.dp},
        "recompute": {"kind": a.recompute}, "precision": "bf16",
        "optimizer": "AdamW", "attention": "flash", "compile": False,
        "measured": measured, "outcome": "ran", "step_time_s": None,
        "notes": notes_of(meter, STEPS),
    }


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "nanotron", "flash_attn", "triton"), warm))
