#!/usr/bin/env python3
"""The engine of pages answers with the bytes of the program: the same documents, errors and status for every model, for
devices, plans, weights, workloads and files of all kinds.

engine_test.py FOLDER LIBRARY [NODE]: where engine.js and engine.wasm are, and the C interface of this machine, which
answers hundreds of requests in the time that the program takes for a few; those few are compared with the program."""
import ctypes
import json
import os
import subprocess
import sys
import unittest

from program import PROGRAM, ROOT, ProgramTest

SKIPPED = 77
MOST = 890_000  # bytes, 6,000 of them attention and experts apart and kernels of engines, 9,000 of them placed experts, adapters and splits of fleets, 9,000 of them classes of traffic and tiers, 7,000 of them what an engine's memory holds, 7,000 training and the models of its runs, 11,000 planning: with the page's scripts 0.9 MB
DEVICES = ["rtx4090", "h100-sxm", "a100-sxm-80gb", "mi300x", "atlas-800i-a2", "apple-m3-max", "tpu-v5e", "rtx3060", "gb200", "strix-halo"]
WEIGHTS = ["bf16", "fp8", "int8", "w4a16", "q4_k_m", "q8_0", "iq2_xs", "nvfp4", "mxfp4", "nf4", "3.5", "fp16"]
PLANS = [{"tp": 2}, {"tp": 8}, {"pp": 2}, {"dp": 4, "batch": 16}, {"tp": 2, "pp": 2}, {"tp": 4, "megatron_sp": True}, {"sp": "ring:4"}, {"sp": "ulysses:2", "tp": 2}]


def names(folder):
    return sorted(name[:-5] for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".yaml"))


def estimates():
    models = names("models")
    for i, model in enumerate(models):
        yield {"model": model, "hw": DEVICES[i % len(DEVICES)]}
        yield {"model": model, "hw": DEVICES[(i + 3) % len(DEVICES)], "weights": WEIGHTS[i % len(WEIGHTS)], "batch": 1 + i % 17,
               "prompt": 100 + 37 * i, "gen": 1 + 11 * i}
    for hw in names("hardware/devices"):
        yield {"model": "qwen2.5-7b", "hw": hw, "batch": 3}
    for i, plan in enumerate(PLANS):
        for model in ("llama-3-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b"):
            yield {"model": model, "hw": ("h100-sxm", "atlas-800i-a2", "b200-sxm")[i % 3], **plan}
    for ep in (2, 8):
        yield {"model": "deepseek-v3", "hw": "h200-sxm", "tp": 8, "ep": ep, "routing": "power-law:1.2"}
        yield {"model": "qwen3-30b-a3b", "hw": "h100-sxm", "dp": 8, "ep": ep, "batch": 64, "runtime": "none"}
    for model in ("qwen-7b", "qwen3-30b-a3b"):
        for gpu_layers in (0, 10, 33):
            yield {"model": model, "hw": "rtx3060", "weights": "q4_k_m", "gpu_layers": gpu_layers, "host": "ryzen-9950x"}
    yield {"model": "qwen3-30b-a3b", "hw": "rtx4090", "weights": "q8_0", "n_cpu_moe": 20}
    yield {"model": "qwen3-30b-a3b", "hw": "rtx4090", "weights": "q4_k_m", "override_tensor": "blk\\.[0-9]\\.ffn_.*_exps=CPU"}
    for tiles in ("tx8", "tx81"):
        for model in ("qwen2.5-7b", "llama-3-8b", "mistral-7b-v0.3", "stdit3-xl2"):
            for tile_model in ("default", "published"):
                yield {"model": model, "hw": tiles, "tile_model": tile_model}
    for model in ("stdit-xl2", "stdit2-xl2", "stdit3-xl2", "stdit3-3b"):
        for resolution in ("240p", "480p", "720p"):
            yield {"model": model, "hw": "h100-sxm", "resolution": resolution, "frames": 51}
    for i, model in enumerate(("llama-3-8b", "llama-2-70b", "mixtral-8x7b", "qwen2.5-7b")):
        for zero in range(4):
            yield {"model": model, "hw": "h100-sxm", "training": True, "dp": 4, "tp": 2, "zero": zero, "global_batch": 64,
                   "recompute": ("none", "selective", "full")[i % 3]}
    for speculation in ({"verify": 5, "accept": 3.2}, {"draft": "mtp", "accept": 0.7}, {"step": "4x1@1000,1x512@0"}, {"kv_utilisation": 0.9}, {"images": 2}):
        yield {"model": "deepseek-v3", "hw": "h200-sxm", "tp": 8, **speculation}
        yield {"model": "qwen2.5-vl-7b", "hw": "rtx4090", **speculation}
    # What is refused, and what does not fit.
    yield {}
    yield {"model": "qwen-7c", "hw": "rtx4090"}
    yield {"model": "qwen-7b", "hw": "rtx409"}
    yield {"model": "qwen-7b", "hw": "rtx4090", "batch": -1, "promt": 3}
    yield {"model": "./none.json", "hw": "rtx4090"}
    yield {"model": "llama-3.1-405b", "hw": "rtx4090"}
    for name in ("Qwen/Qwen2.5-7B-Instruct", "QWEN 7B"):
        yield {"model": name, "hw": "H100"}
    for name in ("RTX 4090 24GB", "h100", "A100 80GB", "NVIDIA GeForce RTX 4060 Ti", "7900 XTX", "M3 Max"):
        yield {"model": "qwen-7b", "hw": name}


CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 32,
          "num_hidden_layers": 22, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05,
          "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


def others():
    for kind in ("models", "hardware", "runtimes", "fields", "nothing"):  # the studies of `run` are no part of a page
        yield "catalog", {"kind": kind}
    for name in ("rtx4090", "tx81", "atlas-800i-a2"):
        yield "catalog", {"kind": "device", "name": name}
    for name in ("qwen-7b", "deepseek-v3", "stdit3-xl2"):
        yield "catalog", {"kind": "model", "name": name}
    for number in ("", "ttft_s", "memory.kv_cache_bytes", "phases.decode.time_s", "none"):
        yield "explain", {"model": "qwen-7b", "hw": "rtx4090", **({"number": number} if number else {})}
    yield "sweep", {"model": "qwen-7b", "hw": ["rtx4090", "h100-sxm"], "batch": [1, 2, 4, 8, 1000], "weights": ["bf16", "q4_k_m"]}
    yield "sweep", {"model": "qwen-7b", "hw": ["rtx4090", "h100-sxm"], "prompt": "128-4096*2", "pareto": "min:ttft_s,max:fits"}
    for traffic in ({"rate": 2}, {"rate": 5, "burstiness": 0.5, "seeds": 2}, {"concurrency": 8}, {"trace": "sharegpt-300-qwen3", "rate": 3}):
        yield "serve", {"model": "qwen2.5-7b", "hw": "h100-sxm", "requests": 150, "slo": "ttft.p99=1s,tpot.p95=50ms", **traffic}
    yield "capacity", {"model": "qwen2.5-7b", "hw": ["h100-sxm", "l40s"], "tp": [1, 2], "rate": 10, "requests": 100, "slo": "ttft.p99=2s", "threads": 4}
    yield "estimate", {"model": "./config.json", "hw": "rtx4090"}
    yield "estimate", {"model": CONFIG, "hw": "rtx4090", "batch": 2}


class Native:
    """The C interface of this machine."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        pointer = ctypes.c_void_p
        self.library.llmperf_open.restype = pointer
        for name in ("estimate", "explain", "sweep", "serve", "capacity", "catalog"):
            call = getattr(self.library, "llmperf_" + name)
            call.restype, call.argtypes = pointer, [pointer, ctypes.c_char_p, ctypes.c_size_t]
        for name in ("json", "error"):
            call = getattr(self.library, "llmperf_" + name)
            call.restype, call.argtypes = ctypes.c_char_p, [pointer, pointer]
        self.library.llmperf_status.argtypes = [pointer]
        self.library.llmperf_free.argtypes = [pointer]
        self.session = self.library.llmperf_open()

    def answer(self, ask, request):
        text = json.dumps(request).encode()
        result = getattr(self.library, "llmperf_" + ask)(self.session, text, len(text))
        answer = [self.library.llmperf_status(result)]
        answer += [getattr(self.library, "llmperf_" + part)(result, None).decode() for part in ("json", "error")]
        self.library.llmperf_free(result)
        return answer


class Engine(ProgramTest):
    folder_of_engine = library = node = None
    memory = None

    def answers(self, asked, files=None):
        lines = [{"file": path, "text": text} for path, text in (files or {}).items()]
        lines += [{"ask": ask, "request": json.dumps(request)} for ask, request in asked]
        script = os.path.join(ROOT, "tests", "scripts", "engine_answers.js")
        done = subprocess.run([self.node, script, self.folder_of_engine], input="\n".join(map(json.dumps, lines)), encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(done.stderr, end="", file=sys.stderr)
        return [json.loads(line) for line in done.stdout.split("\n")]

    def assert_same(self, asked, files=None):
        os.chdir(self.folder)
        native = Native(self.library)
        different = []
        for (ask, request), theirs in zip(asked, self.answers(asked, files), strict=True):
            ours = native.answer(ask, request)
            if ours != theirs:
                pairs = zip("\n".join(map(str, ours)).split("\n"), "\n".join(map(str, theirs)).split("\n"))
                first = next((f"{a.strip()} | {b.strip()}" for a, b in pairs if a != b), "one is longer")
                different.append(f"{ask} {json.dumps(request)}: {first}")
        self.assertEqual(different, [], f"{len(different)} of {len(asked)} differ (program | engine):\n" + "\n".join(different[:20]))

    def test_estimates(self):
        asked = [("estimate", request) for request in estimates()]
        self.assertGreaterEqual(len(asked), 500)
        self.assert_same(asked)

    def test_other_questions(self):
        self.write("config.json", json.dumps(CONFIG))
        self.assert_same(list(others()), {"config.json": json.dumps(CONFIG)})

    def test_bytes_of_the_command_line(self):
        """The key `command` is the command line's own."""
        asked = [("estimate", request) for request in list(estimates())[:6]]
        asked.append(("estimate", {"model": "llama-3-8b", "hw": "h100-sxm", "training": True, "dp": 2, "global_batch": 8}))
        compared = 0
        for (_, request), (_, document, _) in zip(asked, self.answers(asked), strict=True):
            done = subprocess.run([PROGRAM, "estimate", "--request", "-", "--json"], input=json.dumps(request), encoding="utf-8",
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            if done.returncode == 2:  # refused: the program's error is no document
                continue
            compared += 1
            self.assertEqual(done.stdout.replace(',\n  "command": "llmperf estimate --request -"\n}', "\n}"), document)
        self.assertGreaterEqual(compared, 4)

    def test_size(self):
        packed = sum(os.path.getsize(os.path.join(self.folder_of_engine, name)) for name in ("engine.js", "engine.wasm.xz"))
        print(f"the engine takes {packed} bytes of a page", file=sys.stderr)
        self.assertLessEqual(packed, MOST)

    def test_content_policy(self):
        """Pages forbid code from text."""
        with open(os.path.join(self.folder_of_engine, "engine.js"), encoding="utf-8") as file:
            script = file.read()
        for word in ("eval(", "new Function", "</script", "<!--"):
            self.assertNotIn(word, script)


if __name__ == "__main__":
    Engine.folder_of_engine, Engine.library = sys.argv[1:3]
    Engine.node = sys.argv[3] if len(sys.argv) > 3 else "node"
    if not os.path.exists(os.path.join(Engine.folder_of_engine, "engine.wasm")):
        print("skipped: there is no engine (it needs emscripten)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
