"""traced_test.py BINARY: what is predicted of a few plans is what the runtimes' own code takes, of those runtimes that
the interpreters named in ZEROPLAN_TRACERS (paths with colons between them) have. PYTHONPATH leads them to a checkout of
Megatron-LM, and to one of Transformer Engine where it is not installed."""
import json
import os
import subprocess
import sys

BINARY = os.path.abspath(sys.argv[1])

# Layouts of eight GPUs, each with another part of what a runtime does.
PLANS = {
    "torchtitan": ("llama3-8b --tp 1 --pp 1 --zero 3 --seq 8192 --micro-batch 1 --global-batch 8 --recompute none",
                   "llama3-8b --tp 2 --pp 1 --zero 3 --seq 4096 --micro-batch 2 --global-batch 16 --recompute full",
                   "llama3-8b --tp 1 --cp 2 --pp 1 --zero 3 --seq 8192 --micro-batch 1 --global-batch 8 "
                   "--recompute selective"),
    "transformers": ("llama3-8b --tp 1 --pp 1 --zero 3 --seq 4096 --micro-batch 1 --global-batch 8 --recompute none",
                     "qwen3-0.6b --tp 1 --pp 1 --zero 3 --seq 4096 --micro-batch 1 --global-batch 16 --recompute full"),
    "megatron": ("llama3-8b --tp 2 --pp 1 --zero 1 --seq 8192 --micro-batch 1 --global-batch 8 --recompute none",
                 "llama3-8b --tp 1 --pp 2 --vpp 1 --zero 1 --seq 4096 --micro-batch 1 --global-batch 64 "
                 "--recompute selective --as-rank stage=1"),
    "deepspeed": ("qwen3-0.6b --tp 1 --pp 1 --zero 2 --seq 512 --micro-batch 1 --global-batch 16 --recompute none",
                  "qwen3-0.6b --tp 1 --pp 1 --zero 3 --seq 512 --micro-batch 1 --global-batch 8 --recompute full"),
}
MODULES = {"megatron": "megatron.training"}  # that a runtime is, where its name is another
NOT_HERE = ("is missing", "lacks", "No module named", "of the host, whose tensors are real")


def has(python, runtime):
    module = MODULES.get(runtime, runtime)
    script = f"import importlib.util as u; raise SystemExit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", script], stderr=subprocess.DEVNULL).returncode == 0


def traced(python, runtime, plan):
    """A line of what was found; nothing where this machine cannot run it."""
    command = [BINARY, "validate", *plan.split(), "--gpus", "8xH100-80GB", "--with", runtime, "--python", python]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True)
    if run.returncode in (2, 3) and any(words in run.stderr for words in NOT_HERE):
        print(f"not run: {runtime}: {run.stderr.strip()}")
        return None
    assert run.returncode in (0, 1), f"{plan}: {run.stderr}"
    answer = json.loads(run.stdout)
    line = f"{answer['versions']}: {plan}: {100 * answer['error']:+.3f} %"
    assert abs(answer["error"]) < 0.005, line
    return line


tried = []
for python in filter(None, os.environ.get("ZEROPLAN_TRACERS", "").split(":")):
    for runtime, plans in PLANS.items():
        if has(python, runtime):
            tried += filter(None, (traced(python, runtime, plan) for plan in plans))
if not tried:
    print("skipped: ZEROPLAN_TRACERS names no interpreter that has torchtitan, transformers, Megatron-LM or DeepSpeed")
    sys.exit(77)
print("\n".join(tried))
