"""Megatron-LM as it is on the path: its arguments, its model, its optimizer, its step. What is not
Megatron's own here: the data, which means nothing, and the answers of a router that sends every expert as
many tokens."""

import functools
import os
import sys

import megatron.core.distributed.fsdp.mcore_fsdp_adapter as fsdp
import megatron.core.distributed.fsdp.src.megatron_fsdp.param_and_grad_buffer as buffers
import megatron.core.pipeline_parallel.schedules as schedules
import megatron.core.transformer.moe.token_dispatcher as dispatchers
import megatron.training.training as training
import megatron_delta_rule
import megatron_hybrid
import megatron_offload
import model_provider
import numpy
import pretrain_gpt
import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import finalize_model_grads
from megatron.core.enums import ModelType
from megatron.core.models.common.language_module.language_module import LanguageModule
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
from megatron.core.rerun_state_machine import RerunDataIterator, RerunMode, initialize_rerun_state_machine
from megatron.core.utils import get_model_config
from megatron.training import global_vars
from megatron.training.arguments import parse_args, validate_args
from cuda_on_host import hosted
from no_gpu import answer_reads, build_meshes_outside_modes, outside
from torch._subclasses.fake_tensor import FakeTensor


def parse(words, rank, world, engine):
    """Megatron's own parse and check of its arguments, and what it keeps of them for everyone."""
    sys.argv = ["pretrain_gpt.py", *megatron_hybrid.with_layers(words), "--tokenizer-type", "NullTokenizer",
                "--mock-data", "--lr", "1e-4", "--train-iters", "10", "--eval-iters", "0"]
    args = parse_args()
    args.rank, args.world_size, args.local_rank = rank, world, 0
    if args.transformer_impl == "local":
        args.no_persist_layer_norm = True  # a kernel of Apex, which keeps what PyTorch's own does
    if engine is None:
        args.apply_rope_fusion = False  # Transformer Engine's kernel
    if args.use_megatron_fsdp:
        del os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]  # which it refuses
        build_meshes()
    validate_args(args, {})
    global_vars.set_args(args)
    global_vars._set_timers(args)
    initialize_rerun_state_machine(mode=RerunMode(args.rerun_mode))
    init_num_microbatches_calculator(rank, args.rampup_batch_size, args.global_batch_size, args.micro_batch_size,
                                     args.data_parallel_size, args.decrease_batch_size_if_needed)
    multiple = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    args.padded_vocab_size = -(-args.vocab_size // multiple) * multiple
    parallel_state.initialize_model_parallel(
        args.tensor_model_parallel_size, args.pipeline_model_parallel_size,
        args.virtual_pipeline_model_parallel_size, context_parallel_size=args.context_parallel_size,
        expert_model_parallel_size=args.expert_model_parallel_size,
        expert_tensor_parallel_size=args.expert_tensor_parallel_size,
        num_distributed_optimizer_instances=args.num_distributed_optimizer_instances)
    tensor_parallel.model_parallel_cuda_manual_seed(args.seed)
    return args


def read(tensor):
    """A number that the host wrote itself, as the kind of a mask; else 0: nothing has overflowed."""
    return 0 if tensor.constant is None else torch.Tensor.item(tensor.constant)


def balance_experts(args):
    """Every expert gets as many tokens: what a host reads of the router to know how much to send."""
    tokens = args.micro_batch_size * args.seq_length // args.context_parallel_size
    if args.sequence_parallel:
        tokens //= args.tensor_model_parallel_size
    sent = tokens * (args.moe_router_topk or 0)
    answer_reads(sent * args.expert_tensor_parallel_size)
    FakeTensor.item = read
    dispatcher = dispatchers.MoEAlltoAllTokenDispatcher
    synchronize, sort = dispatcher._maybe_dtoh_and_synchronize, dispatchers.sort_chunks_by_idxs

    def to_host(self, point, tokens_per_expert=None):
        result = synchronize(self, point, tokens_per_expert)
        if self.ep_size > 1 or self.tp_size > 1:
            self.input_splits = self.output_splits = [sent // self.ep_size] * self.ep_size
            self.output_splits_tp = numpy.full(self.tp_size, sent)
        return result

    def in_order(values, sizes, order, **kwargs):
        return sort(values, sizes, order if kwargs.get("fused") else numpy.arange(sizes.numel()), **kwargs)

    dispatcher._maybe_dtoh_and_synchronize = to_host
    dispatchers.maybe_move_tensor_to_cpu = lambda tensor, **_: tensor
    dispatchers.sort_chunks_by_idxs = in_order


def batches(args, meter):
    """Of the host, which no GPU's memory holds."""
    shape = (args.micro_batch_size, args.seq_length)

    def batch():
        made = {name: hosted(torch.zeros(shape, dtype=torch.int64))
                for name in ("tokens", "labels", "position_ids")}
        made["loss_mask"] = hosted(torch.ones(shape))
        if args.create_attention_mask_in_dataloader:
            made["attention_mask"] = hosted(torch.ones((shape[0], 1, shape[1], shape[1]), dtype=torch.bool))
        return made
    make = meter.unseen(batch)
    while True:
        yield make()


def mark_phases(meter):
    meter.mark(schedules, "forward_step", "forward")
    meter.mark(schedules, "backward_step", "backward")
    meter.mark(LanguageModule, "compute_language_model_loss", "loss")


def prepare(args, model, optimizer, config):
    """As train() does before its first step."""
    def of_each(name):
        functions = [getattr(chunk, name) for chunk in model]
        return functions if len(functions) > 1 else functions[0]
    config.grad_scale_func = optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads
    if args.overlap_grad_reduce:
        config.no_sync_func = of_each("no_sync")
        if args.align_grad_reduce:
            config.grad_sync_func = of_each("start_grad_sync")
    if args.overlap_param_gather and args.align_param_gather:
        config.param_sync_func = of_each("start_param_sync")


def build_meshes():
    """Of Megatron-FSDP's ranks: real numbers, which are read."""
    build_meshes_outside_modes()
    sharded = fsdp.FullyShardedDataParallelV1
    sharded._init_dist_index = outside(sharded._init_dist_index)
    indices = fsdp.FSDPDistributedIndex
    indices.get_logical_hybrid_fsdp_rank = outside(indices.get_logical_hybrid_fsdp_rank)
    buffers.validate_uneven_dtensor = lambda _: None  # reads what shards hold


def trainer_of(args, meter):
    """Model chunks and optimizer, built by Megatron's own functions, and a step to call."""
    megatron_delta_rule.take_apart(meter)
    if getattr(args, "fine_grained_activation_offloading", False):
        megatron_offload.take_fake_tensors()
    provider = functools.partial(model_provider.model_provider, megatron_hybrid.builder_of(args))
    model, optimizer, scheduler = training.setup_model_and_optimizer(ModelType.encoder_or_decoder, provider)
    config = get_model_config(model[0])
    prepare(args, model, optimizer, config)
    mark_phases(meter)
    data = [RerunDataIterator(batches(args, meter)) for _ in model]
    passes = schedules.get_forward_backward_func()

    def step(number):
        meter.phase = "optimizer"  # what is neither forward nor backward
        training.train_step(pretrain_gpt.forward_step, data if len(data) > 1 else data[0], model, optimizer,
                            scheduler, config, passes, iteration=number)
    return model, optimizer, step


def name_states(model, optimizer, meter):
    parameters = [p for chunk in model for p in chunk.parameters()]
    meter.name("parameters", parameters)
    meter.name("gradients", [p.main_grad for p in parameters if getattr(p, "main_grad", None) is not None])
    for part in getattr(optimizer, "chained_optimizers", [optimizer]):
        meter.name("master parameters", [p for g in part.optimizer.param_groups for p in g["params"]])
        for states in part.optimizer.state.values():
            for name, value in states.items():
                if isinstance(value, torch.Tensor):
                    meter.name("master parameters" if "master" in name else "optimizer states", [value])
