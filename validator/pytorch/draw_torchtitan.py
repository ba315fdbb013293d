#!/usr/bin/env python3
"""Draws lines of a grid for trace_torchtitan.py: layouts and settings that torchtitan accepts, at random.

    validator/pytorch/draw_torchtitan.py 1 50 > drawn.txt     # seed, lines
"""

import random
import sys

DENSE = {"llama3-8b": 8, "llama3-70b": 8, "qwen3-1.7b": 8, "qwen3-14b": 8, "qwen3-32b": 8}
EXPERTS = {"qwen3-30b-a3b": 4, "deepseek-v2-lite": 16}


def draw_dense(rng):
    model = rng.choice(list(DENSE))
    tp = rng.choice([1, 1, 1, 2, 4, 8])
    cp = rng.choice([1, 1, 1, 2, 4])
    dp = rng.choice([2, 4, 8, 16, 64])
    line = [model, "--tp", tp, "--cp", cp, "--gpus", dp * tp * cp]
    if dp > 4 and rng.random() < 0.2:
        line += ["--replicas", 2]
    if tp > 1 and rng.random() < 0.2:
        line += ["--whole-logits"]
    return line


def draw_experts(rng):
    model = rng.choice(list(EXPERTS))
    dp = rng.choice([4, 8, 16, 64])
    return [model, "--gpus", dp, "--ep", rng.choice([n for n in (1, 2, 4, 8) if n <= dp])]


def draw(rng):
    line = draw_experts(rng) if rng.random() < 0.3 else draw_dense(rng)
    line += ["--layers", rng.choice([3, 4, 6, 9])]
    line += ["--seq", rng.choice([2048, 4096, 8192, 16384])]
    line += ["--micro-batch", rng.choice([1, 1, 2, 4]), "--steps", rng.choice([1, 1, 2, 3])]
    line += ["--recompute", rng.choice(["none", "full", "full", "op", "op"])]
    line += ["--reshard", rng.choice(["default", "default", "always", "never"])]
    return " ".join(map(str, line))


if __name__ == "__main__":
    RNG = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(draw(RNG))
