#!/usr/bin/env python3
"""Every cell of the tables a public study printed, through `llmperf limits --units article`; and the flags of limits."""
import csv
import io
import os
import unittest

from program import INFEASIBLE, ROOT, ProgramTest

# What the study prints and what its own formulas give: (table, model, column) -> value. Listed in docs/errata.md.
ERRATA = {
    ("qwen15_kv_cache_1024", "qwen1.5-110b", "kv_MiParams_per_1024_tokens"): 160,
    ("qwen15_rtx4090_kv_tokens", "qwen1.5-110b", "kv_MiParams_per_token"): 0.15625,
}


def published(table):
    with open(os.path.join(ROOT, "tests", "cost", "data", table + ".csv"), encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class PublishedTables(ProgramTest):
    def setUp(self):
        super().setUp()
        names = [row["model"] for row in published("qwen15_params")]
        document = self.json("limits", "--model", ",".join(names), "--hw", "rtx4090", "--units", "article", "--weights",
                             "w16kv16,w8kv16,w4kv16,w6kv16")
        self.rows = {(row["model"], row["precision"]): row for row in document["rows"]}
        self.assertEqual(len(self.rows), 40)

    def check(self, table, columns):
        """`columns`: name in the published table -> (precision, key of the JSON row, tolerance). Returns cells compared."""
        cells = 0
        for row in published(table):
            for column, (precision, key, tolerance) in columns.items():
                cells += 1
                value = self.rows[row["model"], precision][key]
                with self.subTest(table=table, model=row["model"], column=column):
                    erratum = ERRATA.get((table, row["model"], column))
                    if erratum is not None:
                        self.assertEqual(value, erratum)
                        self.assertNotEqual(float(row[column]), erratum)
                    elif row[column] in ("oom", "none"):
                        self.assertIsNone(value)
                    else:
                        self.assertIsNotNone(value)
                        self.assertLessEqual(abs(value - float(row[column])), tolerance)
        return cells

    def test_parameters(self):
        columns = {name: ("w16kv16", name, 0.01) for name in
                   ["decoder_layers_GiParams", "lm_head_GiParams", "activated_GiParams", "total_GiParams"]}
        self.assertEqual(self.check("qwen15_params", columns), 40)

    def test_dimensions(self):
        """The remaining columns of the table are the models' own; `show` prints them."""
        for row in published("qwen15_params"):
            model = self.json("show", "model", row["model"])
            kind, = model["layer_kinds"]
            with self.subTest(model=row["model"]):
                self.assertEqual([model["vocab_size"], model["hidden_size"], model["num_layers"], kind["heads"] // kind["kv_heads"]],
                                 [int(row[name]) for name in ["vocab_size", "hidden_size", "num_hidden_layers", "n_groups"]])
                # 110b-mha is printed with half the width that its own results need.
                width = 49152 if row["model"] == "qwen1.5-110b-mha" else int(row["intermediate_size"])
                self.assertEqual(kind["intermediate"], width)

    def test_kv_cache(self):
        columns = {"kv_MiParams_per_1024_tokens": ("w16kv16", "kv_MiParams_per_1024_tokens", 0)}
        self.assertEqual(self.check("qwen15_kv_cache_1024", columns), 10)

    def test_tokens_that_fit(self):
        columns = {name: (name, "kv_tokens_that_fit", 1) for name in ["w16kv16", "w8kv16", "w4kv16", "w6kv16"]}
        columns["kv_MiParams_per_token"] = ("w16kv16", "kv_MiParams_per_token", 0)
        self.assertEqual(self.check("qwen15_rtx4090_kv_tokens", columns), 50)

    def test_prefill_inflection(self):
        columns = {f"{precision}_{kind}_{point}": (precision, f"prefill_{kind}_{point}_tokens", 1)
                   for precision in ["w16kv16", "w8kv16", "w4kv16"] for kind in ["rough", "exact"] for point in ["first", "second"]}
        self.assertEqual(self.check("qwen15_rtx4090_prefill_inflection", columns), 120)

    def test_decode_limits(self):
        columns = {}
        for precision in ["w16kv16", "w8kv16", "w4kv16"]:
            columns[precision + "_W_tokens_per_ms"] = (precision, "decode_W_tokens_per_ms", 1)
            columns[precision + "_B_ms"] = (precision, "decode_B_ms", 0.01)
        self.assertEqual(self.check("qwen15_rtx4090_decode_limits", columns), 60)

    def test_the_table_for_people_prints_the_same_cells(self):
        text = self.output("limits", "--model", "qwen1.5-7b,qwen1.5-110b", "--hw", "rtx4090", "--units", "article")
        for line in ["qwen1.5-7b      6.03     0.58       6.61    7.19        0.25        256",
                     "qwen1.5-7b    w16kv16       22,072     99     553    113     481      2064   13.12 ms",
                     "qwen1.5-110b  w4kv16           oom     20  17,665     21  17,464      3303   50.80 ms"]:
            self.assertIn(line, text)


class Limits(ProgramTest):
    FAMILY = ["limits", "-m", "qwen1.5-0.5b,qwen1.5-7b", "--hw", "rtx4090"]

    def test_one_row_for_each_model_and_precision_in_the_order_asked_for(self):
        rows = self.json(*self.FAMILY, "--weights", "w4a16-g128,bf16,4.5")["rows"]
        self.assertEqual([(row["model"], row["precision"]) for row in rows],
                         [(m, p) for m in ["qwen1.5-0.5b", "qwen1.5-7b"] for p in ["w4a16-g128", "bf16", "4.5"]])
        table = list(csv.DictReader(io.StringIO(self.output(*self.FAMILY, "--format", "csv"))))
        self.assertEqual([row["precision"] for row in table], ["w16kv16", "w8kv16", "w4kv16"] * 2)

    def test_si_units_take_the_datasheet_figures_as_they_are(self):
        document = self.json(*self.FAMILY)
        self.assertEqual([document["units"], document["bandwidth_bytes_per_s"], document["compute_flops_per_s"],
                          document["capacity_bytes"]], ["si", 1008e9, 165.2e12, 23.52 * 2**30])
        # Reading the weights once: 2 bytes of each activated parameter.
        row = document["rows"][0]
        self.assertAlmostEqual(row["decode_B_s"], 2 * row["activated_parameters"] / 1008e9, delta=1e-12)

    def test_the_kv_flag_sets_the_width_where_a_precision_names_none(self):
        rows = self.json(*self.FAMILY, "--weights", "bf16,w16kv16", "--kv", "int8")["rows"]
        self.assertEqual(rows[0]["kv_bytes_per_token"] * 2, rows[1]["kv_bytes_per_token"])


class SpeculativeDecoding(ProgramTest):
    WORDS = ["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--draft", "qwen-1.8b"]

    def test_the_best_draft_length_is_the_fastest_of_all_rounds(self):
        study = self.json(*self.WORDS, "--accept", "0.8")["speculation"]
        best = max(study["rounds"], key=lambda r: r["speedup"])
        self.assertEqual((study["best_draft_length"], study["best_speedup"]), (best["draft_length"], best["speedup"]))
        for r in study["rounds"]:
            # 1 + a + a^2 + ... + a^k tokens of a round, against one step of the target each.
            tokens = (1 - 0.8 ** (r["draft_length"] + 1)) / (1 - 0.8)
            self.assertAlmostEqual(r["expected_tokens"], tokens, delta=1e-9)
            self.assertAlmostEqual(r["speedup"], tokens * study["target_step_s"] / (r["draft_s"] + r["verify_s"]), delta=1e-9)

    def test_nothing_is_gained_when_nothing_is_accepted(self):
        study = self.json(*self.WORDS, "--accept", "0")["speculation"]
        self.assertEqual((study["best_draft_length"], study["best_speedup"]), (0, 1))
        self.assertIn("no draft length is faster", self.output(*self.WORDS, "--accept", "0"))

    def test_a_better_draft_gains_more(self):
        gains = [self.json(*self.WORDS, "--accept", p)["speculation"]["best_speedup"] for p in ["0.2", "0.5", "0.8", "0.99"]]
        self.assertEqual(gains, sorted(gains))
        self.assertGreater(gains[-1], gains[0])

    def test_batch_and_context_are_those_asked_for(self):
        study = self.json(*self.WORDS, "--accept", "0.5", "--batch", "2", "--context", "2000")["speculation"]
        self.assertEqual((study["batch"], study["context_tokens"], study["draft"]), (2, 2000, "qwen-1.8b"))

    def test_a_precision_means_its_own_scheme_and_cache(self):
        for precision, scheme in [("w16kv16", "bf16"), ("w4", "4"), ("fp8kv8", "fp8"), ("w4a16kv16", "w4a16-g128")]:
            study = self.json(*self.WORDS, "--accept", "0.8", "--weights", precision)["speculation"]
            self.assertEqual((study["target_weights"], study["draft_weights"]), (scheme, scheme), precision)
        steps = [self.json(*self.WORDS, "--accept", "0.8", "--context", "1000", "--weights", p)["speculation"]["target_step_s"]
                 for p in ["w8kv16", "w8kv8", "w8kv4"]]
        self.assertGreater(steps[0], steps[1])
        self.assertGreater(steps[1], steps[2])

    def test_a_gain_by_guessing_is_a_bound_under_the_acceptance_that_was_given(self):
        text = " ".join(self.output(*self.WORDS, "--accept", "0.8").split())
        self.assertRegex(text, r"best draft length \d+: at most \S+ times faster, at the speed of light and if 0\.8 of the drafted tokens are accepted")
        self.assertNotIn("times faster", self.output("limits", "-m", "llama-3.1-8b", "--hw", "h100-sxm"))

    def test_devices_that_share_every_matrix(self):
        one = self.json("limits", "-m", "llama-3.1-70b", "--hw", "h100-sxm", "--weights", "bf16")
        eight = self.json("limits", "-m", "llama-3.1-70b", "--hw", "h100-sxm", "--weights", "bf16", "--tp", "8")
        self.assertEqual(eight["devices"], 8)
        self.assertEqual(eight["capacity_bytes"], 8 * one["capacity_bytes"])
        self.assertAlmostEqual(eight["rows"][0]["decode_B_s"] * 8, one["rows"][0]["decode_B_s"])
        self.assertIsNone(one["rows"][0]["kv_tokens_that_fit"])
        self.assertGreater(eight["rows"][0]["kv_tokens_that_fit"], 1_000_000)
        refused = self.run_program("limits", "-m", "llama-3.1-70b", "--hw", "h100-sxm", "--tp", "7").stderr
        self.assertIn("error: --tp: 64 heads", refused)

    def test_a_pair_that_does_not_fit_says_so(self):
        words = ["limits", "-m", "llama-2-13b", "--hw", "rtx4090", "--draft", "llama-2-7b", "--accept", "0.7"]
        self.assertIs(self.json(*words, status=INFEASIBLE)["speculation"]["fits"], False)
        done = self.run_program(*words)
        self.assertEqual(done.returncode, INFEASIBLE)
        self.assertIn("does NOT fit", done.stdout)
        self.assertIn("do not fit on rtx4090 together", done.stderr)


if __name__ == "__main__":
    unittest.main()
