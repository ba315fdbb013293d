"""A decoder as torchtitan writes it, from Hugging Face's config.json names."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    positions: int
    tied: bool
    gated: bool  # RMSNorm, rotary positions and a gated MLP; else LayerNorm, learned positions, GELU
    qkv_bias: bool
    qk_norm: bool

    @staticmethod
    def of_config(config: dict) -> "Shape":
        """Raises KeyError when the configuration is not of a plain decoder."""
        kind = config["model_type"]
        if kind == "gpt2":
            hidden, heads = config["n_embd"], config["n_head"]
            return Shape(
                config["n_layer"], hidden, heads, heads, hidden // heads,
                config.get("n_inner") or 4 * hidden, config["vocab_size"], config["n_positions"],
                config.get("tie_word_embeddings", True), False, True, False)
        if kind not in ("llama", "mistral", "qwen2", "qwen3"):
            raise KeyError(f"model_type {kind}: llama, mistral, qwen2, qwen3 or gpt2 is built here")
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        return Shape(
            config["num_hidden_layers"], hidden, heads,
            config.get("num_key_value_heads", heads), config.get("head_dim") or hidden // heads,
            config["intermediate_size"], config["vocab_size"],
            config.get("max_position_embeddings", 4096),
            config.get("tie_word_embeddings", False), True, kind == "qwen2", kind == "qwen3")


class KernelNorm(torch.autograd.Function):
    """What RMSNorm's one GPU kernel allocates and keeps; the values are not computed. On the host
    PyTorch has no such kernel, and fake tensors would show a chain of fp32 operators instead."""

    @staticmethod
    def forward(context, x, weight):
        statistics = x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)
        context.save_for_backward(x, weight, statistics)
        return torch.empty_like(x)

    @staticmethod
    def backward(context, gradient):
        x, weight, _ = context.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight)


class RmsNorm(nn.RMSNorm):
    """`fake`: for fake tensors, which have the kernels of a GPU only where they are named."""

    def __init__(self, width: int, fake: bool):
        super().__init__(width, eps=1e-5)
        self.fake = fake

    def forward(self, x):
        return KernelNorm.apply(x, self.weight) if self.fake else super().forward(x)


def attend(q, k, v, fake):
    """Causal attention by the flash kernel; `fake` as in RmsNorm."""
    if fake:
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def turn_complex(x, angles):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles).flatten(3).type_as(x)


def turn_halves(x, cosine, sine):
    half = x.shape[-1] // 2
    swapped = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return ((x * cosine) + (swapped * sine)).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, s: Shape, fake: bool):
        super().__init__()
        self.s, self.fake = s, fake
        bias = s.qkv_bias
        self.q_proj = nn.Linear(s.hidden, s.heads * s.head_dim, bias=bias)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=bias)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=bias)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden, bias=not s.gated)
        if s.qk_norm:
            self.q_norm, self.k_norm = RmsNorm(s.head_dim, fake), RmsNorm(s.head_dim, fake)

    def forward(self, x, rotary):
        b, t, _ = x.shape
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q = q.view(b, t, -1, self.s.head_dim)
        k = k.view(b, t, -1, self.s.head_dim)
        v = v.view(b, t, -1, self.s.head_dim)
        if self.s.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
            q, k = turn_halves(q, *rotary), turn_halves(k, *rotary)
        elif rotary is not None:
            q, k = turn_complex(q, rotary), turn_complex(k, rotary)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        out = attend(q, k, v, self.fake).transpose(1, 2).contiguous().view(b, t, -1)
        return self.o_proj(out)


class Mlp(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        bias = not s.gated
        self.gated = s.gated
        if s.gated:
            self.gate_proj = nn.Linear(s.hidden, s.ffn, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.ffn, bias=bias)
        self.down_proj = nn.Linear(s.ffn, s.hidden, bias=bias)

    def forward(self, x):
        if self.gated:
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return self.down_proj(F.gelu(self.up_proj(x)))


def norm_of(s: Shape, fake: bool):
    return RmsNorm(s.hidden, fake) if s.gated else nn.LayerNorm(s.hidden)


class Layer(nn.Module):
    def __init__(self, s: Shape, fake: bool):
        super().__init__()
        self.attention_norm, self.mlp_norm = norm_of(s, fake), norm_of(s, fake)
        self.attention, self.mlp = Attention(s, fake), Mlp(s)

    def forward(self, x, rotary):
        h = x + self.attention(self.attention_norm(x), rotary)
        return h + self.mlp(self.mlp_norm(h))


class Decoder(nn.Module):
    """tokens [b, t] -> logits [b, t, vocab]. `rows`: positions for which angles are kept."""

    def __init__(self, s: Shape, rows: int, fake: bool):
        super().__init__()
        self.s = s
        self.embedding = nn.Embedding(s.vocab, s.hidden)
        if not s.gated:
            self.positions = nn.Embedding(s.positions, s.hidden)
        self.layers = nn.ModuleList(Layer(s, fake) for _ in range(s.layers))
        self.norm = norm_of(s, fake)
        self.head = nn.Linear(s.hidden, s.vocab, bias=False)
        if s.tied:
            self.head.weight = self.embedding.weight
        if s.gated:
            # Cosine and sine of each position, or the same as one complex number a pair.
            shape = (rows, 2, s.head_dim) if s.qk_norm else (rows, s.head_dim // 2, 2)
            self.register_buffer("angles", torch.zeros(shape), persistent=False)

    def rotary(self, t):
        if not self.s.gated:
            return None
        if self.s.qk_norm:
            return tuple(self.angles[None, :t, None, part] for part in (0, 1))
        return torch.view_as_complex(self.angles)[:t].view(1, t, 1, -1)

    def forward(self, tokens):
        t = tokens.shape[1]
        h = self.embedding(tokens)
        if not self.s.gated:
            h = h + self.positions(torch.arange(t, device=tokens.device))
        rotary = self.rotary(t)
        for layer in self.layers:
            h = layer(h, rotary)
        return self.head(self.norm(h))
