#!/usr/bin/env python3
"""Draws lines of a grid for trace_deepspeed.py: small models and settings that DeepSpeed accepts, at random.

    validator/pytorch/draw_deepspeed.py 1 50 > drawn.txt     # seed, lines
"""

import random
import sys

MODELS = ("small", "grouped", "deep", "wide", "tied")


def settings(rng, zero):
    """Some of zero_optimization's and the gradients' format, each more often as it is by default."""
    chosen = {"reduce_bucket_size": rng.choice([None, 1000000, 3000000, 8000000, 20000000])}
    if zero > 0:
        chosen["overlap_comm"] = rng.choice([None, None, "true", "false"])
    if zero == 3:
        chosen["stage3_prefetch_bucket_size"] = rng.choice([None, 400000, 2000000, 7000000])
        chosen["stage3_max_live_parameters"] = rng.choice([None, None, 4000000, 12000000])
        chosen["stage3_max_reuse_distance"] = rng.choice([None, None, 0, 6000000])
        chosen["sub_group_size"] = rng.choice([None, None, 2000000])
    if rng.random() < 0.15:
        chosen["data_types.grad_accum_dtype"] = "fp32"
    return [word for key, value in chosen.items() if value is not None for word in ("--set", f"{key}={value}")]


def draw(rng):
    zero = rng.choice([0, 1, 2, 2, 3, 3, 3])
    line = [rng.choice(MODELS), "--gpus", rng.choice([2, 4, 8, 16, 64]), "--zero", zero]
    line += ["--seq", rng.choice([64, 128, 256, 512, 1024]), "--micro-batch", rng.choice([1, 1, 2, 4])]
    line += ["--steps", rng.choice([1, 1, 2, 3]), "--recompute", rng.choice(["none", "full"])]
    line += ["--precision", rng.choice(["bf16", "bf16", "bf16", "fp16"]), "--rank", "most"]
    return " ".join(map(str, line + settings(rng, zero)))


if __name__ == "__main__":
    RNG = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(draw(RNG))
