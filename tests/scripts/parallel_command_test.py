#!/usr/bin/env python3
"""llmperf parallel as a user sees it: the table, the CSV and the JSON say the same, and so do the estimates of single plans."""
import csv
import io
import json
import unittest

from program import INFEASIBLE, ProgramTest

LLAMA = ["parallel", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--devices", "8", "--batch", "8", "--seq", "1024"]
GPT = ["parallel", "-m", "megatron-22b", "--hw", "a100-sxm-80gb", "--devices", "8", "--batch", "8", "--training"]


class Parallel(ProgramTest):
    def document(self, words):
        return json.loads(self.output(*words, "--json"))

    def test_a_plan_costs_what_its_devices_do_while_it_takes_its_tokens(self):
        words = ("parallel", "-m", "llama-3-8b", "--hw", "h100-sxm", "--devices", "4", "--batch", "8", "--seq", "512")
        document = self.json(*words, "--price", "3EUR")
        self.assertEqual(document["currency"], "EUR")
        for plan in document["plans"]:
            if plan["fits"]:
                self.assertAlmostEqual(plan["cost_per_million_tokens"], 4 * 3 / 3600 * plan["step_s"] / (8 * 512) * 1e6)
        self.assertIn("EUR/M", self.output(*words, "--price", "3EUR"))
        free = self.json(*words[:4], "ascend-910b3", *words[5:])  # nobody rents it out
        self.assertEqual((free["currency"], free["plans"][0]["cost_per_million_tokens"]), (None, None))

    def test_plans_are_ranked_by_fit_and_time(self):
        for words in (LLAMA, GPT):
            with self.subTest(words=words):
                study = self.document(words)
                plans = study["plans"]
                self.assertEqual(study["legal"], len(plans))
                self.assertEqual(study["fitting"], sum(plan["fits"] for plan in plans))
                self.assertEqual([plan["rank"] for plan in plans], list(range(1, len(plans) + 1)))
                times = [plan["step_s"] for plan in plans if plan["fits"]]
                self.assertEqual(times, sorted(times))
                self.assertEqual([plan["fits"] for plan in plans], sorted((plan["fits"] for plan in plans), reverse=True))
                for plan in plans:
                    self.assertEqual(plan["plan"]["devices"], 8)
                    self.assertEqual(plan["fits"], plan["memory"]["total_bytes"] <= study["capacity_bytes"])

    def test_every_csv_cell_stands_under_its_name(self):
        plans = self.document(LLAMA)["plans"]
        for plan, row in zip(plans, csv.DictReader(io.StringIO(self.output(*LLAMA, "--format", "csv")))):
            self.assertNotIn(None, row)  # a row longer than the header
            self.assertEqual(float(row["communication_s"]), plan["communication_s"])

    def test_volumes_add_up_in_json_and_csv(self):
        for words in (LLAMA, GPT):
            with self.subTest(words=words):
                plans = self.document(words)["plans"]
                rows = list(csv.DictReader(io.StringIO(self.output(*words, "--format", "csv"))))
                self.assertEqual(len(plans), len(rows))
                kinds = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "ring pass"]
                for plan, row in zip(plans, rows):
                    sent = {c["kind"]: c["sent_bytes"] for c in plan["collectives"]}
                    self.assertAlmostEqual(plan["sent_bytes"], sum(sent.values()), delta=1e-9 * plan["sent_bytes"])
                    for kind in kinds:
                        self.assertEqual(float(row[kind.replace("-", "_").replace(" ", "_") + "_bytes"]), sent.get(kind, 0))
                    self.assertEqual(float(row["total_bytes"]), plan["memory"]["total_bytes"])

    def test_a_plan_costs_what_its_own_estimate_says(self):
        best = self.document(LLAMA)["plans"][1]
        self.assertEqual(best["plan"]["text"], "tp 8")
        words = ["estimate", *LLAMA[1:5], "--runtime", "none", "--tp", "8", "--batch", "8", "--prompt", "1024", "--gen", "1", "--json"]
        alone = json.loads(self.output(*words))
        self.assertEqual(best["step_s"], alone["ttft_s"])
        self.assertEqual(best["memory"]["weight_bytes"], alone["memory"]["weight_bytes"])
        self.assertEqual(best["sent_bytes"], alone["phases"][0]["network_bytes"])

    def test_training_plans_cost_what_their_own_estimates_say(self):
        plans = self.document(GPT)["plans"]
        wanted = next(plan for plan in plans if plan["plan"]["text"] == "tp 8, megatron-sp")
        words = ["estimate", *GPT[1:5], "--training", "--runtime", "none", "--tp", "8", "--megatron-sp", "--global-batch", "8", "--json"]
        alone = json.loads(self.output(*words))
        self.assertEqual(wanted["step_s"], alone["step_s"])
        self.assertEqual(wanted["mfu"], alone["mfu"])
        self.assertEqual(wanted["memory"]["total_bytes"], alone["memory"]["total_bytes"])

    def test_top_shows_the_best_only(self):
        self.assertEqual(self.document([*LLAMA, "--top", "3"])["plans"], self.document(LLAMA)["plans"][:3])

    def test_symbolic_formulas_give_their_values(self):
        words = ["parallel", "-m", "gpt-block", "--hw", "a100-sxm-80gb", "--devices", "8", "--batch", "8", "--symbolic", "--options", "none"]
        table = json.loads(self.output(*words, "--json"))
        values = {name: variable["value"] for name, variable in table["variables"].items()}
        for strategy in table["strategies"]:
            if strategy["illegal"]:
                continue
            degrees = {"u": strategy["plan"]["ulysses"], "r": strategy["plan"]["ring"]}
            for key in ("activation_communication_elements", "activation_bytes", "weight_elements"):
                formula = strategy[key]
                value = eval(formula["formula"], {"__builtins__": {}}, {**values, **degrees})  # pylint: disable=eval-used
                self.assertAlmostEqual(value, formula["value"], delta=1e-9 * max(1, value), msg=(strategy["method"], key))

    def test_no_plan_is_listed_twice(self):
        recomputed = lambda *words: {plan["recompute"] for plan in self.document([*GPT, "--recompute", "all", *words])["plans"]}
        self.assertEqual(recomputed(), {"none", "full"})  # flash attention keeps no scores to compute again
        self.assertEqual(recomputed("--options", "no_flash_attention"), {"none", "selective", "full"})

    def test_predicted_plans_are_tried_over_schedules_recomputation_and_micro_batches(self):
        words = ["parallel", "-m", "llama-3-70b", "--hw", "h100-sxm", "--devices", "64", "--batch", "64", "--seq", "4096",
                 "--training", "--runtime", "pytorch-fsdp"]
        study = self.document([*words, "--top", "100000"])
        plans = [plan for plan in study["plans"] if plan["fits"]]
        self.assertEqual(study["inputs"]["micro_batches"], [1, 2, 4, 8])
        for key, values in (("micro_batch", {1, 2, 4, 8}), ("schedule", {"1f1b", "zb-h1", "dualpipe"}), ("recompute", {"none", "full"})):
            self.assertEqual({plan[key] for plan in study["plans"]}, values)
        # The order of those that are as near to the first as predictions are to measurements says nothing.
        band = plans[0]["step_band"]["mean_error"]
        alike = sum(plan["step_s"] <= plans[0]["step_s"] * (1 + band) for plan in plans)
        self.assertEqual(study["alike"], alike)
        self.assertIn(f"{alike} plans are within", self.output(*words))
        self.assertEqual(len(self.document(words)["plans"]), 20)

    def test_a_predicted_plan_costs_what_its_own_estimate_says(self):
        words = ["parallel", "-m", "llama-3-8b", "--hw", "a100-sxm-80gb", "--devices", "8", "--batch", "64", "--seq", "4096",
                 "--training", "--runtime", "pytorch-fsdp"]
        best = self.document(words)["plans"][0]
        alone = json.loads(self.output("estimate", *words[1:5], "--training", "--runtime", "pytorch-fsdp", "--seq", "4096", "--dp", "8",
                                       "--zero", str(best["zero"]), "--micro-batch", str(best["micro_batch"]), "--recompute", best["recompute"],
                                       "--global-batch", "64", "--json"))
        self.assertEqual(best["plan"]["text"], "dp 8")
        self.assertEqual(best["step_s"], alone["step_s"])
        self.assertEqual(best["step_band"], alone["error_band"]["step"])

    def test_wrong_requests(self):
        # 83 is prime and more than the 80 layers: no axis takes it.
        self.assert_bad_input([*LLAMA[:6], "83", *LLAMA[7:]], "no plan over 83 devices")
        self.assert_bad_input([*LLAMA, "--weights", "q4_k_m"], "plans do not go with GGUF formats")
        named = ["parallel", "-m", "unsloth/Qwen3-8B-GGUF:Q4_K_M", *LLAMA[3:]]  # as the name says
        self.assert_bad_input(named, "plans do not go with GGUF formats (q4_k_m)")
        self.assert_bad_input([*GPT, "--recompute", "fully"], "--recompute: there is no 'fully'", "full")
        self.assert_bad_input(["parallel", "-m", "mixtral-8x7b", *LLAMA[3:], "--symbolic"], "formulas are for dense models")
        alone = ["parallel", "-m", "llama-2-70b", "--hw", "h100-sxm", "--devices", "1", "--seq", "128"]
        self.assert_error(self.run_program(*alone), INFEASIBLE, "none of the 1 plans fits", "129 GiB")


if __name__ == "__main__":
    unittest.main()
