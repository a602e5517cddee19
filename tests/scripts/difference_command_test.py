#!/usr/bin/env python3
"""llmperf compare of two results, saved or of two sets of flags: changes add up, nothing differs from itself, and broken files
are errors with a place."""
import csv
import io
import json
import os
import subprocess
import unittest

from program import DONE, INFEASIBLE, PROGRAM, ROOT, SECONDS, USAGE, ProgramTest

THRESHOLD = 4
QWEN = ["-m", "qwen-7b", "--hw", "rtx4090"]
VIDEO = ["-m", "stdit3-xl2", "--hw", "h100-sxm", "--resolution", "480p", "--seconds", "4"]
TRAINING = ["-m", "llama-3-8b", "--hw", "a100-sxm-80gb", "--training", "--tp", "4"]
PLANNED = ["-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "4", "--pp", "2", "--batch", "4", "--prompt", "1024", "--runtime",
           "none", "--options", "all,overlap_collectives"]


class Difference(ProgramTest):
    def save(self, name, *words):
        """The JSON of an estimate, as a file in the test's folder."""
        document = self.json("estimate", *words)
        self.write(name, json.dumps(document))
        return document

    def threshold(self, *words):
        env = dict(os.environ, LLMPERF_PATH="")
        return subprocess.run([PROGRAM, "compare", *words], cwd=self.folder, env=env, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)

    def assert_sums(self, difference):
        """Changes of the ops add up to the change of their phase, shares to 1."""
        for phase in difference["phases"]:
            size = max(phase["before_s"], phase["after_s"])
            for key in ("before_s", "after_s", "change_s"):
                self.assertAlmostEqual(sum(op[key] for op in phase["ops"]), phase[key], delta=1e-9 * size)
            if phase["change_s"] != 0:
                self.assertAlmostEqual(sum(op["share_of_change"] for op in phase["ops"]), 1, places=6)
            sizes = [abs(op["change_s"]) for op in phase["ops"]]
            self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_runs_of_servers_by_what_their_times_pass_with(self):
        words = ["serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--requests", "200"]
        slow, fast = self.json(*words, "--rate", "20"), self.json(*words, "--rate", "5", "--weights", "fp8")
        self.write("slow.json", json.dumps(slow))
        self.write("fast.json", json.dumps(fast))
        difference = self.json("compare", "slow.json", "fast.json")
        self.assertEqual({c["name"] for c in difference["inputs"]} - {"matrix_flops_per_s", "attention_matrix_flops_per_s"},
                         {"weights", "traffic.requests_per_second"})
        head = self.headline(difference)
        self.assertEqual((head["ttft_s.mean"]["before"], head["ttft_s.mean"]["after"]), (slow["ttft_s"]["mean"], fast["ttft_s"]["mean"]))
        # Each cause's share of the mean, in seconds: they add up to it.
        self.assert_sums(difference)
        first = {op["name"]: op for op in difference["phases"][0]["ops"]}
        self.assertAlmostEqual(first["queue"]["before_s"], slow["causes"]["ttft"]["queue"] * slow["ttft_s"]["mean"])
        self.assertAlmostEqual(difference["phases"][1]["after_s"], fast["itl_s"]["mean"])
        self.assertIn("time to first token (on the mean, by what it passes with", self.output("compare", "slow.json", "fast.json"))
        slowest, quickest = slow["bands"]["tpot_mean_s"], fast["bands"]["tpot_mean_s"]
        touch = slowest["low"] <= quickest["high"] and quickest["low"] <= slowest["high"]
        self.assertEqual(head["tpot_s.mean"]["inside_error_band"], touch)
        self.assertEqual(self.threshold("fast.json", "slow.json", "--max-slowdown", "0.05").returncode, THRESHOLD)
        self.assertEqual(self.threshold("slow.json", "fast.json", "--max-slowdown", "0.05").returncode, DONE)
        self.save("estimate.json", *QWEN)
        self.assert_bad_input(["compare", "slow.json", "estimate.json"], "a run of a server", "same kind")

    def test_a_measured_run_beside_a_simulated_one(self):
        with open(os.path.join(ROOT, "tests", "import", "vllm_bench.json"), encoding="utf-8") as file:
            self.write("measured.json", file.read())
        self.write("simulated.json", json.dumps(self.json(
            "serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--tp", "2", "--concurrency", "2", "--input", "500",
            "--output", "10", "--requests", "40", "--lengths", "exact")))
        difference = self.json("compare", "simulated.json", "measured.json")
        self.assertEqual([c["name"] for c in difference["inputs"]], ["llmperf"])  # what it does not say is no difference
        head = self.headline(difference)
        self.assertEqual((head["output_tokens_per_second"]["after"], head["devices"]["after"]), (20, 2))
        self.assertAlmostEqual(head["ttft_s.mean"]["after"], 0.2)
        self.assertEqual(difference["phases"], [])
        self.assertIn("measured (vllm-bench)", self.output("compare", "simulated.json", "measured.json"))
        self.write("other.json", '{"x": 1}')
        self.assert_bad_input(["compare", "simulated.json", "other.json"], "'schema' is missing")

    def test_answers_of_capacity(self):
        words = ["capacity", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--tp", "1", "--weights", "fp8", "--slo", "ttft=1s,tpot=50ms"]
        for name, rate in (("few.json", "20"), ("many.json", "90")):
            self.write(name, json.dumps(self.json(*words, "--rate", rate)))
        difference = self.json("compare", "few.json", "many.json")
        self.assertEqual([c["name"] for c in difference["inputs"]], ["rate"])
        head = self.headline(difference)
        self.assertEqual((head["candidates.0.devices"]["before"], head["candidates.0.devices"]["after"]), (1, 3))
        self.assertIn("cost per hour", self.output("compare", "few.json", "many.json"))
        self.assertEqual(self.threshold("few.json", "many.json", "--max-slowdown", "0.05").returncode, THRESHOLD)
        self.write("none.json", json.dumps(self.json(*words[:-1], "ttft=1ms", "--rate", "20", status=INFEASIBLE)))
        done = self.threshold("few.json", "none.json")
        self.assertEqual(done.returncode, INFEASIBLE)
        self.assertIn("nothing meets the bounds", done.stdout + done.stderr)

    def test_files_of_other_benchmarks(self):
        with open(os.path.join(ROOT, "tests", "import", "guidellm.json"), encoding="utf-8") as file:
            guide = json.load(file)
        self.write("two.json", json.dumps(guide))
        guide["benchmarks"] = guide["benchmarks"][:1]
        self.write("one.json", json.dumps(guide))
        self.assertIn("measured (guidellm)", self.output("compare", "one.json", "one.json"))
        self.assert_bad_input(["compare", "one.json", "two.json"], "several runs")
        with open(os.path.join(ROOT, "tests", "import", "vllm_bench.json"), encoding="utf-8") as file:
            run = json.load(file)
        self.write("sglang.json", json.dumps(dict(run, backend="sglang")))
        self.assertIn("measured (sglang-bench)", self.output("compare", "sglang.json", "sglang.json"))
        del run["tensor_parallel_size"]
        self.write("vllm.json", json.dumps(dict(run, generated_texts=["as sglang says"])))
        self.assertIn("measured (vllm-bench)", self.output("compare", "vllm.json", "vllm.json"))
        self.assertIsNone(self.headline(self.json("compare", "vllm.json", "vllm.json"))["devices"]["before"])

    def headline(self, difference):
        return {figure["name"]: figure for figure in difference["headline"]}

    def test_a_result_does_not_differ_from_itself(self):
        for words in (QWEN, VIDEO, TRAINING, PLANNED):
            with self.subTest(words=words):
                self.save("a.json", *words)
                difference = self.json("compare", "a.json", "a.json")
                self.assertEqual(difference["inputs"], [])
                self.assertTrue(difference["headline"])
                self.assertEqual({figure["change"] for figure in difference["headline"]} - {None}, {0})
                self.assertTrue(difference["phases"])
                for phase in difference["phases"]:
                    self.assertEqual(phase["change_s"], 0)
                    for op in phase["ops"]:
                        self.assertEqual((op["change_s"], op["runs"], op["why"]), (0, "both", ""))
                self.assertIn("no difference", self.output("compare", "a.json", "a.json"))
                self.output("compare", "a.json", "a.json", "--max-slowdown", "0")

    def test_what_changed_is_named(self):
        before = self.save("a.json", *QWEN)
        after = self.save("b.json", *QWEN, "--weights", "w4a16", "--batch", "8")
        difference = self.json("compare", "a.json", "b.json")
        self.assertEqual(difference["inputs"], [{"name": "batch", "before": 1, "after": 8},
                                                {"name": "weights", "before": "bf16", "after": "w4a16-g128"},
                                                {"name": "weights_kernel", "before": None, "after": "Marlin"},
                                                {"name": "kv", "before": "bf16", "after": "fp16"},
                                                {"name": "activations", "before": "bf16", "after": "fp16"}])
        headline = self.headline(difference)
        for key in ("ttft_s", "tpot_s", "tokens_per_second"):
            self.assertEqual((headline[key]["before"], headline[key]["after"]), (before[key], after[key]))
            self.assertEqual(headline[key]["change"], after[key] - before[key])
        self.assertEqual(headline["memory.total_bytes"]["after"], after["memory"]["total_bytes"])
        self.assert_sums(difference)
        ops = {op["name"]: op for op in difference["phases"][1]["ops"]}
        self.assertEqual((ops["qkv_proj"]["weights_before"], ops["qkv_proj"]["weights_after"]), (None, None))
        self.assertLess(ops["qkv_proj"]["bytes_after"], 0.3 * ops["qkv_proj"]["bytes_before"])
        self.assertIn("bytes x 0.2", ops["qkv_proj"]["why"])
        self.save("short.json", *QWEN, "--prompt", "16")
        longer = self.json("compare", "short.json", "a.json")
        prefill = {op["name"]: op for op in longer["phases"][0]["ops"]}
        self.assertIn("bound memory -> matrix", prefill["qkv_proj"]["why"])

    def test_flags_make_the_same_difference_as_files(self):
        self.save("a.json", *QWEN)
        self.save("b.json", *QWEN, "--weights", "w4a16", "--batch", "8")
        files = self.json("compare", "a.json", "b.json")
        flags = self.json("compare", *QWEN, "--against", "--weights 'w4a16' --batch=8")
        for key in ("inputs", "headline", "phases"):
            self.assertEqual(flags[key], files[key])

    def test_a_flag_of_the_second_request_stands_instead_of_the_first(self):
        difference = self.json("compare", *QWEN, "--batch", "2", "--weights", "int8", "--against", "--batch 4")
        self.assertEqual(difference["inputs"], [{"name": "batch", "before": 2, "after": 4}])
        difference = self.json("compare", *QWEN, "--against", "-m qwen1.5-7b")
        self.assertIn({"name": "model", "before": "qwen-7b", "after": "qwen1.5-7b"}, difference["inputs"])

    def test_ops_that_only_one_side_has_are_told(self):
        difference = self.json("compare", "-m", "llama-2-7b", "--hw", "rtx4090", "--runtime", "none", "--against",
                               "--options all,no_fused_qkv")
        runs = {op["name"]: op["runs"] for op in difference["phases"][0]["ops"]}
        self.assertEqual((runs["qkv_proj"], runs["q_proj"], runs["o_proj"]), ("before", "after", "both"))
        self.assert_sums(difference)

    def test_what_runs_beside_other_ops_is_a_row(self):
        difference = self.json("compare", *PLANNED, "--against", "--options all")
        overlapped = {op["name"]: op for op in difference["phases"][0]["ops"]}["overlapped"]
        self.assertLess(overlapped["before_s"], 0)
        self.assertEqual((overlapped["after_s"], overlapped["runs"]), (0, "before"))
        self.assert_sums(difference)

    def test_videos_and_training_steps_are_compared(self):
        difference = self.json("compare", *VIDEO, "--against", "--steps 15")
        self.assertEqual(difference["inputs"], [{"name": "steps", "before": 30, "after": 15}])
        self.assertEqual([phase["name"] for phase in difference["phases"]],
                         ["text encoding", "denoising step", "VAE decoding", "other"])
        self.assert_sums(difference)
        difference = self.json("compare", *TRAINING, "--against", "--tp 4 --dp 2 --zero 1")
        self.assertEqual([phase["name"] for phase in difference["phases"]], ["forward", "backward", "update"])
        self.assertIn({"name": "zero", "before": 0, "after": 1}, difference["inputs"])
        self.assert_sums(difference)

    def test_a_difference_inside_the_error_bands_is_told(self):
        # 12 of 512 tokens less: TTFT changes by less than the 5 % that predictions are off by.
        headline = self.headline(self.json("compare", *QWEN, "--against", "--prompt 500"))
        self.assertIs(headline["ttft_s"]["inside_error_band"], True)
        self.assertIn("inside the error bands", self.output("compare", *QWEN, "--against", "--prompt 500"))
        headline = self.headline(self.json("compare", *QWEN, "--against", "--prompt 1024"))
        self.assertIs(headline["ttft_s"]["inside_error_band"], False)
        headline = self.headline(self.json("compare", *QWEN, "--runtime", "none", "--against", "--prompt 500"))
        self.assertIsNone(headline["ttft_s"]["inside_error_band"])

    def test_a_slowdown_is_an_exit_status(self):
        for words, change, what in ((QWEN, "--batch 2", "TPOT is"), (VIDEO, "--steps 31", "the generation is"),
                                    (TRAINING, "--seq 4096", "the step is")):
            done = self.threshold(*words, "--against", change, "--max-slowdown", "0.0001")
            self.assertEqual(done.returncode, THRESHOLD, done.stderr)
            self.assertIn(what, done.stderr)
            self.assertIn("with --against", done.stderr)
            self.assertIn("What changed", done.stdout)
            self.assertEqual(self.threshold(*words, "--against", change, "--max-slowdown", "10").returncode, DONE)
        a = self.save("a.json", *QWEN)
        b = self.save("b.json", *QWEN, "--prompt", "520")
        slower = b["ttft_s"] / a["ttft_s"] - 1
        self.assertGreater(slower, b["tpot_s"] / a["tpot_s"] - 1)
        self.assertEqual(self.threshold("a.json", "b.json", "--max-slowdown", str(slower * 1.01)).returncode, DONE)
        done = self.threshold("a.json", "b.json", "--max-slowdown", str(slower * 0.99))
        self.assertEqual(done.returncode, THRESHOLD)
        self.assertIn("TTFT is", done.stderr)
        self.assertIn("in b.json", done.stderr)

    def test_several_results_are_compared_with_the_first(self):
        for name, batch in (("a", "1"), ("b", "2"), ("c", "4")):
            self.save(name + ".json", *QWEN, "--batch", batch)
        several = self.json("compare", "a.json", "b.json", "c.json")
        self.assertEqual([result["name"] for result in several["results"]], ["a.json", "b.json", "c.json"])
        self.assertEqual([result["inputs"] for result in several["results"]],
                         [[], [{"name": "batch", "before": 1, "after": 2}], [{"name": "batch", "before": 1, "after": 4}]])
        two = self.json("compare", "a.json", "c.json")
        for key in ("inputs", "headline", "phases"):
            self.assertEqual(several["results"][2][key], two[key])
        text = self.output("compare", "a.json", "b.json", "c.json")
        self.assertIn("3 results, each against the first", text)
        rows = list(csv.DictReader(io.StringIO(self.output("compare", "a.json", "b.json", "c.json", "--format", "csv"))))
        self.assertEqual({row["result"] for row in rows}, {"a.json", "b.json", "c.json"})

    def test_the_speed_of_a_phase_is_the_product_of_its_factors(self):
        several = self.json("compare", "-m", "qwen-7b", "--hw", "rtx4090,h100-sxm", "--runtime", "none", "--against", "--weights w4a16")
        self.assertEqual([result["name"] for result in several["results"]], ["rtx4090", "h100-sxm", "with --weights w4a16"])
        for result in several["results"]:
            for phase in result["why"]:
                # Less work is faster, a higher peak and better kernels are faster.
                product = 1
                for factor in phase["factors"]:
                    product *= 1 / factor["factor"] if factor["what"] in ("bytes", "flops") else factor["factor"]
                self.assertAlmostEqual(product, phase["times_as_fast"], places=9)
        decode = {factor["what"]: factor["factor"] for factor in several["results"][1]["why"][1]["factors"]}
        self.assertAlmostEqual(decode["memory_bandwidth_bytes_per_s"], 3350 / 1008, places=2)
        self.assertAlmostEqual(decode["bytes"], 1)
        decode = {factor["what"]: factor["factor"] for factor in several["results"][2]["why"][1]["factors"]}
        self.assertLess(decode["bytes"], 0.4)

    def test_a_request_is_compared_on_all_devices(self):
        several = self.json("compare", "-m", "qwen-7b", "--hw", "all", "--runtime", "none")
        names = [device["name"] for device in self.json("list", "hardware")["hardware"]]
        self.assertLessEqual({result["name"] for result in several["results"]}, set(names))
        self.assertGreater(len(several["results"]), len(names) / 2)
        for line in self.output("compare", "-m", "qwen-7b", "--hw", "all", "--runtime", "none").splitlines():
            self.assertLessEqual(len(line), 100, line)
        self.assert_bad_input(["compare", *QWEN[:2], "--hw", "rtx4090,h100-sxm", "--with", "all"], "both say")

    def test_what_does_not_fit_has_no_times(self):
        self.save("a.json", *QWEN)
        self.write("b.json", json.dumps(self.json("estimate", "-m", "qwen-72b", "--hw", "rtx4090", status=INFEASIBLE)))
        done = self.run_program("compare", "a.json", "b.json")
        self.assert_error(done, INFEASIBLE, "b.json", "does not fit")
        self.assertIn("does not fit", done.stdout)
        difference = self.json("compare", "a.json", "b.json", status=INFEASIBLE)
        self.assertEqual((difference["before"]["fits"], difference["after"]["fits"]), (True, False))
        self.assertEqual(difference["phases"], [])
        self.assert_error(self.run_program("compare", *QWEN, "--against", "-m qwen-72b"), INFEASIBLE, "--against: qwen-72b")

    def test_csv_says_what_the_json_says(self):
        words = ["compare", *PLANNED, "--against", "--weights int8"]
        rows = list(csv.DictReader(io.StringIO(self.output(*words, "--format", "csv"))))
        ops = [(phase["name"], op) for phase in self.json(*words)["phases"] for op in phase["ops"]]
        self.assertEqual(len(rows), len(ops))
        for row, (phase, op) in zip(rows, ops):
            self.assertEqual((row["phase"], row["name"], row["runs"]), (phase, op["name"], op["runs"]))
            for key in ("before_s", "after_s", "change_s", "bytes_before", "flops_after"):
                self.assertEqual(float(row[key]), op[key])

    def test_tables_fit_the_page(self):
        for words in (["--weights w4a16 --batch 8"], ["-m llama-2-13b --weights int8"], ["--hw h100-sxm --tp 2"]):
            for line in self.output("compare", *QWEN, "--against", *words).splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_files_that_are_no_results_are_errors_with_a_place(self):
        document = self.save("a.json", *QWEN)
        text = json.dumps(document, indent=2)

        def refused(text, *fragments):
            self.assert_bad_input(["compare", "a.json", self.write("bad.json", text)], "bad.json", *fragments)
        refused("", "not valid JSON")
        refused(text[:3000], "not valid JSON", "truncated")
        refused("[1, 2]", "1:1", "not an object")
        refused("{}", "'schema' is missing")
        refused(text.replace("llmperf.estimate", "llmperf.limits"), "2:13", "'llmperf.limits'")
        refused(text.replace('"schema_version": 1', '"schema_version": 2'), "3:21", "another version")
        refused(text.replace('"fits": true', '"fits": "true"'), "'fits' is not true or false")
        refused(text.replace('"phases"', '"faces"'), "'phases' is missing")
        refused(text.replace('"count": 32', '"count": "32"', 1), "'count' is not a number")
        refused(text.replace('"time_s": ', '"time_s": -', 1), "'time_s' is negative")
        refused(text.replace('"time_s": ', '"time_s": 1e999, "was_s": ', 1), "number too large")
        refused(text.replace('"ops": [', '"ops": 7, "was": [', 1), "'ops' is not a list")
        self.write("v.json", json.dumps(self.json("estimate", *VIDEO)))
        self.assert_bad_input(["compare", "a.json", "v.json"], "a.json is an estimate of a generation",
                              "v.json is an estimate of generated video")
        self.assert_bad_input(["compare", "a.json", "nothere.json"], "nothere.json", "cannot open")
        self.assert_bad_input(["compare", "a.json", "."], "directory")

    def test_unknown_keys_are_left_alone(self):
        document = self.save("a.json", *QWEN)
        document["a_new_key"] = {"deep": [1, {"x": None}]}
        document["phases"][0]["ops"][0]["new"] = "y"
        self.write("b.json", json.dumps(document))
        self.assertEqual(self.json("compare", "a.json", "b.json")["inputs"], [])

    def test_hostile_names_are_text(self):
        document = self.save("a.json", *QWEN)
        document["phases"][0]["ops"][0]["name"] = "=cmd()\x1b[31m<script>"
        self.write("b.json", json.dumps(document))
        self.assertNotIn("\x1b", self.output("compare", "a.json", "b.json"))
        self.assertIn("'=cmd()", self.output("compare", "a.json", "b.json", "--format", "csv"))

    def test_wrong_requests(self):
        self.save("a.json", *QWEN)
        self.assert_bad_input(["compare"], "--model is required", "llmperf compare before.json after.json")
        self.assert_bad_input(["compare", "a.json"], "two saved results, not 1")
        self.assert_bad_input(["compare", "a.json", "a.json", "-m", "qwen-7b"], "--model has no effect beside saved results")
        self.assert_bad_input(["compare", "a.json", "a.json", "--with", "all"], "--with has no effect beside saved results")
        self.assert_bad_input(["compare", *QWEN], "--with or --against is required")
        self.assert_bad_input(["compare", *QWEN, "--with", "all", "--against", "--batch 2"], "both say")
        self.assert_bad_input(["compare", "-m", "qwen-7b", "--hw", "all", "--against", "--batch 2"], "no first device")
        self.assert_bad_input(["compare", *TRAINING, "--with", "all"], "--with compares steps of inference")

        def against(flags, *fragments):
            self.assert_bad_input(["compare", *QWEN, "--against", flags], "--against", *fragments)
        against("--weights 'w4a16", "a quote is not closed")
        against("--batch 2\\", "a backslash ends the line")
        against("--wieghts w4a16", "unknown flag '--wieghts'", "--weights")
        against("--weights w4b16", "unknown weight scheme", "w4a16")
        against("--batch", "--batch needs a value")
        against("--batch 2 --batch 3", "more than once")
        against("--json", "--json is no flag of a request")
        against("--against=x", "--against is no flag of a request")
        against("w4a16", "unexpected argument", "--against '--weights w4a16 --batch 8'")
        against("--weights w4a16 --help", "unknown flag '--help'")
        against("   ", "names no flag")
        self.assertEqual(self.threshold(*QWEN, "--against", "--batch 2", "--max-slowdown", "x").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
