#!/usr/bin/env python3
"""Writes how accurate llmperf is on data left out of its fits: the table of README.md, and the longer one of docs/accuracy.md.

    scripts/accuracy.py build/release/llmperf            writes them
    scripts/accuracy.py build/release/llmperf --check    exit status 1 when they are not what the program says now

Three sources: the cross-validated errors that profiles store (`llmperf show runtime NAME --json`), `llmperf validate` for sets that
nothing was fitted on and for how many rows are inside of the bands, and, of sets that take it long, its figures in
reports/validation/NAME.md, which scripts/validation.py writes and checks.
"""
import csv
import functools
import glob
import json
import os
import re
import subprocess
import sys

from markdown import table

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
MEASUREMENTS = os.path.join(ROOT, "hardware", "measurements")
PAGES = ("README.md", os.path.join("docs", "accuracy.md"))
program = os.path.join(ROOT, "build", "release", "llmperf")

# Lines of the front page: device, stack, what was left out.
FRONT = {
    "4090": ("RTX 4090", "vLLM, transformers, llama-cpp-python", "a model"),
    "h100": ("H100, H200, B200", "vLLM, TensorRT-LLM, SGLang", "a model or plan"),
    "a100": ("A100, MI300X", "vLLM, transformers", "a model or batch"),
    "atlas": ("Atlas 800I A2", "torchair", "a batch"),
    "cuda": ("GeForce, RTX, H100, GB10", "llama.cpp, ExLlamaV2", "a device, or judged"),
    "apple": ("Apple", "llama.cpp, MLX", "a device, or judged"),
    "others": ("AMD, Vulkan, CPUs", "llama.cpp", "a device, or judged"),
}


# Profiles of training, whose errors are of sites left out, and of one site's runs of models left out.
TRAINING = (("A100", "PyTorch FSDP, 2023", "class-nvidia-ga100-pytorch-fsdp-2023"), ("H100", "PyTorch FSDP, 2023", "class-nvidia-hopper-pytorch-fsdp-2023"),
            ("H100, H200", "PyTorch FSDP, 2024", "class-nvidia-hopper-pytorch-fsdp"), ("H100, H200", "Megatron core", "class-nvidia-hopper-megatron"),
            ("B200, GB200, GB300", "Megatron core", "class-nvidia-blackwell-megatron"),
            ("GB200, GB300", "Megatron core from 26.06", "class-nvidia-blackwell-megatron-26.06"),
            ("A100", "transformers, PEFT", "class-nvidia-ga100-transformers-peft"), ("MI300X, MI325X", "Megatron core", "class-amd-megatron"),
            ("TPU v5e", "MaxText", "class-google-tpu-maxtext"), ("TPU v6e", "MaxText", "class-tpu-256-maxtext"),
            ("910B3", "MindSpeed", "class-ascend-mindspeed"))


def one_card(row):
    return row.get("n_gpu", 1) == 1 and row.get("gpu_layers") is None


def geforce(row):
    return one_card(row) and row["backend"].startswith("cuda") and re.search(r"\(CUDA, (Am|Ad|B)", row["profile"])


def amd_cards(row):
    return row["backend"].startswith(("vulkan", "rocm")) and not row["hardware"].startswith(("rtx", "strix"))


# What profiles were fitted to: (line of the front page, device, stack, left out, profile, kinds of rows that it has errors of, the
# measurements and which of their rows these are, for the share inside of the band).
FITTED = [
    ("4090", "RTX 4090", "vLLM", "model", "rtx4090-vllm", ("prefill", "decode"), "rtx4090-qwen1.5",
     lambda r: r["runtime"] == "vllm"),
    ("4090", "RTX 4090", "transformers", "model", "rtx4090-transformers", ("prefill", "decode"), "rtx4090-qwen1.5",
     lambda r: r["runtime"] == "transformers"),
    ("4090", "RTX 4090", "llama-cpp-python", "model", "rtx4090-llama-cpp-python", ("prefill", "decode"), "rtx4090-qwen1.5",
     lambda r: r["runtime"].startswith("llama")),
    ("h100", "H100", "vLLM 0.8 to 0.13", "model", "vllm-v1", ("decode",), "h100-sxm-steps",
     lambda r: r["runtime"] == "vllm" and "vllm-v1" in r["profile"]),
    ("h100", "H100", "vLLM from 0.14", "plan", "vllm-async", ("decode",), "h100-sxm-steps",
     lambda r: r["runtime"] == "vllm" and "vllm-v1" not in r["profile"]),
    ("h100", "B200", "vLLM 0.8 to 0.13", "plan", "vllm-v1-blackwell", ("decode",), "b200-sxm-steps", lambda r: r["runtime"] == "vllm"),
    ("h100", "H100, H200, B200", "TensorRT-LLM 1.0, 1.1", "model on a device", "trtllm", ("decode",), "h100-sxm-steps",
     lambda r: r["profile"].startswith("trtllm:")),
    ("h100", "B200", "TensorRT-LLM from 1.2", "plan", "trtllm-1.2", ("decode",), "b200-sxm-steps",
     lambda r: r["runtime"] == "trtllm" and not r["profile"].startswith("trtllm:")),
    ("h100", "H100", "TensorRT-LLM to 0.6", "model", "trtllm-2023", ("prefill",), "h100-sxm-steps",
     lambda r: r["profile"].startswith("trtllm-2023")),
    ("h100", "H100, H200, B200", "SGLang", "model on a device", "sglang", ("decode",), "h100-sxm-steps",
     lambda r: r["runtime"] == "sglang"),
    ("a100", "A100", "vLLM to 0.5", "model", "vllm-v0-2024a", ("decode",), "a100-sxm-80gb-steps-2024a", lambda r: True),
    ("a100", "A100", "vLLM 0.6", "model", "a100-sxm-80gb-vllm-v0", ("decode",), "a100-sxm-80gb-steps",
     lambda r: r["runtime"] == "vllm"),
    ("a100", "A100", "transformers", "model", "a100-sxm-80gb-transformers", ("decode",), "a100-sxm-80gb-steps",
     lambda r: r["runtime"] == "transformers"),
    ("a100", "MI300X", "vLLM", "batch", "mi300x-vllm", ("decode",), "mi300x-steps", lambda r: True),
    ("atlas", "Atlas 800I A2", "torchair", "batch", "atlas-800i-a2-torchair", ("prefill", "decode"),
     "atlas-800i-a2-llama-2-70b", lambda r: r["runtime"] == "torchair-2024b"),
    ("atlas", "Atlas 800I A2", "torchair of early 2024", "batch", "atlas-800i-a2-torchair-2024a", ("prefill", "decode"),
     "atlas-800i-a2-llama-2-70b", lambda r: r["runtime"] == "torchair-2024a"),
    ("cuda", "GeForce and RTX cards", "llama.cpp", "device", "class-cuda-llama.cpp", ("prefill", "decode"), "llama.cpp", geforce),
    ("cuda", "GeForce cards", "ExLlamaV2", "device", "class-cuda-exllamav2", ("decode",), "rtx-exllamav2", lambda r: True),
    ("cuda", "H100", "llama.cpp", "judged", "class-hopper-llama.cpp", ("prefill", "decode"), "llama.cpp",
     lambda r: r["hardware"] == "h100-pcie"),
    ("cuda", "GB10", "llama.cpp", "judged", "class-nvidia-soc-llama.cpp", ("prefill", "decode"), "llama.cpp",
     lambda r: r["hardware"] == "gb10"),
    ("apple", "Apple M1 to M4", "llama.cpp", "judged", "class-apple-llama.cpp", ("prefill", "decode"),
     "llama.cpp", lambda r: re.match("apple-m[1-4].*(pro|max|ultra)$", r["hardware"])),
    ("apple", "Apple M5", "llama.cpp", "judged", "class-apple10-llama.cpp", ("decode",), "llama.cpp",
     lambda r: r["hardware"].startswith("apple-m5")),
    ("apple", "Apple M1, M2", "MLX", "device", "class-apple-mlx", ("decode",), "apple-mlx",
     lambda r: re.match("apple-m[12]", r["hardware"])),
    ("apple", "Apple M3, M4", "MLX", "device", "class-apple9-mlx", ("prefill", "decode"), "apple-mlx",
     lambda r: re.match("apple-m[34]", r["hardware"])),
    ("others", "AMD cards", "llama.cpp", "judged", "class-amd-llama.cpp", ("prefill", "decode"), "llama.cpp",
     amd_cards),
    ("others", "Strix Halo", "llama.cpp", "judged", "class-amd-rdna35-llama.cpp-2025", ("prefill", "decode"),
     "llama.cpp", lambda r: r["hardware"] == "strix-halo"),
    ("others", "NVIDIA cards, Vulkan", "llama.cpp", "judged", "class-vulkan-nvidia-llama.cpp", ("prefill", "decode"),
     "llama.cpp", lambda r: r["hardware"].startswith("rtx") and r["backend"] == "vulkan"),
    ("others", "CPUs", "llama.cpp", "device", "class-cpu-llama.cpp", ("prefill", "decode"), "llama.cpp",
     lambda r: re.search("CPUs", r["profile"])),
]
# Of one device, so that none could be left out: errors of the rows that were fitted.
SEEN = [
    ("A100", "llama.cpp", "llama.cpp", lambda r: "GA100" in r["profile"]),
    ("two and four cards, layers on the host", "llama.cpp", "llama.cpp", lambda r: not one_card(r)),
]
# Servers under load: (line of the front page, device, stack, measurements, what no fit has seen).
SERVERS = [
    ("rtx", "RTX 4090", "vLLM, servers", "rtx4090-serving", "the servers"),
    ("rtx", "RTX PRO 6000", "vLLM, servers", "rtx-pro-6000-serving", "the servers"),
    ("h100s", "H100", "vLLM, TensorRT-LLM, servers", "h100-sxm-serving", "most queues"),
    ("h200s", "H200", "vLLM, SGLang, TensorRT-LLM, servers", "h200-sxm-serving", "all but two host times"),
    ("h200n", "H200, a nightly build", "vLLM, servers", "h200-sxm-serving", "all"),
    ("b200s", "B200", "vLLM, SGLang, TensorRT-LLM, servers", "b200-sxm-serving", "all but five times"),
]
# Kernels of an engine on a device: what was left out of the fits of these profiles, by kinds of kernels.
KERNELS = [(device, stack, f"{device.lower()}-sxm-{engine}") for device in ("H100", "H200", "B200")
           for stack, engine in (("vLLM", "vllm"), ("SGLang", "sglang"), ("TensorRT-LLM", "trtllm"))]
KINDS = {"gemm dense": "products bf16", "gemm fp8": "fp8", "gemm fp8-block128": "fp8 blocks", "gemm nvfp4": "nvfp4",
         "attention_decode": "new tokens", "attention_prefill": "prompts", "mla_decode": "latents, tokens", "mla_prefill": "latents, prompts",
         "moe": "experts", "custom_all_reduce": "own all-reduce", "all_reduce": "NCCL all-reduce"}
# Of a set figures that are told apart, with those that the other line has: on the H200 percentiles and rates were published of one
# nightly build alone, means of all other runs.
MEANS = ("ttft.mean", "tpot.mean")
APART = {"h200s": lambda metric: metric in MEANS, "h200n": lambda metric: metric not in MEANS}
SLOW = ("h100-sxm-serving", "h200-sxm-serving", "b200-sxm-serving")
# Steps by a profile that has seen nothing of their chip: (device, by whose profile, measurements, runtime, profile). The first is for
# the long table alone, since host times of its engines were fitted on the chip.
FOREIGN = [
    ("H100", "an A100's kernels", "h100-sxm-steps", "", "class-nvidia-ga100-vllm"),
    ("RTX 4090", "an H100's kernels", "rtx4090-qwen1.5", "vllm", "class-nvidia-hopper-vllm"),
    ("MI300X", "defaults of any device", "mi300x-steps", "", "class-any-vllm"),
    ("Atlas 800I A2", "defaults of any device", "atlas-800i-a2-llama-2-70b", "", "class-any-default"),
    ("Ascend 910C", "a 910B2's kernels", "ascend-910c-steps", "", ""),
]


def told(*words):
    done = subprocess.run([program, *words, "--json"], env=dict(os.environ, LLMPERF_PATH=""), check=False, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"llmperf {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


@functools.lru_cache(maxsize=None)
def scored(name, profile=""):
    under = ["--runtime", os.path.join(ROOT, "hardware", "runtimes", profile + ".yaml")] if profile else []
    return [row for row in told("validate", name, *under)["rows"] if row["scored"]]


def percent(share):
    return f"{100 * share:.1f} %"


class Figures:
    """Of some rows: how many, the mean of their absolute errors, and how many are inside of the printed band of nine in ten."""

    def __init__(self, rows=0, error=0.0, banded=0, inside=0, median=None, p90=None):
        self.rows, self.error, self.banded, self.inside, self.median, self.p90 = rows, error, banded, inside, median, p90

    def __add__(self, other):
        return Figures(self.rows + other.rows, self.error + other.error, self.banded + other.banded, self.inside + other.inside)

    def count(self):
        return f"{self.rows:,}"

    def mean(self):
        return percent(self.error / self.rows)

    def covered(self):
        return f"{100 * self.inside / self.banded:.0f} %" if self.banded else "-"


def of_rows(rows):
    errors = sorted(abs(row["error"]) for row in rows)
    banded = [row for row in rows if row.get("band_high_s")]
    inside = sum(row["band_low_s"] <= row["measured_s"] <= row["band_high_s"] for row in banded)
    middle = len(errors) // 2
    median = errors[middle] if len(errors) % 2 else (errors[middle - 1] + errors[middle]) / 2
    return Figures(len(rows), sum(errors), len(banded), inside, median)


def from_page(name, belongs=None):
    with open(os.path.join(ROOT, "reports", "validation", name + ".md"), encoding="utf-8") as file:
        text = file.read()
    rows = int(re.search(r"(\d+)\s+rows\s+scored", text).group(1))
    if belongs:
        groups = re.findall(r"^\| metric \| (\S+) \| (\d+) \| ([\d.]+) %", text, re.M)
        assert sum(int(count) for _, count, _ in groups) == rows, f"{name}: the figures are not all there"
        figures = [Figures(int(count), int(count) * float(mean) / 100) for metric, count, mean in groups if belongs(metric)]
        return sum(figures[1:], figures[0])
    mean, median = re.search(r"^\| llmperf \| ([\d.]+) % \| ([\d.]+) %", text, re.M).groups()
    return Figures(rows, rows * float(mean) / 100, median=float(median) / 100)


@functools.lru_cache(maxsize=None)
def errors_of(profile):
    return {error["group"]: error for error in told("show", "runtime", profile)["errors"]}


def left_out(profile, kind, rows):
    """What the profile's cross-validation says of its rows of this kind, and of these rows how many its bands hold."""
    error = errors_of(profile)[kind]
    seen = of_rows([row for row in rows if row["phase"] == kind])
    return Figures(error["rows"], error["rows"] * error["mean"], seen.banded, seen.inside, p90=error["p90"])


def fitted():
    for front, device, stack, without, profile, kinds, name, belongs in FITTED:
        rows = [row for row in scored(name) if belongs(row)]
        for kind in kinds:
            yield front, device, stack, without, kind, left_out(profile, kind, rows)


def unseen():
    for device, whose, name, runtime, profile in FOREIGN:
        yield device, whose, of_rows([row for row in scored(name, profile) if row["runtime"].startswith(runtime)])


def servers():
    for front, device, stack, name, without in SERVERS:
        yield front, device, stack, without, from_page(name, APART.get(front)) if name in SLOW else of_rows(scored(name))


def with_median(figures):
    return figures.mean() if figures.median is None else f"{figures.mean()} (median {percent(figures.median)})"


def front_table():
    lines = {}
    for front, _, _, _, _, figures in fitted():
        lines[front] = lines.get(front, Figures()) + figures
    rows = [[*FRONT[front], figures.count(), figures.mean(), figures.covered()] for front, figures in lines.items()]
    served = {}
    for front, device, stack, without, figures in servers():
        served.setdefault(front, []).append((device, stack, without, figures))
    for group in served.values():
        total = sum((figures for *_, figures in group[1:]), group[0][3])
        rows.append([", ".join(device for device, *_ in group), group[-1][1], group[0][2], total.count(), with_median(total),
                     total.covered()])
    total = sum((figures for *_, figures in list(unseen())[1:]), Figures())
    rows.append(["unseen chips", "by another chip's profile", "the device", total.count(), total.mean(), total.covered()])
    return table([":device", ":stack", ":left out", "rows", "mean error", "in the 90 % band"], worst_first(rows, 4))


def worst_first(rows, column):
    return sorted(rows, key=lambda row: -float(row[column].split(" %")[0]))


def kernels():
    """A line for every engine on a device, the worst first by the mean of its kinds."""
    rows = []
    for device, stack, profile in KERNELS:
        errors = errors_of(profile)
        found = [errors[kind]["mean"] for kind in KINDS if kind in errors]
        rows.append((sum(found) / len(found), [device, stack, *(percent(errors[kind]["mean"]) if kind in errors else "-" for kind in KINDS)]))
    return [row for _, row in sorted(rows, key=lambda of: -of[0])]


def long_tables():
    of_steps = [[device, stack, kind, without, figures.count(), figures.mean(), percent(figures.p90), figures.covered()]
                for _, device, stack, without, kind, figures in fitted()]
    for device, stack, profile, kind in (("A100", "Megatron-LM, training", "a100-sxm-80gb-megatron", "training"),
                                         ("H100", "PyTorch, video", "h100-sxm-pytorch", "video")):
        error = errors_of(profile)[kind]
        of_steps.append([device, stack, kind, "all" if kind == "training" else "a length", str(error["rows"]), percent(error["mean"]),
                         percent(error["p90"]), "-"])
    for device, stack, profile in TRAINING:
        for kind, error in errors_of(profile).items():
            if kind.startswith("training") and error["rows"]:
                of_steps.append([device, stack, kind, "sites or models", str(error["rows"]), percent(error["mean"]), percent(error["p90"]), "-"])
    of_servers = [[device, stack, without, figures.count(), figures.mean(), "-" if figures.median is None else percent(figures.median)]
                  for _, device, stack, without, figures in servers()]
    of_chips = [[device, whose, figures.count(), figures.mean(), percent(figures.median), figures.covered()]
                for device, whose, figures in unseen()]
    seen = [(device, stack, of_rows([row for row in scored(name) if belongs(row)])) for device, stack, name, belongs in SEEN]
    of_seen = [[device, stack, figures.count(), figures.mean(), figures.covered()] for device, stack, figures in seen]
    return {
        "left out": table([":device", ":stack", ":steps", ":left out", "rows", "mean error", "90 % within", "in the band"], worst_first(of_steps, 5)),
        "kernels": table([":device", ":stack", *KINDS.values()], kernels()),
        "servers": table([":device", ":stack", ":not fitted", "figures", "mean error", "median"], worst_first(of_servers, 4)),
        "unseen chips": table([":device", ":by", "rows", "mean error", "median", "in the band"], of_chips),
        "seen": table([":device", ":stack", "rows", "mean error", "in the band"], of_seen),
    }


def standing():
    """How many of the built-in devices there are measurements of, by the shipped sets."""
    steps, kernels = set(), set()
    for path in glob.glob(os.path.join(MEASUREMENTS, "*.csv")):
        if os.path.basename(path) == "training.csv":
            continue  # neither steps of inference nor kernels
        with open(path, encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        (steps if "model" in rows[0] else kernels).update(row["hardware"] for row in rows)
    names = {device["name"] for device in told("list", "hardware")["hardware"]}
    steps, kernels = steps & names, (kernels & names) - steps
    return (f"Of the {len(names)} built-in devices {len(steps)} have measured steps or servers behind them and {len(kernels)} kernels "
            f"alone; what is said of the other {len(names) - len(steps) - len(kernels)} rests on the defaults of their class.")


def counts():
    models, devices = len(told("list", "models")["models"]), len(told("list", "hardware")["hardware"])
    return f"{models} published models and {devices} devices are built in; a config.json, a GGUF or a YAML file of your own will do as well."


def wrapped(text):
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + 1 + len(word) > 120:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def main():
    global program
    words = [word for word in sys.argv[1:] if word != "--check"]
    program = os.path.abspath(words[0] if words else os.environ.get("LLMPERF", program))
    contents = {"counts": wrapped(counts()), "accuracy": front_table() + "\n\n" + wrapped(standing()), "devices": wrapped(standing()), **long_tables()}
    different = []
    written = set()
    for page in PAGES:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()

        def fill(match):
            written.add(match.group(2))
            return match.group(1) + contents[match.group(2)] + "\n" + match.group(3)

        new = re.sub(r"(<!-- accuracy: ([a-z ]+); scripts/accuracy.py writes it -->\n).*?(<!-- end -->)", fill, text, flags=re.S)
        if new != text:
            different.append(page)
            if "--check" not in sys.argv:
                with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                    file.write(new)
    for name in sorted(set(contents) - written):
        sys.exit(f"no page has a place for '{name}'")
    if "--check" in sys.argv and different:
        sys.exit(f"{', '.join(different)}: not what the program says now; scripts/accuracy.py PROGRAM writes it")
    print(f"{len(PAGES)} pages, {len(different)} {'differ' if '--check' in sys.argv else 'changed'}")


main()
