"""What every tracer writes: one row of a measured corpus, which script/accuracy reads."""

import argparse
import importlib.util
import json
import os
import pathlib
import shlex
import sys
import traceback

PRESETS = pathlib.Path(__file__).resolve().parent.parent.parent / "presets" / "models"


class Stop(Exception):
    """Ends a tracer with one line and its exit code: 2 what was asked cannot be run, 3 something is missing."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def config_of(name, layers=None):
    """config.json of a catalog model, its text part, with so many layers."""
    path = PRESETS / f"{name}.json"
    if not path.exists():
        raise Stop(2, f"{name} is not in the catalog")
    values = json.loads(path.read_text(encoding="utf-8"))["config"]
    values = values.get("text_config", values)
    if layers:
        values["n_layer" if "n_layer" in values else "num_hidden_layers"] = layers
    return values


def first_of(config, *names, otherwise=None):
    return next((config[name] for name in names if config.get(name) is not None), otherwise)


def experts_of(config):
    count = first_of(config, "num_experts", "num_local_experts", "n_routed_experts")
    if not count:
        return None
    width = first_of(config, "moe_intermediate_size", "intermediate_size")
    shared = config.get("n_shared_experts") or (1 if "llama4" in config["model_type"] else 0)
    return {"experts": count, "topk": config["num_experts_per_tok"], "expert_ffn": width,
            "shared_ffn": shared * width,
            "dense_layers": config.get("first_k_dense_replace", 0)}


def latent_of(config):
    if not config.get("kv_lora_rank"):
        return None
    return {"q_lora": config.get("q_lora_rank") or 0, "kv_lora": config["kv_lora_rank"],
            "qk_nope": config["qk_nope_head_dim"], "qk_rope": config["qk_rope_head_dim"],
            "v_head": config["v_head_dim"]}


def model_part(name, config):
    """`model` of a row, from the names of config.json."""
    kind = config["model_type"]
    hidden = first_of(config, "hidden_size", "n_embd")
    heads = first_of(config, "num_attention_heads", "n_head")
    layers = first_of(config, "num_hidden_layers", "n_layer")
    plain = kind == "gpt2"
    return {"name": f"{name}-L{layers}", "model_type": kind, "layers": layers, "hidden": hidden, "heads": heads,
            "kv_heads": config.get("num_key_value_heads") or heads,
            "head_dim": config.get("head_dim") or hidden // heads,
            "ffn": first_of(config, "intermediate_size_mlp", "intermediate_size", "n_inner",
                            otherwise=4 * hidden),
            "vocab": config["vocab_size"],
            "max_pos": first_of(config, "max_position_embeddings", "n_positions"),
            "gated_mlp": not plain, "tied_embeddings": config.get("tie_word_embeddings", plain),
            "bias": plain, "qkv_bias": kind == "qwen2", "qk_norm": kind.startswith("qwen3"),
            "learned_pos_emb": plain, "norm": "LayerNorm" if plain else "RMSNorm",
            "moe": experts_of(config), "mla": latent_of(config)}


def configured_model(name, config):
    """The same, as config.json says it all."""
    layers = first_of(config, "num_hidden_layers", "n_layer")
    return {"name": f"{name}-L{layers}", "layers": layers, "config": config}


def measured_part(meter, peaks, resident):
    """`measured` of a row. Categories are those of the highest moment of the last step."""
    return {"value": round(max(peaks) / 2**30, 4), "unit": "GiB", "what": meter.what,
            "bytes": max(peaks), "peak_bytes_by_step": peaks, "resident_bytes": resident,
            "phases": meter.phases, "categories": meter.categories(), "tensors": meter.tensors(), "rank": None}


def notes_of(meter, steps):
    return f"{steps} steps. Left out: {meter.leaves_out}. Collectives move nothing."


def profiles(parser):
    """The option of what runs on a GPU."""
    parser.add_argument("--profile", help="a folder: the kernels of a step, by their time")


def write(row, path):
    """To a file's end, or to standard output."""
    text = json.dumps(row) + "\n"
    if not path:
        sys.stdout.write(text)
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def answer(read, trace, words):
    """The exit code of one run, whose row is written."""
    try:
        arguments = read(words)
        row = trace(arguments)
        if row:
            write(row, arguments.out)
    except Stop as stop:
        print(f"trace: error: {stop}", file=sys.stderr)
        return stop.code
    return 0


def run_grid(read, trace, path, out):
    """A process a line, so that none starts with another's tensors; what is imported stays."""
    code = 0
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        child = os.fork()
        if child == 0:
            words = [*shlex.split(line), *(["--out", out] if out else [])]
            try:
                os._exit(answer(read, trace, words))
            except BaseException:  # noqa: B902  whatever the runtime throws, the parent goes on
                traceback.print_exc()
                os._exit(1)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            print(f"trace: error: {line}", file=sys.stderr)
            code = 1
    return code


def has(package):
    """Whether it would be found; a package's own package is imported to look."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def run(read, trace, packages, warm):
    """The exit code of a tracer: 0 traced, 1 a line of a grid was not, 2 the arguments cannot be run, 3 a
    package is missing. `warm` imports what every line of a grid needs."""
    missing = [package for package in packages if not has(package)]
    if missing:
        print(f"trace: error: {sys.executable} lacks {', '.join(missing)}", file=sys.stderr)
        return 3
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--grid")
    parser.add_argument("--out")
    grid, _ = parser.parse_known_args()
    if not grid.grid:
        return answer(read, trace, None)
    try:
        warm()
    except Stop as stop:
        print(f"trace: error: {stop}", file=sys.stderr)
        return stop.code
    return run_grid(read, trace, grid.grid, grid.out)
