#!/usr/bin/env python3
"""Outputs that are checked in under tests/golden and compared exactly; in JSON, numbers may differ in the last bits (compilers
may fuse a multiply and an add). A difference is a bug or a decision:

    LLMPERF=build/release/llmperf tests/scripts/golden_test.py --update

writes the files anew; read what changed and, for json_keys.txt, docs/json.md on schema_version before committing it.
"""
import json
import math
import os
import sys
import unittest

from program import ROOT, ProgramTest

GOLDEN = os.path.join(ROOT, "tests", "golden")
UPDATE = "--update" in sys.argv

ROOF = ["--runtime", "none"]
ESTIMATE = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090", *ROOF]
PREDICTED = ESTIMATE[:-2]
MOE = ["estimate", "-m", "deepseek-v2-lite", "--hw", "atlas-800i-a2-64gb", "--batch", "8", "--prompt", "2048", *ROOF]
FAMILY = ["limits", "-m", "qwen1.5-0.5b,qwen1.5-7b,qwen1.5-110b", "--hw", "rtx4090", "--units", "article"]
SPECULATE = ["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--draft", "qwen-1.8b", "--accept", "0.8"]
TENSORS = ["show", "model", "qwen1.5-7b", "--weights", "q4_k_m", "--gguf-era", "2024-02"]
SPLIT = ["estimate", "-m", "qwen1.5-14b", "--hw", "rtx4090", *ROOF, "--weights", "q8_0", "--gpu-layers", "20"]
TRAINING = ["estimate", "-m", "llama-3-8b", "--hw", "a100-sxm-80gb", "--training", "--tp", "4", "--megatron-sp"]
ALL_GGUF = ["limits", "-m", "qwen1.5-14b", "--hw", "rtx4090", "--weights", "all-gguf"]
COLLECTIVE = ["map-collective", "--hw", "atlas-800i-a2", "--op", "all-reduce", "--size", "64MiB", "--ranks", "16"]
PARALLEL = ["parallel", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--devices", "8", "--batch", "8"]
TP8 = ["estimate", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", *ROOF, "--tp", "8", "--embedding", "replicated", "--batch", "4", "--prompt", "1024",
       "--gen", "1024"]
VALIDATE = ["validate", "atlas-800i-a2-llama-2-70b"]
CALIBRATE = ["calibrate", "atlas-800i-a2-llama-2-70b", "--hw", "atlas-800i-a2"]
VIDEO = ["estimate", "-m", "stdit3-xl2", "--hw", "h100-sxm", "--resolution", "480p", "--seconds", "4"]
VIDEO_PLAN = [*VIDEO, "--runtime", "none", "--stages", "0-9@2x2/2d,10-27@2x2", "--patches", "4"]
VIDEO_COMPARE = ["compare", *VIDEO[1:], "--with", "fused_qk_norm,fused_modulate,fused_gate,fused_rope,skip_frame_mask,flash_any_length"]
MAP_GEMM = ["map", "gemm", "--hw", "tx8", "--m", "4096", "--n", "12288", "--k", "4096", "--tile-model", "published"]
MAP_ATTENTION = ["map", "attention", "--hw", "tx8", "--queries", "4096", "--heads", "32", "--causal"]
MAP_VECTOR = ["map", "vector", "--hw", "tx8", "--kind", "rms_norm", "--rows", "4096", "--width", "4096", "--simulate"]
MAP_MODEL = ["map", "model", "--model", "qwen3-0.6b", "--hw", "tx8", "--phase", "decode", "--batch", "4"]
SERVE = ["serve", "-m", "qwen-7b", "--hw", "rtx4090", "--rate", "2", "--requests", "100", "--input", "256-768", "--output", "64", "--weights", "w4a16",
         "--slo", "ttft.p99=2s,tpot=100ms"]
APART = ["serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--concurrency", "8", "--requests", "20", "--prefix", "0.5:2", "--turns", "2",
         "--prefill-replicas", "1", "--decode-replicas", "2"]
CAPACITY = ["capacity", "-m", "llama-3.1-8b", "--rate", "100", "--slo", "ttft=1s,tpot.p95=50ms", "--tp", "1,2", "--pd", "--hw", "h100-sxm,l40s"]
SYMBOLIC = ["parallel", "-m", "gpt-block", "--hw", "a100-sxm-80gb", "--devices", "8", "--batch", "8", "--symbolic", "--options", "none"]
PROGRAMS = os.path.join(ROOT, "tests", "program", "programs")
GRAPH_LLAMA = ["graph", os.path.join(PROGRAMS, "llama_decoder_while.mlir"), "--hw", "rtx4090", "--fuse", "elementwise"]
GRAPH_MLP = ["graph", os.path.join(PROGRAMS, "mlp_gspmd.mlir"), "--hw", "a100-sxm-80gb"]
GRAPH_STDIT = ["graph", os.path.join(PROGRAMS, "stdit_block.mlir"), "--hw", "h100-sxm"]
GRAPH_MHLO = ["graph", os.path.join(PROGRAMS, "generic_mhlo.mlir"), "--hw", "rtx4090"]
OUTPUTS = {
    "estimate_qwen-7b_rtx4090.json": [*ESTIMATE, "--json"],
    "estimate_qwen-7b_rtx4090_vllm.txt": [*PREDICTED, "--detail", "ops"],
    "estimate_llama-2-70b_atlas_torchair.txt": ["estimate", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "8",
                                                "--batch", "4", "--prompt", "1024", "--gen", "1024", "--detail", "ops"],
    "estimate_qwen-7b_rtx4090.txt": [*ESTIMATE, "--detail", "ops"],
    "estimate_qwen-7b_rtx4090.md": [*ESTIMATE, "--format", "md"],
    "estimate_qwen-7b_rtx4090.csv": [*ESTIMATE, "--format", "csv"],
    "estimate_deepseek-v2-lite_atlas.txt": [*MOE, "--detail", "ops"],
    "explain_ttft_qwen-7b_rtx4090.txt": ["explain", "ttft_s", *ESTIMATE[1:]],
    "limits_qwen1.5_rtx4090_article.txt": FAMILY,
    "limits_qwen-7b_rtx4090_speculative.txt": SPECULATE,
    "show_model_mixtral-8x7b.txt": ["show", "model", "mixtral-8x7b"],
    "show_model_qwen1.5-7b_q4_k_m.txt": [*TENSORS, "--detail", "tensors"],
    "estimate_qwen1.5-14b_q8_0_split.txt": [*SPLIT, "--detail", "ops"],
    "limits_qwen1.5-14b_all-gguf.txt": ALL_GGUF,
    "estimate_llama-2-70b_atlas_tp8.txt": [*TP8, "--detail", "ops"],
    "parallel_llama-2-70b_atlas.txt": [*PARALLEL, "--top", "20"],
    "parallel_gpt-block_symbolic.txt": SYMBOLIC,
    "map_gemm_tx8.txt": MAP_GEMM,
    "map_attention_tx8.txt": MAP_ATTENTION,
    "map_rms_norm_tx8.txt": MAP_VECTOR,
    "map_model_tx8.txt": MAP_MODEL,
    "show_hardware_tx8.txt": ["show", "hardware", "tx8"],
    "estimate_stdit3-xl2_h100.txt": VIDEO,
    "estimate_stdit3-xl2_h100_stages.txt": [*VIDEO_PLAN, "--detail", "full"],
    "compare_stdit3-xl2_h100.txt": VIDEO_COMPARE,
    "serve_qwen-7b_rtx4090.txt": [*SERVE, "--seeds", "2"],
    "graph_llama_decoder_while.txt": [*GRAPH_LLAMA, "--detail", "ops"],
    "graph_mlp_gspmd.txt": [*GRAPH_MLP, "--detail", "ops"],
    "graph_stdit_block.txt": GRAPH_STDIT,
    "graph_generic_mhlo.txt": GRAPH_MHLO,
}
# Commands whose documents together have every key there is.
DOCUMENTS = [[*TP8, "--pp", "2"], PARALLEL, [*PARALLEL[:5], "--devices", "64", "--batch", "8", "--training", "--recompute", "full", "--top", "9"], SYMBOLIC,
             TRAINING, [*TRAINING[:-3], "--tp", "2x2"], ["estimate", "-m", "llama-3-70b", "--hw", "a100-sxm-80gb", "--training"],
             ESTIMATE, [*ESTIMATE, "--gen", "1"], ["estimate", "-m", "llama-3-70b", "--hw", "rtx4090"],
             [*ESTIMATE, "--weights", "w8a8"], ["estimate", "-m", "qwen-7b", "--hw", "a100-sxm-80gb", "--weights", "fp8"],
             ["limits", "-m", "mixtral-8x7b", "--hw", "rtx4090"], FAMILY, SPECULATE, ["show", "model", "mixtral-8x7b"], ["show", "model", "gemma-2-2b"],
             ["show", "model", "llama-7b"], ["show", "hardware", "tx8"], ["show", "hardware", "atlas-800i-a2"],
             ["show", "hardware", "rtx4090"], ["show", "hardware", "rtx3090"],
             COLLECTIVE, [*COLLECTIVE[:-1], "1"], ["map-collective", "--hw", "tpu-v4", *COLLECTIVE[3:]], ["list", "models"],
             ["run", os.path.join(ROOT, "docs", "examples", "two-cards.yaml")], ["list", "scenarios"], ["show", "scenario", "which-card"],
             ["list", "hardware"], ["explain", *ESTIMATE[1:]], ["explain", "ttft_s", *ESTIMATE[1:]],
             ["explain", "memory.total_bytes", *ESTIMATE[1:]], SPLIT, ALL_GGUF,
             [*TENSORS, "--detail", "tensors"], ["show", "model", "deepseek-r1", "--weights", "q4_k_m", "--detail", "tensors"],
             VIDEO, VIDEO_PLAN, VIDEO_COMPARE, ["estimate", "-m", "stdit3-xl2", "--hw", "rtx4090"], ["show", "model", "stdit3-xl2"],
             MAP_GEMM, MAP_ATTENTION, [*MAP_VECTOR, "--tile-model", "published"], [*MAP_GEMM, "--mapping", "grid=m4n4"], MAP_MODEL,
             [*MAP_GEMM, "--then", "add"], [*MAP_GEMM[:4], "--m", "65536", "--n", "65536", "--k", "65536"],
             GRAPH_LLAMA, GRAPH_MLP, GRAPH_STDIT, GRAPH_MHLO, [*GRAPH_MHLO, "--runtime", "vllm"],
             ["import", "torch-npu", os.path.join(ROOT, "tests", "import", "kernel_details.csv")],
             ["replay", "-m", os.path.join(ROOT, "tests", "replay", "tiny.yaml"), "--hw", "epyc-9654", "--weights", "fp32", "--activations",
              "fp32", "--prompt", "8", "--whole-step"], ["replay", "--self-test"],
             ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1,4096", "--tp", "1,2"], ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--where", "fits"],
             ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1,2", "--pareto", "ttft_s,largest_batch"],
             ["compare", *TP8[1:], "--pp", "2", "--against", "--weights w4a16 --gen 1 --options all,no_fused_qkv"],
             ["compare", *PREDICTED[1:], "--against", "--runtime none"],
             ["compare", *PREDICTED[1:], "--against", "--runtime none", "--against", "--weights w4a16"],
             SERVE, APART, CAPACITY, [*CAPACITY[:-1], "rtx4090"], [*SERVE, "--engine", "sglang"], [*SERVE, "--engine", "trtllm"],
             VALIDATE, ["validate", "rtx4090-ops"], ["validate", "a100-sxm-80gb-ops"], CALIBRATE]


def key_types(value, path, found):
    """Adds path -> type names for every value below: phases[].ops[].time_s -> number."""
    names = {dict: "object", list: "list", str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}
    found.setdefault(path, set()).add(names[type(value)])
    if isinstance(value, dict):
        for key, inner in value.items():
            key_types(inner, f"{path}.{key}", found)
    elif isinstance(value, list):
        for inner in value:
            # Explanations hold explanations of the same form.
            key_types(inner, (path + "[]").replace("parts[].parts[]", "parts[]"), found)


def same(expected, actual):
    """Equal, key order included, but for the last bits of a fraction."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return list(expected) == list(actual) and all(same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isclose(expected, actual, rel_tol=1e-12)
    return type(expected) is type(actual) and expected == actual


class Golden(ProgramTest):
    seconds = 120
    memory = None  # replays load libraries that multiply

    def check(self, name, actual):
        path = os.path.join(GOLDEN, name)
        if UPDATE:
            with open(path, "w", encoding="utf-8") as file:
                file.write(actual)
            return
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        if not (name.endswith(".json") and same(json.loads(expected), json.loads(actual))):
            self.assertEqual(expected, actual, f"{name} differs; see the head of this test")

    def test_outputs(self):
        for name, words in OUTPUTS.items():
            with self.subTest(file=name):
                self.check(name, self.output(*words))

    @unittest.skipIf(UPDATE, "the files are being written")
    def test_every_golden_file_is_compared(self):
        self.assertEqual(sorted(os.listdir(GOLDEN)), sorted([*OUTPUTS, "json_keys.txt"]))

    def test_the_keys_of_every_json_document(self):
        found = {}
        for words in DOCUMENTS:
            done = self.run_program(*words, "--json")
            document = json.loads(done.stdout)
            for key, value in document.items():
                key_types(value, f"{document['schema']} {document['schema_version']}: {key}", found)
        lines = [f"{path} ({', '.join(sorted(types))})\n" for path, types in found.items()]
        self.check("json_keys.txt", "".join(sorted(lines)))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
