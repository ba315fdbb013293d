"""Will a large model's training fit, and in which layout? The questions of the command line, answered as dictionaries.

    import zeroplan
    plan = zeroplan.fit("llama3-70b", gpus="64xH100-80GB")
    plan["verdict"], plan["peak"]["device_bytes"], plan["step"]["seconds"]
    zeroplan.fit(plan, micro_batch=2, set={"reduce_bucket_size": 5e8})

Options are those of `zeroplan help fit`, with underscores. What is answered is the document of --json, to the letter;
a plan, or a file of one, stands wherever a model does.
"""
import functools
import html
import importlib.metadata
import json
import pathlib
import shlex
import subprocess
import tempfile

__all__ = ["compare", "explain", "fit", "page", "sweep"]
__version__ = importlib.metadata.version("zeroplan")


@functools.lru_cache(maxsize=None)
def _program():
    for file in importlib.metadata.files("zeroplan") or []:
        if file.name == "zeroplan" and file.parent.name in ("bin", "scripts"):
            return str(file.locate())
    raise FileNotFoundError("the package zeroplan has lost its program")


_FLAGS = {"all", "each", "exhaustive", "front", "tp_within_node"}  # which take no value


def _words(options):
    """The options as they would be typed; None stands for one that is not given."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if name in _FLAGS:
            words += [flag] if value else []
        elif isinstance(value, bool):
            words += [flag, "on" if value else "off"]
        elif isinstance(value, dict):
            for key, setting in value.items():
                words += [flag, f"{key}={str(setting).lower() if isinstance(setting, bool) else setting}"]
        elif isinstance(value, (list, tuple)):
            words += [flag, ",".join(map(str, value))]
        else:
            words += [flag, str(value)]
    return words


def _run(command, subject, options, *more):
    words = [_program(), command]
    plan = None
    if isinstance(subject, dict):
        # A plan of a sweep is fit's answer without its schema.
        whole = subject if "layout" not in subject else {"schema": "zeroplan.fit/1", **subject}
        plan, subject = json.dumps(whole), "-"
    if subject is not None:
        words.append(str(subject))
    words += [*_words(options), *more]
    run = subprocess.run(words, input=plan or "", capture_output=True, text=True, encoding="utf-8")
    if run.returncode not in (0, 1):
        message = run.stderr.strip().rpartition("zeroplan: error: ")[2] or f"zeroplan ended with {run.returncode}"
        raise (ValueError if run.returncode == 2 else RuntimeError)(message)
    return run.stdout


def _answer(command, subject, options):
    return json.loads(_run(command, subject, options, "--json"))


def fit(model=None, **options):
    """Will it fit? A layout that is not given is chosen. ValueError says what of a question cannot be used."""
    return _answer("fit", model, options)


def sweep(model=None, **options):
    """Which layout? The best plans of all that fit, best first, each a plan for the other questions."""
    return _answer("sweep", model, options)


def explain(model=None, **options):
    """Where does each byte come from?"""
    return _answer("explain", model, options)


def _side(side):
    return side if isinstance(side, str) else shlex.join(_words(side))


def compare(model=None, a=None, b=None, **options):
    """What do two layouts differ in? `a` and `b` are options, as a dictionary or as they would be typed."""
    return _answer("compare", model, {**options, "a": _side(a or {}), "b": _side(b or {})})


class Page(str):
    """The text of an HTML page, which a notebook shows."""

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self)}" style="width:100%;height:900px;border:0"></iframe>'


def page(command, model=None, **options):
    """The page of "fit", "sweep" or "compare" with the same arguments: to show, or to write to a file."""
    if command == "compare":
        options = {**options, "a": _side(options.get("a", {})), "b": _side(options.get("b", {}))}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "page.html")
        _run(command, model, options, "--html", str(file))
        return Page(file.read_text(encoding="utf-8"))
