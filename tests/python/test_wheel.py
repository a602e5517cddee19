"""The wheel has the same bytes whenever it is made, and works where nothing else is installed."""
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from common import ROOT
import llmperf

SCRIPT = os.path.join(ROOT, "scripts", "python_wheel.py")


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
                          **options)
    assert done.returncode == 0, (words, done.stdout)
    return done.stdout


def bare():
    """The environment of a user, without what these tests set."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("LLMPERF", "PYTHON", "PIP_"))}


@unittest.skipUnless(os.environ.get("LLMPERF_LIBRARY"), "LLMPERF_LIBRARY names the library")
@unittest.skipIf(importlib.util.find_spec("ensurepip") is None, "this Python makes no environments")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel = run(sys.executable, SCRIPT, cls.folder.name).split()[-1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_is_for_every_python_3(self):
        name = os.path.basename(self.wheel)
        self.assertRegex(name, rf"^llmperf-{re.escape(llmperf.__version__)}-py3-none-(manylinux_2_\d+|linux)_\w+\.whl$")

    def test_the_same_files_make_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = run(sys.executable, SCRIPT, folder).split()[-1]
            digests = []
            for path in (self.wheel, again):
                with open(path, "rb") as file:
                    digests.append(hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(*digests)

    def test_it_holds_the_package_the_library_and_the_licence(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            self.assertIsNone(wheel.testzip())
        for name in ("llmperf/__init__.py", "llmperf/__init__.pyi", "llmperf/py.typed", "llmperf/libllmperf.so"):
            self.assertIn(name, names)
        self.assertTrue(any(name.endswith(".dist-info/LICENSE") for name in names))
        self.assertEqual([name for name in names if "__pycache__" in name], [])

    def test_it_installs_without_a_network_and_answers(self):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "venv", folder, env=bare())
            python = os.path.join(folder, "bin", "python")
            run(python, "-m", "pip", "install", "--no-index", self.wheel, env=bare())
            out = run(python, "-c", "import llmperf; e = llmperf.estimate('qwen-7b', 'rtx4090'); "
                      "print(llmperf.__file__.startswith(__import__('sys').prefix), e.ttft_s, llmperf.sweep('qwen-7b', "
                      "'rtx4090', batch=[1, 2])['ttft_s'][0] == e.ttft_s)", env=bare(), cwd=folder)
            self.assertEqual(out.split(), ["True", repr(llmperf.estimate("qwen-7b", "rtx4090").ttft_s), "True"])
            run(python, "-m", "pip", "uninstall", "-y", "llmperf", env=bare())

    def test_pip_installs_the_repository(self):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "venv", folder, env=bare())
            python = os.path.join(folder, "bin", "python")
            built = dict(bare(), LLMPERF_LIBRARY=os.environ["LLMPERF_LIBRARY"])
            run(python, "-m", "pip", "install", "--no-index", ROOT, env=built)
            out = run(python, "-c", "import llmperf; print(llmperf.__version__)", env=bare(), cwd=folder)
            self.assertEqual(out.strip(), llmperf.__version__)


if __name__ == "__main__":
    unittest.main()
