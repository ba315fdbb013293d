#!/usr/bin/env python3
"""Draws lines of a grid for trace_transformers.py: models of the catalog and settings that Transformers and accelerate
accept, at random.

    validator/pytorch/draw_transformers.py 1 50 > drawn.txt              # seed, lines
    validator/pytorch/draw_transformers.py 1 50 replicas > drawn.txt     # under DistributedDataParallel
"""

import random
import sys

# With as many layers as are enough; 0: all of them.
MODELS = {
    "llama3-8b": (2, 4, 6), "llama3-70b": (2, 3), "llama2-7b": (2, 4), "llama3.2-1b": (0, 4), "mistral-7b": (2, 4),
    "mistral-nemo-12b": (2, 3), "qwen2.5-0.5b": (0, 6), "qwen2.5-7b": (2, 4), "qwen3-8b": (2, 4), "qwen3-0.6b": (0, 6),
    "qwen3-30b-a3b": (2, 3), "mixtral-8x7b": (2, 3), "gemma2-2b": (2, 4), "gemma3-1b": (6, 8), "phi-3-mini": (2, 4),
    "phi-4": (2, 3), "gpt2": (0, 6), "gpt-neox-20b": (2, 3), "pythia-1.4b": (4, 8), "opt-1.3b": (4, 8),
    "bloom-1b7": (4, 8), "falcon-7b": (2, 4), "gpt-j-6b": (2, 4), "phi-2": (4, 8), "deepseek-v2-lite": (3, 4),
    "gpt-oss-20b": (2, 4), "gemma3-4b": (6, 7), "gemma3-12b": (6,), "glm-4.5-air": (2, 3),
}
EXPERTS = ("qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b", "glm-4.5-air")
EAGER = ("gemma2-2b", "bloom-1b7", "gpt-oss-20b")  # whose classes have no other attention


def draw_model(rng, models):
    model = rng.choice(models)
    layers = rng.choice(MODELS[model])
    line = [model, "--gpus", rng.choice([2, 4, 8, 16, 64])]
    line += ["--layers", layers] if layers else []
    return line + (["--attention", "unfused"] if model in EAGER else [])


def draw_replicas(rng):
    line = draw_model(rng, [model for model in MODELS if model not in EXPERTS])
    line += ["--zero", 0, "--seq", rng.choice([512, 1024, 2048])]
    line += ["--micro-batch", rng.choice([1, 1, 2, 4]), "--steps", rng.choice([1, 1, 2, 3])]
    line += ["--recompute", rng.choice(["none", "none", "full"])]
    line += ["--gradient-as-bucket-view"] if rng.random() < 0.3 else []
    return " ".join(map(str, line))


def draw(rng):
    line = draw_model(rng, list(MODELS))
    line += ["--seq", rng.choice([512, 1024, 2048, 4096])]
    line += ["--micro-batch", rng.choice([1, 1, 2, 4]), "--steps", rng.choice([1, 1, 2, 3])]
    line += ["--recompute", rng.choice(["none", "none", "full"]), "--zero", rng.choice([2, 3, 3])]
    line += ["--logits", rng.choice(["dropped", "dropped", "kept"]), "--reduce", rng.choice(["bf16", "bf16", "fp32"])]
    line += ["--optimizer", rng.choice(["fused", "fused", "foreach"])]
    line += ["--sync-each-batch"] if rng.random() < 0.2 else []
    return " ".join(map(str, line))


if __name__ == "__main__":
    RNG = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(draw_replicas(RNG) if "replicas" in sys.argv else draw(RNG))
