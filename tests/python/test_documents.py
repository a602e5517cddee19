"""What is shown runs: the Python of docs/python.md and the notebook; and the stubs are up to date. `test_documents.py
--update` writes what the page's examples print now."""
import ast
import contextlib
import doctest
import inspect
import io
import json
import os
import re
import subprocess
import sys
import unittest

from common import ROOT
import llmperf


def executed(cells, name):
    """The output of pieces of Python run one after the other; what a cell ends in is shown as a notebook does."""
    namespace, out = {"__name__": "__main__"}, io.StringIO()
    for i, source in enumerate(cells):
        with contextlib.redirect_stdout(out):
            exec(compile(source, f"{name}, piece {i + 1}", "exec"), namespace)
            last = source.rstrip().rsplit("\n", 1)[-1]
            if re.fullmatch(r"\w+", last):
                shown = namespace[last]
                out.write(getattr(shown, "_repr_html_", shown.__repr__)())
    return out.getvalue()


PAGE = os.path.join(ROOT, "docs", "python.md")


def rerun(page):
    """The page with what its examples print."""
    namespace = {}

    def piece(match):
        shown = ">>>" in match[1]
        out = ""
        examples = [e for e in doctest.DocTestParser().parse(match[1]) if e and not isinstance(e, str)]
        for source in [e.source for e in examples] if shown else [match[1]]:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(source, "docs/python.md", "single" if shown else "exec"), namespace)
            first, *others = source.rstrip("\n").split("\n")
            out += "\n".join([">>> " + first, *("... " + line for line in others)]) + "\n" + printed.getvalue()
        return f"```python\n{out if shown else match[1]}```"
    return re.sub(r"^```python\n(.*?)^```$", piece, page, flags=re.M | re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Documents(unittest.TestCase):
    maxDiff = None

    def test_the_notebook_runs_and_holds_no_outputs(self):
        notebook = json.loads(read(os.path.join(ROOT, "examples", "python", "tour.ipynb")))
        self.assertEqual(notebook["nbformat"], 4)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertTrue(all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells))
        out = executed(["".join(cell["source"]) for cell in cells], "tour.ipynb")
        for part in ("<td>prefill</td>", "bound by", "batch *", "<th>tpot_s</th>", "TTFT p99", "USD/h", "4 KV heads",
                     "tp=8",
                     "did you mean 'qwen-7b'"):
            self.assertIn(part, out)

    def test_the_examples_of_the_page_print_what_it_says(self):
        page = read(PAGE)
        self.assertGreater(page.count("```python"), 5)
        self.assertEqual(rerun(page), page)

    def test_the_page_names_every_function_and_error(self):
        page = read(PAGE)
        for name in llmperf.__all__:
            self.assertIn(name, page)

    def test_the_stubs_are_what_the_fields_make(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "python_stubs.py"), "--check"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_functions_have_the_parameters_of_their_stubs(self):
        tree = ast.parse(read(os.path.join(ROOT, "bindings", "python", "llmperf", "__init__.pyi")))
        stubs = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
        for name in sorted(set(llmperf.__all__) & set(stubs)):
            real = inspect.signature(getattr(llmperf, name)).parameters
            arguments = stubs[name].args
            stated = [a.arg for a in arguments.args + arguments.kwonlyargs]
            for parameter in real.values():
                if parameter.kind != parameter.VAR_KEYWORD:
                    self.assertIn(parameter.name, stated, name)
            if not any(p.kind == p.VAR_KEYWORD for p in real.values()):
                self.assertEqual(sorted(stated), sorted(real), name)


if __name__ == "__main__":
    if "--update" in sys.argv:
        TEXT = rerun(read(PAGE))
        with open(PAGE, "w", encoding="utf-8") as out_file:
            out_file.write(TEXT)
    else:
        unittest.main()
