"""wheel_answers.py PROGRAM: the module says what the program says."""
import json
import subprocess
import sys

import zeroplan

FIXED = dict(gpus="8xH100-80GB", tp=2, zero=1, micro_batch=1, recompute="none")
TYPED = ["--gpus", "8xH100-80GB", "--tp", "2", "--zero", "1", "--micro-batch", "1", "--recompute", "none"]


def program(*words):
    return json.loads(subprocess.run([sys.argv[1], *words, "--json"], stdout=subprocess.PIPE, text=True).stdout)


def refusal(**options):
    try:
        zeroplan.fit(**options)
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{options} were not refused")


plan = zeroplan.fit("llama3-8b", **FIXED)
assert plan == program("fit", "llama3-8b", *TYPED)
assert plan["schema"] == "zeroplan.fit/1" and type(plan) is dict
assert zeroplan.explain("llama3-8b", row="activations", **FIXED) == program(
    "explain", "llama3-8b", "--row", "activations", *TYPED)
assert zeroplan.fit(plan, tp=4)["layout"]["tp"] == 4  # a plan is a model
assert zeroplan.fit("llama3-8b", **FIXED, set={"overlap_grad_reduce": True},
                    sequence_parallel=False)["settings"]["overlap_grad_reduce"] == "true"
both = zeroplan.compare("llama3-8b", a={"tp": 2}, b="--tp 4", gpus="8xH100-80GB")
assert (both["a"]["layout"]["tp"], both["b"]["layout"]["tp"]) == (2, 4)
found = zeroplan.sweep("llama3-8b", gpus="8xH100-80GB", top=2, tp_within_node=True)
assert len(found["plans"]) == 2 and zeroplan.fit(found["plans"][1])["layout"] == found["plans"][1]["layout"]
assert zeroplan.fit("llama3-70b", gpus="1xA100-40GB")["verdict"] == "does_not_fit"  # a no is an answer
assert "llama3-8b" in refusal(model="lama3-8b", gpus="8xH100-80GB")
assert "no option" in refusal(model="llama3-8b", gpus="8xH100-80GB", colour="red")
page = zeroplan.page("fit", "llama3-8b", **FIXED)
assert page.startswith("<!") and page._repr_html_().startswith("<iframe")
print(f"zeroplan {zeroplan.__version__} of Python {sys.version.split()[0]} says what the program says")
