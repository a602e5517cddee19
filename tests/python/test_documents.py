"""What is shown runs: the Python of docs/python.md, the notebook, the module's own examples; and the stubs are up to date."""
import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import unittest

import llmperf
from common import ROOT


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


class Documents(unittest.TestCase):
    def test_the_notebook_runs_and_holds_no_outputs(self):
        with open(os.path.join(ROOT, "examples", "python", "tour.ipynb"), encoding="utf-8") as file:
            notebook = json.load(file)
        self.assertEqual(notebook["nbformat"], 4)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertTrue(all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells))
        out = executed(["".join(cell["source"]) for cell in cells], "tour.ipynb")
        for part in ("<td>prefill</td>", "bound by", "batch *", "<th>tpot_s</th>", "TTFT p99", "USD/h", "4 KV heads", "tp=8",
                     "did you mean 'qwen-7b'"):
            self.assertIn(part, out)

    def test_the_examples_of_the_page_run_and_print_what_it_says(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            page = file.read()
        pieces = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
        self.assertGreater(len(pieces), 5)
        namespace = {}
        for piece in pieces:
            if ">>>" in piece:
                test = doctest.DocTestParser().get_doctest(piece, namespace, "docs/python.md", "docs/python.md", 0)
                out = io.StringIO()
                failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.write, clear_globs=False)
                self.assertEqual(failed.failed, 0, out.getvalue())
                namespace.update(test.globs)
            else:
                exec(compile(piece, "docs/python.md", "exec"), namespace)

    def test_the_page_names_every_function_and_error(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            page = file.read()
        for name in llmperf.__all__:
            self.assertIn(name, page)

    def test_the_stubs_are_what_the_fields_make(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "python_stubs.py"), "--check"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_functions_have_the_parameters_of_their_stubs(self):
        import ast
        import inspect
        with open(os.path.join(ROOT, "bindings", "python", "llmperf", "__init__.pyi"), encoding="utf-8") as file:
            stubs = {f.name: f for f in ast.parse(file.read()).body if isinstance(f, ast.FunctionDef)}
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
    unittest.main()
