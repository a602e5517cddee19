#!/usr/bin/env python3
"""Calibrates on ten random halves of every shipped set of measurements and predicts the other halves.

    scripts/halves.py build/release/llmperf    prints every set; exit status 1 when a half falls short of what is promised

scripts/validation.py writes the table "halves" of docs/validation.md with it. Halves are drawn by row, with fixed seeds, from the
trusted rows of one profile. Beside llmperf stand three constants for every kind of row, t0 + max(compute / ec, memory / em):
fitted to the half that llmperf was fitted to, which has to be met, and to the very rows that are scored.
"""
import concurrent.futures
import csv
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
HALVES = 10
FEWEST = 12  # rows of a set: three of a half are the fewest that are fitted
MOST = 1.3   # times the error of the simpler model
STEPS = 50   # from which on
NUMBERS = 5  # have to be identified


def run(program, *words):
    done = subprocess.run([program, *words, "--json"], env=dict(os.environ, LLMPERF_PATH=""), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


# A profile that is one tool's is asked for by that.
OF_TOOLS = {"llama.cpp": "llama.cpp+llama-cpp-python"}


def sets(program):
    """(name, hardware, runtime, rows) of every profile's rows in every shipped file."""
    for path in sorted(glob.glob(os.path.join(ROOT, "hardware", "measurements", "*.csv"))):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        if len({row["hardware"] for row in rows}) > 1:
            continue  # class profiles predict them, and nothing is fitted to those of one device
        found = {}
        for row, predicted in zip(rows, run(program, "validate", path)["rows"]):
            if predicted["scored"]:
                runtime = predicted["profile"].split()[0].rstrip(":")
                found.setdefault((row["hardware"], OF_TOOLS.get(runtime, runtime)), []).append(row)
        for (hardware, runtime), members in found.items():
            if len(members) >= FEWEST:
                yield os.path.basename(path)[:-len(".csv")], hardware, runtime, members


def kind(row):
    """Of the rows that share three constants."""
    return row.get("op") or (row["weights"], row["phase"])


def mean_error(document, key):
    errors = [abs(row[key] / row["measured_s"] - 1) for row in document["rows"]]
    return sum(errors) / len(errors)


def half(program, hardware, runtime, rows, seed):
    """Of a fit to one half: error on the other one, that of three constants of the one and of the other, numbers identified."""
    chosen = set(random.Random(seed).sample(range(len(rows)), len(rows) // 2))
    with tempfile.TemporaryDirectory() as folder:
        def write(name, trusted):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]) + ([] if "untrusted" in rows[0] else ["untrusted"]))
                writer.writeheader()
                writer.writerows(dict(row, untrusted="" if i in trusted else "the other half") for i, row in enumerate(rows))
            return path
        first, second = write("first.csv", chosen), write("second.csv", set(range(len(rows))) - chosen)
        profile = os.path.join(folder, "profile.yaml")
        fitted = run(program, "calibrate", first, "--hw", hardware, "--runtime", runtime, "-o", profile)
        of_first, of_second = (run(program, "validate", path, "--runtime", profile) for path in (first, second))
    known = {kind(rows[i]) for i in chosen}  # of others no constants are fitted
    for document in (of_first, of_second):
        document["rows"] = [found for i, found in enumerate(document["rows"]) if i not in chosen and kind(rows[i]) in known]
    return {"llmperf": mean_error(of_second, "predicted_s"), "simple": mean_error(of_first, "fitted_roofline_s"),
            "scored": mean_error(of_second, "fitted_roofline_s"), "numbers": sum(p["identified"] for p in fitted["parameters"])}


def halves(program):
    """(name, runtime, rows, whether they are steps, results of the halves) of every set."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [(name, runtime, rows, [pool.submit(half, program, hardware, runtime, rows, seed) for seed in range(HALVES)])
                 for name, hardware, runtime, rows in sets(program)]
        for name, runtime, rows, results in found:
            yield name, runtime, len(rows), "model" in rows[0], [result.result() for result in results]


def short(rows, steps, results):
    """What of the promises some half does not keep."""
    worst = max(result["llmperf"] / result["simple"] for result in results)
    if worst > MOST:
        yield f"{worst:.2f} times the error of three constants"
    fewest = min(result["numbers"] for result in results)
    if steps and rows // 2 >= STEPS and fewest < NUMBERS:
        yield f"{fewest} numbers identified"


def cells(name, runtime, rows, _steps, results):
    """A row of the table."""
    def mean(key):
        return f"{100 * sum(result[key] for result in results) / len(results):.1f} %"
    ratios = [result["llmperf"] / result["simple"] for result in results]
    return [name, runtime, str(rows), mean("llmperf"), f"{100 * max(r['llmperf'] for r in results):.1f} %", mean("simple"),
            mean("scored"), f"{max(ratios):.2f}", str(min(result["numbers"] for result in results))]


HEADER = [":measurements", ":runtime", "rows", "llmperf", "worst half", "3 constants of the first half", "of the scored half",
          "worst ratio to the first's", "fewest numbers"]


def main():
    failed = False
    print("; ".join(name.lstrip(":") for name in HEADER))
    for found in halves(os.path.abspath(sys.argv[1])):
        problems = list(short(*found[2:]))
        failed = failed or bool(problems)
        print("; ".join(cells(*found)), *problems, sep="; ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
