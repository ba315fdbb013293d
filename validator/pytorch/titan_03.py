"""torchtitan 0.3: Trainer.Config, torchtitan.trainer.Trainer. What a GPU or a file would have answered is
answered here; the model, its parallelism, the optimizer, the loss and the step are torchtitan's."""

import importlib

import torch
from corpus_row import Stop
from no_gpu import Logs, Nothing, attention, outside

import torchtitan.models.common.attention as layers
from torchtitan import trainer as module
from torchtitan.distributed import activation_checkpoint as recompute
from torchtitan.distributed import utils as distributed

MODELS = {  # of the catalog: torchtitan's model and the function that registers its configuration
    "llama3-8b": ("llama3", "llama3_8b"), "llama3-70b": ("llama3", "llama3_70b"),
    "qwen3-0.6b": ("qwen3", "qwen3_0_6b"),
    "qwen3-1.7b": ("qwen3", "qwen3_1_7b"), "qwen3-14b": ("qwen3", "qwen3_14b"),
    "qwen3-32b": ("qwen3", "qwen3_32b"), "qwen3-30b-a3b": ("qwen3", "qwen3_30b_a3b"),
    "deepseek-v2-lite": ("deepseek_v3", "deepseek_v3_16b"),
    "deepseek-v3": ("deepseek_v3", "deepseek_v3_671b")}


class Builds:
    """The configuration of something that does nothing, instead of what it would build."""

    def __init__(self, config, built=None):
        self.config = config
        self.build = lambda **_: built or Nothing()

    def __getattr__(self, name):
        return getattr(self.config, name)


def recompute_of(arguments):
    if arguments.recompute == "none":
        return None
    if arguments.recompute == "full":
        return recompute.FullAC.Config()
    return recompute.SelectiveAC.Config()


def recompute_first(number, selective_rest):
    """As a subclass of a policy does that wraps the first layers, and the rest as asked."""
    selective = recompute.SelectiveAC(recompute.SelectiveAC.Config())._wrap_block

    def rest(block, **named):
        return selective(block, **named) if selective_rest else block

    for policy in (recompute.FullAC, recompute.SelectiveAC):
        def wrap(self, block, *, base_fqn, whole=policy._wrap_block):
            if int(base_fqn.rsplit(".", 1)[1]) < number:
                return whole(self, block, base_fqn=base_fqn)
            return rest(block, base_fqn=base_fqn)
        policy._wrap_block = wrap


def job_of(arguments):
    name, function = MODELS[arguments.model]
    registry = importlib.import_module(f"torchtitan.models.{name}.config_registry")
    job = getattr(registry, function)()
    shape = job.model_spec.model
    if arguments.layers:
        shape.layers = shape.layers[:arguments.layers]
    job.training.local_batch_size = arguments.micro_batch
    job.training.global_batch_size = arguments.micro_batch * arguments.steps * arguments.dp
    job.training.seq_len = arguments.seq
    job.training.dtype = {"fp32": "float32", "bf16": "bfloat16"}[arguments.stored]
    job.training.mixed_precision_param = {"fp32": "float32", "bf16": "bfloat16"}[arguments.computed]
    graphs = arguments.ep == 1 and not arguments.no_graphs
    job.training.disable_cuda_graphs = not graphs
    p = job.parallelism
    p.data_parallel_replicate_degree = arguments.replicas
    p.data_parallel_shard_degree = arguments.dp // arguments.replicas
    p.tensor_parallel_degree = arguments.tp
    p.context_parallel_degree = arguments.cp
    p.expert_parallel_degree = arguments.ep
    p.fsdp_reshard_after_forward = arguments.reshard
    job.activation_checkpoint = recompute_of(arguments)
    job.compile.enable = False
    job.optimizer.implementation = arguments.optimizer
    job.metrics = Builds(job.metrics, Logs())
    for part in ("tokenizer", "dataloader", "checkpoint"):
        setattr(job, part, Builds(getattr(job, part)))
    return job


def flex(self, q_BLNH, k_BLNH, v_BLNH, *, scale=None, **_):  # torchtitan looks at the names
    """What flex attention keeps is what other fused kernels keep."""
    heads_first = (x.transpose(1, 2) for x in (q_BLNH, k_BLNH, v_BLNH))
    return attention(*heads_first, is_causal=True, scale=scale).transpose(1, 2)


def answer_device():
    """What would have been read from a GPU."""
    layers.FlexAttention.forward = flex
    module.utils.get_peak_flops = lambda _: 1.0
    module.utils.GarbageCollection = lambda **_: Nothing()
    module.utils.get_local_device = lambda: torch.device("cpu")
    module.ensure_pp_loss_visible = lambda **_: None
    module.wrap_with_cuda_graph = lambda function: function  # which replays the same allocations
    module.sl.log_trace_scalar = lambda *_, **__: None
    distributed.dist_sum = distributed.dist_max = lambda *_, **__: 1.0
    distributed.set_determinism = lambda *_, **__: None
    distributed.init_distributed = lambda *_, **__: torch.distributed.get_world_size()
    torch.cpu.set_device = lambda _: None
    module.ParallelDims.build_mesh = outside(module.ParallelDims.build_mesh)
    torch.Tensor.__int__ = lambda _: 1  # of a log


def trainer_of(arguments):
    """torchtitan's Trainer, built by its own constructor, and a step to call."""
    if arguments.pp > 1:
        raise Stop(2, "torchtitan 0.3 asks the other ranks of a pipeline for shapes, and there are none")
    if arguments.whole_logits:
        raise Stop(2, "torchtitan 0.3 has no disable_loss_parallel")
    job = job_of(arguments)
    if arguments.recompute_num_layers:
        recompute_first(arguments.recompute_num_layers, arguments.selective_rest)
    answer_device()
    trainer = module.Trainer(job)
    for part in trainer.model_parts:
        part.get_attention_masks = lambda **_: None
    batch_size = arguments.micro_batch

    def batch():
        return torch.randint(0, 100, (batch_size, arguments.seq))

    def data():
        while True:
            yield {"input": batch(), "positions": batch()}, batch()
    stream = data()
    return trainer, lambda: trainer.train_step(stream)
