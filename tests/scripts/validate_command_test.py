#!/usr/bin/env python3
"""llmperf validate as a user sees it: errors are those of its own rows, every row finds its profile, bad rows have a line."""
import csv
import io
import json
import os
import statistics
import subprocess
import unittest

from program import DONE, PROGRAM, SECONDS, USAGE, ProgramTest

THRESHOLD = 4
STEPS = "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms"
OPS = "hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us"
DECODE = "rtx4090,1,vllm,,,qwen1.5-7b,bf16,1,decode,1,100,17"
PREFILL = "rtx4090,1,vllm,,,qwen1.5-7b,bf16,2,prefill,300,0,60"
GEMM = "rtx4090,gemm,bf16,1,,64,4096,4096,,,,,,,,45"


class Validate(ProgramTest):
    def file(self, *rows, header=STEPS, name="rows.csv"):
        return self.write(name, "\n".join([header, *rows]) + "\n")

    def validate(self, *rows, words=(), header=STEPS):
        return self.json("validate", self.file(*rows, header=header), *words)

    def threshold(self, *words):
        """A run that may end with exit status 4."""
        env = dict(os.environ, LLMPERF_PATH="")
        return subprocess.run([PROGRAM, "validate", *words], cwd=self.folder, env=env, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)

    def test_errors_are_those_of_the_rows(self):
        document = self.validate(DECODE, PREFILL, DECODE.replace("100,17", "4000,25"))
        self.assertEqual(document["schema"], "llmperf.validate")
        rows = document["rows"]
        self.assertEqual([row["measured_s"] for row in rows], [0.017, 0.06, 0.025])
        self.assertEqual([row["line"] for row in rows], [2, 3, 4])
        for row in rows:
            self.assertAlmostEqual(row["error"], row["predicted_s"] / row["measured_s"] - 1, delta=1e-12)
            self.assertGreaterEqual(row["predicted_s"], row["roofline_s"])
        errors = [row["error"] for row in rows]
        summary = document["summary"]
        self.assertEqual(summary["rows"], 3)
        self.assertAlmostEqual(summary["mape"], sum(map(abs, errors)) / 3, delta=1e-12)
        self.assertAlmostEqual(summary["median_ape"], statistics.median(map(abs, errors)), delta=1e-12)
        ordered = sorted(map(abs, errors))
        self.assertAlmostEqual(summary["p90_ape"], ordered[1] + 0.8 * (ordered[2] - ordered[1]), delta=1e-12)
        self.assertAlmostEqual(summary["bias"], sum(errors) / 3, delta=1e-12)
        roofline = [abs(row["roofline_s"] / row["measured_s"] - 1) for row in rows]
        self.assertAlmostEqual(summary["roofline_mape"], sum(roofline) / 3, delta=1e-12)
        groups = {(group["by"], group["name"]): group for group in document["groups"]}
        self.assertEqual(groups["phase", "decode"]["rows"], 2)
        self.assertAlmostEqual(groups["phase", "prefill"]["bias"], errors[1], delta=1e-12)
        self.assertEqual(groups["model", "qwen1.5-7b"]["mape"], summary["mape"])
        self.assertEqual(groups["batch_band", "1"]["rows"], 2)
        for key in ("mape", "median_ape", "p90_ape", "bias", "roofline_mape", "fitted_roofline_mape"):
            self.assertIn(key, groups["phase", "decode"])

    def test_rows_of_kernels_are_grouped_by_op_and_rows(self):
        document = self.validate(GEMM, GEMM.replace(",64,", ",1,"), "rtx4090,attention_decode,bf16,1,8,,,,1,512,32,8,128,1,,30",
                                 header=OPS)
        groups = {(group["by"], group["name"]): group["rows"] for group in document["groups"]}
        self.assertEqual(groups["op", "gemm"], 2)
        self.assertEqual(groups["op", "attention_decode"], 1)
        self.assertEqual(groups["m_band", "1"], 1)
        self.assertEqual(groups["m_band", "17-64"], 1)
        self.assertEqual({row["profile"] for row in document["rows"]}, {"vllm on rtx4090"})

    def test_bad_lines_are_refused_and_the_others_scored(self):
        bad = [DECODE.replace("qwen1.5-7b", "qwen1.5-7x"), PREFILL.replace(",2,", ",0,")]
        document = self.validate(DECODE, *bad, PREFILL)
        self.assertEqual([row["line"] for row in document["rows"]], [2, 5])
        self.assertEqual([line["line"] for line in document["refused"]], [3, 4])
        self.assertIn("qwen1.5-7b", document["refused"][0]["hint"])
        self.assertEqual(document["summary"]["rows"], 2)
        file = self.file(DECODE, *bad, PREFILL)
        done = self.threshold(file)
        self.assertEqual(done.returncode, DONE)
        self.assertIn("2 lines refused", done.stdout)
        self.assert_bad_input(["validate", file, "--strict"], "rows.csv:3", "rows.csv:4")
        self.assert_bad_input(["validate", self.file(*bad)], "rows.csv:2", "rows.csv:3")

    def test_five_columns_are_enough(self):
        file = self.file("1,512,128,52.4,18.1", "8,512,128,281,20.3", header="batch,prompt,gen,ttft_ms,tpot_ms")
        document = self.json("validate", file, "--hw", "rtx4090", "--model", "llama-3.1-8b", "--weights", "bf16")
        rows = document["rows"]
        self.assertEqual([row["phase"] for row in rows], ["prefill", "decode"] * 2)
        self.assertEqual([row["context"] for row in rows], [0, 576] * 2)
        self.assertEqual({row["profile"] for row in rows}, {"vllm on rtx4090"})
        self.assertEqual(document["refused"], [])
        self.assert_bad_input(["validate", file, "--hw", "rtx4090"], "'model', 'weights'")

    def test_a_threshold_is_an_exit_status(self):
        file = self.file(DECODE, PREFILL)
        mape = json.loads(self.threshold(file, "--json").stdout)["summary"]["mape"]
        self.assertEqual(self.threshold(file, "--max-mape", str(mape * 1.01)).returncode, DONE)
        done = self.threshold(file, "--max-mape", str(mape * 0.99))
        self.assertEqual(done.returncode, THRESHOLD)
        self.assertIn("--max-mape", done.stderr)
        self.assertIn("mean error", done.stdout)  # the table is printed all the same
        self.assert_bad_input(["validate", file, "--max-mape", "eight"], "--max-mape")
        self.assert_bad_input(["validate", file, "--max-mape", "-1"], "--max-mape")

    def test_columns_without_a_meaning_are_kept(self):
        file = self.file(DECODE + ",me,7", header=STEPS + ",who,error")
        row = self.json("validate", file)["rows"][0]
        self.assertEqual((row["who"], row["input_error"]), ("me", "7"))
        table = list(csv.DictReader(io.StringIO(self.output("validate", file, "--format", "csv"))))
        self.assertEqual((table[0]["who"], table[0]["input_error"], table[0]["line"]), ("me", "7", "2"))
        self.assertEqual(float(table[0]["predicted_s"]), row["predicted_s"])

    def test_columns_come_in_any_order(self):
        fields, names = DECODE.split(","), STEPS.split(",")
        backwards = self.validate(",".join(reversed(fields)), header=",".join(reversed(names)))["rows"][0]
        forwards = self.validate(DECODE)["rows"][0]
        self.assertEqual(backwards["predicted_s"], forwards["predicted_s"])

    def test_every_bad_row_is_an_error_with_its_line(self):
        file = self.file(DECODE, DECODE.replace(",17", ",0"), DECODE.replace(",17", ",-3"), DECODE.replace(",17", ",fast"),
                         DECODE.replace("decode", "decoding"), DECODE + ",1")
        done = self.run_program("validate", file, "--strict")
        self.assert_error(done, USAGE, *(f"rows.csv:{line}" for line in (3, 4, 5, 6, 7)))
        self.assertNotIn("rows.csv:2", done.stderr)
        self.assert_bad_input(["validate", self.file()], "no rows")
        self.assert_bad_input(["validate", self.write("empty.csv", "")], "empty.csv", "no header line")
        self.assert_bad_input(["validate", self.file(DECODE, header=STEPS.replace("weights", "wieghts"))], "'weights'")
        self.assert_bad_input(["validate", "./missing.csv"], "missing.csv")

    def test_names_that_do_not_exist_are_errors_with_their_line(self):
        cases = {"rtx4090": "rtx4091", "qwen1.5-7b": "qwen1.5-7c", "bf16": "bf61"}
        for right, wrong in cases.items():
            with self.subTest(wrong):
                file = self.file(DECODE, DECODE.replace(right, wrong))
                self.assert_bad_input(["validate", file, "--strict"], "rows.csv:3", wrong)
        self.assert_bad_input(["validate", self.file(DECODE.replace("vllm,,", "vllm,,fused_qvk"))], "rows.csv:2", "fused_qkv")
        self.assert_bad_input(["validate", self.file(DECODE), "--runtime", "vlm"], "unknown runtime 'vlm'", "'vllm'")
        self.assert_bad_input(["validate", "rtx4090-opps"], "unknown measurements 'rtx4090-opps'", "'rtx4090-ops'")
        self.assert_bad_input(["validate"], "measurements")

    def test_the_runtime_none_is_the_speed_of_light(self):
        document = self.validate(DECODE, PREFILL, words=["--runtime", "none"])
        for row in document["rows"]:
            self.assertEqual((row["predicted_s"], row["profile"]), (row["roofline_s"], "none"))
            self.assertFalse(row["extrapolated"] or row["class_default"])
        self.assertEqual(document["summary"]["mape"], document["summary"]["roofline_mape"])
        words = ["-m", "qwen1.5-7b", "--hw", "rtx4090", "--runtime", "none", "--weights", "bf16", "--batch", "2", "--prompt",
                 "300", "--gen", "1"]
        self.assertAlmostEqual(document["rows"][1]["predicted_s"], self.json("estimate", *words)["ttft_s"], delta=1e-9)

    def test_a_row_is_predicted_as_estimate_predicts_it(self):
        row = self.validate(PREFILL)["rows"][0]
        words = ["-m", "qwen1.5-7b", "--hw", "rtx4090", "--runtime", "vllm", "--weights", "bf16", "--batch", "2", "--prompt",
                 "300", "--gen", "1"]
        self.assertAlmostEqual(row["predicted_s"], self.json("estimate", *words)["ttft_s"], delta=1e-9)

    def test_rows_find_the_profile_of_their_runtime(self):
        profile = {runtime: self.validate(DECODE.replace("vllm", runtime))["rows"][0]
                   for runtime in ("vllm", "vllm-0.4", "transformers", "sglang", "tgi")}
        self.assertEqual(profile["vllm"]["profile"], "vllm on rtx4090")
        self.assertEqual(profile["vllm-0.4"]["profile"], "vllm on rtx4090")
        self.assertEqual(profile["vllm-0.4"]["predicted_s"], profile["vllm"]["predicted_s"])
        self.assertEqual(profile["transformers"]["profile"], "transformers on rtx4090")
        self.assertNotEqual(profile["transformers"]["predicted_s"], profile["vllm"]["predicted_s"])
        self.assertEqual(profile["sglang"]["profile"], "sglang: kernels of vllm on rtx4090")
        self.assertEqual([row["class_default"] for row in profile.values()], [False, False, False, False, True])
        by_flag = self.validate(DECODE, words=["--runtime", "transformers"])["rows"][0]
        self.assertEqual(by_flag["predicted_s"], profile["transformers"]["predicted_s"])

    def test_rows_of_a_device_without_a_profile_are_by_the_defaults_of_its_class(self):
        file = self.file(DECODE, DECODE.replace("rtx4090", "rtx3090"))
        rows = self.json("validate", file)["rows"]
        self.assertEqual([row["class_default"] for row in rows], [False, True])
        self.assertIn("defaults", rows[1]["profile"])
        self.assertIn("by defaults of the device's class", self.output("validate", file))

    def test_rows_beyond_what_was_fitted_are_extrapolated(self):
        rows = self.validate(DECODE, DECODE.replace("bf16,1,", "bf16,1024,"), DECODE.replace("1.5-7b", "1.5-110b"))["rows"]
        self.assertEqual([row["extrapolated"] for row in rows], [False, True, True])
        self.assertIn("batch 1,024", rows[1]["remark"])
        self.assertIn("parameters", rows[2]["remark"])

    def test_rows_marked_untrusted_are_listed_and_not_scored(self):
        document = self.validate(DECODE + ",", DECODE.replace(",17", ",900") + ",a copy of another row",
                                 header=STEPS + ",untrusted")
        self.assertEqual([row["scored"] for row in document["rows"]], [True, False])
        self.assertEqual(document["rows"][1]["remark"], "a copy of another row")
        self.assertEqual(document["summary"]["rows"], 1)
        self.assertLess(document["summary"]["mape"], 1)

    def test_one_row_is_enough(self):
        summary = self.validate(DECODE)["summary"]
        self.assertEqual(summary["rows"], 1)
        self.assertEqual(summary["mape"], summary["p90_ape"])

    def test_files_of_both_schemas_go_together(self):
        document = self.json("validate", self.file(DECODE), self.file(GEMM, header=OPS, name="ops.csv"))
        self.assertEqual([file["path"] for file in document["files"]], ["./rows.csv", "./ops.csv"])
        self.assertEqual([row["file"] for row in document["rows"]], ["./rows.csv", "./ops.csv"])

    def test_built_in_measurements_go_by_name(self):
        document = self.json("validate", "atlas-800i-a2-llama-2-70b")
        self.assertGreater(document["summary"]["rows"], 60)
        self.assertLess(document["summary"]["mape"], 0.06)
        self.assertTrue(document["files"][0]["notes"])
        own = self.path("override/hardware/measurements")
        os.makedirs(own)
        self.file(GEMM, header=OPS, name="override/hardware/measurements/rtx4090-ops.csv")
        self.assertEqual(self.json("validate", "rtx4090-ops", search_path="./override")["summary"]["rows"], 1)


if __name__ == "__main__":
    unittest.main()
