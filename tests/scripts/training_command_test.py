#!/usr/bin/env python3
"""`llmperf estimate --training`: its tables and documents say the same, docs/training.md has the program's numbers, and batches,
sequences and flags that do not go together are refused."""
import csv
import io
import json
import math
import os
import re
import unittest

from program import INFEASIBLE, ROOT, ProgramTest

HW = ["--hw", "a100-sxm-80gb"]
SMALL = ["estimate", "-m", "llama-3-8b", *HW, "--training", "--tp", "4", "--megatron-sp", "--dp", "2", "--pp", "2", "--global-batch", "16"]
MEGATRON = {
    "megatron-22b": ["--tp", "8", "--global-batch", "4", "--micro-batch", "4"],
    "megatron-175b": ["--tp", "8", "--pp", "8", "--interleave", "3", "--global-batch", "64"],
    "megatron-530b": ["--tp", "8", "--pp", "35", "--interleave", "3", "--global-batch", "280"],
    "megatron-1t": ["--tp", "8", "--pp", "64", "--global-batch", "512"],
}
WAYS = {"none": [], "none, SP": ["--megatron-sp"], "selective": ["--recompute", "selective"],
        "selective, SP": ["--megatron-sp", "--recompute", "selective"], "full": ["--recompute", "full"]}
BILLION = 1e9
# The A100 with memory for everything.
BIG = open(os.path.join(ROOT, "hardware", "devices", "a100-sxm-80gb.yaml"), encoding="utf-8").read().replace(
    "capacity: 79.25 GiB\n    board: 80 GiB", "capacity: 800 GiB")


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


class Training(ProgramTest):
    def megatron(self, name, *words):
        done = self.run_program("estimate", "-m", name, *HW, "--training", "--runtime", "none", "--options", "none", *MEGATRON[name], *words, "--json")
        self.assertIn(done.returncode, (0, INFEASIBLE))
        return json.loads(done.stdout)

    def test_126_layers_are_trained_on_4_8_and_16_stages_interleaved_too(self):
        published = ["estimate", "-m", "llama-3.1-405b", "--hw", "h100-sxm", "--training", "--tp", "8", "--dp", "64", "--zero", "2",
                     "--seq", "8192", "--global-batch", "2048"]
        for pp, runs, most in ((4, 1, 32), (8, 1, 16), (16, 1, 8), (4, 2, 32), (8, 4, 16), (16, 4, 8), (16, 8, 8)):
            with self.subTest(pp=pp, runs=runs):
                words = [*published, "--pp", str(pp), "--interleave", str(runs), "--recompute", "full"]
                document = json.loads(self.run_program(*words, "--json").stdout)
                layers = [stage["layers"] for stage in document["stages"]]
                self.assertEqual((len(layers), sum(layers), max(layers)), (pp, 126, most))
                dealt = sorted((run["first_layer"], run["layers"]) for stage in document["stages"] for run in stage["runs"])
                self.assertEqual(len(dealt), pp * runs)
                self.assertEqual(sum(count for _, count in dealt), 126)
                self.assertEqual(dealt[0][0], 0)
                for (first, count), (following, _) in zip(dealt, dealt[1:]):
                    self.assertEqual(first + count, following)
                if runs == 8:  # as the model was trained: the ends have a layer less
                    self.assertEqual(layers, [7] + 14 * [8] + [7])
                text = " ".join(self.run_program(*words).stdout.split())
                self.assertIn(f"stages {'+'.join(map(str, layers))} layers", text)

    def test_a_profile_of_inference_is_refused_with_what_there_is(self):
        done = self.run_program("estimate", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--training", "--runtime", "vllm")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--runtime: vllm is a profile of inference, and --training is no part of it", done.stderr)
        self.assertIn("pytorch-fsdp, megatron", done.stderr)

    def test_parts_add_up_in_the_document(self):
        for words in [SMALL, [*SMALL, "--zero", "3", "--interleave", "2", "--recompute", "full"],
                      ["estimate", "-m", "deepseek-v2-lite", *HW, "--training", "--weights", "bf16", "--ep", "8", "--dp", "8"]]:
            with self.subTest(words=words):
                d = self.json(*words)
                self.assertTrue(close(d["step_s"], d["compute_s"] + d["bubble_s"] + d["gradient_exposed_s"] + d["optimizer_s"]))
                forward, backward, update = d["phases"]
                self.assertEqual((forward["steps"], backward["steps"], update["steps"]), (d["micro_batches"], d["micro_batches"], 1))
                self.assertTrue(close(d["compute_s"], forward["total_s"] + backward["total_s"]))
                self.assertTrue(close(update["time_s"], d["gradient_exposed_s"] + d["optimizer_s"]))
                for phase in d["phases"]:
                    for key in ["flops", "bytes", "network_bytes"]:
                        self.assertTrue(close(phase[key], sum(op[key] for op in phase["ops"])), key)
                    self.assertTrue(close(phase["ops_time_s"], sum(op["time_s"] for op in phase["ops"])))
                    self.assertTrue(math.isclose(phase["overlapped_s"], sum(op["hidden_s"] for op in phase["ops"]),
                                                 rel_tol=1e-9, abs_tol=1e-15))
                    self.assertTrue(close(phase["time_s"], phase["ops_time_s"] - phase["overlapped_s"]))
                    for op in phase["ops"]:
                        if op["kind"] == "collective":
                            self.assertEqual(op["collective"]["sent_bytes"], op["network_bytes"])
                memory = d["memory"]
                parts = ["weight", "gradient", "optimizer", "activation", "workspace", "reserve"]
                self.assertTrue(close(memory["total_bytes"], sum(memory[f"{part}_bytes"] for part in parts)))
                possible = d["inputs"]["hardware"]["figures"]["matrix_flops_per_s"]["value"] * d["step_s"] * d["inputs"]["devices"]
                self.assertTrue(close(d["mfu"], d["model_flops"] / possible))
                self.assertTrue(close(d["hfu"], d["hardware_flops"] / possible))
                tokens = d["inputs"]["global_batch"] * d["inputs"]["sequence_tokens"]
                self.assertTrue(close(d["tokens_per_second"], tokens / d["step_s"]))

    def test_the_table_of_exchanges_is_that_of_the_document(self):
        text = self.output(*SMALL, "--detail", "full")
        table = text[text.index("Communication of a step"):].split("\n\n")[0]
        d = self.json(*SMALL)
        sent = sum(op["network_bytes"] * phase["steps"] for phase in d["phases"] for op in phase["ops"])
        total = re.search(r"^ *total +([\d.]+) GB", table, re.M)
        self.assertTrue(math.isclose(float(total[1]) * BILLION, sent, rel_tol=1e-3))
        for phase in d["phases"]:
            for op in phase["ops"]:
                if op["collective"]:
                    self.assertIn(op["name"].split(" ")[0], table)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()))

    def test_csv_has_the_numbers_of_the_document(self):
        d = self.json(*SMALL)
        row, = csv.DictReader(io.StringIO(self.output(*SMALL, "--format", "csv")))
        for key in ["step_s", "compute_s", "bubble_s", "mfu", "hfu", "tokens_per_second"]:
            self.assertEqual(float(row[key]), d[key])
        self.assertEqual(float(row["activation_bytes"]), d["memory"]["activation_bytes"])
        ops = list(csv.DictReader(io.StringIO(self.output(*SMALL, "--detail", "ops", "--format", "csv"))))
        self.assertEqual(len(ops), sum(len(phase["ops"]) for phase in d["phases"]))
        self.assertTrue(close(sum(float(op["network_bytes"]) for op in ops), sum(p["network_bytes"] for p in d["phases"])))

    def documented(self, cells):
        """Rows of that many cells in tables of docs/training.md: [[first, ...], ...]."""
        with open(os.path.join(ROOT, "docs", "training.md"), encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in file if line.startswith("|")]
        return [row for row in rows if len(row) == cells and not row[0].startswith("---")]

    def test_the_megatron_memory_of_the_documentation(self):
        header, *rows = self.documented(8)
        self.assertEqual([row[0] for row in rows], list(MEGATRON))
        for name, *cells in rows:
            documents = [self.megatron(name, *way) for way in WAYS.values()]
            layers = [f"{d['memory']['layer_activation_bytes'] / 2**20:.1f}" for d in documents]
            m = documents[0]["memory"]
            state = (m["weight_bytes"] + m["gradient_bytes"] + m["optimizer_bytes"]) / 2**30
            activations = documents[3]["memory"]["activation_bytes"] / 2**30
            self.assertEqual(cells, [*layers, f"{state:.1f}", f"{activations:.1f}"], name)

    def test_the_megatron_times_of_the_documentation(self):
        outside = ("embed", "add_positions", "input_norm", "head_gather", "lm_head", "cross_entropy", "loss_reduce")
        names = {"no recomputation": "none", "sequence parallelism": "none, SP", "full recomputation": "full",
                 "selective recomputation": "selective", "both": "selective, SP"}
        rows = {row[0]: row for row in self.documented(3)}
        for row, way in names.items():
            device = self.write("big.yaml", BIG)
            d = self.json("estimate", "-m", "megatron-22b", "--hw", device, "--training", "--runtime", "none", "--options", "none",
                          *MEGATRON["megatron-22b"], *WAYS[way])
            times = []
            for phase in d["phases"][:2]:
                layers = sum(op["time_s"] - op["hidden_s"] for op in phase["ops"] if not op["name"].startswith(outside))
                times.append(f"{layers / 48 * 1e3:.1f}")
            self.assertEqual(rows[row][1], " / ".join(times), row)
            for bound, measured in zip(times, rows[row][2].split(" / ")):
                self.assertLess(float(bound), float(measured))
        for name in MEGATRON:
            steps = [self.megatron(name, *WAYS[way])["step_s"] for way in ["full", "selective, SP"]]
            for bound, measured, step in zip(rows[name][1].split(", "), rows[name][2].split(", "), steps):
                self.assertTrue(math.isclose(float(bound), step, rel_tol=0.01), (name, bound, step))
                self.assertLess(step, float(measured))

    def test_what_does_not_fit_says_what_would(self):
        done = self.run_program("estimate", "-m", "megatron-22b", *HW, "--training", "--runtime", "none", "--options", "none", *MEGATRON["megatron-22b"])
        self.assert_error(done, INFEASIBLE, "does not fit", "it fits with --micro-batch 2 (frees 30.13 GiB) or --recompute selective (frees 29.39 GiB)")
        self.assertIn("does not fit", done.stdout)
        d = self.json("estimate", "-m", "llama-3-70b", *HW, "--training", "--tp", "8", status=INFEASIBLE)
        self.assertIs(d["fits"], False)
        self.assertIsNone(d["step_s"])
        self.assertEqual(d["phases"], [])
        # The advice is good.
        base = ["estimate", "-m", "megatron-22b", *HW, "--training", "--runtime", "none", "--options", "none", "--tp", "8", "--global-batch", "4"]
        self.output(*base, "--micro-batch", "4", "--recompute", "selective")
        self.output(*base, "--micro-batch", "2")

    def test_beyond_the_published_runs_there_is_no_band(self):
        base = ["estimate", "-m", "megatron-22b", *HW, "--training", "--runtime", "megatron", "--tp", "8"]
        inside = [*base, "--global-batch", "4", "--recompute", "full"]
        self.assertEqual(self.json(*inside)["extrapolations"], [])
        self.assertIn("±3.5 % (9 of 10 within", self.output(*inside))
        ways = {("--recompute", "full", "--seq", "8192"): "sequences of 8,192 tokens (measured with 2,048)",
                ("--recompute", "full", "--dp", "2", "--zero", "3"): "ZeRO 3 (measured without)",
                ("--recompute", "selective"): "recompute selective without sequence parallelism",
                ("--recompute", "full", "--options", "flash_attention"): "options flash_attention (measured with none)"}
        for way, reason in ways.items():
            words = [*base, "--global-batch", "8" if "--dp" in way else "4", *way]
            d = self.json(*words)
            self.assertEqual((d["extrapolated"], len(d["extrapolations"])), (True, 1), way)
            self.assertIn(reason, d["extrapolations"][0])
            text = self.output(*words)
            self.assertIn("not known: extrapolated", text)
            self.assertNotIn("3.4 %", text)

    def test_all_options_of_a_stack_that_has_none_are_refused(self):
        train = ["estimate", "-m", "megatron-22b", *HW, "--training", "--runtime", "megatron", "--tp", "8", "--recompute", "full"]
        self.assert_bad_input([*train, "--options", "all"], "--options all", "profile megatron has none", "leave it out")
        self.assertEqual(self.output(*train, "--options", "none"), self.output(*train))

    def test_sequence_parallelism_is_named_where_it_makes_a_step_fit(self):
        done = self.run_program("estimate", "-m", "megatron-22b", *HW, "--training", "--runtime", "none", "--options", "none", "--tp", "8",
                                "--global-batch", "6", "--micro-batch", "6", "--recompute", "selective")
        self.assert_error(done, INFEASIBLE, "does not fit", "it fits with --recompute full (frees 36.35 GiB) or --megatron-sp (frees 29.84 GiB)")

    def test_bad_input(self):
        train = ["estimate", "-m", "megatron-22b", *HW, "--training", "--tp", "8"]
        self.assert_bad_input([*train, "--dp", "4", "--global-batch", "30"], "--global-batch: 30 sequences", "28 or 32")
        self.assert_bad_input([*train, "--megatron-sp", "--seq", "2047"], "--seq: 2047 tokens", "2040 or 2048")
        self.assert_bad_input([*train, "--pp", "4", "--interleave", "13"], "48 layers are too few for 13 runs on each of 4 stages",
                              "at most 12")
        self.assert_bad_input([*train, "--interleave", "2"], "no pipeline")
        self.assert_bad_input([*train, "--recompute", "selectiv"], "--recompute", "selective")
        self.assert_bad_input([*train, "--zero", "4"], "--zero: '4'")
        self.assert_bad_input([*train, "--gradients", "int8"], "int8")
        self.assert_bad_input([*train, "--weights", "w4a16"], "bf16, fp16 or fp32")
        self.assert_bad_input([*train, "--prompt", "8"], "--prompt", "--training")
        self.assert_bad_input(["estimate", "-m", "megatron-22b", *HW, "--zero", "1"], "--zero", "--training")


if __name__ == "__main__":
    unittest.main()
