#!/usr/bin/env python3
"""Writes what llmperf says of its own accuracy: reports/validation/*.md, one for every shipped set of measurements, beside it a
page with the residuals of every op (one style sheet for all), and the tables of docs/validation.md between their markers.

    scripts/validation.py build/release/llmperf            writes them
    scripts/validation.py build/release/llmperf --check    exit status 1 when they are not what the program says now; without
                                                           the table of halves, which takes minutes
    scripts/validation.py build/release/llmperf --keep-halves  writes them all but that table

Three sources: `llmperf validate` on the shipped rows, the cross-validated errors that the profiles in hardware/runtimes store, and
scripts/halves.py.
"""
import glob
import html
import json
import math
import os
import re
import subprocess
import sys
import textwrap

import halves
from markdown import table

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
REPORTS = os.path.join(ROOT, "reports", "validation")
PAGE = os.path.join(ROOT, "docs", "validation.md")
WORST = 15
BAND_COLUMNS = 36  # of a plot, each with a band of its own
FEW = 4  # rows, below which a share says nothing
MANY = 16  # groups of one kind, of which only the worst are shown
SHOWN = 8
KINDS = {"runtime_phase": "runtime, phase", "batch_band": "batch", "runtime_batch_band": "runtime, batch",
         "metric_hardware": "figure, device", "metric_model": "figure, model", "metric_tp": "figure, TP",
         "metric_load": "figure, load", "hardware_runtime": "device, stack",
         "hardware_precision": "device, products", "hardware_task": "device, task", "hardware_source": "device, source", "m_band": "rows of gemm", "scheme": "op, weights", "layout": "heads", "experts": "experts", "site": "weight matrix (n, k)"}
BY_HAND = "<!-- Written by scripts/validation.py; edit that. -->"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def whole(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def factor(value):
    return "-" if value is None else f"{value:.2f}"


def signed(share):
    text = f"{100 * share:+.1f} %"
    return text[1:] if text in ("+0.0 %", "-0.0 %") else text


def seconds(value):
    if value is None:
        return "-"
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            return f"{float(f'{value / scale:.3g}'):g} {unit}"


def paragraph(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def profiles():
    """Every shipped profile and engine that was fitted: its file's name, the chips of its rows, and its errors by group."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "hardware", "runtimes", "*.yaml"))
                       + glob.glob(os.path.join(ROOT, "hardware", "engines", "*.yaml"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        field = {key: re.search(rf'^{key}: "?([^"\n]*)"?$', text, re.M) for key in ("name", "hardware", "measured_on")}
        families = re.search(r"^workload: training\nfamilies: \[([^\]]*)\]", text, re.M)
        chips = field["hardware"] or field["measured_on"] or families
        if not chips:
            continue
        rows = re.search(r"^range:\n +rows: (\d+)", text, re.M)
        errors = {}
        entry = re.compile(r'- \{group: "?([^",]+)"?, rows: (\d+), mean: ([\d.e+-]+), p90: ([\d.e+-]+), bias: ([\d.e+-]+)\}')
        for group, count, mean, p90, bias in entry.findall(text):
            errors[group] = {"rows": int(count), "mean": float(mean), "p90": float(p90), "bias": float(bias)}
        found.append({"file": os.path.basename(path)[:-len(".yaml")], "chips": set(re.findall(r"[\w.-]+", chips.group(1))),
                      "name": os.path.basename(path)[:-len(".yaml")] if families else field["name"].group(1),
                      "trains": bool(families), "rows": int(rows.group(1)) if rows else 0, "errors": errors})
    return found


def validate(program, name, runtime=None):
    under = ["--runtime", runtime] if runtime else []
    done = subprocess.run([program, "validate", name, "--json", *under], env=dict(os.environ, LLMPERF_PATH=""), check=False,
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
                   signed(group["bias"]), percent(group["roofline_mape"]), percent(group["fitted_roofline_mape"]),
                   whole(group["inside_p90"]), factor(group["median_band_factor"])]


def measurement(row):
    """What was measured, in the words of the file."""
    if row.get("metric"):
        load = (f"concurrency {row['concurrency']}" if row.get("concurrency") else f"{row['rate']} a second" if row.get("rate")
                else row.get("trace", ""))
        parts = [row["runtime"], row["model"], row["weights"], f"tp {row['tp']}", load, row.get("input", ""),
                 f"-> {row['output']}" if row.get("output") else "", row["metric"]]
    elif row.get("gpus"):
        plan = [f"{axis} {row[axis]}" for axis in ("tp", "pp", "cp", "ep") if row.get(axis)]
        parts = [row["framework"], row["model"], f"{row['gpus']} x {row['hardware']}", row["precision"], row["task"], *plan,
                 row.get("dp_mode", ""), f"{row['gbs']} x {row['seq']} by {row['mbs']}", row.get("recompute", "")]
    elif row.get("model"):
        parts = [row["runtime"], row["model"], row["weights"], row.get("execution", ""),
                 row.get("options", "").replace("+", " + "), f"batch {row['batch']}", row["phase"],
                 f"{row['new_tokens']} new, {row['context']} cached"]
    else:
        columns = ("ranks", "batch", "m", "n", "k", "hidden", "inter", "topk", "experts", "tp", "ep", "q_len", "kv_len", "heads",
                   "kv_heads", "head_dim", "bytes")
        sizes = [f"{key} {int(row[key])}" for key in columns if row.get(key) is not None]
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
    steps = bool(runtimes) and "op" not in document["rows"][0]
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
           table([":by", ":group", "rows", "mean", "90 % within", "bias", "roofline", "3 constants", "inside", "band"],
                 list(group_rows(document))), "",
           paragraph("inside: rows in the band that nine of ten are to be in, which is a factor of that much wide to either side "
                     "on the median (docs/validation.md).")]
    trained = "gpus" in document["rows"][0]
    def wanted(group):
        return group.startswith("training") if trained else (group in ("prefill", "decode")) == steps
    chosen = [dict(profile, errors={group: error for group, error in profile["errors"].items() if wanted(group) and error["rows"]})
              for profile in fitted if (profile["trains"] if trained else profile["chips"] & hardware and not profile["trains"])]
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
                        signed(row["error"]), row["remark"]] if row["predicted_s"] is not None and row["error"] is not None
                       else [str(row["line"]), measurement(row), seconds(row["measured_s"]), "-", "-", row["remark"]]
                       for row in doubtful])]
    return "\n".join(out) + "\n"


# ---- Residuals: a page per set with a plot for every kind of op, and what is known of the rows that are farthest off.

# Why rows are off: (of which op or phase, condition, reason); the first that fits.
REASONS = [
    ("gemm", lambda r: r.get("weights") == "fp8-block128" and r["error"] < -0.3 and 128 < r["m"],
     "DeepGEMM took another tile than the fewest rounds ask for; which rule it followed is not known"),
    ("gemm", lambda r: r["m"] >= 1024 and r["n"] <= 64, "few columns: the library's heuristic takes a tile that is not the fastest"),
    ("gemm", lambda r: r["m"] <= 16 and r["k"] >= 5120 and r["n"] <= 1024 and r["error"] < 0,
     "few rows and columns: the library did not divide k, though that would be faster"),
    ("gemm", lambda r: r["m"] <= 64 and r["error"] > 0.3, "weights that the cache held between calls of the benchmark"),
    ("gemm", lambda r: r["measured_s"] > 1e-3 and r["error"] < -0.1, "long kernels draw the full power, and the clock falls"),
    ("gemm", lambda r: 256 <= r["m"] <= 2048, "libraries choose tiles by heuristics that are not the fastest"),
    ("decode", lambda r: r["runtime"] == "transformers" and r["context"] > 4096 and r["error"] < 0,
     "grouped keys and values are repeated before attention, which is not modelled"),
    ("", lambda r: r["measured_s"] < 8e-6, "mostly launch: the spread between runs is a large part of it"),
]
PLOT = {"width": 720, "height": 260, "left": 56, "right": 24, "top": 10, "bottom": 34}


def reason(row):
    if row.get("metric") or row.get("gpus"):
        return "not explained"
    for op, condition, text in REASONS:
        if (row.get("op") or row["phase"]).startswith(op) and condition(row):
            return text
    return "not explained"


def band_steps(rows, x, low, high):
    """(left, right, half-width) by columns of the plot: of each the median, up to the next that has rows."""
    columns = {}
    for row in rows:
        if row.get("band_high_s"):
            column = int((math.log10(row["measured_s"]) - low) / (high - low) * BAND_COLUMNS)
            columns.setdefault(column, []).append(math.log(row["band_high_s"] / row["predicted_s"]))
    edge = lambda column: x(10 ** (low + column * (high - low) / BAND_COLUMNS))
    order = sorted(columns)
    for column, after in zip(order, [*order[1:], order[-1] + 1] if order else []):
        widths = sorted(columns[column])
        yield edge(column), edge(after), widths[len(widths) // 2]


def plot(rows):
    """SVG: error of every row (predicted / measured) over the time that was measured, both in logarithms, and the band that nine
    of ten are to be in."""
    p = PLOT
    low = math.floor(math.log10(min(r["measured_s"] for r in rows)))
    high = max(low + 1, math.ceil(math.log10(max(r["measured_s"] for r in rows))))
    top = math.log(2)
    x = lambda s: p["left"] + (math.log10(s) - low) / (high - low) * (p["width"] - p["left"] - p["right"])
    y = lambda ratio: (p["top"] + (top - max(-top, min(top, math.log(ratio)))) / (2 * top)
                       * (p["height"] - p["top"] - p["bottom"]))
    out = [f'<svg viewBox="0 0 {p["width"]} {p["height"]}" role="img" aria-label="predicted over measured">']
    band = "".join(f"M{left:.1f} {y(math.exp(width)):.1f}H{right:.1f}V{y(math.exp(-width)):.1f}H{left:.1f}z"
                   for left, right, width in band_steps(rows, x, low, high))
    if band:
        out.append(f'<path class="band" d="{band}"/>')
    for ratio in (0.5, 0.7, 0.9, 1, 1.1, 1.4, 2):
        style = "one" if ratio == 1 else "grid"
        out.append(f'<line class="{style}" x1="{p["left"]}" x2="{p["width"] - p["right"]}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}"/>'
                   f'<text x="{p["left"] - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for power in range(low, high + 1):
        out.append(f'<text x="{x(10 ** power):.1f}" y="{p["height"] - p["bottom"] + 18}" text-anchor="middle">'
                   f'{seconds(10 ** power)}</text>')
    points = "".join(f"M{x(r['measured_s']):.1f} {y(1 + r['error']):.1f}h0" for r in rows)
    out.append(f'<path class="points" d="{points}"/></svg>')
    return "".join(out)


STYLE_FILE = "residuals.css"  # of all pages, beside them; written by hand


def coverage(rows):
    """How many rows have a band, the share that is inside of it, and the factor that it is wide on the median."""
    banded = [row for row in rows if row["scored"] and row.get("band_high_s")]
    if not banded:
        return None
    off = [(abs(math.log(row["predicted_s"] / row["measured_s"])), math.log(row["band_high_s"] / row["predicted_s"]))
           for row in banded]
    return {"rows": len(off), "inside": sum(error <= width for error, width in off) / len(off),
            "factor": math.exp(sorted(width for _, width in off)[len(off) // 2])}


def residual_page(name, document):
    """Every kind of op with its plot; rows that were not scored are left out."""
    rows = [row for row in document["rows"] if row["scored"] and row["measured_s"] > 0]
    kinds = {}
    for row in rows:
        kind = row.get("op") or row.get("metric") or (row["hardware"] if row.get("gpus") else f"{row['runtime']} {row['phase']}")
        if row.get("weights") and row.get("op"):
            kind += " " + row["weights"]
        kinds.setdefault(kind, []).append(row)
    out = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">', f"<title>{name}: residuals</title>",
           f'<link rel="stylesheet" href="{STYLE_FILE}"></head><body>', f"<h1>{name}: residuals</h1>",
           "<p>Predicted over measured, by the time that was measured; 1 is exact, and what is off by more than a factor of two "
           "is drawn at the edge. Shaded: the band that nine of ten rows are to be in, the median of neighbouring rows. "
           f"The same rows in numbers: <a href=\"{name}.md\">{name}.md</a>.</p>"]
    for kind, members in kinds.items():
        mean = sum(abs(row["error"]) for row in members) / len(members)
        band = coverage(members)
        said = f"; {whole(band['inside'])} inside a band of a factor of {band['factor']:.2f}" if band else ""
        out += [f"<h2>{html.escape(kind)}: {len(members)} rows, {percent(mean)}{said}</h2>", plot(members)]
    worst = sorted(rows, key=lambda row: (-round(abs(math.log(1 + row["error"])), 4), row["line"]))[:WORST]
    out += [f"<h2>The {len(worst)} worst rows</h2>", '<div class="scroll"><table><tr><th>measurement</th><th>measured</th>'
            "<th>error</th><th>reason</th></tr>"]
    for row in worst:
        cells = [measurement(row), seconds(row["measured_s"]), signed(row["error"]), reason(row)]
        out.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*out, "</table></div>", "</body></html>"]) + "\n"


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
    ("RTX 4090, llama-cpp-python", "model", 0.06, ["rtx4090-llama-cpp-python"], ["prefill", "decode"]),
    ("RTX 4090, llama-cpp-python, decode", "model", 0.04, ["rtx4090-llama-cpp-python"], ["decode"]),
    ("Atlas 800I A2, prefill", "batch and rung", 0.04, TORCHAIR, ["prefill"]),
    ("Atlas 800I A2, decode", "batch and rung", 0.04, TORCHAIR, ["decode"]),
    ("A100, matrix products", "(n, k)", 0.07, ["a100-sxm-80gb-vllm"], ["gemm"]),
    ("RTX 4090, matrix products", "(n, k)", 0.04, ["rtx4090-vllm"], ["gemm"]),
    ("A100, attention over prompts", "head layout", 0.06, ["a100-sxm-80gb-vllm"], ["attention_prefill"]),
    ("A100, attention in decode", "head layout", 0.06, ["a100-sxm-80gb-vllm"], ["attention_decode"]),
    ("A100, NCCL", "(collective, ranks)", 0.08, ["a100-sxm-80gb-vllm"], COLLECTIVES),
    ("H100, vLLM, decode", "model or plan", 0.08, ["vllm-v1", "vllm-async"], ["decode"]),
    ("H100, H200, B200, TensorRT-LLM 1.0 and 1.1, decode", "model on a device", 0.082, ["trtllm"], ["decode"]),
    ("H100, H200, B200, SGLang, decode", "model on a device", 0.06, ["sglang"], ["decode"]),
    ("A100, vLLM 0.6, decode", "model", 0.07, ["a100-sxm-80gb-vllm-v0"], ["decode"]),
    ("A100, transformers, decode", "model", 0.15, ["a100-sxm-80gb-transformers"], ["decode"]),
    ("MI300X, vLLM, decode", "batch", 0.08, ["mi300x-vllm"], ["decode"]),
    ("H100, dense products", "(n, k)", 0.05, ["h100-sxm-vllm"], ["gemm dense"]),
    ("H100, fp8 products", "(n, k)", 0.105, ["h100-sxm-vllm"], ["gemm fp8"]),
    ("H100, fp8-block128 products", "(n, k)", 0.105, ["h100-sxm-vllm"], ["gemm fp8-block128"]),
    ("H100, attention over prompts, with windows and fp8 caches", "head layout", 0.07, ["h100-sxm-vllm"], ["attention_prefill"]),
    ("H100, attention in decode, with windows and fp8 caches", "head layout", 0.052, ["h100-sxm-vllm"], ["attention_decode"]),
    ("H100, latent attention over prompts, both caches", "heads", 0.05, ["h100-sxm-vllm"], ["mla_prefill"]),
    ("H100, latent attention in decode, both caches", "heads", 0.08, ["h100-sxm-vllm"], ["mla_decode"]),
    ("H100, vLLM's experts", "shape", 0.115, ["h100-sxm-vllm"], ["moe dense"]),
    ("H100, vLLM's experts, fp8-block128", "shape", 0.06, ["h100-sxm-vllm"], ["moe fp8-block128"]),
    ("H100, gpt-oss's experts, mxfp4", "tokens", 0.2, ["h100-sxm-trtllm"], ["moe mxfp4"]),
    ("H100, SGLang's experts, fp8-block128", "shape", 0.045, ["h100-sxm-sglang"], ["moe fp8-block128"]),
    ("H100, TensorRT-LLM's experts", "shape", 0.075, ["h100-sxm-trtllm"], ["moe dense"]),
    ("H100, TensorRT-LLM's experts, fp8 and fp8-block128", "shape", 0.075, ["h100-sxm-trtllm"], ["moe fp8", "moe fp8-block128"]),
    ("H100, NCCL", "(collective, ranks)", 0.09, ["h100-sxm-vllm"], COLLECTIVES),
    ("H100, custom all-reduce", "ranks", 0.05, ["h100-sxm-vllm"], ["custom_all_reduce"]),
    ("MI300X, fp8-block128 products", "(n, k)", 0.05, ["mi300x-vllm"], ["gemm fp8-block128"]),
]


def baselines(documents, profiles_of, groups):
    """Mean errors of the two simpler models on the shipped rows of these profiles and kinds."""
    fitted, bare = [], []
    for document in documents.values():
        for row in document["rows"]:
            kind = row.get("phase", row.get("op"))
            kinds = {kind, f"{kind} {row.get('weights') or 'dense'}"}
            known = any(row["hardware"] in p["chips"] and re.split(": | on ", row["profile"])[0] == p["name"] for p in profiles_of)
            if row["scored"] and known and kinds & set(groups):
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


# Products of a chip of which its profile has seen nothing: (measurements, profile, measurements of the chip whose physics that
# profile has).
TRANSFERS = [
    ("b200-sxm-ops", "class-nvidia-blackwell-vllm", "h100-sxm-ops"),
    ("mi355x-ops", "class-amd-cdna-vllm", "mi300x-ops"),
    ("h100-sxm-ops", "class-nvidia-ga100-vllm", "a100-sxm-80gb-ops"),
    ("rtx4090-ops", "class-nvidia-ga100-vllm", "a100-sxm-80gb-ops"),
]
NARROW = ("fp8", "fp8-block128", "int8", "w8a8")


def long_products(document):
    """Measured and predicted seconds of products above 20 us, their FLOPs and bytes as shares of what the chip does in a second."""
    rows = [row for row in document["rows"] if row["scored"] and row.get("op") in ("gemm", "matmul") and row["measured_s"] > 20e-6
            and (not row.get("weights") or row["weights"] in NARROW)]
    products = []
    for row in rows:
        m, n, k, batch = (float(row.get(key) or 1) for key in ("m", "n", "k", "batch"))
        element = 1 if row.get("weights") else 2
        products.append({"measured": row["measured_s"], "predicted": row["predicted_s"], "roof": row["roofline_s"], "element": element,
                         "flops": 2 * m * n * k * batch, "bytes": batch * (element * n * k + 2 * m * (n + k))})
    peaks = {}  # what the longest of both takes is the roof, so that some row shows each
    for p in products:
        peaks[p["element"]] = max(peaks.get(p["element"], 0), p["flops"] / p["roof"])
    bandwidth = max(p["bytes"] / p["roof"] for p in products)
    return [dict(p, compute=p["flops"] / peaks[p["element"]], memory=p["bytes"] / bandwidth) for p in products]


def mean_error(products, constants):
    start, compute, memory = constants
    return sum(abs((start + max(p["compute"] / compute, p["memory"] / memory)) / p["measured"] - 1) for p in products) / len(products)


def three_constants(products):
    """Launch and shares of peak and bandwidth with the least mean error, by steps along each that get smaller."""
    best, step = [5e-6, 0.7, 0.8], 0.3
    while step > 0.005:
        trials = [[value * (factor if i == j else 1) for j, value in enumerate(best)]
                  for i in range(3) for factor in (1 + step, 1 / (1 + step))]
        trial = min(trials, key=lambda constants: mean_error(products, constants))
        if mean_error(products, trial) < mean_error(products, best):
            best = trial
        else:
            step /= 2
    return best


def transfers(program, documents):
    for name, profile, other in TRANSFERS:
        mine = long_products(validate(program, name, os.path.join(ROOT, "hardware", "runtimes", profile + ".yaml")))
        constants = three_constants(long_products(documents[other]))
        own = sum(abs(p["predicted"] / p["measured"] - 1) for p in mine) / len(mine)
        yield [name, profile, str(len(mine)), percent(own), percent(mean_error(mine, constants)),
               percent(mean_error(mine, three_constants(mine)))]


# Measurements by a profile that has seen nothing of their chip: (measurements, their runtime or empty, profile).
FOREIGN = [
    ("h100-sxm-steps", "", "class-nvidia-ga100-vllm"),
    ("rtx4090-qwen1.5", "vllm", "class-nvidia-ga100-vllm"),
    ("rtx4090-qwen1.5", "vllm", "class-nvidia-hopper-vllm"),
    ("mi300x-steps", "", "class-any-vllm"),
    ("atlas-800i-a2-llama-2-70b", "", "class-any-default"),
    ("h100-sxm-ops", "", "class-nvidia-ga100-vllm"),
    ("rtx4090-ops", "", "class-nvidia-ga100-vllm"),
]


def bands(program, documents):
    def lines(name, profile, document, runtime=""):
        for group in document["groups"]:
            if (group["by"] in ("runtime_phase", "op") and group["name"].startswith(runtime) and group["rows"] >= FEW
                    and group.get("median_band_factor")):
                yield [name, profile, group["name"], str(group["rows"]), whole(group["inside_mean"]), whole(group["inside_p90"]),
                       factor(group["median_band_factor"])]
    for name, document in documents.items():
        own = not any(row["class_default"] for row in document["rows"])
        yield from lines(name, "its own" if own else "its class's", document)
    for name, runtime, profile in FOREIGN:
        document = validate(program, name, os.path.join(ROOT, "hardware", "runtimes", profile + ".yaml"))
        yield from lines(name, profile, document, runtime)


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def runs(document):
    """Scored figures of each run: (the run's row, {metric: (measured, predicted)})."""
    found = {}
    for row in document["rows"]:
        if row["scored"] and row.get("metric"):
            found.setdefault((row["file"], row["line"]), (row, {}))[1][row["metric"]] = (row["measured_s"], row["predicted_s"])
    return list(found.values())


def nominal(lengths):
    """The mean of 1024 or of 819-1024."""
    ends = [int(end) for end in lengths.split("-")]
    return sum(ends) / len(ends)


def mean_and_bias(errors):
    return [percent(sum(map(abs, errors)) / len(errors)), signed(sum(errors) / len(errors))]


def serving(documents):
    """Errors of TPOT, TTFT and the throughput that follows from them, by model, plan and concurrency."""
    groups = {}
    for row, figures in runs(documents["h100-sxm-serving"]):
        if row["runtime"] != "vllm" or not row.get("concurrency") or not {"ttft.mean", "tpot.mean"} <= set(figures):
            continue
        tokens = nominal(row["output"])
        rate = [tokens / (figures["ttft.mean"][side] + (tokens - 1) * figures["tpot.mean"][side]) for side in (0, 1)]
        errors = [figures["tpot.mean"][1] / figures["tpot.mean"][0] - 1, figures["ttft.mean"][1] / figures["ttft.mean"][0] - 1,
                  rate[1] / rate[0] - 1]
        for key in (("all", "all", "all"), (row["model"], str(row["tp"]), "all"), (row["model"], "all", str(row["concurrency"])),
                    (row["model"], str(row["tp"]), str(row["concurrency"]))):
            groups.setdefault(key, []).append(errors)
    order = lambda text: (text != "all", int(text) if text.isdigit() else 0, text)
    for key, errors in sorted(groups.items(), key=lambda item: tuple(order(part) for part in item[0])):
        cells = [mean_and_bias([e[i] for e in errors]) for i in range(3)]
        yield [*key, str(len(errors)), *(cell for pair in cells for cell in pair)]


def servers(documents):
    """Errors of means by device, engine and model, of every set of measurements of servers."""
    metrics = ("ttft.mean", "tpot.mean", "itl.mean", "e2e.mean")
    groups = {}
    for name, document in documents.items():
        if name.endswith("-serving"):
            for row, figures in runs(document):
                key = (row["hardware"], row["runtime"], row["model"], row["weights"])
                groups.setdefault(key, []).append({m: figures[m][1] / figures[m][0] - 1 for m in metrics if m in figures})
    for key, errors in sorted(groups.items()):
        cells = [*key, str(len(errors))]
        for metric in metrics:
            found = [e[metric] for e in errors if metric in e]
            cells += mean_and_bias(found) if found else ["", ""]
        yield cells


PEERS = os.path.join(ROOT, "scripts", "serving_peers.csv")
# Models whose served requests two numbers of the profile were fitted on (hardware/engines/vllm-v1.yaml): left out.
FITTED_ON = ("mistral-nemo-12b", "qwen2.5-7b")


def peers(documents):
    """Median errors of means on the runs that each simulator predicted, and llmperf's on the same ones."""
    measured = {row["run"]: figures for row, figures in runs(documents["h100-sxm-serving"])
                if row.get("run") and row["model"] not in FITTED_ON}
    metrics = ("e2e", "itl", "ttft")
    found = {}
    with open(PEERS, encoding="utf-8") as file:
        lines = [line.strip().split(",") for line in file if not line.startswith("#")]
    for simulator, run, *predicted in lines[1:]:
        if run in measured:
            found.setdefault(simulator, []).append((measured[run], [float(ms) / 1e3 for ms in predicted]))
    for simulator, rows in sorted(found.items()):
        theirs = [median([abs(predicted[i] / figures[f"{metric}.mean"][0] - 1) for figures, predicted in rows])
                  for i, metric in enumerate(metrics)]
        ours = [median([abs(figures[f"{metric}.mean"][1] / figures[f"{metric}.mean"][0] - 1) for figures, _ in rows])
                for metric in metrics]
        yield [simulator, str(len(rows)), *(percent(error) for pair in zip(theirs, ours) for error in pair)]


def sets(documents):
    for name, document in documents.items():
        s = document["summary"]
        yield [f"[{name}](../reports/validation/{name}.md)", str(s["rows"]), percent(s["mape"]), percent(s["median_ape"]),
               signed(s["bias"]), percent(s["fitted_roofline_mape"]), percent(s["roofline_mape"])]


def page(program, documents, fitted, checks):
    """docs/validation.md with its tables written anew."""
    tables = {
        "promises": table([":what", ":left out", "rows", "mean error", "at most", ":met", "3 constants", "roofline"],
                          list(promises(documents, fitted))),
        "transfers": table([":measurements", ":profile", "products", "mean error", "3 constants of the other chip", "of its own"],
                           list(transfers(program, documents))),
        "bands": table([":measurements", ":profile", ":kind", "rows", "inside mean", "inside 9 of 10", "median factor"],
                       list(bands(program, documents))),
        "serving": table([":model", "TP", "concurrency", "runs", "TPOT", "bias", "TTFT", "bias", "throughput", "bias"],
                         list(serving(documents))),
        "servers": table([":device", ":engine", ":model", ":weights", "runs", "TTFT", "bias", "TPOT", "bias", "ITL", "bias", "E2E",
                          "bias"], list(servers(documents))),
        "peers": table([":simulator", "runs", "E2E", "llmperf", "ITL", "llmperf", "TTFT", "llmperf"], list(peers(documents))),
        "sets": table([":measurements", "rows", "llmperf", "median", "bias", "3 constants", "roofline"], list(sets(documents))),
    }
    if not checks:
        tables["halves"] = table(halves.HEADER, [halves.cells(*found) for found in halves.halves(program)])
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for name, content in tables.items():
        marker = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        text, count = marker.subn(lambda match: match.group(1) + "\n" + content + "\n\n" + match.group(2), text)
        if count != 1:
            sys.exit(f"docs/validation.md: {count} places for the table '{name}'")
    return text


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    program = words[0] if words else os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf"))
    names = sorted(os.path.basename(path)[:-len(".csv")]
                   for path in glob.glob(os.path.join(ROOT, "hardware", "measurements", "*.csv")))
    documents = {name: validate(os.path.abspath(program), name) for name in names}
    fitted = profiles()
    files = {os.path.join(REPORTS, name + ".md"): report(name, document, fitted) for name, document in documents.items()}
    files.update({os.path.join(REPORTS, name + ".html"): residual_page(name, document) for name, document in documents.items()})
    files[PAGE] = page(os.path.abspath(program), documents, fitted, bool({"--check", "--keep-halves"} & set(sys.argv)))
    stale = set(glob.glob(os.path.join(REPORTS, "*.*"))) - set(files) - {os.path.join(REPORTS, STYLE_FILE)}
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
