#!/usr/bin/env python3
"""What the reports hold, in every format: totals that equal the sum of their parts, tables within 100 columns, hostile names."""
import csv
import io
import json
import math
import re
import unicodedata
import unittest
from random import Random

from program import DONE, INFEASIBLE, ProgramTest

ESTIMATE = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--runtime", "none"]
MODEL = "name: {name}\nnotes: {notes}\n" + """\
hidden_size: 256
num_layers: 4
vocab_size: 1000
norm: rms
attention: {heads: 8, kv_heads: 2}
feed_forward: {intermediate: 512, activation: silu, gated: true}
"""
SUMMED = ["time_s", "roof_s", "flops", "matrix_flops", "vector_flops", "bytes", "weight_bytes", "activation_read_bytes",
          "activation_written_bytes", "kv_read_bytes", "kv_written_bytes"]


def width(line):
    """Terminal columns: wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def model_file(name, notes="''"):
    return MODEL.replace("{name}", name, 1).replace("{notes}", notes, 1)


class EstimateDocument(ProgramTest):
    def test_it_says_what_it_is(self):
        document = self.json(*ESTIMATE, "--batch", "4")
        self.assertEqual([document["schema"], document["schema_version"], document["tool"]["name"], document["label"]],
                         ["llmperf.estimate", 1, "llmperf", "upper bound, uncalibrated"])
        inputs = document["inputs"]
        self.assertEqual([inputs["model"]["name"], inputs["hardware"]["name"], inputs["batch"], inputs["prompt_tokens"],
                          inputs["generate_tokens"], inputs["weights"], inputs["options"]],
                         ["qwen-7b", "rtx4090", 4, 512, 128, "bf16", "all"])
        bandwidth = inputs["hardware"]["figures"]["memory_bandwidth_bytes_per_s"]
        self.assertEqual(bandwidth, {"value": 1008e9, "provenance": "datasheet"})

    def test_phases_equal_the_sum_of_their_ops(self):
        for words in (ESTIMATE, [*ESTIMATE, "--options", "none", "--weights", "w4a16", "--batch", "8"],
                      ["estimate", "-m", "deepseek-v2-lite", "--hw", "h200-sxm"], ["estimate", "-m", "gpt-oss-20b", "--hw", "rtx4090"]):
            document = self.json(*words)
            self.assertEqual([phase["name"] for phase in document["phases"]], ["prefill", "decode"])
            for phase in document["phases"]:
                for key in SUMMED:
                    with self.subTest(words=words, phase=phase["name"], key=key):
                        total = math.fsum(op[key] for op in phase["ops"])
                        self.assertTrue(math.isclose(total, phase[key], rel_tol=1e-12), (total, phase[key]))
                for part in [phase, *phase["ops"]]:
                    self.assertTrue(math.isclose(part["flops"], part["matrix_flops"] + part["vector_flops"], rel_tol=1e-12))
                    self.assertGreaterEqual(part["time_s"], part["roof_s"] * (1 - 1e-12))
                    self.assertIn(part["bound"], ["matrix", "vector", "memory", "network", "launch", "operand feed"])

    def test_the_headline_follows_from_the_phases(self):
        document = self.json(*ESTIMATE, "--batch", "4")
        prefill, decode = document["phases"]
        self.assertEqual(document["ttft_s"], prefill["time_s"])
        self.assertEqual(document["tpot_s"], decode["time_s"])
        self.assertEqual(decode["steps"], 127)
        self.assertLess(document["tpot_first_s"], document["tpot_s"])
        self.assertLess(document["tpot_s"], document["tpot_last_s"])
        self.assertAlmostEqual(document["total_s"], prefill["time_s"] + 127 * decode["time_s"], delta=1e-12)
        self.assertAlmostEqual(document["tokens_per_second"], 4 * 128 / document["total_s"], delta=1e-9)
        self.assertAlmostEqual(document["decode_tokens_per_second"], 4 / document["tpot_s"], delta=1e-9)
        memory = document["memory"]
        parts = ["weight_bytes", "kv_cache_bytes", "activation_bytes", "reserve_bytes"]
        self.assertEqual(memory["total_bytes"], sum(memory[part] for part in parts))
        self.assertEqual(memory["kv_cache_bytes"], 4 * (512 + 128) * 2 * 32 * 4096 * 2)  # K and V, layers, hidden, bf16

    def test_one_token_has_a_ttft_and_no_tpot(self):
        document = self.json(*ESTIMATE, "--gen", "1")
        self.assertEqual([phase["name"] for phase in document["phases"]], ["prefill"])
        self.assertEqual(document["total_s"], document["ttft_s"])
        for key in ["tpot_s", "tpot_first_s", "tpot_last_s", "decode_tokens_per_second"]:
            self.assertIsNone(document[key])
        self.assertNotIn("TPOT", self.output(*ESTIMATE, "--gen", "1"))

    def test_show_model_counts_parameters(self):
        document = self.json("show", "model", "gemma-2-2b")
        counts = document["parameters"]
        self.assertEqual(counts["total"], 2614341888)
        self.assertEqual(document["weight_bytes"], 2 * counts["total"])
        self.assertEqual(document["bits_per_weight"], 16)
        self.assertEqual(counts["total"], counts["embedding"] + counts["layers"] + counts["final_norm"])  # tied: lm_head once
        quantised = self.json("show", "model", "qwen-7b", "--weights", "w4a16-g128")
        self.assertTrue(4 < quantised["bits_per_weight"] < 8)
        self.assertAlmostEqual(quantised["bits_per_weight"], 8 * quantised["weight_bytes"] / quantised["parameters"]["total"], 9)


class Formats(ProgramTest):
    COMMANDS = [ESTIMATE, [*ESTIMATE, "--detail", "ops"], ["limits", "-m", "qwen-7b,qwen-14b", "--hw", "rtx4090"],
                ["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--draft", "qwen-1.8b", "--accept", "0.8"], ["list", "models"],
                ["list", "hardware"], ["show", "model", "mixtral-8x7b"], ["show", "hardware", "atlas-800i-a2"],
                ["explain", "ttft_s", "-m", "qwen-7b", "--hw", "rtx4090"], ["explain", "-m", "qwen-7b", "--hw", "rtx4090"]]

    def test_json_is_the_same_by_flag_and_by_format_and_names_its_schema(self):
        for words in self.COMMANDS:
            document = self.json(*words)
            self.assertRegex(document["schema"], r"^llmperf\.[a-z_]+$")
            self.assertEqual(document["schema_version"], 1)
            self.assertEqual(json.loads(self.output(*words, "--format", "json")), document)

    def test_csv_is_one_table_of_plain_numbers(self):
        for words in self.COMMANDS:
            with self.subTest(words=words):
                rows = list(csv.reader(io.StringIO(self.output(*words, "--format", "csv")), strict=True))
                self.assertGreater(len(rows), 1)
                self.assertEqual({len(row) for row in rows}, {len(rows[0])})
                self.assertEqual(len(set(rows[0])), len(rows[0]))
                for cell in (cell for row in rows for cell in row):
                    self.assertNotRegex(cell, r"^(nan|inf|-inf)$")
                    self.assertNotRegex(cell, r"^\d[\d.]* [kMGT]?(B|FLOP|s)$")

    def test_csv_and_json_hold_the_same_numbers(self):
        document = self.json(*ESTIMATE)
        row, = csv.DictReader(io.StringIO(self.output(*ESTIMATE, "--format", "csv")))
        for key in ["ttft_s", "tpot_s", "total_s", "tokens_per_second", "largest_batch", "longest_context_tokens"]:
            self.assertEqual(float(row[key]), document[key], key)
        self.assertEqual(float(row["weight_bytes"]), document["memory"]["weight_bytes"])
        ops = list(csv.DictReader(io.StringIO(self.output(*ESTIMATE, "--detail", "ops", "--format", "csv"))))
        expected = [op for phase in document["phases"] for op in phase["ops"]]
        self.assertEqual([(op["name"], float(op["time_s"])) for op in ops], [(op["name"], op["time_s"]) for op in expected])
        self.assertAlmostEqual(math.fsum(float(op["share"]) for op in ops), 2, delta=1e-9)  # prefill and decode

    def test_estimate_and_sweep_say_the_same_in_every_format(self):
        random = Random(19)
        units = {"s": 1, "ms": 1e-3, "us": 1e-6}
        for _ in range(16):
            words = ["-m", random.choice(["llama-3.1-8b", "gemma-2-2b", "qwen2-0.5b", "phi-2"]),
                     "--hw", random.choice(["rtx4090", "h100-sxm", "mi300x", "epyc-9654"]),
                     "--weights", random.choice(["bf16", "w4a16", "fp8", "q4_k_m"]),
                     "--batch", str(random.randint(1, 4)), "--prompt", str(random.randint(1, 3000)),
                     "--gen", str(random.randint(2, 40)), "--runtime", random.choice(["none", "vllm", "transformers"])]
            with self.subTest(words=words):
                document = self.json("estimate", *words)
                memory = {key: document["memory"][key] for key in ("weight_bytes", "kv_cache_bytes", "total_bytes", "capacity_bytes")}
                numbers = memory | {key: document[key] for key in
                                    ("ttft_s", "tpot_s", "tpot_first_s", "tpot_last_s", "total_s", "tokens_per_second",
                                     "tokens_per_second_per_request", "largest_batch", "longest_context_tokens")}
                csv_row, = csv.DictReader(io.StringIO(self.output("estimate", *words, "--format", "csv")))
                sweep_csv, = csv.DictReader(io.StringIO(self.output("sweep", *words, "--format", "csv")))
                sweep_json, = self.json("sweep", *words)["rows"]
                for row in (csv_row, sweep_csv, sweep_json):
                    self.assertEqual({key: float(row[key]) for key in numbers}, numbers)
                table = self.output("estimate", *words)
                for label, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("generation", "total_s")):
                    value, unit = re.search(rf"^  {label} +([\d.]+) (s|ms|us)\b", table, re.M).groups()
                    self.assertAlmostEqual(float(value) * units[unit] / numbers[key], 1, delta=5.1e-4, msg=label)

    def test_csv_of_what_does_not_fit_has_empty_times(self):
        done = self.run_program("estimate", "-m", "llama-3-70b", "--hw", "rtx4090", "--format", "csv")
        self.assertEqual(done.returncode, INFEASIBLE)
        row, = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual([row["fits"], row["ttft_s"], row["tpot_s"], row["tokens_per_second"]], ["false", "", "", ""])

    def test_markdown_tables_are_tables(self):
        for words in self.COMMANDS:
            with self.subTest(words=words):
                text = self.output(*words, "--format", "md")
                blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
                if words[:2] != ["show", "hardware"] and words != ESTIMATE:
                    self.assertTrue(blocks)
                for block in blocks:
                    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in block]
                    self.assertEqual(len(set(columns)), 1, block[0])
                    self.assertRegex(block[1], r"^\|( (---|---:) \|)+$")

    def test_tables_say_that_they_are_uncalibrated(self):
        for words in (ESTIMATE, self.COMMANDS[2]):
            for form in ["table", "md"]:
                self.assertIn("uncalibrated", self.output(*words, "--format", form))


class Widths(ProgramTest):
    def check(self, *words):
        done = self.run_program(*words)
        self.assertIn(done.returncode, (DONE, INFEASIBLE), done.stderr)
        for line in done.stdout.splitlines():
            self.assertLessEqual(width(line), 100, f"{words}\n{line}")
            self.assertEqual(line, line.rstrip(), words)

    def test_no_table_of_any_built_in_model_is_wider_than_100_columns(self):
        listed = self.json("list", "models")["models"]
        videos = [model["name"] for model in listed if model["architecture"].startswith("stdit")]
        models = [model["name"] for model in listed if model["name"] not in videos]
        # Decoders that read a text once are named after what they are for.
        encoders = {model["name"] for model in listed if model["architecture"] in ("bert", "xlm-roberta", "modernbert")
                    or "-embedding-" in model["name"] or "-reranker-" in model["name"]}
        decoders = [model for model in models if model not in encoders]
        self.assertGreater(len(decoders), 150)
        for model in videos:
            self.check("show", "model", model)
        for i, model in enumerate(models):
            hardware = ["tx8", "mi300x", "rtx-pro-6000-blackwell-server"][i % 3]
            self.check("estimate", "-m", model, "--hw", hardware, "--detail", "ops", "--weights", "4", "--reserve", "0B")
            self.check("estimate", "-m", model, "--hw", "b200-sxm", "--detail", "ops", "--runtime", "none", "--options", "none", "--batch", "16",
                       "--weights", "2", *(["--prompt", "512"] if model in encoders else ["--prompt", "8192", "--kv", "int4"]))
            self.check("show", "model", model)
        self.check("limits", "-m", ",".join(decoders), "--hw", "rtx4090")
        self.check("limits", "-m", ",".join(decoders), "--hw", "rtx4090", "--units", "article", "--weights", "w4a16-g128kv16")
        self.check("list", "models")

    def test_no_table_of_any_built_in_hardware_is_wider_than_100_columns(self):
        for device in self.json("list", "hardware")["hardware"]:
            self.check("show", "hardware", device["name"])
            self.check("estimate", "-m", "gemma-2-2b", "--hw", device["name"])
        self.check("list", "hardware")

    def test_explanations_are_not_wider_than_100_columns(self):
        for words in (ESTIMATE[1:], ["-m", "deepseek-v3", "--hw", "mi300x", "--weights", "1"]):
            for path in ["", "ttft_s", "tpot_s", "memory.activation_bytes", "memory.weight_bytes", "phases.decode.ops.attention.bytes"]:
                self.check("explain", *[path] * bool(path), *words)

    def test_long_names_are_wrapped(self):
        for name in ["x" * 300, "模型" * 100, " ".join(["word"] * 80)]:
            file = self.write("m.yaml", model_file(f"'{name}'", f"'{name}'"))
            self.check("estimate", "-m", file, "--hw", "rtx4090", "--detail", "ops")
            self.check("limits", "-m", file, "--hw", "rtx4090")
            self.check("show", "model", file)


class HostileNames(ProgramTest):
    def test_a_spreadsheet_takes_no_name_for_a_formula(self):
        for name in ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)"]:
            file = self.write("m.yaml", model_file('"' + name + '"'))
            for words in (["show", "model", file], ["limits", "-m", file, "--hw", "rtx4090"], ["estimate", "-m", file, "--hw", "rtx4090"]):
                row = next(csv.DictReader(io.StringIO(self.output(*words, "--format", "csv"))))
                self.assertEqual(row["model"], "'" + name)
        self.assertEqual(self.json("show", "model", file)["name"], name)

    def test_a_browser_takes_no_name_for_markup(self):
        file = self.write("m.yaml", model_file("<script>alert(1)</script>|[x](javascript:a)"))
        for words in (["show", "model", file], ["limits", "-m", file, "--hw", "rtx4090"], ["estimate", "-m", file, "--hw", "rtx4090"]):
            text = self.output(*words, "--format", "md")
            self.assertIn(r"&lt;script>alert(1)&lt;/script>\|\[x\](javascript:a)", text)
            self.assertNotIn("<script", text)

    def test_a_terminal_takes_no_name_for_a_command(self):
        file = self.write("m.yaml", model_file(r'"a\x1b[2Jb\rc\nd\x9be"', r'"two\nlines"'))
        for words in (["show", "model", file], ["limits", "-m", file, "--hw", "rtx4090"], ["estimate", "-m", file, "--hw", "rtx4090"],
                      ["estimate", "-m", file, "--hw", "rtx4090", "--reserve", "1TiB"]):
            done = self.run_program(*words)
            self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("a?[2Jb c d?e", done.stdout)

    def test_wide_characters_are_kept_and_aligned(self):
        name = "通义千问"
        file = self.write("m.yaml", model_file(name))
        self.assertEqual(self.json("estimate", "-m", file, "--hw", "rtx4090")["inputs"]["model"]["name"], name)
        text = self.output("limits", "-m", file + ",qwen-7b", "--hw", "rtx4090")
        rows = [line for line in text.splitlines() if line.lstrip().startswith((name, "qwen-7b "))]
        self.assertEqual(len({width(line) for line in rows[:2]}), 1, text)


if __name__ == "__main__":
    unittest.main()
