#!/usr/bin/env python3
"""llmperf compare as a user sees it: rows are the estimates of their options, gains add up, a slowdown is an exit status."""
import csv
import io
import json
import os
import subprocess
import unittest

from program import DONE, INFEASIBLE, PROGRAM, SECONDS, USAGE, ProgramTest

THRESHOLD = 4
REQUEST = ["-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "8", "--batch", "4", "--prompt", "1024", "--gen", "64"]
TORCHAIR = [*REQUEST, "--runtime", "torchair"]
LADDER = ["static_kv", "flash_attention", "fused_add_rmsnorm", "last_token_head", "fused_qkv", "mc2"]


class Compare(ProgramTest):
    def compare(self, *words):
        return self.json("compare", *words)

    def estimate(self, *words):
        return self.json("estimate", *words)

    def threshold(self, *words):
        """A run that may end with exit status 4."""
        env = dict(os.environ, LLMPERF_PATH="")
        return subprocess.run([PROGRAM, "compare", *words], cwd=self.folder, env=env, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)

    def assert_sums(self, document):
        steps = document["steps"]
        for key in ("ttft", "tpot"):
            whole = steps[0][key + "_s"] - steps[-1][key + "_s"]
            self.assertAlmostEqual(sum(step[key + "_gain_s"] for step in steps), whole, delta=1e-9 * steps[0][key + "_s"])
        for phases in [document["phases"], *(step["phases"] for step in steps)]:
            for phase in phases:
                for side in ("before", "after"):
                    self.assertAlmostEqual(sum(op[f"time_{side}_s"] for op in phase["ops"]), phase[f"time_{side}_s"],
                                           delta=1e-9 * phase["time_before_s"])
                    self.assertEqual(sum(op[f"launches_{side}"] for op in phase["ops"]), phase[f"launches_{side}"])
                gains = [op["gain_s"] for op in phase["ops"]]
                self.assertEqual(gains, sorted(gains, reverse=True))

    def test_the_ladder_of_a_runtime_is_taken_rung_by_rung(self):
        for execution in ("eager", "graph", "static-graph"):
            with self.subTest(execution):
                document = self.compare(*TORCHAIR, "--with", "all", "--execution", execution)
                self.assertEqual([step["option"] for step in document["steps"]], [None, *LADDER])
                self.assertEqual(document["steps"][2]["switches"], ["flash_attention", "fused_rope"])
                self.assert_sums(document)

    def test_every_row_is_the_estimate_of_its_options(self):
        document = self.compare(*TORCHAIR, "--with", "all", "--execution", "graph")
        for count, step in enumerate(document["steps"]):
            options = "+".join(["none", *LADDER[:count]])
            alone = self.estimate(*TORCHAIR, "--options", options, "--execution", "graph")
            self.assertEqual((step["ttft_s"], step["tpot_s"]), (alone["ttft_s"], alone["tpot_s"]), options)
            self.assertEqual(step["memory_bytes"], alone["memory"]["total_bytes"])
            again = self.estimate(*TORCHAIR, "--options", step["options"], "--execution", "graph")
            self.assertEqual(again["tpot_s"], alone["tpot_s"], step["options"])

    def test_without_a_runtime_switches_are_taken_one_by_one(self):
        document = self.compare(*REQUEST, "--runtime", "none", "--options", "all", "--with", "all,no_fused_qkv,mc2")
        self.assertEqual([step["option"] for step in document["steps"]], [None, "no_fused_qkv", "overlap_collectives"])
        self.assertEqual({step["execution"] for step in document["steps"] if step["execution"]}, set())
        self.assert_sums(document)
        prefill = document["steps"][1]["phases"][0]
        runs = {op["name"]: op["runs"] for op in prefill["ops"]}
        self.assertEqual((runs["qkv_proj"], runs["q_proj"], runs["o_proj"]), ("before", "after", "both"))

    def test_the_two_sets_swapped_lose_what_they_gained(self):
        there = self.compare(*TORCHAIR, "--options", "none", "--with", "all")
        back = self.compare(*TORCHAIR, "--options", "all", "--with", "none")
        self.assertEqual(back["steps"][-1]["ttft_s"], there["steps"][0]["ttft_s"])
        self.assertEqual([step["option"] for step in back["steps"][1:]], ["no_" + name for name in LADDER])
        gains = {op["name"]: op["gain_s"] for op in there["phases"][0]["ops"]}
        self.assertEqual({op["name"]: -op["gain_s"] for op in back["phases"][0]["ops"]}, gains)

    def test_a_slowdown_is_an_exit_status(self):
        slower = [*TORCHAIR, "--options", "all", "--with", "none"]
        done = self.threshold(*slower, "--max-slowdown", "0.05")
        self.assertEqual(done.returncode, THRESHOLD, done.stderr)
        self.assertIn("TTFT is", done.stderr)
        self.assertIn("TPOT is", done.stderr)
        self.assertIn("--max-slowdown 5.0 %", done.stderr)
        self.assertIn("- static_kv", done.stdout)
        steps = json.loads(self.threshold(*slower, "--max-slowdown", "0", "--json").stdout)["steps"]
        worst = max(steps[-1][key] / steps[0][key] for key in ("ttft_s", "tpot_s")) - 1
        self.assertEqual(self.threshold(*slower, "--max-slowdown", str(worst * 1.01)).returncode, DONE)
        self.assertEqual(self.threshold(*slower, "--max-slowdown", str(worst * 0.99)).returncode, THRESHOLD)
        self.output("compare", *TORCHAIR, "--options", "none", "--with", "all", "--max-slowdown", "0")

    def test_table_and_csv_say_what_the_json_says(self):
        words = [*TORCHAIR, "--with", "all"]
        steps = self.compare(*words)["steps"]
        rows = list(csv.DictReader(io.StringIO(self.output("compare", *words, "--format", "csv"))))
        self.assertEqual(len(rows), len(steps))
        for row, step in zip(rows, steps):
            self.assertEqual(row["option"], step["option"] or "")
            self.assertEqual(row["switches"], "+".join(step["switches"]))
            self.assertEqual(float(row["ttft_s"]), step["ttft_s"])
            self.assertEqual(float(row["tpot_gain_s"]), step["tpot_gain_s"])
        text = self.output("compare", *words)
        for name in LADDER:
            self.assertIn("+ " + name, text)
        for word in ("dynamic graph", "Where in prefill", "Where in decode", "runtime_overhead"):
            self.assertIn(word, text)

    def test_sets_that_are_the_same_have_one_row(self):
        words = [*TORCHAIR, "--options", "all", "--with", "+".join(LADDER)]
        self.assertEqual(len(self.compare(*words)["steps"]), 1)
        self.assertIn("the two sets of options are the same", self.output("compare", *words))

    def test_one_generated_token_has_no_decode_step(self):
        document = self.compare("-m", "qwen-7b", "--hw", "rtx4090", "--runtime", "none", "--gen", "1", "--with", "all")
        self.assertEqual([step["tpot_s"] for step in document["steps"]], [None] * len(document["steps"]))
        self.assertEqual([phase["name"] for phase in document["phases"]], ["prefill"])

    def test_a_set_that_does_not_fit_is_named(self):
        words = ["-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--runtime", "none", "--tp", "8", "--batch", "3",
                 "--prompt", "16384", "--gen", "2", "--with", "flash_attention,fused_qkv"]
        done = self.run_program("compare", *words)
        self.assert_error(done, INFEASIBLE, "does not fit", "--options none")
        self.assertIn("does not fit", done.stdout)
        document = self.json("compare", *words, status=INFEASIBLE)
        self.assertEqual([step["fits"] for step in document["steps"]], [False, True, True])
        self.assertEqual(document["phases"], [])
        self.assertIsNone(document["steps"][0]["ttft_s"])

    def test_wrong_requests(self):
        self.assert_bad_input(["compare", *TORCHAIR], "--with")
        self.assert_bad_input(["compare", *TORCHAIR, "--with", "static_vk"], "--with: unknown runtime option", "static_kv")
        self.assert_bad_input(["compare", *TORCHAIR, "--options", "static_vk", "--with", "all"],
                              "--options: unknown runtime option", "static_kv")
        self.assert_bad_input(["compare", *TORCHAIR, "--with", "all", "--max-slowdown", "-1"], "--max-slowdown")
        self.assert_bad_input(["compare", *REQUEST, "--runtime", "none", "--with", "all", "--execution", "eager"], "--execution")
        self.assertEqual(self.threshold(*TORCHAIR, "--with", "all", "--max-slowdown", "x").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
