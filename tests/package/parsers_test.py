"""parsers_test.py BINARY: what export writes is read by the parser of the runtime that it is for, as far as this
interpreter, or that of ZEROPLAN_PARSERS, has it."""
import importlib.util
import json
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


def export(question, path):
    run = subprocess.run(f"'{BINARY}' export {question} --quiet", shell=True, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr  # 1: it does not fit
    pathlib.Path(path).write_text(run.stdout)
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
        file = export(question + " --format trainer --micro-batch 2", f"{folder}/trainer.json")
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


tried = []
with tempfile.TemporaryDirectory() as folder:
    for parser in (accelerate, transformers, torchtitan, deepspeed):
        if importlib.util.find_spec(parser.__name__) is not None:
            tried += [f"{parser.__name__}: {', '.join(parser(folder))}"]
if not tried:
    print("skipped: none of accelerate, transformers, torchtitan and deepspeed is installed")
    sys.exit(77)
print("\n".join(tried))
