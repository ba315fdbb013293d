#!/usr/bin/env python3
"""Trains a small model of Transformers for three steps under DeepSpeed's engine, both as they are installed,
and writes what memory one rank took as one row of a measured corpus, which script/accuracy reads.
Tensors are real and on the host, so all of them must fit there; collectives move nothing, products and
attention make their results and compute nothing, and DeepSpeed's own kernels, which allocate nothing, do
not run.

    validator/pytorch/trace_deepspeed.py small --gpus 8 --zero 3 --seq 64 --out rows.jsonl
    validator/pytorch/trace_deepspeed.py --grid grid.txt --out rows.jsonl     # a run a line

Exit codes: 0 traced, 1 a line of a grid was not, 2 the arguments cannot be run, 3 a package is missing.
"""

import argparse
import gc
import itertools
import logging
import os
import sys
from importlib.metadata import version

import linear_attention_kernels
import record_document
from corpus_row import Stop, config_of, configured_model, measured_part, notes_of, run

STEPS = 3
MODELS = {  # hidden, intermediate, heads, key-value heads, layers, vocabulary
    "small": (512, 1408, 8, 8, 6, 8192), "grouped": (512, 1536, 8, 2, 4, 16384),
    "deep": (256, 704, 4, 4, 16, 4096), "wide": (1024, 2816, 16, 8, 2, 8192),
    "tied": (512, 1408, 8, 4, 8, 12288)}  # its embeddings


def read_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("model", help=f"{', '.join(MODELS)}, or a small one of presets/models")
    add("--layers", type=int, help="fewer layers than the catalog's model has")
    add("--gpus", type=int, required=True)
    add("--rank", default="0", help="which of them runs; most: the one that holds most under stages 1 and 2")
    add("--zero", type=int, choices=(0, 1, 2, 3), required=True)
    add("--seq", type=int, required=True)
    add("--micro-batch", type=int, default=1)
    add("--steps", type=int, default=1, help="micro-batches of a step")
    add("--recompute", choices=("none", "full"), default="none")
    add("--precision", choices=("bf16", "fp16"), default="bf16")
    add("--set", action="append", default=[], metavar="KEY=VALUE",
        help="of zero_optimization, or data_types.grad_accum_dtype")
    add("--out", help="append the row to this file (default: standard output)")
    add("--record", help="also write the last step as a program, which zeroplan takes as MODEL")
    return parser.parse_args(words)


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    return int(float(text)) if text[0].isdigit() else text


def document_of(arguments):
    """DeepSpeed's configuration."""
    zero = {"stage": arguments.zero}
    document = {
        "train_micro_batch_size_per_gpu": arguments.micro_batch,
        "gradient_accumulation_steps": arguments.steps,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, "gradient_clipping": 1.0,
        arguments.precision: {"enabled": True}, "zero_optimization": zero}
    if arguments.precision == "fp16":
        document["fp16"]["initial_scale_power"] = 4
    for setting in arguments.set:
        key, _, value = setting.partition("=")
        if key == "data_types.grad_accum_dtype":
            document["data_types"] = {"grad_accum_dtype": value}
        else:
            zero[key] = value_of(value)
    return document


def configuration(name, layers):
    if name not in MODELS:
        return config_of(name, layers)
    hidden, ffn, heads, kv_heads, layers, vocab = MODELS[name]
    return {"model_type": "llama", "hidden_size": hidden, "intermediate_size": ffn,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "num_hidden_layers": layers, "vocab_size": vocab, "max_position_embeddings": 2048,
            "tie_word_embeddings": name == "tied"}


def free_of_host():
    """Bytes that can be had: what caches files is."""
    try:
        with open("/proc/meminfo") as file:
            return 1024 * int(next(line for line in file if line.startswith("MemAvailable:")).split()[1])
    except (OSError, StopIteration):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_host(model, arguments):
    """Real tensors take the host's memory: all states, and as much again while they are made."""
    shards = arguments.gpus if arguments.zero == 3 else 1
    count = sum(parameter.numel() for parameter in model.parameters())
    needed = 24 * count // shards
    free = free_of_host()
    if needed > free:
        raise Stop(2, f"{arguments.model} needs {needed / 2**30:.1f} GiB of the host, whose tensors are real; "
                      f"{free / 2**30:.1f} GiB are free (give fewer --layers)")


class NoKernels:
    """A builder of DeepSpeed's operators that builds none."""

    def load(self):
        return self

    def __getattr__(self, name):
        return lambda *_, **__: 0


def without_kernels():
    """The engine on the host as if on a GPU. Gradients mean nothing, so none overflows."""
    os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", DS_SKIP_CUDA_CHECK="1",
                      LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="1")
    logging.disable(logging.WARNING)
    import deepspeed
    import deepspeed.comm.torch
    import deepspeed.ops.adam.cpu_adam as cpu_adam
    import deepspeed.ops.adam.fused_adam as fused_adam
    from deepspeed.accelerator import get_accelerator
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
    get_accelerator().is_fp16_supported = lambda: True
    get_accelerator().available_memory = lambda *_: 80 << 30
    deepspeed.comm.torch.build_shm_op = lambda: None
    fused_adam.FusedAdamBuilder = cpu_adam.CPUAdamBuilder = NoKernels
    fused_adam.multi_tensor_applier = lambda *_: None
    for optimizer in (DeepSpeedZeroOptimizer_Stage3, DeepSpeedZeroOptimizer):
        for name in ("check_overflow", "_check_overflow"):
            if hasattr(optimizer, name):
                setattr(optimizer, name, never_overflows(getattr(optimizer, name)))
    return deepspeed


def never_overflows(function):
    def call(self, *args, **kwargs):
        function(self, *args, **kwargs)
        self.overflow = False
        return False
    return call


def rank_of(arguments, torch):
    if arguments.rank != "most":
        return int(arguments.rank)
    if arguments.zero not in (1, 2):
        return 0
    from transformers import AutoConfig, AutoModelForCausalLM
    values = configuration(arguments.model, arguments.layers)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    linear_attention_kernels.stand_in(config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return rank_that_holds_most([parameter.numel() for parameter in model.parameters()], arguments)


def rank_that_holds_most(sizes, arguments):
    """Under stages 1 and 2 a rank has room for all tensors that touch its part of the flat buffer, from when the first
    of them is reduced."""
    zero = document_of(arguments)["zero_optimization"]
    in_fp32 = "data_types.grad_accum_dtype=fp32" in arguments.set
    if in_fp32 and (arguments.zero == 2 or arguments.precision == "fp16"):  # it has its part alone
        return 0 if arguments.zero == 1 else arguments.gpus - 1
    part = -(-sum(sizes) // arguments.gpus)
    owners = [range((end - size) // part, (end - 1) // part + 1)
              for size, end in zip(sizes, itertools.accumulate(sizes))]
    owned = [sum(size for size, of in zip(sizes, owners) if rank in of) for rank in range(arguments.gpus)]
    bucket = zero.get("reduce_bucket_size", 500_000_000)
    as_made = zero.get("overlap_comm") and arguments.steps == 1
    if arguments.zero == 2 or as_made:  # the last first
        if arguments.zero == 1 and sizes[-1] > bucket:  # others keep the whole gradient
            owned = [mine + (rank not in owners[-1]) * sizes[-1] for rank, mine in enumerate(owned)]
        early = rooms_before_end(sizes[:0:-1], owners[:0:-1], bucket) if arguments.steps == 1 else {}
        return max(early or range(arguments.gpus), key=lambda rank: (owned[rank], -rank))
    taken = rooms_before_end(sizes, owners, bucket)
    every = sum(size for size in sizes if size <= bucket)
    beside = [mine - taken.get(rank, every) for rank, mine in enumerate(owned)]
    boundary, step = 2 * (sum(sizes) + max(beside)), 2 * max(owned) + 6 * part
    most = beside if boundary > step else owned
    return most.index(max(most))


def rooms_before_end(sizes, owners, bucket):
    """Elements that buckets have taken in when a rank gets room, of those that get it before all gradients are in."""
    rooms, waiting, held, taken = {}, [], 0, 0
    for size, ranks in zip(sizes, owners):
        if waiting and held + size > bucket:
            for rank in itertools.chain(*waiting):
                rooms.setdefault(rank, taken)
            waiting, held = [], 0
        waiting.append(ranks)
        held += size
        taken += size if size <= bucket else 0
    return rooms


def build_model(deepspeed, arguments, document, torch):
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
    PreTrainedModel._initialize_weights = lambda *_, **__: None  # changes values alone
    values = configuration(arguments.model, arguments.layers)
    config = AutoConfig.for_model(values.pop("model_type"), **values, use_cache=False)
    linear_attention_kernels.stand_in(config)
    with torch.device("meta"):
        check_host(AutoModelForCausalLM.from_config(config), arguments)
    if arguments.zero == 3:
        with deepspeed.zero.Init(config_dict_or_path=document):
            model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    else:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[arguments.precision]
        model = AutoModelForCausalLM.from_config(config, dtype=kind, attn_implementation="sdpa")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    if arguments.recompute == "full":
        model.gradient_checkpointing_enable()
    model.train()
    return model


def flash(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
    """What the GPU's kernel keeps, the host's does too."""
    import torch
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    repeats = query.size(1) // key.size(1)
    if repeats > 1:  # the host's takes as many heads of keys; expanded ones take no memory
        key, value = (x.unsqueeze(2).expand(-1, -1, repeats, -1, -1).flatten(1, 2)
                      for x in (key, value))
    return kernel(query, key, value, dropout_p, True, scale=scale)[0]


def tied_table(arguments):
    """The shape of the weight that output layer and embedding share."""
    values = configuration(arguments.model, arguments.layers)
    return (values["vocab_size"], values["hidden_size"]) if values.get("tie_word_embeddings") else None


def without_products(torch):
    """A dispatch mode under which products and attention give zeros, as weights that are zero do: the host would
    compute for minutes what a GPU does in milliseconds. What kernels that do not run would write is zero too: the
    engine passes over a step whose gradients are not finite."""
    from record_operators import name_of
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    class WithoutProducts(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = name_of(function)
            if name in ("empty", "empty_like", "empty_strided", "new_empty"):
                made = function(*args, **(kwargs or {}))
                return made.zero_() if made.is_floating_point() and made.device.type == "cpu" else made
            if name not in ("mm", "addmm", "bmm") and "attention" not in name or function._schema.is_mutable:
                return function(*args, **(kwargs or {}))
            shapes = tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs or {}))
            return tree_map_only(
                torch.Tensor, lambda t: torch.empty_strided(t.size(), t.stride(), dtype=t.dtype).zero_(),
                function(*shapes[0], **shapes[1]))

    return WithoutProducts()


def tell_updates(meter):
    """FusedAdam's kernel allocates nothing; a recorder is told what it reads and writes."""
    import deepspeed.ops.adam.fused_adam as fused_adam
    from record_operators import bytes_of

    def update(_, __, lists, *___):
        if meter.recorder:
            gradients, *written = (sum(bytes_of(t) for t in tensors) for tensors in lists)
            meter.recorder.works({"name": "multi_tensor_adam", "precision": "fp32",
                                  "moved_bytes": gradients + 2 * sum(written)})
    fused_adam.multi_tensor_applier = update


def layout_of(a):
    return record_document.layout(a.gpus, a.seq, a.micro_batch, a.steps, zero=a.zero, recompute=a.recompute,
                                  precision=a.precision)


def record(engine, arguments, recorder):
    parameters = sum(getattr(p, "ds_numel", p.numel()) for p in engine.module.parameters())
    record_document.write(arguments.record, recorder, record_document.head(
        arguments.model, parameters, engine.module.config.num_hidden_layers, "deepspeed",
        ("deepspeed", "transformers", "torch"), layout_of(arguments), arguments.rank))


def name_states(engine, meter):
    meter.name("parameters", [getattr(p, "ds_tensor", p) for p in engine.module.parameters()])
    for states in engine.optimizer.optimizer.state.values():
        meter.name("optimizer states", [s for s in states.values() if hasattr(s, "untyped_storage")])
    flat = "fp32_partitioned_groups_flat", "single_partition_of_fp32_groups"  # of stage 3; of 1 and 2
    for master in (tensors for name in flat for tensors in getattr(engine.optimizer, name, ())):
        meter.name("master parameters", [master])


def train(engine, arguments, meter, torch):
    """Peaks by step."""
    from recorder import Recorder
    vocabulary = configuration(arguments.model, arguments.layers)["vocab_size"]
    peaks = []
    for number in range(STEPS):
        last = number + 1 == STEPS
        meter.start_step(last)
        if last and arguments.record:
            meter.phase = "forward"
            Recorder(meter, [engine.module], arguments.steps, record_document.group_namer(layout_of(arguments)))
        for _ in range(arguments.steps):
            ids = torch.randint(0, vocabulary, (arguments.micro_batch, arguments.seq))
            meter.phase = "forward"
            loss = engine(input_ids=ids, labels=ids).loss
            meter.phase = "backward"
            engine.backward(loss)
            del loss
            meter.phase = "optimizer"
            engine.step()
        gc.collect()
        peaks.append(meter.peak())
    return peaks


def trace(arguments):
    deepspeed = without_kernels()
    import torch
    from instruments import FakeMeter
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.set_num_threads(1)
    arguments.rank = rank_of(arguments, torch)
    os.environ.update(RANK=str(arguments.rank), WORLD_SIZE=str(arguments.gpus))
    torch.distributed.init_process_group(
        "fake", rank=arguments.rank, world_size=arguments.gpus, store=FakeStore())
    deepspeed.init_distributed(dist_backend="fake", auto_mpi_discovery=False,
                               dist_init_required=False)
    document = document_of(arguments)
    meter = FakeMeter()
    meter.table = tied_table(arguments)
    with without_products(torch), meter:
        model = build_model(deepspeed, arguments, document, torch)
        engine, *_ = deepspeed.initialize(
            model=model, model_parameters=list(model.parameters()), config=document)
        gc.collect()
        tell_updates(meter)
        peaks = train(engine, arguments, meter, torch)
        if meter.recorder:
            name_states(engine, meter)
            record(engine, arguments, meter.recorder)
    return row_of(arguments, peaks, meter, torch.__version__)


def row_of(arguments, peaks, meter, torch_version):
    a, release = arguments, version("deepspeed")
    model = configured_model(a.model, configuration(a.model, a.layers))
    settings = {"version": ".".join(release.split(".")[:2])}
    settings.update(setting.split("=", 1) for setting in a.set)
    told = "".join(f"-{setting}" for setting in a.set)
    return {
        "id": f"traced-ds-{release}-{model['name']}-dp{a.gpus}-z{a.zero}-s{a.seq}"
              f"-b{a.micro_batch}x{a.steps}-{a.recompute}-{a.precision}{told}",
        "family": "traced-deepspeed", "complete": True,
        "source": "validator/pytorch/trace_deepspeed.py", "framework": "deepspeed",
        "framework_version": f"PyTorch {torch_version}, deepspeed {release}, "
                             f"transformers {version('transformers')}",
        "settings": settings,
        "gpu": "A100-80GB", "n_gpus": a.gpus, "device": None, "ranks": f"fake process group, rank {a.rank}",
        "model": model, "seq": a.seq, "micro_batch": a.micro_batch,
        "global_batch": a.gpus * a.micro_batch * a.steps,
        "dp": a.gpus, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "sp": False,
        "zero": {"stage": a.zero, "shard_degree": a.gpus},
        "recompute": {"kind": a.recompute}, "precision": a.precision,
        "optimizer": "FusedAdam", "attention": "flash", "compile": False,
        "measured": measured_part(meter, peaks, meter.now()),
        "outcome": "ran", "step_time_s": None, "notes": notes_of(meter, STEPS),
    }


if __name__ == "__main__":
    sys.exit(run(read_arguments, trace, ("torch", "deepspeed", "transformers"), without_kernels))
