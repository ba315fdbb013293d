#!/usr/bin/env python3
"""Times kernels of training on this GPU by PyTorch, each back to back until the clock has settled, as in
training, and writes a row of tests/reference/efficiency.jsonl for each.

    validator/pytorch/time_kernels.py --out kernels.jsonl                    # all, about two minutes on an H100
    validator/pytorch/time_kernels.py --only gemm,attention --seconds 0.5 --out kernels.jsonl

Exit codes: 0 timed, 1 a kernel was not (standard error says which), 3 no GPU or no PyTorch.
"""

import argparse
import json
import sys

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"time_kernels: error: {error}", file=sys.stderr)
    sys.exit(3)

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
# Hidden size, width of queries, of keys, of the MLP, and words: linears of a layer and the head.
MODELS = {"llama3-8b": (4096, 4096, 1024, 14336, 128256), "llama3-70b": (8192, 8192, 1024, 28672, 128256),
          "qwen3-32b": (5120, 8192, 1024, 25600, 151936), "llama3.2-1b": (2048, 2048, 512, 8192, 128256)}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default=",".join(KINDS), help="of " + ", ".join(KINDS))
    parser.add_argument("--seconds", type=float, default=0.15, help="for which a kernel runs, at least")
    parser.add_argument("--out", help="append the rows to this file (default: standard output)")
    return parser.parse_args()


class Bench:
    """Runs one kernel after another and writes rows."""

    def __init__(self, seconds, file):
        self.seconds, self.file = seconds, file
        self.failed = self.rows = 0
        self.gpu = torch.cuda.get_device_name()

    def time(self, run):
        """Seconds of one call: the median of three stretches, after one that warms up."""
        def stretch(count):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            for _ in range(count):
                run()
            last.record()
            torch.cuda.synchronize()
            return first.elapsed_time(last) / 1e3 / count

        run()
        once = max(stretch(3), 1e-6)
        stretch(max(3, int(self.seconds / 3 / once)))
        return sorted(stretch(max(3, int(self.seconds / 3 / once))) for _ in range(3))[1]

    def row(self, op, dtype, shape, layout, run):
        """One row; `run` makes what is timed, and no row is written where that fails."""
        try:
            seconds = self.time(run())
        except Exception as error:  # noqa: B902  of whatever kind, the next one is timed
            self.failed += 1
            print(f"time_kernels: {op} {dtype} {shape} {layout}: {str(error).splitlines()[0]}", file=sys.stderr)
            return
        self.rows += 1
        self.file.write(json.dumps({
            "id": f"own-{self.rows:04}", "source": f"validator/pytorch/time_kernels.py, PyTorch {torch.__version__}",
            "gpu": self.gpu, "op": op, "dtype": dtype, "shape": shape, "layout": layout,
            "measured": {"value": round(seconds * 1e6, 3), "unit": "us"},
            "notes": f"back to back for {self.seconds:g} s, as in training"}) + "\n")
        self.file.flush()


def draw(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=BF16).to(dtype)


def linears(name, tp):
    """Output and input width of each linear as tensor parallelism cuts it."""
    hidden, query, key, ffn, words = MODELS[name]
    return dict.fromkeys([(query // tp, hidden), (key // tp, hidden), (hidden, query // tp), (ffn // tp, hidden),
                          (hidden, ffn // tp), (words // tp, hidden)])


def products(tokens, out, width):
    """m, n and k of the three products of a linear: forward, input gradient, weight gradient."""
    return {"TN": (tokens, out, width), "NN": (tokens, width, out), "NT": (out, width, tokens)}


def grid_of_linears(eight_bit):
    grid = [("llama3-8b", 1, 8192), ("llama3-8b", 8, 8192), ("llama3-8b", 4, 8192), ("llama3-70b", 8, 8192),
            ("llama3-70b", 1, 8192), ("llama3-8b", 8, 16384)]
    if not eight_bit:
        grid += [("llama3-8b", 1, 2048), ("llama3-8b", 1, 4096), ("llama3-8b", 1, 16384), ("qwen3-32b", 1, 4096),
                 ("llama3.2-1b", 1, 8192), ("llama3-8b", 2, 4096), ("llama3-70b", 4, 4096)]
    seen = set()
    for name, tp, tokens in grid:
        for out, width in linears(name, tp):
            for layout, shape in products(tokens, out, width).items():
                if (layout, shape) not in seen:
                    seen.add((layout, shape))
                    yield layout, shape


def gemm(bench):
    for layout, (m, n, k) in grid_of_linears(False):
        def run(m=m, n=n, k=k, layout=layout):
            a = draw(k, m).t() if layout == "NT" else draw(m, k)
            b = draw(n, k).t() if layout == "TN" else draw(k, n)
            out = torch.empty(m, n, device="cuda", dtype=BF16)
            return lambda: torch.mm(a, b, out=out)
        bench.row("gemm", "bf16", {"m": m, "n": n, "k": k}, layout, run)


def scaled(bench):
    """Products of 8 bits; both operands lie along k, which is why recipes turn what they cast."""
    for layout, (m, n, k) in grid_of_linears(True):
        for scaling in ("tensorwise", "rowwise"):
            for fast in (True, False):
                def run(m=m, n=n, k=k, rows=scaling == "rowwise", fast=fast):
                    a, b = draw(m, k, dtype=FP8), draw(n, k, dtype=FP8).t()
                    sizes = ((m, 1), (1, n)) if rows else ((), ())
                    one, two = (torch.ones(size, device="cuda") for size in sizes)
                    return lambda: torch._scaled_mm(a, b, one, two, out_dtype=BF16, use_fast_accum=fast)
                bench.row("gemm", "fp8", {"m": m, "n": n, "k": k},
                          f"{layout}, {scaling}, {'fast' if fast else 'whole'} sums", run)


def attention(bench):
    """Samples, tokens, heads, heads of keys, width of queries and of values."""
    for b, s, heads, kv, qk, v in [(1, 8192, 32, 8, 128, 128), (2, 4096, 32, 8, 128, 128), (8, 1024, 32, 8, 128, 128),
                                   (1, 32768, 32, 8, 128, 128), (1, 8192, 4, 1, 128, 128), (2, 8192, 4, 1, 128, 128),
                                   (1, 8192, 64, 8, 128, 128), (1, 8192, 8, 1, 128, 128), (4, 2048, 32, 32, 128, 128),
                                   (1, 8192, 32, 8, 64, 64), (8, 1024, 16, 16, 64, 64), (1, 4096, 16, 16, 192, 128),
                                   (1, 8192, 128, 128, 192, 128), (1, 4096, 16, 8, 128, 128)]:
        shape = {"batch": b, "seq": s, "heads": heads, "kv_heads": kv, "head_dim": qk, "causal": True}
        if v != qk:
            shape["v_head_dim"] = v
        for kernel, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
            def tensors(b=b, s=s, heads=heads, kv=kv, qk=qk, v=v):
                # As a projection leaves them: tokens before heads.
                return [draw(b, s, h, w).transpose(1, 2).requires_grad_()
                        for h, w in ((heads, qk), (kv, qk), (kv, v))]

            def forward(backend=backend):
                q, k, v = tensors()

                def run():
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                return run

            def backward(backend=backend):
                inputs = tensors()
                with sdpa_kernel(backend):
                    out = F.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
                gradient = torch.randn_like(out)
                return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)
            bench.row("attention_fwd", "bf16", shape, kernel, forward)
            bench.row("attention_bwd", "bf16", shape, kernel, backward)


def grouped(bench):
    """Experts, rows of each, width of an expert, hidden size."""
    for groups, rows, n, k in [(8, 512, 14336, 4096), (8, 2048, 14336, 4096), (8, 4096, 4096, 14336),
                               (128, 256, 768, 2048), (128, 1024, 768, 2048), (128, 512, 2048, 768),
                               (16, 512, 768, 2048), (16, 2048, 768, 2048), (16, 4096, 2048, 768),
                               (8, 256, 2048, 7168), (8, 1024, 2048, 7168), (8, 4096, 2048, 7168),
                               (32, 256, 2048, 7168), (32, 1024, 2048, 7168), (32, 1024, 7168, 2048),
                               (4, 4096, 5760, 2880), (32, 1024, 5760, 2880), (32, 1024, 2880, 2880),
                               (64, 384, 1408, 2048), (8, 8192, 1536, 4096), (16, 4096, 1536, 4096)]:
        offsets = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * rows
        for layout in ("fwd", "bwd_grad_act", "bwd_grad_w"):
            def run(groups=groups, rows=rows, n=n, k=k, layout=layout, offsets=offsets):
                if layout == "bwd_grad_w":
                    a, b = draw(groups * rows, n).t(), draw(groups * rows, k)
                elif layout == "fwd":
                    a, b = draw(groups * rows, k), draw(groups, n, k).transpose(1, 2)
                else:
                    a, b = draw(groups * rows, n), draw(groups, n, k)
                return lambda: torch._grouped_mm(a, b, offs=offsets)
            # All three in the forward product's sizes.
            bench.row("group_matmul", "bf16", {"ng": groups, "M": rows, "N": n, "K": k}, layout, run)


def with_backward(function, *inputs):
    """Forward and backward passes of a function, each to be timed."""
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    wanted = [x for x in inputs if x.requires_grad]
    out = function(*inputs)
    gradient = torch.randn_like(out)
    return {"forward": lambda: function(*inputs),
            "backward": lambda: torch.autograd.grad(out, wanted, gradient, retain_graph=True)}


def memory(bench):
    """What moves bytes. `bytes`: what a kernel that reads and writes each tensor once would move."""
    tokens, hidden, ffn, words = 8192, 4096, 14336, 128256
    wide, narrow = tokens * hidden * 4, tokens * hidden * 2

    def both(name, forward, backward, make):
        for direction, moved in (("forward", forward), ("backward", backward)):
            bench.row(f"membound:{name}", "bf16", {"bytes": moved}, direction,
                      lambda direction=direction: make()[direction])

    def one(name, moved, make, dtype="bf16"):
        bench.row(f"membound:{name}", dtype, {"bytes": moved}, "", make)

    both("rms_norm", 2 * narrow, 3 * narrow, lambda: with_backward(
        lambda x, w: F.rms_norm(x, (hidden,), w), draw(tokens, hidden), draw(hidden)))
    both("layer_norm", 2 * narrow, 3 * narrow, lambda: with_backward(
        lambda x, w, b: F.layer_norm(x, (hidden,), w, b), draw(tokens, hidden), draw(hidden), draw(hidden)))
    both("silu_mul", 5 * tokens * ffn * 2, 8 * tokens * ffn * 2, lambda: with_backward(
        lambda x, y: F.silu(x) * y, draw(tokens, ffn), draw(tokens, ffn)))
    both("gelu", 2 * tokens * ffn * 2, 3 * tokens * ffn * 2, lambda: with_backward(
        lambda x: F.gelu(x, approximate="tanh"), draw(tokens, ffn)))
    both("cross_entropy", 18 * tokens * words, 22 * tokens * words, lambda: with_backward(
        lambda x, y: F.cross_entropy(x.float(), y), draw(tokens, words),
        torch.randint(words, (tokens,), device="cuda")))
    both("embedding", 2 * narrow, narrow + words * hidden * 2, lambda: with_backward(
        lambda w, i: F.embedding(i, w), draw(words, hidden), torch.randint(words, (tokens,), device="cuda")))

    def adding():
        x, y = draw(tokens, hidden), draw(tokens, hidden)
        return lambda: x + y
    one("add", 3 * narrow, adding)

    def widening():
        x = draw(tokens, ffn)
        return lambda: x.float()
    one("widen", 6 * tokens * ffn, widening)

    def copying():
        x, y = draw(2**30), torch.empty(2**30, device="cuda", dtype=BF16)
        return lambda: y.copy_(x)
    one("copy", 4 * 2**30, copying)

    def scaling():
        x, scale = draw(tokens, hidden), torch.ones((), device="cuda")
        return lambda: (x.float() * scale).clamp(-448, 448).to(FP8)
    one("cast_eager", wide, scaling)

    def stepping():
        weights = [torch.nn.Parameter(torch.randn(2**24, device="cuda")) for _ in range(32)]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=True)
        return optimizer.step
    one("adamw_fused", 28 * 2**29, stepping, "fp32")

    def norms():
        gradients = [torch.randn(2**24, device="cuda") for _ in range(32)]
        return lambda: torch.nn.utils.get_total_norm(gradients, foreach=True)
    one("gradient_norm", 4 * 2**29, norms, "fp32")

    for copies in (4, 8):
        def rows(copies=copies):
            x, order = draw(tokens, 2048), torch.randperm(tokens * copies, device="cuda") // copies
            return lambda: x.index_select(0, order)
        one(f"gather_{copies}", 2 * copies * tokens * 2048 * 2, rows)

        def sums(copies=copies):
            x, order = draw(tokens * copies, 2048), torch.randperm(tokens * copies, device="cuda") // copies
            order = order.unsqueeze(1).expand(-1, 2048)
            out = torch.zeros(tokens, 2048, device="cuda", dtype=BF16)
            return lambda: out.scatter_add_(0, order, x)
        one(f"scatter_{copies}", 2 * copies * tokens * 2048 * 2, sums)


KINDS = {"gemm": gemm, "scaled": scaled, "attention": attention, "grouped": grouped, "memory": memory}


def main():
    arguments = read_arguments()
    unknown = [kind for kind in arguments.only.split(",") if kind not in KINDS]
    if unknown:
        print(f"time_kernels: error: --only {unknown[0]}: one of {', '.join(KINDS)}", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("time_kernels: error: no GPU", file=sys.stderr)
        return 3
    with open(arguments.out, "a", encoding="utf-8") if arguments.out else sys.stdout as file:
        bench = Bench(arguments.seconds, file)
        for kind in arguments.only.split(","):
            KINDS[kind](bench)
            torch.cuda.empty_cache()
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
