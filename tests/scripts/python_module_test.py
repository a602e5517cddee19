#!/usr/bin/env python3
"""Runs the tests of the Python module (tests/python) with a Python that has NumPy, where there is one. LLMPERF_LIBRARY names the
library."""
import os
import subprocess
import sys

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))


def has_numpy(python):
    try:
        return subprocess.run([python, "-c", "import numpy, venv"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


PYTHON = next((p for p in (sys.executable, "/usr/bin/python3") if has_numpy(p)), sys.executable)
TESTS = os.path.join(ROOT, "tests", "python")
PATHS = os.pathsep.join([os.path.join(ROOT, "bindings", "python"), TESTS])
sys.exit(subprocess.run([PYTHON, "-m", "unittest", "discover", "-s", TESTS, *sys.argv[1:]], check=False,
                        env=dict(os.environ, PYTHONPATH=PATHS, LLMPERF_PATH="", PYTHONDONTWRITEBYTECODE="1")).returncode)
