#!/usr/bin/env python3
"""JSON of several hundred requests over all subcommands, kept to be compared byte by byte across a change of the code.

usage: scripts/request_corpus.py PROGRAM FOLDER             answers every request into FOLDER
       scripts/request_corpus.py PROGRAM FOLDER --compare   answers them again: names what differs, exit status 1 if any does;
                                                            --except KEY: but for that key of the top level (repeatable)

What a machine measures of itself (`replay`) and what is no JSON are left out. Requests name files of this repository relative
to its root, so that answers do not depend on where it stands.
"""
import concurrent.futures
import difflib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files that requests of older corpora, and the answers to them, name by where they were.
MOVED = {"tests/graph/programs/": "tests/program/programs/"}


def as_it_is_called(text):
    for before, now in MOVED.items():
        text = text.replace(before, now)
    return text


def requests(program):
    """All command lines, by the name of the file that holds the answer."""
    def names(kind):
        rows = json.loads(subprocess.run([program, "list", kind, "--json"], capture_output=True, check=True).stdout)
        return [row["name"] for row in rows[kind]]

    lines = [f"list {kind}" for kind in ("models", "hardware", "runtimes", "measurements", "scenarios")]
    models, devices = names("models"), names("hardware")
    lines += [f"show model {name}" for name in models]
    lines += [f"show hardware {name}" for name in devices]
    lines += [f"show model {model} --weights {scheme}" for model in ("qwen-7b", "mixtral-8x7b", "deepseek-v2-lite")
              for scheme in ("w4a16", "fp8-block128", "q4_k_m", "nf4", "4.5")]
    lines += ["show model qwen1.5-7b --weights q4_k_m --detail tensors", "show model deepseek-v3 --kv fp8",
              "show scenario which-card", "show runtime vllm", "show runtime transformers", "show runtime torchair"]

    # Text: every model once and every device once, then what flags change.
    video = [name for name in models if "stdit" in name]
    text = [name for name in models if name not in video]
    lines += [f"estimate -m {name} --hw h100-sxm --tp 8 --detail ops" for name in text[::4]]
    lines += [f"estimate -m llama-3.1-8b --hw {name} --batch 4 --prompt 1024" for name in devices]
    for runtime in ("vllm", "transformers", "llama.cpp", "none"):
        for weights in ("bf16", "w4a16", "fp8", "int8") if runtime != "llama.cpp" else ("q4_k_m", "q8_0", "f16", "iq2_xs"):
            lines.append(f"estimate -m qwen1.5-7b --hw rtx4090 --runtime {runtime} --weights {weights} --detail ops")
    lines += [f"estimate -m {rest}" for rest in (
        "deepseek-v3 --hw h100-sxm --dp 32 --ep 32 --batch 128 --prompt 4096 --weights fp8-block128 --detail ops",
        "deepseek-v3 --hw h200-sxm --tp 16 --ep-dispatch fp8 --ep-combine bf16 --dp 2 --ep 32 --weights fp8-block128",
        "mixtral-8x7b --hw a100-sxm-80gb --tp 2 --ep 4 --dp 2 --batch 32", "llama-2-70b --hw atlas-800i-a2 --tp 8 --detail ops",
        "llama-2-70b --hw atlas-800i-a2 --tp 8 --runtime torchair --execution static-graph --batch 15 --prompt 1024 --gen 1024",
        "llama-3.1-405b --hw h100-sxm --tp 8 --pp 4 --batch 16", "llama-3-70b --hw rtx3090 --weights q4_k_m --pp 2",
        "llama-3-70b --hw rtx3090 --weights q4_k_m --pp 2 --tensor-split 3,2", "qwen1.5-14b --hw rtx4090 --weights q8_0 --gpu-layers 20",
        "llama-3.1-8b --hw h100-sxm --sp ulysses:4 --prompt 32768", "llama-3.1-8b --hw h100-sxm --sp ring:2 --prompt 32768",
        "llama-3.1-8b --hw h100-sxm --tp 2x2", "llama-3.1-8b --hw h100-sxm --tp 4 --megatron-sp --embedding replicated",
        "llama-3.1-8b --hw h100-sxm --pp 2 --pipeline-batches 4 --batch 16", "qwen-7b --hw tx8 --detail ops",
        "llama-2-7b --hw tx8 --tile-model published", "llama-2-7b --hw tx81 --tile-model roofline", "gpt-oss-20b --hw h100-sxm --detail ops",
        "gemma-2-9b --hw rtx4090 --prompt 8192 --detail ops", "llama-3.1-8b --hw rtx4090 --options none --runtime none",
        "llama-3.1-8b --hw rtx4090 --options flash_attention,no_static_kv --runtime none", "llama-3.1-70b --hw rtx4090",
        "llama-3.1-8b --hw rtx4090 --kv fp8 --activations fp16", "phi-2 --hw epyc-9654 --weights q4_0 --cache-type-k q8_0",
        "qwen2-7b --hw apple-m2-ultra --weights q4_k_m", "llama-3.1-8b --hw h100-sxm --devices 16 --tp 8 --batch 8",
        "llama-3.1-8b --hw h100-sxm --gen 1 --reserve 2GiB", "llama-2-7b --hw rtx4090 --weights q4_k_m --gguf-era 2024-02 --ubatch 256")]

    # Training.
    lines += [f"estimate --training -m {rest}" for rest in (
        "llama-3.1-8b --hw h100-sxm --dp 8 --zero 3", "megatron-22b --hw a100-sxm-80gb --tp 8 --micro-batch 4 --recompute selective --detail ops",
        "megatron-175b --hw a100-sxm-80gb --tp 8 --pp 8 --global-batch 64 --recompute full", "megatron-530b --hw a100-sxm-80gb --tp 8 --pp 35 --interleave 3 --global-batch 280",
        "llama-3.1-405b --hw h100-sxm --tp 8 --pp 16 --dp 64 --zero 2 --seq 8192 --global-batch 2048 --megatron-sp",
        "mixtral-8x7b --hw h100-sxm --tp 2 --ep 4 --dp 4", "llama-3.1-8b --hw h100-sxm --dp 8 --zero 1 --gradients fp32 --separate-gradients",
        "llama-3.1-8b --hw h100-sxm --tp 4 --runtime none --exposed-sums --optimizer-bits 64", "llama-2-7b --hw atlas-800i-a2 --tp 8 --seq 4096 --detail ops",
        "gpt-block --hw tx81 --tp 4", "qwen2-7b --hw b200-sxm --dp 4 --runtime megatron")]

    # Video.
    lines += [f"estimate -m {name} --hw h100-sxm --detail ops" for name in video]
    lines += [f"estimate -m {video[0]} {rest}" for rest in (
        "--hw tx8", "--hw h100-sxm --sp ulysses:4 --resolution 1080p", "--hw rtx4090 --resolution 240p --frames 1", "--hw h100-sxm --tp 2 --dp 2 --batch 2 --cfg off",
        "--hw h100-sxm --pp 2 --patches 4 --steps 10", "--hw a100-sxm-80gb --seconds 8 --aspect 16:9 --text-weights fp16", "--hw tx8 --pp 4 --die-link 100GB/s")]

    # Programs.
    folder = "tests/program/programs"
    programs = sorted(os.listdir(os.path.join(ROOT, folder)))
    lines += [f"graph {folder}/{name} --hw {device} {rest}" for name in programs if name.endswith(".mlir")
              for device, rest in (("h100-sxm", "--detail ops"), ("tx8", "--fuse elementwise"), ("rtx4090", "--runtime vllm"))]
    lines += [f"graph tests/fuzz/corpus/hlo/{name} --hw h100-sxm --detail ops" for name in sorted(os.listdir(os.path.join(ROOT, "tests/fuzz/corpus/hlo")))]

    # Explanations of numbers of every part.
    numbers = ("ttft_s", "tpot_s", "generation_s", "memory.total_bytes", "memory.kv_cache_bytes", "memory.weight_bytes", "memory.activation_bytes",
               "phases.prefill.time_s", "phases.decode.bytes", "phases.decode.ops.attention.bytes", "phases.prefill.ops.qkv.flops", "phases.prefill.ops.ffn_down.time_s")
    lines += [f"explain {number} -m {model}" for number in numbers
              for model in ("qwen-7b --hw rtx4090", "deepseek-v2-lite --hw h100-sxm --runtime vllm --batch 8", "llama-2-70b --hw atlas-800i-a2 --tp 8")]
    lines += [f"explain -m {model}" for model in ("llama-3.1-8b --hw b200-sxm --runtime transformers", f"{video[0]} --hw h100-sxm", "llama-2-7b --hw tx8",
                                                  "mixtral-8x7b --hw a100-sxm-80gb --tp 2 --runtime none", "gpt-oss-20b --hw h100-sxm")]

    lines += [f"limits {rest}" for rest in ("-m qwen1.5-7b --hw rtx4090", "-m qwen1.5-0.5b,qwen1.5-7b,qwen1.5-72b --hw rtx4090 --units article",
                                            "-m llama-3.1-8b --hw h100-sxm --draft llama-3.2-1b --accept 0.8", "-m qwen1.5-14b --hw rtx4090 --weights q4_k_m,q8_0 --kv q8_0",
                                            "-m deepseek-v3 --hw h200-sxm --weights fp8")]
    lines += [f"map {rest}" for rest in ("gemm --hw tx8 --m 4096 --n 12288 --k 4096", "gemm --hw tx8 --m 1 --n 11008 --k 4096", "gemm --hw tx81 --m 300 --n 500 --k 700 --batch 7 --dtype int8 --top 5",
                                         "gemm --hw tx8 --m 512 --n 4096 --k 4096 --then gated_activation", "gemm --hw tx8 --m 512 --n 512 --k 512 --tile-model published --simulate",
                                         "attention --hw tx8 --queries 1024 --heads 32", "attention --hw tx8 --queries 1 --keys 8192 --heads 32 --kv-heads 4", "attention --hw tx81 --queries 512 --heads 8 --causal --batch 2",
                                         "vector --hw tx8 --kind rms_norm --rows 4096 --width 4096", "vector --hw tx81 --kind silu_mul --rows 100 --width 11008")]
    lines += [f"map-collective --hw {device} --op {op} --ranks {ranks} --sweep" for device in ("h100-sxm", "atlas-800i-a2", "tx8")
              for op in ("all-reduce", "all-gather", "all-to-all", "send") for ranks in (4, 16) if not (device == "tx8" and ranks == 16)]
    lines += [f"parallel {rest}" for rest in ("-m llama-2-70b --hw atlas-800i-a2 --devices 8", "-m mixtral-8x7b --hw h100-sxm --devices 16 --batch 16",
                                              "-m megatron-22b --hw a100-sxm-80gb --devices 8 --training --batch 8 --recompute all", "-m gpt-block --hw h100-sxm --devices 4 --symbolic",
                                              "-m llama-3.1-8b --hw rtx4090 --devices 4 --top 5")]
    lines += [f"sweep {rest}" for rest in ("-m llama-3.1-8b --hw rtx4090 --batch 1-64*2 --weights bf16,w4a16", "-m qwen-7b,llama-2-7b --hw rtx4090,h100-sxm --prompt 128-4096*2 --top 5 --by tpot_s",
                                           "-m llama-3.1-8b --hw h100-sxm --tp 1,2,4,8 --batch 1-256*4 --pareto ttft_s,tokens_per_second", "-m mixtral-8x7b --hw h100-sxm --tp 2,4 --where fits",
                                           "--training -m llama-3.1-8b --hw h100-sxm --dp 8 --zero 0-3+1", f"-m {video[0]} --hw h100-sxm,rtx4090 --resolution 240p,720p",
                                           "-m llama-2-7b --hw rtx4090 --weights q4_k_m,q8_0 --batch 1-8*2", "-m llama-2-7b --hw tx8,tx81 --batch 1,2", "-m deepseek-v3 --hw h200-sxm --dp 8,16 --ep 8 --weights fp8")]
    lines += [f"compare -m {rest}" for rest in ("qwen-7b --hw rtx4090 --against '--weights w4a16'", "llama-3.1-8b --hw h100-sxm --against '--hw b200-sxm'", "llama-3.1-8b --hw h100-sxm --against '--tp 2 --batch 8'",
                                                "qwen-7b --hw rtx4090 --options none", "qwen-7b --hw rtx4090 --options none --with flash_attention", "llama-3.1-8b --hw h100-sxm --training --dp 8 --against '--zero 3'",
                                                f"{video[0]} --hw h100-sxm --against '--hw rtx4090'", f"{video[0]} --hw h100-sxm --options none")]
    lines += [f"validate hardware/measurements/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "hardware/measurements"))) if name.endswith(".csv")]
    lines += ["validate hardware/measurements/rtx4090-qwen1.5.csv --runtime none",
              "calibrate hardware/measurements/rtx4090-ops.csv --hw rtx4090", "calibrate hardware/measurements/atlas-800i-a2-llama-2-70b.csv --hw atlas-800i-a2 --runtime torchair",
              "import msprof tests/import/kernel_details.csv --hw ascend-910b3"]
    lines += [f"run {name} --dry-run" for name in ("llama-70b-atlas-800i-a2", "long-video-parallelism", "which-card")]
    lines += ["run qwen1.5-rtx4090", "run which-card", "run stdit-video"]
    # Refusals are answers too.
    lines += ["estimate -m qwen-7b --hw rtx4909", "estimate -m llama-3.1-405b --hw rtx4090", "estimate -m qwen-7b --hw rtx4090 --tp 3", "estimate -m qwen-7b --hw rtx4090 --batch 0"]
    return {f"{index:04}": line for index, line in enumerate(lines)}


def answer(program, line):
    words = []
    for position, part in enumerate(line.split("'")):  # quotes hold words together, as in a shell
        words += part.split() if position % 2 == 0 else [part]
    done = subprocess.run([program, *words, "--json"], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    return f"$ llmperf {line}\n{done.stdout}{done.stderr}exit status {done.returncode}\n"


def without(keys, text):
    """The answer without those keys of its JSON, one of the top level being indented by two blanks."""
    for key in keys:
        text = re.sub(rf'(?m)^  "{key}": (?:\{{\n(?:    .*\n)*  \}}|\[\n(?:    .*\n)*  \]|[^\n]*?)(,?)\n', lambda match: "" if match[1] else "\0", text)
        text = text.replace(",\n\0", "\n")
    return text


def main():
    program, folder, compare = os.path.abspath(sys.argv[1]), sys.argv[2], "--compare" in sys.argv
    keys = [value for word, value in zip(sys.argv, sys.argv[1:]) if word == "--except"]
    os.makedirs(folder, exist_ok=True)
    listed = os.path.join(folder, "requests.json")
    if compare:  # as they were asked the first time, whatever is built in since
        with open(listed, encoding="utf-8") as file:
            corpus = {name: as_it_is_called(line) for name, line in json.load(file).items()}
    else:
        corpus = requests(program)
        with open(listed, "w", encoding="utf-8") as file:
            json.dump(corpus, file, indent=1)
    different = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, text in zip(corpus, pool.map(lambda line: answer(program, line), corpus.values())):
            path = os.path.join(folder, name)
            if not compare:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                continue
            with open(path, encoding="utf-8") as file:
                before = as_it_is_called(file.read())
            text, before = without(keys, text), without(keys, before)
            if text != before:
                different += 1
                print(f"== {name}: llmperf {corpus[name]}")
                changed = [line for line in difflib.unified_diff(before.splitlines(), text.splitlines(), lineterm="", n=0)
                           if not line.startswith(("---", "+++"))]
                print("\n".join(line[:300] for line in changed[:20]))
    print(f"{len(corpus)} requests" + (f", {different} answered otherwise" if compare else ""))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
