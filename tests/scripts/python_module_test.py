#!/usr/bin/env python3
"""Runs the tests of the Python module (tests/python) with the Python that scripts/setup.sh made for them, else with one
that has NumPy, where there is one. LLMPERF_LIBRARY names the library."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(HERE, "..", "..")))


def has_numpy(python):
    try:
        done = subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0
    except OSError:
        return False


MADE = os.path.join(ROOT, "build", "test-python")
PYTHON = os.path.join(MADE, "bin", "python")
if not os.path.exists(os.path.join(MADE, "installed.txt")):
    PYTHON = next((p for p in (sys.executable, "/usr/bin/python3") if has_numpy(p)), sys.executable)
TESTS = os.path.join(ROOT, "tests", "python")
sys.exit(subprocess.run([PYTHON, "-m", "unittest", "discover", "-s", TESTS, *sys.argv[1:]], check=False,
                        env=dict(os.environ, LLMPERF_PATH="", PYTHONDONTWRITEBYTECODE="1")).returncode)
