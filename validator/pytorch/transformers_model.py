"""A model of Transformers, and a batch for it: of the catalog, or of any config.json, which may be one of a
vision tower. Nothing is downloaded: weights have shapes alone."""

import json
import pathlib
from functools import partial

from corpus_row import Stop, config_of


def is_file(name):
    return name.endswith(".json")


def name_of(arguments):
    return pathlib.Path(arguments.model).stem.removesuffix(".config") if is_file(arguments.model) else arguments.model


def values_of(arguments):
    """What config.json says."""
    if not is_file(arguments.model):
        return config_of(arguments.model, arguments.layers)
    try:
        values = json.loads(pathlib.Path(arguments.model).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Stop(2, f"{arguments.model}: {error}") from error
    if arguments.layers:
        values["num_hidden_layers"] = arguments.layers
    return values


def configuration(arguments):
    from transformers import AutoConfig
    values = values_of(arguments)
    kind = values.pop("model_type")
    if not is_file(arguments.model):
        values["use_cache"] = False
    config = AutoConfig.for_model(kind, **values)
    # Also those that the file leaves to the class.
    for name in [name for name in vars(config) if name.endswith(("dropout", "_pdrop"))]:
        setattr(config, name, 0.0)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return config


def sees(config):
    """Whether it reads images: then it is trained to tell classes apart."""
    from transformers import AutoModelForCausalLM, AutoModelForImageClassification
    return (type(config) in AutoModelForImageClassification._model_mapping
            and type(config) not in AutoModelForCausalLM._model_mapping)


def model_of(config, torch, attention="sdpa"):
    from transformers import AutoModelForCausalLM, AutoModelForImageClassification
    kind = AutoModelForImageClassification if sees(config) else AutoModelForCausalLM
    return kind.from_config(config, dtype=torch.float32, attn_implementation=attention)


def units_of(model):
    """--fsdp_transformer_layer_cls_to_wrap; None: as accelerate chooses. It shards the embedding of images
    once more by itself, which fails where that is a unit already, and looks for the blocks of vision towers in
    text models alone (Qwen3.5), which have none."""
    names = model._no_split_modules
    if sees(model.config):
        return [name for name in names if not name.endswith("Embeddings")]
    there = {type(module).__name__ for module in model.modules()}
    return None if there.issuperset(names) else [name for name in names if name in there]


def tokens_of(config, asked):
    """Of one sample: an image has as many as it has patches."""
    return (config.image_size // config.patch_size) ** 2 if sees(config) else asked


def batch_of(config, samples, tokens, torch):
    """Arguments of the model's call; their values mean nothing."""
    if sees(config):
        size = config.image_size
        return {"pixel_values": torch.empty(samples, config.num_channels, size, size),
                "labels": torch.randint(config.num_labels, (samples,))}
    draw = partial(torch.randint, config.vocab_size, (samples, tokens))
    return {"input_ids": draw(), "labels": draw(), "num_items_in_batch": samples * tokens}
