#!/usr/bin/env python3
"""Writes the outputs of the shipped scenarios: reports/studies/NAME/ for every scenarios/NAME.yaml.

    scripts/studies.py build/release/llmperf            writes them
    scripts/studies.py build/release/llmperf --check    exit status 1 when they are not what the program says now

In CSV files numbers may differ in the last bits (compilers may fuse a multiply and an add); all else is compared exactly.
"""
import csv
import math
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
STUDIES = os.path.join(ROOT, "reports", "studies")
LAST_BITS = 1e-12


def run(program, name, folder):
    done = subprocess.run([program, "run", name, "-o", folder], env=dict(os.environ, LLMPERF_PATH=""), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=600)
    if done.returncode != 0:
        sys.exit(f"run {name}: {done.stderr}")


def same_cell(old, new):
    try:
        return math.isclose(float(old), float(new), rel_tol=LAST_BITS)
    except ValueError:
        return old == new


def same_file(old, new):
    with open(old, encoding="utf-8", newline="") as left, open(new, encoding="utf-8", newline="") as right:
        if not old.endswith(".csv"):
            return left.read() == right.read()
        rows = list(zip(csv.reader(left), csv.reader(right)))
    with open(old, encoding="utf-8") as left, open(new, encoding="utf-8") as right:
        if sum(1 for _ in left) != sum(1 for _ in right):
            return False
    return all(len(a) == len(b) and all(map(same_cell, a, b)) for a, b in rows)


def files(folder):
    return {os.path.relpath(os.path.join(path, name), folder) for path, _, names in os.walk(folder) for name in names}


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    program = words[0] if words else os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf"))
    names = sorted(name[:-len(".yaml")] for name in os.listdir(os.path.join(ROOT, "scenarios")) if name.endswith(".yaml"))
    with tempfile.TemporaryDirectory() as fresh:
        for name in names:
            run(os.path.abspath(program), name, os.path.join(fresh, name))
        ours, theirs = files(fresh), files(STUDIES)
        changed = sorted(path for path in ours
                         if path not in theirs or not same_file(os.path.join(STUDIES, path), os.path.join(fresh, path)))
        stale = sorted(theirs - ours)
        if "--check" in sys.argv:
            for path in [*changed, *stale]:
                print(f"reports/studies/{path} is out of step")
            if changed or stale:
                print("scripts/studies.py path/to/llmperf writes them anew; read what changed")
            return 1 if changed or stale else 0
        for path in changed:
            target = os.path.join(STUDIES, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(fresh, path), target)
        for path in stale:
            os.remove(os.path.join(STUDIES, path))
    print(f"{len(ours)} files, {len(changed)} changed, {len(stale)} removed")
    return 0


sys.exit(main())
