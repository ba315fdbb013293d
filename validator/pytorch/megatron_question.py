"""What `zeroplan export` writes for a question, as arguments of the tracer."""

import json
import os
import pathlib
import subprocess
import tempfile

from corpus_row import Stop, config_of

BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "release" / "zeroplan"


def taken(words, name):
    """The value of an option, which is then gone."""
    if name not in words:
        return None
    at = words.index(name)
    value = words[at + 1]
    del words[at:at + 2]
    return value


def exported(words):
    """From a catalog model's name with --layers, --stage, --out and options of `export`."""
    words = list(words)
    layers, stage, out, record = (taken(words, name) for name in ("--layers", "--stage", "--out", "--record"))
    program = os.environ.get("ZEROPLAN", str(BUILT))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config_of(words[0], int(layers or 0)), file)
        file.flush()
        try:
            answer = subprocess.run([program, "export", file.name, *words[1:]], capture_output=True, text=True)
        except OSError as error:
            raise Stop(3, f"{program}: {error.strerror} (ZEROPLAN says which zeroplan to ask)") from error
    if answer.returncode > 1 or not answer.stdout:
        raise Stop(2, answer.stderr.strip() or "zeroplan export says nothing")
    gpus = words[words.index("--gpus") + 1].split("x")[0]
    return [words[0], "--gpus", gpus, "--stage", stage or "0", *(["--out", out] if out else []),
            *(["--record", record] if record else []),
            "--megatron=" + answer.stdout.replace("\n", " ")]
