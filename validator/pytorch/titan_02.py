"""torchtitan 0.2: JobConfig, torchtitan.train.Trainer. What a file would have answered, and of fake tensors a GPU, is
answered here; the model, its parallelism, the optimizer, the loss and the step are torchtitan's."""

import torch
from corpus_row import Stop
from no_gpu import Logs, Nothing, outside

from torchtitan.tools import utils

utils.has_cuda_capability = lambda *_: True  # of grouped products

import torchtitan.train as train
from torchtitan.config import JobConfig
from torchtitan.distributed import utils as distributed

MODELS = {  # of the catalog: torchtitan's model and flavor
    "llama3-8b": ("llama3", "8B"), "llama3-70b": ("llama3", "70B"),
    "llama3.1-405b": ("llama3", "405B"), "qwen3-0.6b": ("qwen3", "0.6B"),
    "qwen3-1.7b": ("qwen3", "1.7B"), "qwen3-4b": ("qwen3", "4B"), "qwen3-8b": ("qwen3", "8B"),
    "qwen3-14b": ("qwen3", "14B"), "qwen3-32b": ("qwen3", "32B"),
    "qwen3-30b-a3b": ("qwen3", "30B-A3B"), "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
    "deepseek-v2-lite": ("deepseek_v3", "16B"), "deepseek-v2": ("deepseek_v3", "236B"),
    "deepseek-v3": ("deepseek_v3", "671B"), "llama4-scout": ("llama4", "17bx16e")}


def job_of(arguments, name, flavor):
    job = JobConfig()
    job.model.name, job.model.flavor = name, flavor
    batches = arguments.steps if arguments.pp > 1 else 1  # of a pipeline are one local batch
    job.training.local_batch_size = arguments.micro_batch * batches
    job.training.global_batch_size = arguments.micro_batch * arguments.steps * arguments.dp
    job.training.seq_len = arguments.seq
    job.training.dtype = {"fp32": "float32", "bf16": "bfloat16"}[arguments.stored]
    job.training.mixed_precision_param = {"fp32": "float32", "bf16": "bfloat16"}[arguments.computed]
    p = job.parallelism
    p.data_parallel_replicate_degree = arguments.replicas
    p.data_parallel_shard_degree = arguments.dp // arguments.replicas
    p.tensor_parallel_degree = arguments.tp
    p.context_parallel_degree = arguments.cp
    p.pipeline_parallel_degree = arguments.pp
    p.pipeline_parallel_schedule = "Interleaved1F1B" if arguments.vpp > 1 else "1F1B"
    p.pipeline_parallel_microbatch_size = arguments.micro_batch
    p.expert_parallel_degree = arguments.ep
    p.fsdp_reshard_after_forward = arguments.reshard
    p.disable_loss_parallel = arguments.whole_logits
    ac = job.activation_checkpoint
    ac.mode = {"none": "none", "full": "full"}.get(arguments.recompute, "selective")
    ac.selective_ac_option = arguments.recompute
    job.optimizer.implementation = arguments.optimizer
    job.metrics.log_freq = 10**9
    return job


def spec_of(job, arguments):
    """torchtitan's own, without a tokenizer, a data set and logs."""
    spec = train.train_spec_module.get_train_spec(job.model.name)
    spec.build_tokenizer_fn = spec.build_dataloader_fn = None
    spec.build_metrics_processor_fn = Logs
    shape = spec.model_args[job.model.flavor]
    shape.n_layers = arguments.layers or shape.n_layers
    # torchtitan's own kernels that only a compiler writes keep what flash attention keeps.
    for name, value in (("attn_type", "sdpa"), ("attn_mask_type", "causal")):
        if hasattr(shape, name):
            setattr(shape, name, value)
    return spec


def answer_files():
    """What would have been read from or written to files and other ranks."""
    train.CheckpointManager = lambda **_: Nothing()
    train.utils.get_peak_flops = lambda _: 1.0
    train.utils.GarbageCollection = lambda **_: Nothing()
    train.ensure_pp_loss_visible = lambda *_: None
    distributed.dist_sum = distributed.dist_max = lambda *_, **__: 1.0
    distributed.set_determinism = lambda *_, **__: None
    distributed.init_distributed = lambda *_, **__: torch.distributed.get_world_size()


def answer_device(arguments, hidden):
    """What would have been read from a GPU or the rank before, or written by a Triton kernel."""
    torch.cpu.set_device = lambda _: None
    train.ParallelDims.build_mesh = outside(train.ParallelDims.build_mesh)

    def shapes_of_previous_stage(objects, **_):
        shape = (arguments.micro_batch, arguments.seq // arguments.cp, hidden)
        objects[0] = (torch.empty(shape, device="meta", dtype=torch.bfloat16),)
    torch.distributed.recv_object_list = shapes_of_previous_stage
    torch.distributed.send_object_list = lambda *_, **__: None
    import torchtitan.models.moe.kernels as kernels

    def fill(tokens, starts, offsets, experts_per_rank, num_ranks, max_len, **_):
        return torch.full((max_len,), -1, dtype=torch.int32, device=tokens.device)
    kernels.fill_indices_wrapper = fill


class HostTrainer(train.Trainer):
    """On the host, which has no number, as fake tensors want it."""

    device = property(lambda _: torch.device("cpu"), lambda *_: None)


def trainer_of(arguments, adjust=None):
    """torchtitan's Trainer, built by its own constructor, and a step to call. `adjust`: changes the job, which then
    runs on a GPU."""
    if arguments.recompute_num_layers:
        raise Stop(2, "torchtitan 0.2 wraps all layers or every Nth one")
    name, flavor = MODELS[arguments.model]
    job = job_of(arguments, name, flavor)
    spec = spec_of(job, arguments)
    train.train_spec_module.get_train_spec = lambda _: spec
    shape = spec.model_args[flavor]
    answer_files()
    if adjust:
        adjust(job)
        trainer = train.Trainer(job)
    else:
        answer_device(arguments, shape.dim)
        trainer = HostTrainer(job)
    batches = arguments.steps if arguments.pp > 1 else 1

    def batch():
        return torch.randint(0, shape.vocab_size, (arguments.micro_batch * batches, arguments.seq))

    def data():
        while True:
            yield {"input": batch()}, batch()
    stream = data()
    return trainer, lambda: trainer.train_step(stream)
