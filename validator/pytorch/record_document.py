"""What a recorded program says beside its events: the model, who ran it, and the layout it had."""

import json
import pathlib
from importlib.metadata import version

from corpus_row import Stop


def layout(gpus, sequence, micro_batch, batches, **others):
    """As fit --json says one; what is not given is 1, or off."""
    values = {"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "etp": 1, "zero": 3, "sequence_parallel": False,
              "recompute": "none", "precision": "bf16", "optimizer": "adam", "attention": "flash",
              "offload": "none", "schedule": "1f1b", **others}
    if values["pp"] > 1:
        raise Stop(2, "a stage of a pipeline cannot be recorded: a step without one can")
    dp = gpus // (values["tp"] * values["cp"])
    return {"dp": dp, "micro_batch": micro_batch, "global_batch": dp * micro_batch * batches,
            "sequence_length": sequence, **values}


def group_namer(values):
    """Names the group of these ranks by the layout that made it, as zeroplan's collectives do."""
    tp, cp, dp = values["tp"], values["cp"], values["dp"]
    shard = values.get("hsdp", dp)
    known = {(dp * cp, tp): "dp", (tp, 1): "tp", (cp, tp): "cp"}
    if shard < dp:
        known.update({(shard * cp, tp): "shard", (dp // shard, tp * cp * shard): "replica"})
    if values["ep"] > 1:
        known.setdefault((values["ep"], values["etp"]), "ep")
        known.setdefault((dp * cp * tp // (values["ep"] * values["etp"]), values["ep"] * values["etp"]),
                         "expert-dp")

    def name(ranks):
        stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
        if list(ranks) != list(range(ranks[0], ranks[0] + len(ranks) * stride, stride)):
            raise Stop(2, f"a group of ranks {ranks}, which do not stand evenly apart")
        place = (len(ranks), stride)
        other = "world" if len(ranks) == dp * cp * tp else f"{len(ranks)} by {stride}"
        return {"name": known.get(place, other), "ranks": len(ranks), "stride": stride}
    return name


def head(name, parameters, layers, runtime, packages, values, rank, expandable_segments=False):
    """The first fields of a document. `packages`: whose versions decide what ran; `expandable_segments`: what its
    launcher asks of PyTorch's allocator."""
    return {"model": {"name": name, "parameters": parameters, "layers": layers},
            "runtime": {"name": runtime, "versions": {package: version(package) for package in packages},
                        "expandable_segments": expandable_segments},
            "rank": rank, "layout": values}


def write(path, recorder, first_fields):
    document = recorder.document(first_fields)
    lines = ",\n".join(f"{json.dumps(key)}: {compact(value)}" for key, value in document.items())
    pathlib.Path(path).write_text("{" + lines + "}\n", encoding="utf-8")


def compact(value):
    """A line an entry of a list of objects; no spaces."""
    tight = (",", ":")
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(entry, separators=tight) for entry in value) + "]"
    return json.dumps(value, separators=tight)
