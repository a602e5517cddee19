"""What the tests of the module share: where it is, and the program beside it. To be imported first."""
import csv
import io
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", "..")))
PACKAGE = os.path.join(ROOT, "bindings", "python")
PROGRAM = os.path.abspath(os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf")))
sys.path.insert(0, PACKAGE)


def program(*words, statuses=(0,)):
    done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env=dict(os.environ, LLMPERF_PATH=""), check=False)
    assert done.returncode in statuses, (words, done.returncode, done.stderr)
    return done.stdout


def document(*words, statuses=(0,)):
    """The program's, without what made it."""
    out = json.loads(program(*words, "--json", statuses=statuses))
    out.pop("command")
    return out


def rows(*words, statuses=(0,)):
    return list(csv.DictReader(io.StringIO(program(*words, "--format", "csv", statuses=statuses))))


def cell(value):
    """A value as CSV has it: a text, without the apostrophe that keeps spreadsheets from computing it."""
    if value is None or value != value:
        return ""
    return str(value).lower() if isinstance(value, bool) else value
