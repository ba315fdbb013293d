"""parsers_test.py BINARY: what export writes is read by the parser of the runtime that it is for, as far as this
interpreter, or that of ZEROPLAN_PARSERS, has it."""
import ast
import contextlib
import importlib.util
import json
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import types

BINARY = os.path.abspath(sys.argv[1])
if "ZEROPLAN_PARSERS" in os.environ and os.environ["ZEROPLAN_PARSERS"] != sys.executable:
    sys.exit(subprocess.run([os.environ["ZEROPLAN_PARSERS"], *sys.argv]).returncode)

GPUS = "--gpus 16xH100-80GB"
HUGGINGFACE = f"llama3.2-1b {GPUS} --runtime fsdp2 --set layers=huggingface"


def zeroplan(arguments):
    run = subprocess.run(f"'{BINARY}' {arguments}", shell=True, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr  # 1: it does not fit
    return run.stdout


def export(question, path):
    """As one comes to it: a config.json of Hugging Face's and GPUs become a plan, and that a file that starts."""
    question, _, file_format = question.partition(" --format ")
    if question.startswith("llama3.2-1b"):
        config = pathlib.Path(path).with_name("config.json")
        config.write_text(json.dumps(json.loads(zeroplan("presets models llama3.2-1b"))["config"]))
        question = question.replace("llama3.2-1b", f"'{config}'", 1)
    plan = pathlib.Path(path).with_name("plan.json")
    plan.write_text(zeroplan(f"fit {question} --json"))
    pathlib.Path(path).write_text(
        zeroplan(f"export '{plan}' --quiet" + (f" --format {file_format}" if file_format else "")))
    return path


def accelerate(folder):
    from accelerate.commands.config.config_args import load_config_from_file
    for question, kind in ((HUGGINGFACE, "FSDP"), (f"llama3.2-1b {GPUS} --runtime deepspeed --zero 3", "DEEPSPEED"),
                           (f"llama3.2-1b {GPUS} --runtime ddp --zero 0", "MULTI_GPU")):
        config = load_config_from_file(export(question + " --format accelerate", f"{folder}/accelerate.yaml"))
        assert config.distributed_type == kind, config
        assert (config.num_processes, config.num_machines) == (16, 2), config
        yield kind


def transformers(folder):
    from transformers import HfArgumentParser, TrainingArguments, training_args
    training_args.is_torch_bf16_gpu_available = lambda: True  # else a machine without a GPU refuses
    for question in (HUGGINGFACE + " --recompute full", f"llama3.2-1b {GPUS} --runtime ddp --zero 0"):
        file = export(question + " --micro-batch 2 --format trainer", f"{folder}/trainer.json")
        (arguments,) = HfArgumentParser(TrainingArguments).parse_json_file(file)
        assert arguments.per_device_train_batch_size == 2, arguments
        checkpoints = arguments.fsdp_config.get("activation_checkpointing", False) if arguments.fsdp else False
        assert checkpoints == ("full" in question), arguments
        yield "FSDP" if arguments.fsdp else "DDP"


def torchtitan(folder):
    import torch
    torch._utils._get_available_device_type = lambda: "cpu"  # asked while torchtitan is imported
    from torchtitan.config import ConfigManager, TrainingConfig
    date = "2026-08-21" if hasattr(TrainingConfig, "num_tokens_per_train_step") else "2026-08-13"
    sys.path.insert(0, str(folder))
    for number, question in enumerate((f"llama3-70b {GPUS} --tp 4 --pp 2 --recompute full",
                                       f"qwen3-30b-a3b {GPUS} --ep 8 --tp 1 --pp 1 --recompute selective",
                                       f"llama3-8b {GPUS} --tp 2 --pp 1 --recompute none")):
        export(f"{question} --runtime fsdp2 --set recipe_date={date}", f"{folder}/plan_{number}.py")
        config = ConfigManager().parse_args(["--module", f"plan_{number}", "--config", "plan"])
        degrees = config.parallelism
        assert f"--tp {degrees.tensor_parallel_degree} --pp {degrees.pipeline_parallel_degree}" in question, degrees
        assert (config.activation_checkpoint is None) == ("none" in question), config.activation_checkpoint
        yield question.split()[0]


def deepspeed(folder):
    from deepspeed.runtime import config as module
    module.dist = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda *_: 16)
    file = export(f"llama3.2-1b {GPUS} --runtime deepspeed --zero 3 --offload optimizer", f"{folder}/deepspeed.json")
    config = module.DeepSpeedConfig(json.loads(pathlib.Path(file).read_text()))
    assert config.zero_optimization_stage == 3, config
    yield "ZeRO 3"


def megatron_training(folder):
    import torch
    torch.cuda.get_device_capability = lambda *_: (9, 0)  # asked for, though nothing runs
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)
    from megatron.training.arguments import parse_args, validate_args
    os.environ |= {"WORLD_SIZE": "16", "RANK": "0"}
    for question in ("--tp 2 --pp 2 --vpp 2 --recompute none", "--tp 1 --pp 1 --cp 2 --offload optimizer",
                     "--tp 1 --pp 1 --zero 3", "--tp 2 --pp 1 --precision fp8 --recompute full"):
        question = f"llama3.2-1b {GPUS} --global-batch 64 {question}"
        words = pathlib.Path(export(question, f"{folder}/megatron.args")).read_text().split()
        notes = json.loads(zeroplan(f"export '{folder}/plan.json' --json"))
        one_queue = notes["launch"].startswith("CUDA_DEVICE_MAX_CONNECTIONS=1 ")
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        os.environ |= {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if one_queue else {}
        sys.argv = ["pretrain_gpt.py", *words, "--train-iters", "1", "--lr", "1e-4", "--tokenizer-type", "NullTokenizer"]
        with contextlib.redirect_stdout(None):  # it lists all its arguments
            arguments = parse_args()
            validate_args(arguments)
        assert arguments.global_batch_size == 64, arguments
        yield question.partition("--global-batch 64 ")[2]


def megatron_bridge(folder):
    os.environ["WORLD_SIZE"] = "16"  # which validate divides
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    import megatron.bridge
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.recipes.common import _pretrain_common

    class WithoutHub:
        def from_hf_pretrained(_):
            return WithoutHub

        def to_megatron_provider(load_weights):
            assert not load_weights
            return GPTModelProvider(num_layers=32, hidden_size=4096, num_attention_heads=32, num_query_groups=8)

    megatron.bridge.AutoBridge = WithoutHub
    for question in ("--tp 2 --pp 2 --vpp 2 --recompute none", "--tp 1 --pp 1 --cp 2 --offload optimizer",
                     "--tp 1 --pp 1 --zero 3 --set init_model_with_meta_device=true", "--tp 1 --pp 1 --zero 0",
                     "--tp 2 --pp 1 --precision fp8 --set fp8_recipe=tensorwise fp8_param_gather=true",
                     "--tp 2 --pp 1 --attention unfused --set transformer_engine=local"):
        file = export(f"llama3-8b {GPUS} --global-batch 64 {question} --format megatron-bridge", f"{folder}/plan.py")
        tree = ast.parse(pathlib.Path(file).read_text())
        base = _pretrain_common()
        base.model = WithoutHub.to_megatron_provider(load_weights=False)
        for node in ast.walk(tree):  # a field that is not there would be made
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                holder, name = ast.unparse(node).removeprefix("cfg.").rpartition(".")[::2]
                assert hasattr(operator.attrgetter(holder)(base) if holder else base, name), ast.unparse(node)
        names = {"__name__": "plan"}
        exec(compile(tree, file, "exec"), names)
        config = names["plan"]()
        config.set_data_parallel_size()
        for part in (config.mixed_precision, config.comm_overlap):
            if part is not None:
                part.finalize()
                part.setup(config.model, config.optimizer, config.ddp)
        config.validate()
        degrees = config.model
        assert f"--tp {degrees.tensor_model_parallel_size} --pp {degrees.pipeline_model_parallel_size}" in question
        assert config.ddp.use_megatron_fsdp == ("--zero 3" in question), config.ddp
        yield question.split(" --set")[0]


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # nor what holds it
        return False


tried = []
with tempfile.TemporaryDirectory() as folder:
    for parser in (accelerate, transformers, torchtitan, deepspeed, megatron_training, megatron_bridge):
        if is_there(parser.__name__.replace("_", ".")):
            tried += [f"{parser.__name__}: {', '.join(parser(folder))}"]
if not tried:
    print("skipped: none of accelerate, transformers, torchtitan, deepspeed and Megatron is installed")
    sys.exit(77)
print("\n".join(tried))
