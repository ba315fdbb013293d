"""nanotron as it is on the path: its trainer, its model, its optimizer, its training_step. What is not
nanotron's own here: the data, which means nothing, and how the flat gradient buffer is cut, as fake storages
cannot be."""

import contextlib
import itertools
import sys
import types

# Of experts; nothing here runs it, and nanotron imports it all the same.
grouped = types.ModuleType("grouped_gemm")
grouped.ops = types.ModuleType("grouped_gemm.ops")
sys.modules.update({"grouped_gemm": grouped, "grouped_gemm.ops": grouped.ops})

import nanotron.models.base as models  # noqa: E402
import nanotron.optim.gradient_accumulator as accumulation  # noqa: E402
import nanotron.trainer as training  # noqa: E402
import torch  # noqa: E402
from cuda_on_host import Done, hosted  # noqa: E402
from nanotron.parallel.parameters import NanotronParameter  # noqa: E402
from nanotron.parallel.pipeline_parallel import engine, state  # noqa: E402
from nanotron.parallel.pipeline_parallel.block import PipelineBlock, TensorPointer  # noqa: E402
from no_gpu import Reducer  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402
from torch.nn.parameter import Parameter  # noqa: E402

METADATA = NanotronParameter.NANOTRON_PARAMETER_METADATA_ATTRIBUTE_NAME


def release():
    """What it is known by: nothing in it says, so what it has does."""
    return "2025-06" if hasattr(training, "Qwen2ForTraining") else "2024-12"


def parameter(_, tensor, requires_grad=True):
    """A parameter of fake tensors is one of theirs, never one of nanotron's class: it gets what that adds."""
    made = Parameter(tensor.data.detach(), requires_grad)
    setattr(made, METADATA, dict(getattr(tensor, METADATA, {})))
    return made


def take_fake_parameters():
    for name, member in vars(NanotronParameter).items():
        if not name.startswith("__"):
            setattr(FakeTensor, name, member)
    NanotronParameter.__new__ = parameter
    check = type(NanotronParameter).__instancecheck__

    def is_instance(kind, tensor):
        return hasattr(tensor, METADATA) if kind is NanotronParameter else check(kind, tensor)
    type(NanotronParameter).__instancecheck__ = is_instance


@contextlib.contextmanager
def in_format(dtype, **_):
    """init_on_device_and_dtype, without new constructors of tensors, which fake ones are made by too."""
    register = torch.nn.Module.register_parameter

    def narrow(module, name, parameter):
        register(module, name, parameter)
        if parameter is not None:
            parameter.data = parameter.data.to(dtype)
    torch.nn.Module.register_parameter = narrow
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


class Storage:
    """A tensor that is cut by bytes."""

    def __init__(self, tensor, start=0, end=None):
        self.tensor, self.start, self.end = tensor, start, end

    def __getitem__(self, part):
        return Storage(self.tensor, part.start, part.stop)


def cut(untyped_storage, dtype):
    flat = untyped_storage.tensor
    size = flat.element_size()
    return flat[untyped_storage.start // size:untyped_storage.end // size]


def replicate_alone():
    """DistributedDataParallel asks no other rank."""
    import torch.nn.parallel.distributed as parallel
    parallel._verify_param_shape_across_processes = parallel._sync_module_states = lambda *_, **__: None
    training.dist.all_reduce_coalesced = lambda *_, **__: Done()


def stand_in():
    """For what fake tensors cannot do, and for other ranks."""
    take_fake_parameters()
    replicate_alone()
    gather_lists()
    models.init_on_device_and_dtype = in_format
    accumulation.get_untyped_storage = Storage
    accumulation.tensor_from_untyped_storage = cut


def gather_lists():
    """NCCL's group gathers a list of as large tensors into one of its own, which it copies out (PyTorch
    torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp allgather)."""
    def gather(outputs, mine, *_, **__):
        if all(output.numel() == mine.numel() for output in outputs):
            del [mine.new_empty(len(outputs) * mine.numel())][:]
        return Done()
    training.dist.all_gather = training.dist.dist.all_gather = gather


def receive(trainer):
    """Of a stage that is not the first: what the one before sends, and the gradients of what is sent."""
    mine = training.dist.get_rank(trainer.parallel_context.pp_pg)
    blocks = [module for module in trainer.unwrapped_model.modules() if isinstance(module, PipelineBlock)]
    first = next(block for block in blocks if block.rank == mine)
    received = itertools.cycle(sorted(first.module_input_keys))
    samples, tokens = trainer.micro_batch_size, trainer.sequence_length
    config = trainer.config
    scatters = config.parallelism.tp_mode.name == "REDUCE_SCATTER"
    rows = tokens // config.parallelism.tp if scatters else tokens

    def hidden(requires_grad):
        return torch.empty((rows, samples, config.model.model_config.hidden_size), dtype=torch.bfloat16,
                           requires_grad=requires_grad)

    def activation(_):
        if next(received) == "sequence_mask":
            return torch.ones((samples, tokens), dtype=torch.bool)
        return hidden(True)
    state.RecvActivation.__call__ = activation
    state.RecvGrad.__call__ = lambda _: hidden(False)
    state.SendActivation.__call__ = state.SendGrad.__call__ = lambda _: None


def batches(trainer, meter):
    """Of the host, copied to the GPU as nanotron's own loader of data does."""
    first, last = trainer.unwrapped_model.input_pp_rank, trainer.unwrapped_model.output_pp_rank
    shape = (trainer.micro_batch_size, trainer.sequence_length)
    mine = training.dist.get_rank(trainer.parallel_context.pp_pg)
    name, kind = ("position_ids", torch.int64) if release() == "2025-06" else ("input_mask", torch.bool)
    wanted = {"input_ids": (first, torch.int64), name: (first, kind), "label_ids": (last, torch.int64),
              "label_mask": (last, torch.bool)}

    def make():
        return {what: hosted(torch.zeros(shape, dtype=kind)) if mine == rank else TensorPointer(group_rank=rank)
                for what, (rank, kind) in wanted.items()}
    make = meter.unseen(make)

    def forever():
        while True:
            yield make()
    return training.sanity_check_dataloader(forever(), trainer.parallel_context, trainer.config)


def samples_begin(trainer):
    """torch.where of one argument asks which tokens begin a sample: one of each, here."""
    where = torch.where

    def answered(condition, *rest):
        return where(condition, *rest) if rest else (condition.new_zeros(trainer.micro_batch_size, dtype=torch.int64),)
    torch.where = answered


def trainer_of(path, meter):
    """nanotron's trainer, and a step to call, as train() does before its first and in each."""
    meter.mark(engine.PipelineEngine, "forward", "forward")
    meter.mark(engine.PipelineEngine, "backward", "backward")
    trainer = training.DistributedTrainer(path)
    if isinstance(trainer.model, torch.nn.parallel.DistributedDataParallel):
        trainer.model.reducer = Reducer(trainer.model.reducer)
    model = trainer.unwrapped_model
    samples_begin(trainer)
    receive(trainer)
    trainer.pipeline_engine = trainer.config.parallelism.pp_engine
    trainer.pipeline_engine.nb_microbatches = trainer.n_micro_batches_per_batch
    model.module_id_to_prefix = {id(module): f"{name}." for name, module in model.named_modules()}
    model.module_id_to_prefix[id(model)] = ""
    trainer.initial_iter_step = trainer.iteration_step = 1
    trainer.last_iter_step = trainer.config.tokens.train_steps
    data = batches(trainer, meter)

    def step(number):
        trainer.iteration_step = 100 + number  # beyond those that it logs
        meter.phase = "optimizer"  # what is neither forward nor backward
        trainer.training_step(dataloader=data)
    return trainer, step


def name_states(trainer, meter):
    accumulator, optimizer = trainer.grad_accumulator, trainer.optimizer.get_base_optimizer()
    meter.name("parameters", trainer.unwrapped_model.parameters())
    meter.name("gradients", [accumulator._contiguous_fp32_grad_buffer])
    meter.name("master parameters", [part["fp32"] for part in accumulator.parameters.values()])
    for states in optimizer.state.values():
        meter.name("optimizer states", [value for value in states.values() if isinstance(value, torch.Tensor)])
