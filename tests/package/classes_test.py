"""classes_test.py BINARY: each of Transformers' classes of decoders, with the configuration that it has by default, is
refused, read openly as another's, or has as many parameters as its class builds, where one of the interpreters that
ZEROPLAN_TRACERS names (paths with colons between them) has Transformers."""
import json
import os
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])

# Run by the interpreter that has Transformers: without names it prints all configurations, else what is built of these.
BUILD = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as classes
found = {}
for kind in sys.argv[1:] or classes:
    try:
        config = AutoConfig.for_model(kind)
        if not sys.argv[1:]:
            found[kind] = json.loads(json.dumps(config.to_dict(), default=str))
            continue
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        # What corrects a router's choice is in the checkpoint, and no parameter of Transformers.
        corrections = sum(b.numel() for name, b in model.named_buffers() if name.endswith("e_score_correction_bias"))
        found[kind] = sum(p.numel() for p in model.parameters()) + corrections
    except Exception as error:  # a class that lacks a package, or has no whole configuration by default
        print(f"not built: {kind}: {error}", file=sys.stderr)
print(json.dumps(found))
"""
OPENLY = ("is not known: read as", "only the text model is counted")


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


tried = 0
for python in filter(None, os.environ.get("ZEROPLAN_TRACERS", "").split(":")):
    answers = {kind: answer(config) for kind, config in built(python).items()}
    said = {kind: a["model"]["parameters"] for kind, a in answers.items()
            if a and not any(words in note for note in a["assumptions"] for words in OPENLY)}
    counts = built(python, *said) if said else {}
    others = {kind: (said[kind], count) for kind, count in counts.items() if said[kind] != count}
    assert not others, others
    tried += len(counts)
if not tried:
    print("skipped: ZEROPLAN_TRACERS names no interpreter that has transformers")
    sys.exit(77)
print(f"{tried} classes have as many parameters as is said")
