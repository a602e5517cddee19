#!/usr/bin/env python3
"""`llmperf capacity`: what its answer promises, and its flags."""
import math
import unittest

from program import INFEASIBLE, USAGE, ProgramTest

ASKED = ("capacity", "-m", "llama-3.1-8b", "--rate", "20", "--slo", "ttft.p99=1s,tpot.p99=50ms", "--input", "1000",
         "--output", "200")
CARDS = ("--hw", "h100-sxm,l40s", "--tp", "1,2", "--weights", "bf16,fp8")


class Capacity(ProgramTest):
    def candidates(self, *words, **options):
        return self.json(*ASKED, *words, **options)["candidates"]

    def test_every_combination_is_a_candidate(self):
        found = {(c["hardware"], c["plan"], c["weights"]) for c in self.candidates(*CARDS)}
        self.assertEqual(found, {(hw, plan, weights) for hw in ("h100-sxm", "l40s") for plan in ("1 device", "tp 2")
                                 for weights in ("bf16", "fp8")})

    def test_replicas_take_the_rate_and_cost_what_their_devices_do(self):
        document = self.json(*ASKED, *CARDS, "--price", "2")
        met = [c for c in document["candidates"] if c["meets"]]
        self.assertTrue(met)
        for c in met:
            with self.subTest(c=c["hardware"] + " " + c["plan"] + " " + c["weights"]):
                each = 2 if c["plan"] == "tp 2" else 1
                self.assertEqual(c["devices"], c["replicas"] * each)
                self.assertGreaterEqual(c["replicas"], math.ceil(20 / c["max_requests_per_second"] - 1e-9))
                self.assertLessEqual(c["max_requests_per_second"], c["ceiling_requests_per_second"] * 1.0001)
                self.assertAlmostEqual(c["cost_per_hour"], 2 * c["devices"])
                # 20 requests of 200 tokens a second are 14.4 million tokens an hour.
                self.assertAlmostEqual(c["cost_per_million_output_tokens"], c["cost_per_hour"] / 14.4)
                self.assertLessEqual(c["at"]["ttft_p99_s"], 1)
        costs = [c["cost_per_hour"] for c in met]
        self.assertEqual(costs, sorted(costs))
        self.assertEqual(met[0]["beyond_best"], 0)

    def test_what_serve_measures_of_a_replica_meets_the_bounds(self):
        best = self.candidates(*CARDS)[0]
        tp = "2" if best["plan"] == "tp 2" else "1"
        served = self.json("serve", "-m", "llama-3.1-8b", "--hw", best["hardware"], "--tp", tp, "--weights",
                           best["weights"], "--rate", str(20 / best["replicas"]), "--input", "1000", "--output", "200",
                           "--requests", "1000", "--slo", "ttft.p99=1s,tpot.p99=50ms")
        self.assertTrue(all(bound["met"] for bound in served["slo"]))
        self.assertAlmostEqual(served["ttft_s"]["p99"], best["at"]["ttft_p99_s"], delta=0.02 * best["at"]["ttft_p99_s"])

    def test_fewest_devices_and_least_power(self):
        fewest = self.candidates(*CARDS, "--minimise", "devices")
        devices = [c["devices"] for c in fewest if c["meets"]]
        self.assertEqual(devices, sorted(devices))
        power = [c["power_w"] for c in self.candidates(*CARDS, "--minimise", "energy") if c["meets"]]
        self.assertEqual(power, sorted(power))

    def test_prompts_and_decode_apart(self):
        found = self.candidates("--hw", "h100-sxm", "--tp", "1", "--pd")
        apart = [c for c in found if c["decode_replicas"] > 0]
        self.assertEqual(len(apart), 1)
        self.assertEqual(apart[0]["devices"], apart[0]["replicas"] + apart[0]["decode_replicas"])

    def test_bounds_that_nothing_meets_exit_with_3_and_the_best_there_is(self):
        words = ASKED[:5] + ("--slo", "ttft.p99=1ms", "--hw", "h100-sxm")
        self.assert_error(self.run_program(*words), INFEASIBLE, "nothing meets the bounds")
        document = self.json(*words, status=INFEASIBLE)
        self.assertFalse(document["feasible"])
        self.assertTrue(document["candidates"])
        self.assertFalse(any(c["meets"] for c in document["candidates"]))

    def test_a_model_without_room_binds_memory(self):
        first, = self.json("capacity", "-m", "llama-3.1-70b", "--rate", "1", "--slo", "ttft.p99=10s", "--hw", "rtx4090",
                           "--tp", "1", status=INFEASIBLE)["candidates"]
        self.assertEqual(first["binding"], "memory")

    def test_bad_input(self):
        for words, fragment in ((("--rate", "0"), "--rate"), (("--rate", "1e10"), "--rate"), (("--slo", "ttft"), "--slo"),
                                (("--slo", "ttfx=1s"), "--slo"), (("--hw", "h1000"), "h1000"),
                                (("--minimise", "time"), "--minimise")):
            with self.subTest(words=words):
                base = list(ASKED)
                if words[0] in base:
                    at = base.index(words[0])
                    del base[at:at + 2]
                extra = () if words[0] == "--hw" else ("--hw", "h100-sxm")
                self.assert_error(self.run_program(*base, *words, *extra), USAGE, fragment)
        self.assert_error(self.run_program(*ASKED[:5], "--hw", "h100-sxm"), USAGE, "--slo")


if __name__ == "__main__":
    unittest.main()
