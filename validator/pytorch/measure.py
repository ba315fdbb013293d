#!/usr/bin/env python3
"""Trains a plan's model for three steps under PyTorch and writes what memory that took, as one row of
a measured corpus, which script/accuracy reads.

    zeroplan fit llama3.2-1b --gpus 8xH100-80GB --runtime fsdp2 --json > plan.json
    torchrun --nproc-per-node 8 validator/pytorch/measure.py plan.json --out rows.jsonl
    validator/pytorch/measure.py plan.json --fake-ranks --out rows.jsonl     # rank 0 alone, one GPU
    validator/pytorch/measure.py plan.json --no-gpu --out rows.jsonl         # fake tensors, no GPU

Exit codes: 0 measured, 1 out of memory (a row says so), 2 the plan cannot be built here, 3 the
machine lacks what was asked.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time
from contextlib import ExitStack, nullcontext

HERE = pathlib.Path(__file__).resolve().parent
PRESETS = HERE.parent.parent / "presets" / "models"
STEPS = 3
# Whose layers model.py and sharding.py write: torchtitan's of this day, which rows must say.
RECIPE = "2026-02-01"


class Stop(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("plan", help="what `zeroplan fit ... --json` wrote; - for standard input")
    parser.add_argument("--config", help="config.json of the model (default: by its catalog name)")
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    parser.add_argument("--out", help="append the row to this file (default: standard output)")
    parser.add_argument("--fake-ranks", action="store_true",
                        help="one process as rank 0; collectives move nothing")
    parser.add_argument("--no-gpu", action="store_true", help="fake tensors, even with a GPU")
    return parser.parse_args()


def read_json(path):
    try:
        return json.load(sys.stdin) if path == "-" else json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise Stop(2, f"{path}: {error}") from error


def read_plan(arguments):
    plan = read_json(arguments.plan)
    if plan.get("schema") != "zeroplan.fit/1":
        raise Stop(2, f"{arguments.plan}: must be what `zeroplan fit --json` writes")
    layout = plan["layout"]
    for key in ("tp", "pp", "cp", "ep"):
        if layout[key] != 1:
            raise Stop(2, f"{key} {layout[key]}: only data parallelism is built here")
    wrong = {"precision": ("bf16",), "optimizer": ("adam",), "attention": ("flash",),
             "offload": ("none",), "recompute": ("none", "selective", "full")}
    for key, allowed in wrong.items():
        if layout[key] not in allowed:
            raise Stop(2, f"{key} {layout[key]}: only {', '.join(allowed)} is built here")
    if plan["runtime"] not in ("fsdp2", "ddp"):
        raise Stop(2, f"runtime {plan['runtime']}: only fsdp2 and ddp are built here")
    if plan["runtime"] == "fsdp2" and layout["zero"] not in (2, 3):
        raise Stop(2, f"zero {layout['zero']}: FSDP2 shards gradients (2) or parameters too (3)")
    return plan


def read_config(arguments, plan):
    name = plan["model"]["name"]
    if arguments.config:
        config = read_json(arguments.config)
    elif (PRESETS / f"{name}.json").exists():
        config = read_json(PRESETS / f"{name}.json")["config"]
    else:
        raise Stop(2, f"model {name} is not in the catalog; give its --config")
    if arguments.layers:
        key = "n_layer" if "n_layer" in config else "num_hidden_layers"
        if not 1 <= arguments.layers <= config[key]:
            raise Stop(2, f"--layers {arguments.layers}: the model has {config[key]}")
        config = {**config, key: arguments.layers}
    return config


class Run:
    """Where and as whom this process runs."""

    def __init__(self, arguments, plan, torch):
        self.torch = torch
        self.gpu = torch.cuda.is_available() and not arguments.no_gpu
        launched = int(os.environ.get("WORLD_SIZE", "1"))
        self.ranks = plan["layout"]["dp"]
        self.fake_ranks = arguments.fake_ranks or not self.gpu
        if not self.gpu and plan["runtime"] == "ddp":
            raise Stop(3, "DDP's reducer touches memory that fake tensors do not have; a GPU is needed")
        if not self.gpu and not arguments.no_gpu:
            print("measure: no GPU: the memory of fake tensors is added up instead", file=sys.stderr)
        if not self.fake_ranks and launched != self.ranks:
            raise Stop(3, f"the plan has {self.ranks} ranks, but {launched} were launched; "
                          f"torchrun --nproc-per-node, or --fake-ranks for rank 0 alone")
        self.rank = 0 if self.fake_ranks else int(os.environ.get("RANK", "0"))
        self.local_rank = 0 if self.fake_ranks else int(os.environ.get("LOCAL_RANK", "0"))
        self.device = "cuda" if self.gpu else "cpu"

    def start(self):
        dist = self.torch.distributed
        if self.gpu:
            self.torch.cuda.set_device(self.local_rank)
        if self.fake_ranks:
            from torch.testing._internal.distributed.fake_pg import FakeStore
            import torch.distributed._tools.fake_collectives  # collectives on fake tensors
            dist.init_process_group("fake", rank=0, world_size=self.ranks, store=FakeStore())
        else:
            dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=5))

    def meter(self):
        import instruments
        return instruments.CudaMeter() if self.gpu else instruments.FakeMeter()

    def tensors(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        return nullcontext() if self.gpu else FakeTensorMode()


def build(run, plan, shape, mesh):
    import model as decoder
    import sharding
    torch = run.torch
    layout = plan["layout"]
    shards = plan["runtime"] == "fsdp2"
    with torch.device("meta" if shards else run.device):
        model = decoder.Decoder(shape, layout["sequence_length"], fake=not run.gpu)
    sharding.apply_recompute(model, layout["recompute"])
    if shards:
        sharding.apply_fsdp2(model, layout, mesh)
        model.to_empty(device=run.device)
    else:
        model = sharding.apply_ddp(model, run.device, run.local_rank)
    if run.gpu:
        with torch.no_grad():
            for tensor in list(model.parameters()) + list(model.buffers()):
                getattr(tensor, "_local_tensor", tensor).normal_(std=0.02)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def train(run, plan, model, optimizer, meter):
    """Peaks by step, resident bytes after each, and seconds of the last."""
    torch = run.torch
    layout = plan["layout"]
    shape = (layout["micro_batch"], layout["sequence_length"])
    vocab = getattr(model, "module", model).s.vocab
    mixed = plan["runtime"] == "ddp"
    peaks, residents, seconds = [], [], None
    for _ in range(STEPS):
        began = time.perf_counter()
        optimizer.zero_grad()
        for _ in range(layout["gradient_accumulation"]):
            tokens = torch.randint(vocab, shape, device=run.device)
            labels = torch.randint(vocab, shape, device=run.device)
            with torch.autocast(run.device, torch.bfloat16) if mixed else nullcontext():
                logits = model(tokens)
                loss = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1).float(), labels.flatten(0, 1))
            del logits
            loss.backward()
        optimizer.step()
        if run.gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        peaks.append(meter.peak())
        residents.append(meter.now())
    return peaks, residents, seconds


def row_of(run, plan, shape, meter, result):
    layout, gib = plan["layout"], 2**30
    peaks, residents, seconds = result if result else ([], [], None)
    gpu = plan["cluster"]["gpu"]
    measured = None
    if peaks:
        measured = {"value": round(max(peaks) / gib, 4), "unit": "GiB", "what": meter.what,
                    "bytes": max(peaks), "peak_bytes_by_step": peaks, "resident_bytes": residents[-1],
                    "rank": None if run.fake_ranks else run.rank}
        if meter.reserved_peak() is not None:
            measured["max_reserved_gib"] = meter.reserved_peak() / gib
    degree = layout.get("hsdp") or layout["dp"]
    name = f"{plan['model']['name']}-L{shape.layers}"
    timed = run.gpu and not run.fake_ranks
    return {
        "id": f"harness-{plan['runtime']}-{name}-dp{layout['dp']}-z{layout['zero']}"
              f"-hsdp{layout.get('hsdp') or 0}-s{layout['sequence_length']}"
              f"-b{layout['micro_batch']}x{layout['gradient_accumulation']}-{layout['recompute']}",
        "family": "harness", "complete": True,
        "source": "validator/pytorch/measure.py",
        "framework": plan["runtime"],
        "framework_version": f"PyTorch {run.torch.__version__}; layers and units as torchtitan's of {RECIPE}",
        "gpu": gpu, "n_gpus": layout["dp"],
        "device": run.torch.cuda.get_device_name() if run.gpu else None,
        "ranks": "fake process group" if run.fake_ranks else "real",
        "model": {"name": name, "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads,
                  "kv_heads": shape.kv_heads, "head_dim": shape.head_dim, "ffn": shape.ffn,
                  "vocab": shape.vocab,
                  "max_pos": shape.positions, "gated_mlp": shape.gated, "tied_embeddings": shape.tied,
                  "bias": not shape.gated, "qkv_bias": shape.qkv_bias, "qk_norm": shape.qk_norm,
                  "learned_pos_emb": not shape.gated,
                  "norm": "RMSNorm" if shape.gated else "LayerNorm"},
        "seq": layout["sequence_length"], "micro_batch": layout["micro_batch"],
        "global_batch": layout["global_batch"], "dp": layout["dp"], "tp": 1, "pp": 1, "vpp": 1,
        "cp": 1, "ep": 1, "sp": False,
        "zero": {"stage": layout["zero"], "shard_degree": degree,
                 "reshard_after_forward": "default" if layout["zero"] == 3 else "never"},
        "recompute": {"kind": layout["recompute"]},
        "precision": "bf16 compute; fp32 parameters, gradients and states",
        "optimizer": "AdamW (fused)", "attention": "flash", "compile": False,
        "measured": measured, "outcome": "ran" if peaks else "oom",
        "step_time_s": seconds if timed else None,
        "notes": f"{STEPS} steps. Left out: {meter.leaves_out}."
                 + (" Collectives move nothing." if run.fake_ranks else ""),
    }


def measure(arguments):
    plan = read_plan(arguments)
    config = read_config(arguments, plan)
    try:
        import torch
        import torch.distributed.fsdp  # noqa: F401
    except ImportError as error:
        raise Stop(3, f"PyTorch 2.9 or later is needed: {error}") from error
    sys.path.insert(0, str(HERE))
    import model as decoder
    try:
        shape = decoder.Shape.of_config(config)
    except KeyError as error:
        raise Stop(2, f"the model cannot be built here: {error}") from error
    run = Run(arguments, plan, torch)
    run.start()
    import sharding
    mesh = sharding.mesh_of(plan["layout"], run.device, run.ranks)
    meter = run.meter()
    result = None
    with ExitStack() as stack:
        stack.enter_context(run.tensors())
        stack.enter_context(meter)
        try:
            model, optimizer = build(run, plan, shape, mesh)
            result = train(run, plan, model, optimizer, meter)
        except torch.cuda.OutOfMemoryError:
            print("measure: out of memory", file=sys.stderr)
    row = json.dumps(row_of(run, plan, shape, meter, result))
    if run.rank == 0:
        if arguments.out:
            with open(arguments.out, "a", encoding="utf-8") as file:
                file.write(row + "\n")
        else:
            print(row)
    torch.distributed.destroy_process_group()
    return 0 if result else 1


if __name__ == "__main__":
    try:
        sys.exit(measure(read_arguments()))
    except Stop as stop:
        print(f"measure: error: {stop}", file=sys.stderr)
        sys.exit(stop.code)
