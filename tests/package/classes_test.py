"""classes_test.py BINARY: each of Transformers' classes of decoders, with the configuration that it has by default, is
refused, read openly as another's, or has as many parameters as its class builds, where one of the interpreters that
ZEROPLAN_TRACERS names (paths with colons between them) has Transformers."""
import json
import os
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])

# Of these the text model is counted.
WITH_EYES = ("gemma3", "llama4", "mistral3", "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl",
             "qwen3_vl_moe")

# Run by the interpreter that has Transformers: without names it prints all configurations, else what is built of these.
BUILD = f"WITH_EYES = {WITH_EYES}" + """
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as classes
eyes = ("visual", "vision", "multi_modal")  # in the names of what is counted by nobody here
found = {}
for kind in sys.argv[1:] or {*classes, *WITH_EYES}:
    try:
        config = AutoConfig.for_model(kind)
        if not sys.argv[1:]:
            found[kind] = json.loads(json.dumps(config.to_dict(), default=str))
            continue
        with torch.device("meta"):
            model = (AutoModelForImageTextToText if kind in WITH_EYES else AutoModelForCausalLM).from_config(config)
        # What corrects a router's choice is in the checkpoint, and no parameter of Transformers.
        corrections = sum(b.numel() for name, b in model.named_buffers() if name.endswith("e_score_correction_bias"))
        found[kind] = corrections + sum(p.numel() for name, p in model.named_parameters()
                                        if kind not in WITH_EYES or not any(eye in name for eye in eyes))
    except Exception as error:  # a class that lacks a package, or has no whole configuration by default
        print(f"not built: {kind}: {error}", file=sys.stderr)
print(json.dumps(found))
"""


def built(python, *kinds):
    run = subprocess.run([python, "-c", BUILD, *kinds], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else {}


def answer(config):
    """The answer; nothing where the model is refused in one line."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        run = subprocess.run([BINARY, "fit", file.name, "--gpus", "8xH100-80GB", "--runtime", "ddp", "--zero", "0",
                              "--micro-batch", "1", "--seq", "64", "--global-batch", "8", "--json"],
                             capture_output=True, text=True)
    if run.returncode == 2:
        assert len(run.stderr.strip().splitlines()) == 1, run.stderr
        return None
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


def is_own(kind, notes):
    """Whether the model is answered as what it is, and not openly as another or, of a wrapper, as its text model."""
    return not any("is not known: read as" in note or ("only the text model is counted" in note and kind not in WITH_EYES)
                   for note in notes)


tried = 0
for python in filter(None, os.environ.get("ZEROPLAN_TRACERS", "").split(":")):
    answers = {kind: answer(config) for kind, config in built(python).items()}
    said = {kind: a["model"]["parameters"] for kind, a in answers.items() if a and is_own(kind, a["assumptions"])}
    counts = built(python, *said) if said else {}
    others = {kind: (said[kind], count) for kind, count in counts.items() if said[kind] != count}
    assert not others, others
    tried += len(counts)
if not tried:
    print("skipped: ZEROPLAN_TRACERS names no interpreter that has transformers")
    sys.exit(77)
print(f"{tried} classes have as many parameters as is said")
