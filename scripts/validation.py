#!/usr/bin/env python3
"""Writes what llmperf says of its own accuracy: reports/validation/*.md, one for every shipped set of measurements, and the
tables of docs/validation.md between their markers.

    scripts/validation.py build/release/llmperf            writes them
    scripts/validation.py build/release/llmperf --check    exit status 1 when they are not what the program says now

Two sources: `llmperf validate` on the shipped rows, and the cross-validated errors that the profiles in hardware/runtimes store.
"""
import glob
import json
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
REPORTS = os.path.join(ROOT, "reports", "validation")
PAGE = os.path.join(ROOT, "docs", "validation.md")
WORST = 15
MANY = 16  # groups of one kind, of which only the worst are shown
SHOWN = 8
KINDS = {"runtime_phase": "runtime, phase", "batch_band": "batch", "runtime_batch_band": "runtime, batch",
         "m_band": "rows of gemm", "layout": "heads", "site": "weight matrix (n, k)"}
BY_HAND = "<!-- Written by scripts/validation.py; edit that. -->"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def signed(share):
    text = f"{100 * share:+.1f} %"
    return text[1:] if text in ("+0.0 %", "-0.0 %") else text


def seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            return f"{float(f'{value / scale:.3g}'):g} {unit}"


def table(header, rows):
    """`header`: names; those that start with ':' are columns of text."""
    names = [name.lstrip(":") for name in header]
    rules = "|" + "|".join("---" if name.startswith(":") else "---:" for name in header) + "|"
    lines = ["| " + " | ".join(cells) + " |" for cells in [names, *rows]]
    return "\n".join([lines[0], rules, *lines[1:]])


def paragraph(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def profiles():
    """Every shipped profile that was fitted: its file's name, and its errors by group."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "hardware", "runtimes", "*.yaml"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        field = {key: re.search(rf'^{key}: "?([^"\n]*)"?$', text, re.M) for key in ("name", "hardware")}
        if not field["hardware"]:
            continue
        rows = re.search(r"^range:\n +rows: (\d+)", text, re.M)
        errors = {}
        entry = re.compile(r'- \{group: "?([^",]+)"?, rows: (\d+), mean: ([\d.e+-]+), p90: ([\d.e+-]+), bias: ([\d.e+-]+)\}')
        for group, count, mean, p90, bias in entry.findall(text):
            errors[group] = {"rows": int(count), "mean": float(mean), "p90": float(p90), "bias": float(bias)}
        found.append({"file": os.path.basename(path)[:-len(".yaml")], "hardware": field["hardware"].group(1),
                      "name": field["name"].group(1), "rows": int(rows.group(1)) if rows else 0, "errors": errors})
    return found


def validate(program, name):
    done = subprocess.run([program, "validate", name, "--json"], env=dict(os.environ, LLMPERF_PATH=""), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=600)
    if done.returncode != 0:
        sys.exit(f"validate {name}: {done.stderr}")
    return json.loads(done.stdout)


def group_rows(document):
    """Cells of every group but those that say the same as another: kinds with many groups are cut to their worst."""
    kinds = {}
    for group in document["groups"]:
        kinds.setdefault(group["by"], []).append(group)
    for kind, groups in kinds.items():
        if len(groups) < 2:
            continue
        title = KINDS.get(kind, kind)
        if len(groups) > MANY:
            title += f" (the {SHOWN} worst of {len(groups)})"
            groups = sorted(groups, key=lambda g: (-round(g["mape"], 3), g["name"]))[:SHOWN]
        for group in groups:
            yield [title, group["name"], str(group["rows"]), percent(group["mape"]), percent(group["p90_ape"]),
                   signed(group["bias"]), percent(group["roofline_mape"]), percent(group["fitted_roofline_mape"])]


def measurement(row):
    """What was measured, in the words of the file."""
    if row.get("model"):
        parts = [row["runtime"], row["model"], row["weights"], row.get("execution", ""),
                 row.get("options", "").replace("+", " + "), f"batch {row['batch']}", row["phase"],
                 f"{row['new_tokens']} new, {row['context']} cached"]
    else:
        sizes = [f"{key} {int(row[key])}" for key in ("ranks", "batch", "m", "n", "k", "q_len", "kv_len", "heads", "kv_heads",
                                                  "head_dim", "bytes") if row.get(key) is not None]
        parts = [row["op"], *sizes]
    return " ".join(part for part in parts if part)


def stored_rows(chosen):
    for profile in chosen:
        for group, error in profile["errors"].items():
            yield [f"{profile['name']}", group, str(error["rows"]), percent(error["mean"]), percent(error["p90"]),
                   signed(error["bias"])]


def report(name, document, fitted):
    hardware = {row["hardware"] for row in document["rows"]}
    runtimes = {row.get("runtime") for row in document["rows"]} - {None}
    steps = bool(runtimes)
    summary = document["summary"]
    scored = [row for row in document["rows"] if row["scored"]]
    out = [f"# {name}: predicted against measured", "", BY_HAND, "", *document["files"][0]["notes"], "",
           paragraph(f"`llmperf validate {name}`: {summary['rows']} rows scored, by "
                     + ", ".join(sorted({row["profile"] for row in document["rows"]})) + ". The profiles were fitted to rows of "
                     "this kind, so this table is how well they describe them; how well they predict others is below."), "",
           table([":", "mean error", "median", "90 % within", "bias"],
                 [["llmperf", percent(summary["mape"]), percent(summary["median_ape"]), percent(summary["p90_ape"]),
                   signed(summary["bias"])],
                  ["three constants fitted to these rows", percent(summary["fitted_roofline_mape"]), "", "", ""],
                  ["bare roofline", percent(summary["roofline_mape"]), "", "", ""]]), "",
           "## By group", "",
           table([":by", ":group", "rows", "mean", "90 % within", "bias", "roofline", "3 constants"], list(group_rows(document)))]
    wanted = ("prefill", "decode") if steps else None
    chosen = [dict(profile, errors={group: error for group, error in profile["errors"].items()
                                    if (group in wanted if wanted else group not in ("prefill", "decode"))})
              for profile in fitted if profile["hardware"] in hardware]
    chosen = [profile for profile in chosen if profile["errors"]]
    if chosen:
        out += ["", "## Left out", "",
                paragraph("Every row predicted by parameters fitted without its group (docs/validation.md says which), as the "
                          "profiles store it; over all rows of the source, of which kernels are shipped as a sample."), "",
                table([":profile", ":group", "rows", "mean", "90 % within", "bias"], list(stored_rows(chosen)))]
    worst = sorted(scored, key=lambda row: (-round(abs(row["error"]), 4), row["line"]))[:WORST]
    out += ["", f"## The {len(worst)} worst rows", "",
            table(["line", ":measurement", "measured", "predicted", "error"],
                  [[str(row["line"]), measurement(row), seconds(row["measured_s"]), seconds(row["predicted_s"]),
                    signed(row["error"])] for row in worst])]
    doubtful = [row for row in document["rows"] if not row["scored"]]
    if doubtful:
        out += ["", "## Listed, not scored", "",
                table(["line", ":measurement", "measured", "predicted", "error", ":why"],
                      [[str(row["line"]), measurement(row), seconds(row["measured_s"]), seconds(row["predicted_s"]),
                        signed(row["error"]), row["remark"]] for row in doubtful])]
    return "\n".join(out) + "\n"


def together(errors):
    """One mean over groups of rows."""
    rows = sum(error["rows"] for error in errors)
    return rows, (sum(error["rows"] * error["mean"] for error in errors) / rows if rows else None)


# What is promised: (what, what is left out, at most, profiles, groups of their errors).
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
TORCHAIR = ("atlas-800i-a2-torchair", "atlas-800i-a2-torchair-2024a")
PROMISES = [
    ("RTX 4090, vLLM", "model", 0.05, ["rtx4090-vllm"], ["prefill", "decode"]),
    ("RTX 4090, vLLM, decode", "model", 0.04, ["rtx4090-vllm"], ["decode"]),
    ("RTX 4090, transformers", "model", 0.06, ["rtx4090-transformers"], ["prefill", "decode"]),
    ("RTX 4090, transformers, decode", "model", 0.04, ["rtx4090-transformers"], ["decode"]),
    ("RTX 4090, llama.cpp", "model", 0.06, ["rtx4090-llama.cpp"], ["prefill", "decode"]),
    ("RTX 4090, llama.cpp, decode", "model", 0.04, ["rtx4090-llama.cpp"], ["decode"]),
    ("Atlas 800I A2, prefill", "batch and rung", 0.04, TORCHAIR, ["prefill"]),
    ("Atlas 800I A2, decode", "batch and rung", 0.04, TORCHAIR, ["decode"]),
    ("A100, matrix products", "(n, k)", 0.07, ["a100-sxm-80gb-vllm"], ["gemm"]),
    ("RTX 4090, matrix products", "(n, k)", 0.04, ["rtx4090-vllm"], ["gemm"]),
    ("A100, attention over prompts", "head layout", 0.06, ["a100-sxm-80gb-vllm"], ["attention_prefill"]),
    ("A100, attention in decode", "head layout", 0.06, ["a100-sxm-80gb-vllm"], ["attention_decode"]),
    ("A100, NCCL", "(collective, ranks)", 0.08, ["a100-sxm-80gb-vllm"], COLLECTIVES),
]


def baselines(documents, profiles_of, groups):
    """Mean errors of the two simpler models on the shipped rows of these profiles and kinds."""
    fitted, bare = [], []
    for document in documents.values():
        for row in document["rows"]:
            known = any(row["profile"] == f"{p['name']} on {p['hardware']}" for p in profiles_of)
            if row["scored"] and known and row.get("phase", row.get("op")) in groups:
                fitted.append(abs(row["fitted_roofline_s"] / row["measured_s"] - 1))
                bare.append(abs(row["roofline_s"] / row["measured_s"] - 1))
    return [percent(sum(errors) / len(errors)) if errors else "-" for errors in (fitted, bare)]


def promises(documents, fitted):
    by_file = {profile["file"]: profile for profile in fitted}
    for what, left_out, most, files, groups in PROMISES:
        chosen = [by_file[file] for file in files if file in by_file]
        rows, mean = together([profile["errors"][group] for profile in chosen for group in groups if group in profile["errors"]])
        yield [what, left_out, str(rows), percent(mean), percent(most), "yes" if mean is not None and mean <= most else "no",
               *baselines(documents, chosen, groups)]


def sets(documents):
    for name, document in documents.items():
        s = document["summary"]
        yield [f"[{name}](../reports/validation/{name}.md)", str(s["rows"]), percent(s["mape"]), percent(s["median_ape"]),
               signed(s["bias"]), percent(s["fitted_roofline_mape"]), percent(s["roofline_mape"])]


def page(documents, fitted):
    """docs/validation.md with its tables written anew."""
    tables = {
        "promises": table([":what", ":left out", "rows", "mean error", "at most", ":met", "3 constants", "roofline"],
                          list(promises(documents, fitted))),
        "sets": table([":measurements", "rows", "llmperf", "median", "bias", "3 constants", "roofline"], list(sets(documents))),
    }
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for name, content in tables.items():
        marker = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        text, count = marker.subn(lambda match: match.group(1) + "\n" + content + "\n\n" + match.group(2), text)
        if count != 1:
            sys.exit(f"docs/validation.md: {count} places for the table '{name}'")
    return text


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    program = words[0] if words else os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf"))
    names = sorted(os.path.basename(path)[:-len(".csv")]
                   for path in glob.glob(os.path.join(ROOT, "hardware", "measurements", "*.csv")))
    documents = {name: validate(os.path.abspath(program), name) for name in names}
    fitted = profiles()
    files = {os.path.join(REPORTS, name + ".md"): report(name, document, fitted) for name, document in documents.items()}
    files[PAGE] = page(documents, fitted)
    stale = set(glob.glob(os.path.join(REPORTS, "*.md"))) - set(files)
    different = []
    for path, text in files.items():
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            different.append(path)
    if "--check" in sys.argv:
        for path in [*different, *stale]:
            print(f"{os.path.relpath(path, ROOT)} is out of step")
        if different or stale:
            print("scripts/validation.py path/to/llmperf writes them anew; read what changed")
        return 1 if different or stale else 0
    os.makedirs(REPORTS, exist_ok=True)
    for path in different:
        with open(path, "w", encoding="utf-8") as file:
            file.write(files[path])
    for path in stale:
        os.remove(path)
    print(f"{len(files)} files, {len(different)} changed")
    return 0


sys.exit(main())
