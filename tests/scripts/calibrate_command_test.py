#!/usr/bin/env python3
"""llmperf calibrate as a user sees it: the file it writes predicts as it said, and data that would make a silly profile do not
make one."""
import csv
import os
import unittest

from program import FAILED, ROOT, USAGE, ProgramTest

OPS = "hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us"
STEPS = "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms"


def shipped(name):
    """The rows of a shipped file, as dicts."""
    with open(os.path.join(ROOT, "hardware", "measurements", name), encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


GEMMS = [row for row in shipped("rtx4090-ops.csv") if row["op"] == "gemm"]
LLAMA = [row for row in shipped("rtx4090-qwen1.5.csv") if row["runtime"] == "llama.cpp" and row["weights"] == "q4_0"][::3]


class Calibrate(ProgramTest):
    def file(self, rows, name="rows.csv", **changed):
        """The rows with columns changed: latency_us=lambda row: …"""
        lines = [",".join(rows[0])]
        for row in rows:
            row = dict(row, **{key: str(change(row)) for key, change in changed.items()})
            lines.append(",".join(row.values()))
        return self.write(name, "\n".join(lines) + "\n")

    def words(self, file, *more):
        return ["calibrate", file, "--hw", "rtx4090", *more]

    def calibrate(self, file, *more):
        return self.json(*self.words(file, *more))

    def assert_refused(self, file, *fragments, words=()):
        """No profile comes of it, not even a file."""
        self.assert_bad_input(self.words(file, "-o", "./refused.yaml", *words), *fragments)
        self.assertFalse(os.path.exists(self.path("refused.yaml")))

    def test_the_profile_it_writes_predicts_as_it_said(self):
        file = self.file(GEMMS)
        document = self.calibrate(file, "-o", "./mine.yaml")
        self.assertEqual(document["schema"], "llmperf.calibrate")
        self.assertEqual((document["hardware"], document["runtime"]), ("rtx4090", "vllm"))
        summary = self.json("validate", file, "--runtime", "./mine.yaml")["summary"]
        for key in ("mape", "median_ape", "p90_ape", "bias"):  # the file has six digits of every number
            self.assertAlmostEqual(summary[key], document["residuals"]["summary"][key], delta=2e-5)
        self.assertLess(summary["mape"], summary["fitted_roofline_mape"])
        self.assertLess(summary["fitted_roofline_mape"], summary["roofline_mape"])
        self.assertEqual(os.listdir(self.folder).count("mine.yaml"), 1)
        self.assertNotIn("mine.yaml.part", os.listdir(self.folder))

    def test_the_errors_it_stores_are_those_of_groups_left_out(self):
        document = self.calibrate(self.file(GEMMS), "-o", "./mine.yaml")
        left = document["cross_validation"][0]
        self.assertGreater(left["folds"], 1)
        group = next(g for g in left["groups"] if (g["by"], g["name"]) == ("op", "gemm"))
        self.assertGreater(left["summary"]["mape"], document["residuals"]["summary"]["mape"])
        with open(self.path("mine.yaml"), encoding="utf-8") as profile:
            stored = next(line for line in profile if 'group: "gemm"' in line)
        self.assertIn(f"mean: {group['mape']:.4g}", stored)
        self.assertIn(f"rows: {len(GEMMS)}", stored)

    def test_training_steps_make_a_profile_too(self):
        words = ["--hw", "h100-sxm", "--runtime", "pytorch-fsdp@2024", "-o", "./mine.yaml"]
        document = self.json("calibrate", "training", *words)
        self.assertLess(document["residuals"]["summary"]["mape"], document["before"]["summary"]["mape"])
        left = document["cross_validation"][0]
        self.assertGreater(left["folds"], 1)
        rows = self.file([row for row in shipped("training.csv") if row["hardware"] == "h100-sxm" and row["year"] == "2024" and row["source"] in ("torchtitan", "fms-fsdp")])
        summary = self.json("validate", rows, "--runtime", "./mine.yaml")["summary"]
        self.assertAlmostEqual(summary["mape"], document["residuals"]["summary"]["mape"], delta=2e-5)
        page = self.output("estimate", "-m", "llama-3-8b", "--hw", "h100-sxm", "--training", "--dp", "8", "--dp-mode", "fsdp",
                         "--runtime", "./mine.yaml")
        self.assertIn("predicted: pytorch-fsdp", page)
        self.assert_bad_input(["calibrate", "training", "--hw", "h100-sxm", "--runtime", "vllm"], "vllm")
        self.assert_bad_input(["calibrate", "training", "h100-sxm-steps", "--hw", "h100-sxm"], "training steps and others")

    def test_steps_of_models_make_a_profile_too(self):
        file = self.file(LLAMA)
        document = self.calibrate(file, "--runtime", "llama.cpp", "-o", "./mine.yaml")
        validated = self.json("validate", file, "--runtime", "./mine.yaml")
        self.assertAlmostEqual(validated["summary"]["mape"], document["residuals"]["summary"]["mape"], delta=2e-5)
        self.assertEqual(document["cross_validation"][0]["folds"], len({row["model"] for row in LLAMA}))
        self.assertFalse(any(row["extrapolated"] for row in validated["rows"]))
        self.assertFalse(any(row["class_default"] for row in validated["rows"]))

    def test_a_profile_calibrated_twice_is_the_same_profile(self):
        file = self.file(GEMMS)
        self.output(*self.words(file, "-o", "./once.yaml"))
        self.output(*self.words(file, "--runtime", "./once.yaml", "-o", "./twice.yaml"))
        texts = []
        for name in ("once.yaml", "twice.yaml"):
            with open(self.path(name), encoding="utf-8") as profile:
                texts.append([line for line in profile if "group:" in line or "name: gemm." in line])
        self.assertEqual(*texts)

    def test_what_the_rows_do_not_know_stays_at_its_default(self):
        document = self.calibrate(self.file([row for row in GEMMS if int(float(row["m"])) <= 8]))
        parameters = {p["name"]: p for p in document["parameters"]}
        self.assertTrue(parameters["gemm.memory_share"]["identified"])
        self.assertFalse(parameters["gemm.share_256"]["identified"])  # eight rows never need the large tiles
        self.assertEqual(parameters["gemm.share_256"]["value"], parameters["gemm.share_256"]["default"])
        self.assertIsNone(parameters["gemm.share_256"]["relative_error"])
        self.assertNotIn("decode.launch", parameters)
        self.assertGreater(parameters["gemm.memory_share"]["relative_error"], 0)

    def test_too_few_rows_are_refused(self):
        self.assert_refused(self.file(GEMMS[:1]), "1 measurement of different things", "rows.csv")
        self.assert_refused(self.file([GEMMS[0]] * 20), "1 measurement of different things")
        self.assert_refused(self.file(GEMMS[:2]), "2 measurements of different things")

    def test_latencies_that_are_not_positive_are_refused_with_their_line(self):
        for latency in ("0", "-5", "nan", "inf", "1e-400", "", "12 us"):
            with self.subTest(latency):
                file = self.file(GEMMS, latency_us=lambda row: latency if row is GEMMS[4] else row["latency_us"])
                self.assert_refused(file, "rows.csv:6", words=("--strict",))
                document = self.calibrate(file)
                self.assertEqual([line["line"] for line in document["refused"]], [6])
                self.assertEqual(document["residuals"]["summary"]["rows"], len(GEMMS) - 1)

    def test_a_latency_that_never_changes_is_refused(self):
        self.assert_refused(self.file(GEMMS, latency_us=lambda row: 12.5), "every latency is 12.5 us")

    def test_latencies_in_another_unit_are_refused(self):
        self.assert_refused(self.file(GEMMS, latency_us=lambda row: float(row["latency_us"]) / 1000), "gemm rows are", "milliseconds")
        self.assert_refused(self.file(GEMMS, latency_us=lambda row: float(row["latency_us"]) * 1000), "gemm rows are", "nanoseconds")
        for factor, unit in ((1e-3, "seconds"), (1e3, "microseconds")):
            file = self.file(LLAMA, latency_ms=lambda row: float(row["latency_ms"]) * factor)
            self.assert_bad_input(self.words(file, "--runtime", "llama.cpp"), "latency_ms looks like " + unit)

    def test_a_column_that_never_changes_is_warned_of(self):
        rows = [row for row in GEMMS if int(float(row["m"])) == 1]
        self.assertTrue(rows)
        many = [dict(row, m="1", n=str(256 * i), k="4096", latency_us=str(4 + 2.4 * i)) for i, row in enumerate(GEMMS[:20], 1)]
        warnings = self.calibrate(self.file(many))["warnings"]
        self.assertTrue(any("every gemm row has m 1, k 4096" in warning for warning in warnings), warnings)

    def test_copies_count_once_and_contradictions_are_warned_of(self):
        once = self.calibrate(self.file(GEMMS))
        twice = self.calibrate(self.file(GEMMS + GEMMS))
        self.assertTrue(any("copy of another" in w or "copies" in w for w in twice["warnings"]), twice["warnings"])
        for a, b in zip(once["parameters"], twice["parameters"]):
            self.assertAlmostEqual(a["value"] / b["value"], 1, delta=1e-6, msg=a["name"])
        slow = dict(GEMMS[3], latency_us=str(5 * float(GEMMS[3]["latency_us"])))
        warnings = self.calibrate(self.file([*GEMMS, slow]))["warnings"]
        self.assertTrue(any("differ by a factor of 5" in warning for warning in warnings), warnings)

    def test_rows_of_other_devices_and_runtimes_are_left_out_with_a_warning(self):
        others = [dict(row, hardware="a100-sxm-80gb") for row in GEMMS[:7]]
        document = self.calibrate(self.file([*GEMMS, *others]))
        self.assertEqual(document["residuals"]["summary"]["rows"], len(GEMMS))
        self.assertTrue(any(warning.startswith("7 rows are of another device") for warning in document["warnings"]))
        self.assert_refused(self.file(others), "no rows to calibrate with")
        self.assert_refused(self.file(LLAMA), "no rows to calibrate with")  # the device's own runtime is vllm

    def test_wrong_requests(self):
        file = self.file(GEMMS)
        self.assert_bad_input(["calibrate", file], "--hw")
        self.assert_bad_input(["calibrate", file, "--hw", "rtx4091"], "'rtx4091'", "'rtx4090'")
        self.assert_bad_input(self.words(file, "--runtime", "vlm"), "'vlm'", "'vllm'")
        self.assert_bad_input(self.words("./missing.csv"), "missing.csv")
        self.assert_bad_input(self.words("rtx4090-opps"), "'rtx4090-ops'")
        self.assert_error(self.run_program(*self.words(file, "-o", "./no/such/folder/mine.yaml")), FAILED, "cannot write")


if __name__ == "__main__":
    unittest.main()
