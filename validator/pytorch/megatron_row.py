"""A row of the corpus from what Megatron-LM made of its arguments."""

from corpus_row import measured_part, notes_of
from megatron.core.package_info import __version__ as core_version

STEPS = 3


def launch(words):
    """The arguments by name, as they were given; a flag is true, a list is one text."""
    given, name = {}, None
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            given[name] = [value] if value else []
        else:
            given[name].append(word)
    return {name: True if not values else values[0] if len(values) == 1 else values
            for name, values in given.items()}


def experts_of(args):
    if not args.num_experts:
        return None
    pattern = args.moe_layer_freq
    layers = pattern if isinstance(pattern, list) else [int(i % pattern == 0) for i in range(args.num_layers)]
    dense = layers.index(1)
    return {"experts": args.num_experts, "topk": args.moe_router_topk, "expert_ffn": args.moe_ffn_hidden_size,
            "shared_ffn": args.moe_shared_expert_intermediate_size or 0, "dense_layers": dense,
            "layer_freq": "1" if all(layers[dense:]) else str(pattern), "etp": args.expert_tensor_parallel_size}


def latent_of(args):
    if not args.multi_latent_attention:
        return None
    return {"q_lora": args.q_lora_rank or 0, "kv_lora": args.kv_lora_rank, "qk_nope": args.qk_head_dim,
            "qk_rope": args.qk_pos_emb_head_dim, "v_head": args.v_head_dim}


# What says a model, as zeroplan's "megatron_arguments" has it.
MODEL = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "group_query_attention",
         "num_query_groups", "kv_channels", "qk_layernorm", "attention_output_gate", "experimental_attention_variant",
         "linear_attention_freq", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim",
         "linear_num_key_heads", "linear_num_value_heads", "vocab_size", "position_embedding_type", "normalization",
         "swiglu", "disable_bias_linear", "untie_embeddings_and_output_weights", "num_experts", "moe_router_topk",
         "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_shared_expert_gate", "moe_layer_freq",
         "max_position_embeddings")
# What else says a hybrid model, and what follows from its pattern.
HYBRID = ("hybrid_layer_pattern", "mamba_num_heads", "mamba_head_dim", "mamba_state_dim", "mamba_num_groups",
          "squared_relu", "moe_latent_size", "moe_router_score_function", "moe_router_enable_expert_bias",
          "moe_router_topk_scaling_factor", "moe_router_num_groups", "moe_router_group_topk",
          "mtp_use_repeated_layer")
COUNTED = ("num_layers", "mtp_num_layers")


def name_of(name, args):
    """A pattern says how many layers there are, and which."""
    return f"{name}-{args.hybrid_layer_pattern or f'L{args.num_layers}'}"


def said_of_hybrid(args):
    return (*HYBRID, *COUNTED) if args.hybrid_layer_pattern else ()


def number_of(text, key):
    if key.endswith("_freq") or not isinstance(text, str):
        return text
    return int(text) if text.isdigit() else float(text) if text.replace(".", "", 1).isdigit() else text


def configured_model(name, args, given):
    said = {argument.replace("-", "_"): value for argument, value in given.items()}
    if args.hybrid_layer_pattern:
        said.update({key: getattr(args, key) for key in COUNTED if getattr(args, key)})
    keys = dict.fromkeys((*MODEL, *said_of_hybrid(args)))
    config = {key: number_of(said[key], key) for key in keys if key in said}
    return {"name": name_of(name, args), "layers": args.num_layers,
            "config": {"model_type": "megatron_arguments", **config}}


def model_of(name, args, given):
    if args.experimental_attention_variant or args.hybrid_layer_pattern:
        return configured_model(name, args, given)
    return {"name": name_of(name, args), "layers": args.num_layers, "hidden": args.hidden_size,
            "heads": args.num_attention_heads,
            "kv_heads": args.num_query_groups if args.group_query_attention else args.num_attention_heads,
            "head_dim": args.kv_channels, "ffn": args.ffn_hidden_size, "vocab": args.vocab_size,
            "padded_vocab": args.padded_vocab_size, "max_pos": args.max_position_embeddings,
            "gated_mlp": args.swiglu, "tied_embeddings": not args.untie_embeddings_and_output_weights,
            "bias": args.add_bias_linear, "qkv_bias": args.add_qkv_bias, "qk_norm": args.qk_layernorm,
            "learned_pos_emb": args.position_embedding_type == "learned_absolute",
            "norm": args.normalization, "moe": experts_of(args), "mla": latent_of(args)}


STAGES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}  # of Megatron-FSDP


def stage_of(args):
    if args.use_megatron_fsdp:
        return STAGES[args.data_parallel_sharding_strategy]
    return 1 if args.use_distributed_optimizer else 0


def sharding_of(args):
    ranks = args.data_parallel_size * args.context_parallel_size
    distributed = args.use_distributed_optimizer
    return {"stage": stage_of(args), "grad_dtype": "bf16" if args.grad_reduce_in_bf16 else "fp32",
            "shard_degree": ranks // args.num_distributed_optimizer_instances if distributed else ranks}


def recompute_of(args):
    part = {"kind": args.recompute_granularity or "none"}
    if part["kind"] == "full":
        part.update(method=args.recompute_method, num_layers=args.recompute_num_layers)
    if part["kind"] == "selective":
        part["modules"] = args.recompute_modules
    return part


# What the identity says in its own words, or what follows from the rest.
SAID = {"num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "group-query-attention",
        "num-query-groups", "kv-channels", "vocab-size", "position-embedding-type", "normalization", "swiglu",
        "disable-bias-linear", "untie-embeddings-and-output-weights", "max-position-embeddings", "seq-length",
        "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size",
        "expert-model-parallel-size", "num-virtual-stages-per-pipeline-rank", "micro-batch-size",
        "global-batch-size", "use-distributed-optimizer", "bf16", "optimizer", "multi-latent-attention", "q-lora-rank", "kv-lora-rank", "qk-head-dim",
        "qk-pos-emb-head-dim", "v-head-dim", "qk-layernorm", "add-qkv-bias", "num-experts", "moe-router-topk",
        "moe-ffn-hidden-size", "moe-shared-expert-intermediate-size", "moe-layer-freq", "moe-grouped-gemm",
        "sequence-parallel", "moe-token-dispatcher-type", "recompute-granularity", "use-megatron-fsdp",
        "data-parallel-sharding-strategy", "ckpt-format", "attention-output-gate", "experimental-attention-variant",
        "linear-attention-freq", "linear-conv-kernel-dim", "linear-key-head-dim", "linear-value-head-dim",
        "linear-num-key-heads", "linear-num-value-heads", "moe-shared-expert-gate"}
USUAL = {"attention-backend": "fused", "transformer-impl": "transformer_engine", "hidden-dropout": "0", "attention-dropout": "0",
         "expert-tensor-parallel-size": "1"}


ALONE = "without Transformer Engine"  # what script/accuracy looks for


def identity(arguments, args, given):
    batches = args.global_batch_size // args.micro_batch_size // args.data_parallel_size
    said = SAID | {key.replace("_", "-") for key in said_of_hybrid(args)}
    parts = [name_of(arguments.model, args), f"dp{args.data_parallel_size}",
             f"z{sharding_of(args)['stage']}", f"s{args.seq_length}", f"b{args.micro_batch_size}x{batches}",
             args.recompute_granularity or "none"]
    for name, degree in (("tp", args.tensor_model_parallel_size), ("cp", args.context_parallel_size),
                         ("pp", args.pipeline_model_parallel_size),
                         ("vpp", args.virtual_pipeline_model_parallel_size or 1),
                         ("ep", args.expert_model_parallel_size)):
        parts += [f"{name}{degree}"] if degree > 1 else []
    parts += [f"stage{arguments.stage}"] if args.pipeline_model_parallel_size > 1 else []
    parts += ["sp"] if args.sequence_parallel else []
    parts += ["fp32"] if precision_of(args) == "fp32" else []
    for name, value in given.items():
        if name not in said and USUAL.get(name) != value:
            text = "" if value is True else "=" + ("+".join(value) if isinstance(value, list) else value)
            parts.append(name + text)
    return "-".join(["traced-mcore", core_version.split("+")[0], *parts])


def precision_of(args):
    return "fp8" if args.fp8 else "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"


def row_of(arguments, args, peaks, meter, engine, torch_version):
    given = launch(arguments.megatron)
    measured = measured_part(meter, peaks, meter.now())
    measured["rank"] = args.rank
    unfused = given.get("attention-backend") == "unfused"
    runs = args.transformer_impl == "transformer_engine"
    told = f", TE {engine}" if runs else "" if engine else f", {ALONE}"
    return {
        "id": identity(arguments, args, given) + ("" if engine else "-alone"), "family": "traced-megatron", "complete": True,
        "source": "validator/pytorch/trace_megatron.py", "framework": "megatron",
        "framework_version": f"PyTorch {torch_version}, Megatron-Core {core_version}{told}",
        "settings": given,
        "decided": {"transformer_engine": ".".join(engine.split(".")[:2]) if runs else "local" if engine else "none"},
        "gpu": "H100-80GB", "n_gpus": arguments.gpus, "device": None, "ranks": "fake process group",
        "model": model_of(arguments.model, args, given), "seq": args.seq_length, "micro_batch": args.micro_batch_size,
        "global_batch": args.global_batch_size, "dp": args.data_parallel_size,
        "tp": args.tensor_model_parallel_size, "pp": args.pipeline_model_parallel_size,
        "vpp": args.virtual_pipeline_model_parallel_size or 1, "cp": args.context_parallel_size,
        "ep": args.expert_model_parallel_size,
        **({"etp": args.expert_tensor_parallel_size} if args.num_experts else {}), "sp": args.sequence_parallel, "zero": sharding_of(args),
        "recompute": recompute_of(args), "precision": precision_of(args), "optimizer": args.optimizer,
        "attention": "unfused" if unfused else "flash", "compile": False,
        "measured": measured, "outcome": "ran", "step_time_s": None,
        "notes": notes_of(meter, STEPS) + " Experts get as many tokens each.",
    }
