#!/usr/bin/env python3
"""Draws lines of a grid for trace_megatron.py: layouts and settings that Megatron-LM accepts, at random.

    validator/pytorch/draw_megatron.py 1 30 > drawn.txt     # seed, lines
"""

import random
import sys

DENSE = {"llama3-8b": 8, "llama3-70b": 8, "gpt3-175b": 8, "qwen2.5-7b": 4, "qwen3-1.7b": 8, "qwen3-8b": 8}
EXPERTS = {"mixtral-8x7b": 8, "qwen3-30b-a3b": 16, "deepseek-v2-lite": 16, "deepseek-v3": 32}
RECOMPUTED = ["none", "none", "full", "full --set recompute_method=block --set recompute_num_layers=1",
              "selective", "selective --set recompute_modules=mlp"]
ROUTED = ["none", "none", "full", "selective --set recompute_modules=moe_act",
          "selective --set recompute_modules=moe", "selective --set recompute_modules=layernorm,moe_act"]
SETTINGS = ["gradient_accumulation_fusion=false", "overlap_grad_reduce=true", "grad_reduce_in_bf16=true",
            "hidden_dropout=0.1", "exp_avg_dtype=bf16", "create_attention_mask_in_dataloader=false"]


def draw(rng):
    routed = rng.random() < 0.35
    model = rng.choice(list(EXPERTS if routed else DENSE))
    tp = rng.choice([1, 1, 2, 4] if routed else [n for n in (1, 2, 2, 4, 8) if n <= DENSE[model]])
    pp = rng.choice([1, 1, 1, 2, 4])
    cp = rng.choice([1, 1, 1, 2])
    dp = rng.choice([1, 2, 4, 8])
    layers = pp * rng.choice([1, 2] if pp > 1 else [2, 3, 4])
    layers = max(layers, 4) if model.startswith("deepseek") else layers  # the first are dense
    zero, precision = rng.choice([0, 1, 1, 1]), rng.choice(["bf16", "bf16", "bf16", "fp16"])
    line = [model, "--layers", layers, "--gpus", f"{tp * pp * cp * dp}xH100-80GB", "--tp", tp, "--pp", pp,
            "--cp", cp, "--vpp", 1]
    if routed:
        experts = [n for n in (1, 2, 4, 8, 16) if n <= min(EXPERTS[model], dp * cp * tp) and dp * cp * tp % n == 0]
        line += ["--ep", rng.choice(experts), "--etp", 1]
    line += ["--zero", zero, "--precision", precision, "--micro-batch", rng.choice([1, 1, 2])]
    seq = rng.choice([1024, 2048] if model == "gpt3-175b" else [1024, 2048, 4096, 8192])
    line += ["--seq", seq, "--gradient-accumulation", rng.choice([1, 2, 8])]
    recompute = rng.choice(ROUTED if routed else RECOMPUTED)
    # A checkpoint that gives a bias back becomes its history: the backward pass never ends.
    line += ["--recompute", "full" if model == "gpt3-175b" and "mlp" in recompute else recompute]
    if not routed and rng.random() < 0.2 and cp == 1:  # as Transformer Engine wants it
        line += ["--attention", "unfused"]
    if rng.random() < 0.4:
        narrow = zero == 1 and precision == "bf16"  # what moments of 16 bits need
        line += ["--set", rng.choice(SETTINGS if narrow else [s for s in SETTINGS if "exp_avg" not in s])]
    if pp > 1:
        line += ["--stage", rng.randrange(pp)]
    return " ".join(map(str, line))


if __name__ == "__main__":
    RNG = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(draw(RNG))
