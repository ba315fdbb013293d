#!/usr/bin/env python3
"""Draws lines of a grid for trace_nanotron.py: models and settings that its code of 2024-12, or of 2025-06, accepts.

    validator/pytorch/draw_nanotron.py 1 50 2025-06 > drawn.txt     # seed, lines, version
"""

import random
import sys

MODELS = {"llama3-8b": 8, "llama3-70b": 8, "llama2-7b": 32, "llama3.2-1b": 8, "llama3.2-3b": 8,
          "mistral-7b": 8}  # heads of keys and values, over which tensor parallelism is divided
BIASED = {"qwen2.5-7b": 4, "qwen2.5-0.5b": 2}


def pipeline(rng, layers):
    ranks = rng.choice([1, 2, 2, 4])
    words = ["--pp", ranks, "--stage", rng.randrange(ranks), "--engine", rng.choice(["1f1b", "1f1b", "afab"])]
    steps = rng.choice([ranks, 2 * ranks, 8])
    return (ranks, [*words, "--steps", steps, "--layers", max(layers, 2 * ranks)]) if ranks > 1 else (1, [])


def draw(rng, last):
    heads = {**MODELS, **BIASED} if last else MODELS
    model = rng.choice(list(heads))
    layers = rng.choice([2, 4, 8, 12])
    ranks, words = (1, []) if last else pipeline(rng, layers)
    tp = rng.choice([size for size in (1, 1, 2, 4, 8) if size <= heads[model]])
    dp = rng.choice([1, 2, 4, 8])
    line = [model, "--gpus", dp * tp * ranks, "--seq", rng.choice([1024, 2048, 4096, 8192]),
            "--micro-batch", rng.choice([1, 1, 2, 4]), "--recompute", rng.choice(["none", "none", "full"]),
            "--zero", 0 if last and dp > 1 else rng.choice([0, 1, 1])]
    line += words or ["--layers", layers, "--steps", rng.choice([1, 2, 4])]
    line += ["--tp", tp, "--tp-mode", rng.choice(["REDUCE_SCATTER"] * 3 + ["ALL_REDUCE"])] if tp > 1 else []
    for flag, often in (("--keep-gathered", 0.25), *((("--z-loss", 0.3), ("--no-log", 0.3)) if last else ())):
        line += [flag] if rng.random() < often else []
    return " ".join(map(str, line))


if __name__ == "__main__":
    RNG = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(draw(RNG, sys.argv[3] == "2025-06"))
