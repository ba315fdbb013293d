#!/usr/bin/env python3
"""What does script/mutate take as changed, what does it catch, and what does it answer a program? In trees of its own."""
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script" / "mutate"


def loaded(root):
    loader = importlib.machinery.SourceFileLoader("mutate", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(module)
    module.ROOT = root
    return module


class Changed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.git("init", "-q", "-b", "main")
        self.write("a = 1;\nb = 2;\nc = 3;\n")
        self.commit()
        self.mutate = loaded(self.root)

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root, check=True)

    def write(self, text, name="cost_model/x.cpp"):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "one more")

    def test_a_branch_is_what_it_has_beyond_main_and_what_is_not_committed(self):
        self.git("switch", "-q", "-c", "work")
        self.write("a = 1;\nb = 7;\nc = 3;\n")
        self.commit()
        self.write("a = 1;\nb = 7;\nc = 8;\n")
        self.write("new = 1;\nnewer = 2;\n", "planner/y.cpp")
        self.assertEqual(dict(self.mutate.changed_lines("")),
                         {"cost_model/x.cpp": {2, 3}, "planner/y.cpp": {1, 2}})

    def test_without_a_difference_it_is_the_last_commit(self):
        self.write("a = 1;\nb = 2;\nc = 9;\n")
        self.commit()
        self.assertEqual(dict(self.mutate.changed_lines("")), {"cost_model/x.cpp": {3}})

    def test_of_one_commit_alone_it_is_all(self):
        self.assertEqual(dict(self.mutate.changed_lines("")), {"cost_model/x.cpp": {1, 2, 3}})

    def test_an_upstream_branch_counts_before_main(self):
        self.write("a = 4;\nb = 2;\nc = 3;\n")
        self.commit()
        self.git("branch", "base")
        self.git("switch", "-q", "-c", "work")
        self.git("branch", "-q", "--set-upstream-to", "base")
        self.write("a = 4;\nb = 5;\nc = 3;\n")
        self.assertEqual(dict(self.mutate.changed_lines("")), {"cost_model/x.cpp": {2}})

    def test_survivors_say_where_what_and_why(self):
        mutant = self.mutate.Mutant("cost_model/x.cpp", 2, 4, "number", "2", "3")
        other = mutant._replace(line=3)
        self.assertEqual(self.mutate.document([(mutant, None), (other, "papers")], ["unit_tests", "papers"]),
                         {"mutants": 2, "caught": 1, "survivors": [{"file": "cost_model/x.cpp", "line": 2,
                          "change": "'2' -> '3'", "why": "unit_tests and papers pass with it"}]})


@unittest.skipUnless(shutil.which("c++") and shutil.which("ninja") and shutil.which("ar"), "no compiler")
class Together(unittest.TestCase):
    """Two sources in one unit, as the preset release compiles them; what calls the mutated one can inline it."""

    SOURCES = {
        "cost_model/deep.cpp": "int deep(int x) {\n  return x + 1;\n}\n",
        "cost_model/call.cpp": "int deep(int x);\nint call(int x) { return deep(x); }\n",
        "tests/test.cpp": "int call(int x);\nint main() { return call(4) == 5 ? 0 : 1; }\n",
        "build/Unity/unit.cxx": '#include "{root}/cost_model/deep.cpp"\n\n#include "{root}/cost_model/call.cpp"\n',
        "build/build.ninja": """rule run
  command = $do
build unit.o: run Unity/unit.cxx
  do = c++ -O2 -o unit.o -c {root}/build/Unity/unit.cxx
build libcost_model.a: run unit.o
  do = ar rcs libcost_model.a unit.o
build tests/unit_tests: run libcost_model.a
  do = : && c++ -o tests/unit_tests {root}/tests/test.cpp libcost_model.a && :
""",
    }

    def test_a_mutant_takes_the_place_of_its_file_in_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in self.SOURCES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.format(root=root) if name.startswith("build/") else text)
            unit = root / "build/Unity/unit.cxx"
            (root / "build/compile_commands.json").write_text(json.dumps([
                {"directory": str(root / "build"), "file": str(unit), "command": f"c++ -O2 -o unit.o -c {unit}"}]))
            mutate = loaded(root)
            pool = mutate.mutants_of("cost_model/deep.cpp")
            options = types.SimpleNamespace(tests="unit_tests", build="build", through="", count=9, minutes=9, skip=9)
            with open(root / "said", "w") as said:
                results = mutate.tried(pool, options, time.monotonic(), said)
            self.assertEqual([(m.before, m.after, caught) for m, caught in results],
                             [(" + ", " - ", "deep_test"), ("1", "2", "deep_test")])
            self.assertEqual((root / "cost_model/deep.cpp").read_text(), self.SOURCES["cost_model/deep.cpp"])


class Command(unittest.TestCase):
    @unittest.skipUnless((SCRIPT.parents[1] / ".git").exists(), "no repository")
    def test_standard_output_is_one_document(self):
        run = subprocess.run([sys.executable, SCRIPT, "--changed", "HEAD..HEAD", "--json"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), {"mutants": 0, "caught": 0, "survivors": []})
        self.assertEqual(run.stderr, "nothing to change\n")


if __name__ == "__main__":
    unittest.main()
