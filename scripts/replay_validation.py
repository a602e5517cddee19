#!/usr/bin/env python3
"""Replays models on this machine's CPU, fits a profile to the ops of one and predicts whole steps of all: the numbers of
docs/validation.md, "Replayed on a CPU".

    scripts/replay_validation.py PROGRAM [--dtype fp32] [--repeat 3] [--keep FOLDER]

1. The machine describes itself (replay --describe-device).
2. The ops of the fitted model are replayed one by one and a profile is fitted to them (replay --calibrate). Whole steps
   are measured beside them, and take no part in the fit.
3. Models that the fit has not seen are replayed whole, and predicted with that profile.

Everything is done `--repeat` times, because a machine that others use too is not the same from minute to minute; the
table has the median of the errors and the largest. Exit status 1 when a median error is beyond its limit: 10 % for the
fitted model, 15 % for the others.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

FITTED = "qwen1.5-0.5b"
UNSEEN = ["qwen2-0.5b", "llama-3.2-1b"]
LIMIT = {True: 0.10, False: 0.15}


def run(program, *words):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def replayed(program, model, dtype, folder, *more):
    """(phase, measured s, predicted s, sum of the ops s) of every phase."""
    words = ["replay", "-m", model, "--weights", dtype, "--activations", dtype, "--prompt", "128", "--whole-step",
             "--hw", os.path.join(folder, "device.yaml"), "--json", *more]
    for phase in json.loads(run(program, *words))["phases"]:
        whole = phase["whole_step"]
        yield phase["name"], whole["time_s"], phase["predicted_step_s"], whole["ops_time_s"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--dtype", default="fp32")
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--keep")
    options = arguments.parse_args()
    program = os.path.abspath(options.program)
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        profile = os.path.join(folder, "profile.yaml")
        run(program, "replay", "--describe-device", "-o", os.path.join(folder, "device.yaml"))
        for _ in range(options.repeat):
            found = [(FITTED, *row) for row in replayed(program, FITTED, options.dtype, folder, "--calibrate", profile,
                                                        "-o", os.path.join(folder, "ops.csv"))]
            for model in UNSEEN:
                found += [(model, *row) for row in replayed(program, model, options.dtype, folder, "--runtime", profile)]
            for model, phase, *figures in found:
                rows.setdefault((model, phase), []).append(figures)

    failed = False
    print("| model | step | fitted on | measured | predicted | error, median | largest | its ops one by one |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for (model, phase), runs in rows.items():
        errors = [predicted / measured - 1 for measured, predicted, _ in runs]
        middle = statistics.median(errors)
        failed |= abs(middle) > LIMIT[model == FITTED]
        measured, predicted, ops = (statistics.median(column) for column in zip(*runs))
        print(f"| {model} | {phase} | {'its ops' if model == FITTED else 'other models'} | {measured * 1e3:.1f} ms | "
              f"{predicted * 1e3:.1f} ms | {middle * 100:+.1f} % | {max(errors, key=abs) * 100:+.1f} % | "
              f"{(ops / measured - 1) * 100:+.1f} % |")
    sys.exit(1 if failed else 0)


main()
