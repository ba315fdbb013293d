"""schemas_test.py BINARY SCHEMAS: every document of --json is as its schema says, and a spoiled one is not."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    warnings.simplefilter("ignore", DeprecationWarning)  # RefResolver: Debian 12 has no other
    import jsonschema
except ImportError:
    print("skipped: no Python package jsonschema")
    sys.exit(77)

BINARY, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
RECORDED = FOLDER.parent.parent / "tests" / "reference" / "recorded"
TRACES = RECORDED.parent / "traces"
STEP = f"'{RECORDED}/vit-huge.json' --gpus 8xH100-80GB"
DENSE = "llama3-8b --gpus 8xH100-80GB --tp 2"
SWITCHES = "llama3-70b --gpus 4096 --cluster meta-24k --tp 8 --pp 8 --zero 1 --micro-batch 1"  # stages on several pods
QUESTIONS = {
    "fit": [f"fit {DENSE}", f"fit {STEP}", f"fit {SWITCHES}", "fit mixtral-8x7b --gpus 64xH100-80GB --ep 8 --tp 2 --tokens 1T --price 2/h",
            "fit llama3-70b --gpus 8xA100-40GB --tp 8 --pp 1 --micro-batch 1",  # does not fit
            "fit 7.5B --gpus 64xV100-32GB --runtime zero-paper --zero 2 --micro-batch 1 --global-batch 64",  # no time
            "fit llama3-8b --gpus 8xH100-80GB --runtime fsdp2 --hsdp 4 --zero 3 --micro-batch 1",
            "fit llama3-8b --gpus 2xA100-80GB --runtime deepspeed --zero 2 --offload optimizer --micro-batch 1"],
    "refused": ["fit --batch LINE"],
    "table": [f"fit {DENSE} --zero 1,2 --tokens 1T", "fit llama3-8b --gpus 8xH100-80GB --tp 2,3 --zero 1"],
    "sweep": ["sweep llama3-8b --gpus 8xH100-80GB --top 2 --front --tokens 1T",
              "sweep llama3-70b --gpus 4xA100-40GB --top 2"],  # none fits
    "compare": ["compare llama3-8b --gpus 8xH100-80GB --zero 1 --micro-batch 1 --recompute none "
                "--a '--tp 2' --b '--tp 4'"],
    "explain": [f"explain {STEP}", f"explain {DENSE} --zero 1", f"explain {DENSE} --row flops", f"explain {DENSE} --row step",
                f"explain {SWITCHES} --row communication"],
    "timeline": [f"timeline {STEP}", f"timeline {DENSE} --pp 2 --zero 1 --micro-batch 1 --global-batch 8"],
    "ranks": [f"explain {DENSE} --pp 2 --zero 1 --ranks", f"explain {SWITCHES} --ranks"],
    "story": [f"story {DENSE} --pp 2 --zero 1 --micro-batch 1 --global-batch 8"],
    "overlay": [f"overlay {DENSE} --trace '{TRACES}/cpu_step.json' --snapshot '{TRACES}/snapshot_4.pickle'"],
    "export": [f"export {DENSE}", "export llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2"],
    "import": ["import ARGUMENTS"],
    "presets": ["presets models", "presets gpus", "presets clusters", "presets runtimes"],
    "validate": ["validate llama3-8b --gpus 2xH100-80GB --tp 1 --pp 1 --zero 3 --backend host --steps 2"],
}


def validator(name):
    resolver = jsonschema.RefResolver((FOLDER / f"{name}.json").as_uri(), SCHEMAS[name])
    return jsonschema.Draft202012Validator(SCHEMAS[name], resolver=resolver)


def document(question, folder):
    arguments = question.replace("ARGUMENTS", f"'{folder}/arguments'").replace("LINE", f"'{folder}/line'")
    run = subprocess.run(f"'{BINARY}' {arguments} --json", shell=True, capture_output=True, text=True)
    assert run.returncode in (0, 1) or "--batch" in question, f"{question}: exit {run.returncode}: {run.stderr}"
    return json.loads(run.stdout)


def spoiled(answer, schema):
    """The document without each thing that its schema requires, and with another schema's name."""
    for name in schema.get("required", []):
        copied = copy.deepcopy(answer)
        del copied[name]
        yield f"without {name}", copied
    if isinstance(answer, dict):
        yield "with another name", {**answer, "schema": "zeroplan.other/1"}


failures = checked = refused = 0
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "line").write_text("no-such-model --gpus 8xH100\n")
    pathlib.Path(folder, "arguments").write_text("--num-layers 32 --hidden-size 4096 --tensor-model-parallel-size 2\n")
    for name, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
    for name, questions in QUESTIONS.items():
        check = validator(name)
        for question in questions:
            answer = document(question, folder)
            for error in list(check.iter_errors(answer))[:5]:
                failures += 1
                print(f"{question}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
            checked += 1
        for how, other in spoiled(answer, SCHEMAS[name]):
            refused += 1
            if check.is_valid(other):
                failures += 1
                print(f"{name} {how}: nothing was said")
        # Of a plan, in whichever document: an amount that is text is no amount.
        plan = answer if name == "fit" else answer["plans"][0] if name == "sweep" and answer["plans"] else None
        if plan:
            plan["peak"]["device_bytes"] = "much"
            failures += check.is_valid(answer)
    for path in sorted(set(RECORDED.glob("*.json")) - set(RECORDED.glob("*.config.json"))):
        for error in list(validator("program").iter_errors(json.loads(path.read_text())))[:5]:
            failures += 1
            print(f"{path.name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        checked += 1
print(f"{checked} documents as their schemas say, {refused} spoiled ones refused" if not failures else
      f"{failures} failures")
sys.exit(failures > 0)
