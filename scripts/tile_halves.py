#!/usr/bin/env python3
"""How far predictions of arrays of tiles are off on shapes that nothing was fitted to: of every set of rows each half is predicted
by numbers that are fitted to the other half.

    scripts/tile_halves.py build/release/llmperf
"""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MEASUREMENTS = os.path.join(ROOT, "hardware", "measurements")
EXAMPLES = os.path.join(ROOT, "examples")

# What is told apart, its rows, further rows that are fitted to in both halves, the device and the profile to start from, and
# which of the rows are halved: the others are fitted to in both halves, too.
SETS = [
    ("n150, tuned products, search", "wormhole-products", [], "wormhole-n150", "tt-metal", None),
    ("n150, tuned products, as published", "wormhole-products-as-published", [], "wormhole-n150", "tt-metal", None),
    ("p150, products at default settings", "blackhole-products", [], "blackhole-p150", "tt-metal", None),
    ("p150, attention", "blackhole-attention", ["blackhole-products"], "blackhole-p150", "tt-metal", None),
    ("n150, decode", "wormhole-steps", ["wormhole-products"], "wormhole-n150", "tt-metal", ("phase", "decode")),
    ("n150, first token", "wormhole-steps", ["wormhole-products"], "wormhole-n150", "tt-metal", ("phase", "prefill")),
    ("A100 as tiles", os.path.join(EXAMPLES, "a100-as-tiles.csv"), [], os.path.join(EXAMPLES, "a100-as-tiles.yaml"), "tiles", None),
]


def path_of(name):
    return name if os.path.isabs(name) else os.path.join(MEASUREMENTS, name + ".csv")


def rows_of(name, device):
    with open(path_of(name), encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    model = os.path.basename(device).removesuffix(".yaml")
    return [row for row in rows if row["hardware"] == model and not row.get("untrusted")]


def write(folder, name, rows):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"llmperf {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def start_of(program, device, runtime, folder):
    """The profile without what was fitted: choices, and priors as they were."""
    name = os.path.basename(device).removesuffix(".yaml")
    path = os.path.join(ROOT, "hardware", "runtimes", f"{name}-{runtime}.yaml")
    if not os.path.exists(path):
        return runtime
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if "provenance: fitted" not in line or ", prior:" in line]
    kept = []
    for line in lines:
        if line.startswith(("range:", "errors:")):
            break
        if ", prior:" in line:
            prior = line.split("prior: ")[1].split(",")[0].rstrip("}\n")
            before, after = line.split("value: ")
            line = f"{before}value: {prior}, provenance: assumed}}\n"
        kept.append(line)
    start = os.path.join(folder, "start.yaml")
    with open(start, "w", encoding="utf-8") as file:
        file.writelines(kept)
    return start


def main():
    program = os.path.abspath(sys.argv[1])
    for name, own, others, device, runtime, counts in SETS:
        rows = rows_of(own, device)
        errors = []
        with tempfile.TemporaryDirectory() as folder:
            start = start_of(program, device, runtime, folder)
            further = [write(folder, f"{other}.csv", rows_of(other, device)) for other in others]
            scored = [row for row in rows if not counts or row[counts[0]] == counts[1]]
            rest = [row for row in rows if row not in scored]
            for half in (0, 1):
                known = write(folder, "known.csv", scored[half::2] + rest)
                asked = write(folder, "asked.csv", scored[1 - half::2])
                profile = os.path.join(folder, "profile.yaml")
                run(program, "calibrate", known, *further, "--hw", device, "--runtime", start, "-o", profile)
                own_device = ["--hw", device] if device.endswith(".yaml") else []
                answer = json.loads(run(program, "validate", asked, "--runtime", profile, "--json", *own_device))
                errors += [abs(row["error"]) for row in answer["rows"]]
        errors.sort()
        print(f"{name:36} {len(errors):3} rows: {100 * sum(errors) / len(errors):4.1f} % mean, "
              f"{100 * errors[int(0.9 * len(errors))]:4.1f} % p90, {100 * errors[-1]:4.1f} % worst")


if __name__ == "__main__":
    main()
