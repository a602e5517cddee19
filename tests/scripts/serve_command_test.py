#!/usr/bin/env python3
"""`llmperf serve`: what is measured of traffic, in every output, and what is wrong with a request for it."""
import csv
import io
import json
import os
import signal
import subprocess
import time
import unittest

from program import INFEASIBLE, PROGRAM, SANITIZED, ProgramTest
from trace_events import check_trace, slices_of

THRESHOLD, INTERRUPTED = 4, 130
LLAMA = ["serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm"]
SMALL = [*LLAMA, "--rate", "8", "--requests", "64", "--input", "256-512", "--output", "32"]
STATISTICS = ["mean", "p50", "p90", "p95", "p99"]


class Serve(ProgramTest):
    seconds = 120 if SANITIZED else 20

    def rows(self, *words):
        return [{key: float(value) if value else None for key, value in row.items()}
                for row in csv.DictReader(io.StringIO(self.output(*words, "--format", "csv")))]

    def exits_with(self, status, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, timeout=self.seconds, stdin=subprocess.DEVNULL,
                              capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done


class Metrics(Serve):
    def test_the_summary_is_that_of_the_requests(self):
        document, rows = self.json(*SMALL), self.rows(*SMALL)
        self.assertEqual((document["requests"], len(rows)), (64, 64))
        for key in ("ttft_s", "tpot_s", "e2e_s"):
            values = sorted(row[key] for row in rows)
            self.assertAlmostEqual(document[key]["mean"], sum(values) / 64)
            self.assertAlmostEqual(document[key]["p50"], (values[31] + values[32]) / 2)
            self.assertEqual(list(document[key]), STATISTICS)
        end = max(row["sent_s"] + row["e2e_s"] for row in rows)
        duration = end - rows[0]["sent_s"]
        self.assertAlmostEqual(document["duration_s"], duration)
        self.assertAlmostEqual(document["requests_per_second"], 64 / duration)
        self.assertAlmostEqual(document["output_tokens_per_second"], 64 * 32 / duration)
        self.assertAlmostEqual(document["input_tokens_per_second"], sum(row["input_tokens"] for row in rows) / duration)

    def test_tpot_is_what_is_left_of_a_request_over_its_further_tokens(self):
        for row in self.rows(*SMALL):
            self.assertAlmostEqual(row["tpot_s"], (row["e2e_s"] - row["ttft_s"]) / 31)
            self.assertTrue(256 <= row["input_tokens"] <= 512)

    def test_one_token_has_no_tpot(self):
        words = [*SMALL[:-1], "1"]
        self.assertTrue(all(row["tpot_s"] is None for row in self.rows(*words)))
        document = self.json(*words)
        self.assertIsNone(document["tpot_s"])
        self.assertIsNone(document["itl_s"])

    def test_the_last_request_is_sent_at_their_number_over_the_rate(self):
        self.assertAlmostEqual(self.rows(*SMALL)[-1]["sent_s"], 64 / 8)
        even = self.rows(*SMALL, "--burstiness", "inf")
        for i, row in enumerate(even):
            self.assertAlmostEqual(row["sent_s"], (i + 1) / 8)

    def test_a_closed_loop_has_as_many_under_way(self):
        rows = self.rows(*LLAMA, "--concurrency", "4", "--requests", "32", "--input", "128", "--output", "16")
        self.assertEqual([row["sent_s"] for row in rows[:4]], [0] * 4)
        for row in rows:
            under_way = sum(r["sent_s"] <= row["sent_s"] < r["sent_s"] + r["e2e_s"] for r in rows)
            self.assertLessEqual(under_way, 4)

    def test_shares_of_causes_add_up_to_one(self):
        causes = self.json(*SMALL)["causes"]
        self.assertEqual(list(causes["ttft"]), ["queue", "kv", "budget", "prefill", "interference"])
        self.assertEqual(list(causes["itl"]), ["decode", "prefill", "stall"])
        for shares in causes.values():
            self.assertAlmostEqual(sum(shares.values()), 1)
            self.assertTrue(all(share >= -1e-9 for share in shares.values()), shares)

    def test_one_request_alone_is_the_estimate(self):
        for prompt in ("37", "100", "300", "513", "1024"):
            with self.subTest(prompt=prompt):
                one = self.json(*LLAMA, "--concurrency", "1", "--requests", "1", "--input", prompt, "--output", "65")
                estimate = self.json("estimate", *LLAMA[1:], "--prompt", prompt, "--gen", "65", "--power", "sustained")  # as a server is
                alone = one["ttft_s"]["mean"] - one["inputs"]["engine"]["frontend_s"]
                self.assertAlmostEqual(alone / estimate["ttft_s"], 1, delta=1e-6)
                self.assertAlmostEqual(one["tpot_s"]["mean"] / estimate["tpot_s"], 1, delta=1e-3)

    def test_the_cache_is_that_of_the_estimate(self):
        for words in (["--kv-utilisation", "0.92"], ["--kv-utilisation", "0.8", "--max-seqs", "64", "--max-batched-tokens", "2048"],
                      ["--kv-utilisation", "0.85", "--runtime", "sglang"]):
            with self.subTest(words=words):
                served = self.json(*LLAMA, "--rate", "1", "--requests", "1", *words)
                estimated = self.json("estimate", *LLAMA[1:], "--prompt", "1024", "--gen", "128", *words)
                self.assertEqual(served["kv"]["tokens"], estimated["kv"]["tokens"])

    def test_lengths_of_a_closed_loop_are_spread_unless_exact_ones_are_wanted(self):
        words = [*LLAMA, "--concurrency", "8", "--requests", "80", "--input", "1000", "--output", "200"]
        rows = self.rows(*words)
        for name, least, most in (("input_tokens", 970, 1030), ("output_tokens", 194, 206)):
            lengths = [row[name] for row in rows]
            self.assertGreaterEqual(min(lengths), least)
            self.assertLessEqual(max(lengths), most)
            self.assertGreater(len(set(lengths)), 5)
        document = self.json(*words)
        self.assertEqual((document["inputs"]["traffic"]["input"], document["inputs"]["traffic"]["output"]), ("970-1030", "194-206"))
        self.assertIn("spread evenly within 3.0 % of 1000 and 200", " ".join(document["notes"]))
        exact = self.rows(*words, "--lengths", "exact")
        self.assertEqual({(row["input_tokens"], row["output_tokens"]) for row in exact}, {(1000, 200)})
        # All that march in step wait for the prompts of all; spread they wait for a few.
        middle = lambda of: sorted(row["ttft_s"] for row in of)[40]
        self.assertLess(middle(rows), 0.6 * middle(exact))
        ranges = self.rows(*LLAMA, "--concurrency", "8", "--requests", "80", "--input", "500-600", "--output", "200")
        self.assertGreaterEqual(min(row["input_tokens"] for row in ranges), 500)
        # Alone, or at a rate, nothing marches; what fills the context window has no room to be longer.
        self.assertEqual({row["input_tokens"] for row in self.rows(*LLAMA, "--concurrency", "1", "--requests", "9", "--input", "1000")}, {1000})
        self.assertEqual({row["input_tokens"] for row in self.rows(*LLAMA, "--rate", "9", "--requests", "9", "--input", "1000")}, {1000})
        self.rows("serve", "-m", "llama-3-8b", "--hw", "h100-sxm", "--concurrency", "2", "--requests", "4", "--input", "8000", "--output", "192")
        self.assert_bad_input([*LLAMA, "--rate", "4", "--lengths", "exact"], "--lengths", "closed loop")
        self.assert_bad_input([*words, "--lengths", "alike"], "--lengths", "spread")

    def test_a_column_of_a_trace_that_is_passed_over_is_named(self):
        trace = self.write("images.csv", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n0,2,500,6\n1,1,600,8\n")
        self.assertIn("NumImages", self.output(*LLAMA, "--trace", trace))
        self.assertIn("NumImages", " ".join(self.json(*LLAMA, "--trace", trace)["notes"]))
        words = ["capacity", *LLAMA[1:], "--rate", "1", "--slo", "ttft=9s", "--trace", trace]
        self.assertIn("NumImages", self.output(*words))
        self.assertIn("NumImages", " ".join(self.json(*words)["notes"]))

    def test_an_infinite_rate_is_told_what_sends_all_at_once(self):
        self.assert_bad_input([*LLAMA, "--rate", "inf"], "--rate", "--concurrency 1000", "--requests 1000")

    def test_a_seed_says_all_that_is_random(self):
        one, same, other = (self.json(*SMALL, "--seed", seed) for seed in ("3", "3", "4"))
        self.assertEqual(one["ttft_s"], same["ttft_s"])
        self.assertNotEqual(one["ttft_s"], other["ttft_s"])
        several = self.json(*SMALL, "--seed", "3", "--seeds", "2")
        self.assertEqual([seed["seed"] for seed in several["seeds"]], [3, 4])
        self.assertEqual([seed["ttft_s"] for seed in several["seeds"]], [one["ttft_s"], other["ttft_s"]])

    def test_a_band_holds_the_middle_and_grows_with_seeds(self):
        one, three = self.json(*SMALL), self.json(*SMALL, "--seeds", "3")
        for document in (one, three):
            for key, value in (("ttft_mean_s", document["ttft_s"]["mean"]), ("tpot_mean_s", document["tpot_s"]["mean"])):
                self.assertLess(document["bands"][key]["low"], value)
                self.assertGreater(document["bands"][key]["high"], value)
        self.assertLessEqual(three["bands"]["ttft_p99_s"]["low"], one["bands"]["ttft_p99_s"]["low"])
        self.assertGreaterEqual(three["bands"]["ttft_p99_s"]["high"], one["bands"]["ttft_p99_s"]["high"])
        light = self.json(*SMALL, "--runtime", "none")
        self.assertEqual(light["error_band"], {"prefill": None, "decode": None})
        self.assertEqual(light["label"], "upper bound, uncalibrated")

    def test_prefixes_are_hit(self):
        shared = self.json(*SMALL, "--prefix", "256")
        self.assertGreater(shared["prefix_hit_share"], 0.5)
        self.assertEqual(self.json(*SMALL, "--prefix", "256", "--prefix-caching", "off")["prefix_hit_share"], 0)
        self.assertEqual(self.json(*SMALL)["prefix_hit_share"], 0)
        self.assertGreater(self.json(*SMALL, "--turns", "4")["prefix_hit_share"], 0.2)
        # A session's keys and values are there after a short time to think, and gone after a long one.
        words = ("serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--rate", "4", "--requests", "400", "--turns", "4", "--input", "1500",
                 "--output", "100", "--kv-blocks", "6000")
        short, long = (self.json(*words, "--think", think) for think in ("2s", "100s"))
        self.assertEqual(short["inputs"]["traffic"]["think_s"], 2)
        self.assertGreater(short["prefix_hit_share"], 2 * long["prefix_hit_share"])
        for wrong, message in ((("--think", "soon"), "--think"), (("--think", "2s", "--concurrency", "4"), "--concurrency"),
                               (("--think", "0s"), "no time")):
            self.assert_bad_input((*words, *wrong), message)
        self.assert_bad_input((*words[:9], "--think", "2s"), "--turns")

    def test_tiers_keep_what_the_cache_lets_go_of(self):
        words = ("serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--rate", "2", "--requests", "400", "--turns", "4", "--input", "1500",
                 "--output", "100", "--max-model-len", "16k", "--kv-blocks", "4000")
        alone, host, slow = (self.json(*words, *more) for more in ((), ("--kv-tier", "host:400GB"), ("--kv-tier", "pool:1TB:1GB/s")))
        self.assertLess(alone["prefix_hit_share"], 0.1)
        self.assertEqual(alone["inputs"]["kv_tiers"], None)
        self.assertIn("host 400 GB", host["inputs"]["kv_tiers"])
        self.assertGreater(host["tier_hit_share"], 0.4)
        self.assertGreaterEqual(host["prefix_hit_share"], host["tier_hit_share"])
        self.assertLess(host["ttft_s"]["mean"], alone["ttft_s"]["mean"])
        # 131,072 bytes of a token take 131 us there, and to compute it a fifth of that.
        self.assertEqual(slow["ttft_s"], alone["ttft_s"])
        self.assertTrue(any("pool" in note for note in slow["notes"]))
        self.assert_bad_input((*words, "--kv-tier", "nvme:1TB"), "--kv-tier", "nvme")
        self.assert_bad_input(("serve", "-m", "bge-m3", "--hw", "h100-sxm", "--rate", "10", "--kv-tier", "host:1GB"), "--kv-tier")
        self.assert_bad_input((*words, "--engine", "trtllm", "--kv-tier", "host:1GB"), "--kv-tier")

    def test_overload_has_no_time_to_a_first_token(self):
        words = [*LLAMA, "--rate", "500", "--requests", "2000", "--output", "64"]
        document = self.json(*words)
        self.assertFalse(document["stable"])
        self.assertGreater(document["queue_growth_per_second"], 100)
        self.assertEqual((document["ttft_s"], document["e2e_s"], document["bands"]["ttft_p99_s"]), (None, None, None))
        self.assertGreater(document["tpot_s"]["mean"], 0)
        text = self.output(*words)
        self.assertRegex(text, r"unstable: queue grows by \d+(\.\d+)? requests/s")
        self.assertNotIn("TTFT  ", text)

    def test_the_cost_is_that_of_all_devices(self):
        document = self.json(*SMALL, "--price", "2", "--replicas", "3")
        self.assertEqual((document["devices"], document["cost_per_hour"]), (3, 6))
        self.assertAlmostEqual(document["cost_per_million_output_tokens"], 6 / 3600 / document["output_tokens_per_second"] * 1e6)


class Slo(Serve):
    def test_bounds_that_are_met_exit_with_0(self):
        document = self.json(*SMALL, "--slo", "ttft=10s,tpot.p95=1s")
        self.assertEqual([bound["name"] for bound in document["slo"]], ["ttft.p99=10 s", "tpot.p95=1 s"])
        self.assertTrue(all(bound["met"] and bound["relative_excess"] < 0 for bound in document["slo"]))
        self.assertEqual(document["goodput_per_second"], document["requests_per_second"])
        self.assertIsNone(self.json(*SMALL)["goodput_per_second"])

    def test_one_that_is_missed_exits_with_4_and_says_by_how_much(self):
        done = self.exits_with(THRESHOLD, *SMALL, "--slo", "ttft.p50=1us,tpot.mean=1s", "--export", "x.json")
        self.assertRegex(done.stderr, r"^llmperf: error: --slo is missed: ttft.p50 is .* above 1 us\n$")
        self.assertIn("missed: ttft.p50 is", done.stdout)
        with open(self.path("x.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual([bound["met"] for bound in document["slo"]], [False, True])
        self.assertEqual((document["goodput_per_second"], document["good_share"]), (0, 0))
        bound = document["slo"][0]
        self.assertAlmostEqual(bound["relative_excess"], bound["value_s"] / 1e-6 - 1)

    def test_an_endless_queue_misses_every_time_of_requests(self):
        done = self.exits_with(THRESHOLD, *LLAMA, "--rate", "500", "--requests", "2000", "--slo", "ttft.p50=1000s")
        self.assertIn("grows without end", done.stderr)


class Engines(Serve):
    def test_each_engine_has_its_settings(self):
        expected = {"vllm": (8192, 1024, 16), "sglang": (8192, 2048, 1), "trtllm": (8192, 2048, 32), "llama.cpp": (2048, 4, 1)}
        for engine, settings in expected.items():
            with self.subTest(engine=engine):
                used = self.json(*SMALL, "--engine", engine)["inputs"]["engine"]
                self.assertEqual(used["name"], engine)
                self.assertEqual((used["max_batched_tokens"], used["max_sequences"], used["block_size"]), settings)

    def test_a_version_has_its_rules_and_its_profile(self):
        old = self.json(*SMALL, "--engine", "vllm@0.6.3")["inputs"]
        self.assertEqual((old["engine"]["version"], old["engine"]["max_sequences"], old["engine"]["asynchronous"]), ("0.6.3", 256, False))
        self.assertEqual(old["runtime"]["engine"], "vllm-v0")
        self.assertEqual(self.json(*SMALL, "--engine", "vllm@0.12.0")["inputs"]["runtime"]["engine"], "vllm-v1")
        self.assertEqual(self.json(*SMALL, "--engine", "vllm@0.15.1")["inputs"]["runtime"]["engine"], "vllm-async")

    def test_the_runtime_says_the_engine(self):
        self.assertEqual(self.json(*SMALL, "--runtime", "sglang")["inputs"]["engine"]["name"], "sglang")
        self.assertEqual(self.json(*SMALL, "--engine", "sglang")["inputs"]["runtime"]["name"], "sglang")
        self.assertEqual(self.json(*SMALL)["inputs"]["engine"]["name"], "vllm")

    def test_settings_are_taken(self):
        document = self.json(*SMALL, "--max-batched-tokens", "1k", "--max-seqs", "7", "--block-size", "32", "--kv-blocks", "999")
        used = document["inputs"]["engine"]
        self.assertEqual((used["max_batched_tokens"], used["max_sequences"], used["block_size"]), (1024, 7, 32))
        self.assertEqual((document["kv"]["blocks"], document["kv"]["block_size"], document["kv"]["tokens"]), (999, 32, 999 * 32))

    def test_a_sampler_costs_what_its_engine_makes_of_it(self):
        def more(runtime):
            words = ["estimate", *LLAMA[1:], "--batch", "64", "--runtime", runtime]
            return self.json(*words, "--top-k", "20", "--top-p", "0.95")["tpot_s"] - self.json(*words)["tpot_s"]

        # 8.2 million logits of 500 bytes at 3.35 TB/s are 1.23 ms, of 30 bytes 0.074; the likeliest is found in less than 0.02.
        self.assertTrue(1.2e-3 < more("vllm@0.15.1") < 1.24e-3)
        self.assertTrue(0.054e-3 < more("sglang") < 0.075e-3)
        self.assertGreater(self.json(*SMALL, "--top-k", "20")["tpot_s"]["mean"], self.json(*SMALL)["tpot_s"]["mean"])

    def test_new_requests_wait_for_the_look_of_sglang(self):
        now, then = (self.json(*SMALL, "--engine", "sglang", "--scheduler-recv-interval", steps) for steps in ("1", "30"))
        self.assertEqual(then["inputs"]["engine"]["recv_interval"], 30)
        self.assertGreater(then["ttft_s"]["mean"], 2 * now["ttft_s"]["mean"])
        done = self.exits_with(2, *SMALL, "--engine", "trtllm", "--scheduler-recv-interval", "30")
        self.assertIn("--scheduler-recv-interval is of SGLang, and the engine is trtllm", done.stderr)

    def test_prompts_that_fit_into_no_step_beside_others_are_told(self):
        words = [*LLAMA, "--engine", "trtllm", "--concurrency", "4", "--requests", "8", "--input", "8k", "--output", "64"]
        self.assertIn("`max-batched-tokens` 8260", " ".join(self.json(*words)["notes"]))
        self.assertNotIn("do not fit", " ".join(self.json(*words, "--max-batched-tokens", "8260")["notes"]))

    def test_more_memory_is_more_blocks(self):
        small, large = (self.json(*SMALL, "--kv-utilisation", share)["kv"]["blocks"] for share in ("0.5", "0.9"))
        self.assertGreater(large, 2 * small)

    def test_replicas_and_routers(self):
        for router in ("round-robin", "least-loaded", "prefix-aware"):
            rows = self.rows(*SMALL, "--replicas", "3", "--router", router)
            self.assertEqual({row["replica"] for row in rows}, {0, 1, 2})
        document = self.json(*SMALL, "--replicas", "3")
        self.assertEqual((document["inputs"]["replicas"], document["devices"]), (3, 3))

    def test_prompts_and_decode_apart(self):
        words = [*SMALL, "--prefill-replicas", "2", "--decode-replicas", "1", "--kv-link", "10 GB/s"]
        document = self.json(*words)
        self.assertEqual((document["inputs"]["prefill_replicas"], document["inputs"]["decode_replicas"], document["devices"]), (2, 1, 3))
        self.assertEqual(document["inputs"]["kv_link_bytes_per_s"], 10e9)
        self.assertEqual({row["replica"] for row in self.rows(*words)}, {2})
        self.assertIn("2 replicas for prompts, 1 for decode", self.output(*words).replace("\n", " "))
        slow = self.json(*words[:-1], "1 GB/s")
        # 256 tokens of 128 KiB take 34 ms, and not 3.
        self.assertGreater(slow["ttft_s"]["mean"], document["ttft_s"]["mean"] + 0.03)

    def test_texts_of_an_encoder(self):
        words = ["serve", "-m", "bge-m3", "--hw", "l40s"]
        # By itself a text takes its pass and the front end.
        alone = self.json(*words, "--rate", "0.1", "--input", "300")
        one = self.json("estimate", "-m", "bge-m3", "--hw", "l40s", "--batch", "1", "--prompt", "300")
        self.assertAlmostEqual(alone["e2e_s"]["mean"], one["ttft_s"] + alone["inputs"]["engine"]["frontend_s"], delta=1e-3)
        busy = self.json(*words, "--rate", "400")
        self.assertGreater(busy["mean_batch"], 2)
        self.assertEqual(busy["tpot_s"], None)
        self.assertAlmostEqual(busy["cost_per_million_input_tokens"],
                               busy["cost_per_hour"] / (3600 * busy["input_tokens_per_second"]) * 1e6)
        self.assertIsNone(busy["cost_per_million_output_tokens"])
        self.assertIn("texts/s", self.output(*words, "--rate", "400"))
        most = self.json(*words, "--rate", "max", "--slo", "e2e.p99=100ms")
        self.assertTrue(all(bound["met"] for bound in most["slo"]))
        # Texts that fill a step go through as fast as the device reads them.
        full = self.json("estimate", "-m", "bge-m3", "--hw", "l40s", "--batch", "32", "--prompt", "256")
        self.assertLess(most["requests_per_second"], 32 / full["ttft_s"])
        # A text of any length that the model was made for is one step; a trace's outputs mean nothing.
        long = self.json(*words, "--rate", "0.1", "--input", "8000", "--requests", "5", "--engine", "sglang")
        whole = self.json("estimate", "-m", "bge-m3", "--hw", "l40s", "--batch", "1", "--prompt", "8000")
        self.assertAlmostEqual(long["e2e_s"]["p50"], whole["ttft_s"] + long["inputs"]["engine"]["frontend_s"], delta=0.02 * whole["ttft_s"])
        self.assertEqual(self.json(*words, "--rate", "50", "--max-seqs", "4")["inputs"]["engine"]["max_sequences"], 4)
        trace = self.write("texts.csv", "arrival_s,input_tokens,output_tokens\n" + "".join(f"{i / 50},256,100\n" for i in range(100)))
        self.assertIsNone(self.json(*words, "--trace", trace)["tpot_s"])
        found = self.json("capacity", "-m", "bge-m3", "--hw", "l40s", "--tp", "1", "--slo", "e2e.p99=100ms", "--rate", "50", "--trace", trace)
        self.assertTrue(found["feasible"])
        self.assert_error(self.run_program("serve", "-m", "qwen3-embedding-8b", "--hw", "rtx4060", "--weights", "bf16", "--rate", "1"),
                          INFEASIBLE, "14.1 GiB")
        for flag, value in (("--output", "5"), ("--prefix", "0.5"), ("--slo", "tpot=3ms"), ("--decode-replicas", "2")):
            self.assert_bad_input([*words, "--rate", "2", flag, value], flag, "encoder")

    def test_what_decodes_has_a_plan_and_devices_of_its_own(self):
        words = ["serve", "-m", "llama-3-70b", "--hw", "h100-sxm", "--weights", "fp8", "--rate", "2", "--requests", "40",
                 "--prefill-replicas", "1", "--decode-replicas", "2", "--tp", "4"]
        document = self.json(*words, "--decode-plan", "tp2", "--decode-hw", "h200-sxm")
        inputs = document["inputs"]
        self.assertEqual((inputs["decode_hardware"], inputs["decode_plan"]["tensor"], inputs["plan"]["tensor"]), ("h200-sxm", 2, 4))
        self.assertEqual(document["devices"], 4 + 2 * 2)
        price = {hw: self.json("serve", "-m", "llama-3.1-8b", "--hw", hw, "--rate", "1", "--requests", "5")["cost_per_hour"]
                 for hw in ("h100-sxm", "h200-sxm")}
        self.assertAlmostEqual(document["cost_per_hour"], 4 * price["h100-sxm"] + 4 * price["h200-sxm"])
        self.assertIn("on 4 x NVIDIA H100 SXM and 4 x NVIDIA H200 SXM", self.output(*words, "--decode-plan", "tp2", "--decode-hw", "h200-sxm"))
        # Of the same plan on the same devices nothing changes.
        same = self.json(*words, "--decode-plan", "tp 4")
        alike = self.json(*words)
        self.assertEqual((same["ttft_s"], same["tpot_s"]), (alike["ttft_s"], alike["tpot_s"]))
        for wrong in ("four", "tp 1,6", "tp 2 tp 4", "tp 0", "tp", "ep"):
            self.assert_bad_input([*words, "--decode-plan", wrong], "--decode-plan", wrong, "tp 8")
        self.assertEqual(self.json(*words, "--decode-plan", "tp2,dp2")["devices"], 4 + 2 * 4)
        prices = self.write("prices.csv", "device,amount,currency\nh100-sxm,3,EUR\nh200-sxm,4,USD\n")
        self.assertIsNone(self.json(*words, "--decode-hw", "h200-sxm", "--price", prices)["cost_per_hour"])
        self.assert_bad_input([*words[:-6], "--decode-plan", "tp 4"], "--decode-plan", "--prefill-replicas")


class Traces(Serve):
    def test_formats(self):
        own = self.write("own.csv", "arrival_s,input_tokens,output_tokens\n5,100,10\n5.5,200,20\n6,300,1\n")
        azure = self.write("azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                           + "".join(f"2023-11-16 18:17:{s},{n},{m}\n" for s, n, m in (("05", 100, 10), ("05.5", 200, 20), ("06", 300, 1))))
        hashes = self.write("mooncake.jsonl", "".join(
            json.dumps({"timestamp": t, "input_length": n, "output_length": m, "hash_ids": [i]}) + "\n"
            for i, (t, n, m) in enumerate(((5000, 100, 10), (5500, 200, 20), (6000, 300, 1)))))
        expected = self.rows(*LLAMA, "--trace", own)
        self.assertEqual([(r["sent_s"], r["input_tokens"], r["output_tokens"]) for r in expected], [(0, 100, 10), (0.5, 200, 20), (1, 300, 1)])
        self.assertEqual(self.rows(*LLAMA, "--trace", azure), expected)
        self.assertEqual(self.rows(*LLAMA, "--trace", hashes), expected)
        self.assertEqual(len(self.rows(*LLAMA, "--trace", own, "--requests", "2")), 2)
        self.assertAlmostEqual(self.rows(*LLAMA, "--trace", own, "--rate", "20")[-1]["sent_s"], 0.1)

    def test_lengths_alone_are_sent_as_is_said(self):
        lengths = self.write("lengths.csv", "input_tokens,output_tokens\n100,10\n200,20\n")
        self.assert_bad_input([*LLAMA, "--trace", lengths], "lengths and no times", "--rate or --concurrency")
        self.assertAlmostEqual(self.rows(*LLAMA, "--trace", lengths, "--rate", "4")[-1]["sent_s"], 0.5)
        self.assertEqual(len(self.rows(*LLAMA, "--trace", lengths, "--concurrency", "1")), 2)

    def test_a_trace_that_is_more_than_is_served_has_its_numbers_and_a_warning(self):
        trace = self.write("many.csv", "arrival_s,input_tokens,output_tokens\n" + "".join(f"{i / 200},2000,50\n" for i in range(2000)))
        document = self.json(*LLAMA, "--trace", trace)
        self.assertFalse(document["stable"])
        self.assertGreater(document["ttft_s"]["p99"], 1)
        self.assertIn("while the trace lasts", self.output(*LLAMA, "--trace", trace))

    def test_a_curve_has_a_row_for_each_rate(self):
        words = ["-m", "llama-3.1-8b", "--hw", "h100-sxm", "--slo", "ttft.p99=1s,tpot.p95=30ms", "--requests", "400"]
        rows = json.loads(self.output("serve", *words, "--rate", "2,8,32", "--json"))["rows"]
        self.assertEqual([row["rate"] for row in rows], [2, 8, 32])
        for row in rows:
            alone = self.json("serve", *words[:4], *words[6:], "--rate", str(row["rate"]))
            self.assertEqual(row["ttft_p99_s"], alone["ttft_s"]["p99"])
            self.assertEqual(row["meets"], alone["ttft_s"]["p99"] <= 1 and alone["tpot_s"]["p95"] <= 0.03)
        self.assertEqual(rows, self.json("sweep", *words, "--rate", "2,8,32")["rows"])
        self.assertIn("knee at", self.output("serve", *words, "--rate", "2,8,32"))

    def test_a_curve_fails_as_its_rates_do_by_themselves(self):
        words = ["serve", "-m", "deepseek-v3", "--hw", "rtx4090", "--rate"]
        alone, curve = (self.run_program(*words, rates) for rates in ("1", "1,2"))
        self.assertEqual((curve.returncode, curve.stderr), (INFEASIBLE, alone.stderr))
        self.assert_bad_input([*words[:2], "qwen-7b", *words[3:], "1,2", "--export", "x.trace.json"], "a curve has no steps")

    def test_the_highest_rate_is_met_and_more_is_not(self):
        words = ["serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--slo", "ttft.p99=1s,tpot.p95=30ms"]
        best = self.json(*words, "--rate", "max")
        self.assertTrue(all(bound["met"] for bound in best["slo"]))
        more = self.json(*words[:5], "--rate", str(1.15 * best["inputs"]["traffic"]["requests_per_second"]))
        self.assertGreater(more["tpot_s"]["p95"], 0.03)

    def test_images_come_on_top_of_prompts(self):
        words = ["-m", "qwen2.5-vl-7b", "--hw", "h100-sxm", "--rate", "0.01", "--requests", "3", "--input", "256", "--output", "8"]
        with_image = self.json("serve", *words, "--images", "1", "--image-size", "1024x1024")
        # 1024 x 1024 in patches of 14 pixels, four of which are a token, and two that embrace them.
        self.assertAlmostEqual(with_image["inputs"]["traffic"]["mean_input_tokens"], 256 + 37 * 37 + 2, delta=0)
        alone = self.json("estimate", *words[:4], "--prompt", "256", "--gen", "2", "--images", "1", "--image-size", "1024x1024")
        added = with_image["ttft_s"]["mean"] - self.json("serve", *words)["ttft_s"]["mean"]
        self.assertGreater(added, alone["phases"][0]["time_s"])  # the tower's, and that of its tokens
        self.assertLess(added, 1.2 * alone["ttft_s"])

    def test_what_is_wrong_is_told_by_line(self):
        for text, message in (("arrival_s,input_tokens,output_tokens\n1,10,10\n0.5,10,10\n", "3:1: '0.5' is before the request above"),
                              ("arrival_s,input_tokens,output_tokens\n1,0,10\n", "input tokens of '0'"),
                              ("arrival_s,output_tokens\n1,10\n", "input"), ("arrival_s,input_tokens,output_tokens\n", "without a request")):
            with self.subTest(message=message):
                self.assert_bad_input([*LLAMA, "--trace", self.write("t.csv", text)], "t.csv", message)
        self.assert_bad_input([*LLAMA, "--trace", "absent.csv"], "absent.csv: cannot open")


class Outputs(Serve):
    def test_tables_are_at_most_100_columns_wide(self):
        for words in (SMALL, [*SMALL, "--seeds", "3", "--slo", "ttft.p99=10s,tpot.p95=5s,e2e.p50=100s"],
                      [*SMALL, "--tp", "2", "--replicas", "2", "--prefix", "100:3", "--turns", "2", "--concurrency", "9"]):
            for line in self.output(*words).splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_the_timeline_adds_up(self):
        document = self.json(*SMALL)
        self.assertEqual((len(document["timeline"]), len(document["percentiles"])), (200, 101))
        stretch = document["duration_s"] / 200
        self.assertAlmostEqual(sum(m["output_tokens_per_second"] for m in document["timeline"]) * stretch / (64 * 32), 1, delta=0.01)
        self.assertAlmostEqual(document["percentiles"][50]["ttft_s"], document["ttft_s"]["p50"])
        self.assertEqual(document["percentiles"][100]["share"], 1)

    def test_a_trace_of_steps_and_requests(self):
        document = json.loads(self.output(*SMALL, "--replicas", "2", "--json", "--export", "x.trace.json"))
        with open(self.path("x.trace.json"), encoding="utf-8") as file:
            trace = json.load(file)
        check_trace(self, trace)
        steps = [event for _, _, event in slices_of(trace) if "steps" in event["args"]]
        self.assertEqual(sum(event["args"]["steps"] for event in steps), document["steps"])
        for what in ("prefill", "decode"):
            named = [event for _, _, event in slices_of(trace) if event["name"].startswith(what) and "request" in event["args"]]
            self.assertEqual(sorted(event["args"]["request"] for event in named), list(range(64)))

    def test_pages_in_both_languages(self):
        for language, word in (("en", "How the run went"), ("zh", "运行过程")):
            self.output(*SMALL, "--slo", "ttft=10s", "--export", "x.html", "--lang", language)
            with open(self.path("x.html"), encoding="utf-8") as file:
                page = file.read()
            for part in (word, 'data-chart="serving-timeline"', 'data-chart="percentiles"', 'data-chart="causes"'):
                self.assertIn(part, page)
            os.remove(self.path("x.html"))
        self.output(*SMALL, "--format", "md")

    def test_the_request_of_a_result_gives_it_again(self):
        document = json.loads(self.output(*SMALL, "--slo", "ttft=10s", "--json"))
        again = json.loads(self.output("serve", "--request", self.write("x.json", json.dumps(document)), "--json"))
        for one in (document, again):
            one.pop("command", None)
        self.assertEqual(again, document)

    def test_an_interrupted_run_keeps_what_is_done(self):
        process = subprocess.Popen([PROGRAM, *LLAMA, "--rate", "20", "--requests", "300k", "--output", "2000", "--engine", "vllm", "--max-seqs", "900", "--json"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=self.seconds)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertRegex(err, r"^llmperf: interrupted")
        if out:
            document = json.loads(out)
            self.assertTrue(document["interrupted"])
            self.assertLess(document["requests"], 300_000)


    def test_an_interrupted_run_is_not_unstable_for_what_was_not_sent(self):
        process = subprocess.Popen([PROGRAM, *LLAMA, "--rate", "5", "--requests", "1M", "--json"], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=self.seconds)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        if out:
            self.assertTrue(json.loads(out)["stable"])

    def test_an_interrupted_series_of_seeds_says_how_many_were_done(self):
        process = subprocess.Popen([PROGRAM, *LLAMA, "--rate", "8", "--requests", "2000", "--seeds", "1000", "--json"], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=self.seconds)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        if out and json.loads(out)["requests"] == 2000:
            document = json.loads(out)
            self.assertTrue(document["interrupted"])
            self.assertIn(f"{len(document['seeds'])} of 1000 seeds were done", err)

    def test_progress_goes_to_a_terminal_alone(self):
        words = [PROGRAM, *LLAMA, "--rate", "8", "--requests", "2000", "--seeds", "20"]
        ours, theirs = os.openpty()
        process = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        process.communicate(timeout=self.seconds)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        self.assertRegex(shown, r"/44000 requests")
        self.assertEqual(self.run_program(*words[1:]).stderr, "")

    def test_overload_has_no_curve_of_what_has_no_end(self):
        document = self.json(*LLAMA, "--rate", "200", "--requests", "600")
        self.assertFalse(document["stable"])
        self.assertTrue(all(p["ttft_s"] is None and p["e2e_s"] is None and p["tpot_s"] > 0 for p in document["percentiles"]))

    def test_the_keys_that_scripts_rely_on(self):
        document = self.json(*SMALL, "--slo", "ttft.p99=10s")
        for path in ("requests", *(f"{metric}.{statistic}" for metric in ("ttft_s", "tpot_s", "itl_s", "e2e_s") for statistic in STATISTICS),
                     "output_tokens_per_second", "requests_per_second", "goodput_per_second", "stable", "kv.blocks", "kv.block_size",
                     "kv.peak_share", "preemptions", "prefix_hit_share",
                     *(f"causes.ttft.{cause}" for cause in ("queue", "kv", "budget", "prefill", "interference"))):
            with self.subTest(path=path):
                value = document
                for key in path.split("."):
                    value = value[key]
                self.assertIsNotNone(value)

    def test_energy_is_a_bound(self):
        document = self.json(*SMALL)
        self.assertAlmostEqual(document["joules_per_output_token"], document["average_power_w"] / document["output_tokens_per_second"])
        self.assertEqual((document["average_power_w"], document["power_basis"]), (700, "board power, upper bound"))
        self.assertIn("board power, upper bound", self.output(*SMALL))


class BadInput(Serve):
    def test_values(self):
        for flag, value, fragment in (("--rate", "0", "--rate"), ("--rate", "1e9", "--rate"), ("--rate", "-1", "--rate"), ("--rate", "nan", "--rate"),
                                      ("--burstiness", "0", "--burstiness"), ("--input", "0", "'0' is no length"), ("--input", "9-3", "no length"),
                                      ("--output", "lognormal:5", "lognormal:1k:0.8"), ("--prefix", "x", "no prefix"), ("--prefix", "1.5", "share of a prompt"), ("--prefix", "600", "of one of 256-512"), ("--requests", "0", "--requests"),
                                      ("--concurrency", "0", "--concurrency"), ("--seeds", "0", "--seeds"), ("--turns", "0", "--turns"),
                                      ("--slo", "ttft", "no bound"), ("--slo", "tfft.p99=1s", "did you mean 'ttft'"), ("--slo", "ttft.p98=1s", "p95 and p99"),
                                      ("--slo", "ttft.p99=1", "1s, 50ms"), ("--engine", "vlm", "did you mean 'vllm'"), ("--engine", "vllm@x", "vllm"),
                                      ("--kv-utilisation", "1.5", "--kv-utilisation"), ("--router", "random", "--router"), ("--prefix-caching", "yes", "on nor off"),
                                      ("--admission", "max-utilisation", "TensorRT-LLM")):
            with self.subTest(flag=flag, value=value):
                words = [word for i, word in enumerate(SMALL) if flag not in (word, SMALL[i - 1])]
                if flag in ("--burstiness",):
                    words = SMALL
                self.assert_bad_input([*words, flag, value], fragment)

    def test_what_does_not_go_together(self):
        for words, *fragments in (([], "when requests are sent", "--rate 4", "--concurrency 16", "--trace FILE"),
                                  (["--concurrency", "4", "--burstiness", "2"], "--burstiness", "--rate"),
                                  (["--rate", "4", "--prefill-replicas", "2"], "--decode-replicas"),
                                  (["--rate", "4", "--decode-replicas", "2"], "--prefill-replicas"),
                                  (["--rate", "4", "--replicas", "2", "--prefill-replicas", "2", "--decode-replicas", "1"], "--replicas"),
                                  (["--rate", "4", "--kv-link", "50GB/s"], "no keys and values are sent"),
                                  (["--rate", "4", "--prefill-replicas", "1", "--decode-replicas", "1", "--kv-link", "fast"], "--kv-link", "50GB/s"),
                                  (["--rate", "4", "--router", "round-robin"], "there is one replica"),
                                  (["--rate", "4", "--kv-blocks", "10", "--kv-utilisation", "0.5"], "--kv-utilisation"),
                                  (["--rate", "4", "--batch", "4"], "unknown flag '--batch'"), (["--rate", "4", "--training"], "unknown flag '--training'")):
            with self.subTest(words=words):
                self.assert_bad_input([*LLAMA, *words], *fragments)

    def test_requests_that_are_too_long(self):
        self.assert_bad_input([*LLAMA, "--rate", "4", "--input", "131000", "--output", "4000"], "131,072", "is made for", "--input")
        self.assert_bad_input([*LLAMA, "--rate", "4", "--input", "9000", "--chunked-prefill", "off"], "longer than a step", "--chunked-prefill on")
        self.assert_error(self.run_program(*LLAMA, "--rate", "4", "--kv-blocks", "10"), INFEASIBLE, "longer than the KV cache")

    def test_what_does_not_fit(self):
        self.assert_error(self.run_program("serve", "-m", "llama-3-70b", "--hw", "rtx4090", "--rate", "1"), INFEASIBLE, "no memory is left for keys and values", "--tp")

    def test_models_that_generate_no_text(self):
        self.assert_bad_input(["serve", "-m", "stdit3-xl2", "--hw", "h100-sxm", "--rate", "1"], "stdit3-xl2")

    def test_other_commands_have_no_traffic(self):
        request = self.write("r.json", json.dumps({"model": "qwen-7b", "hw": "rtx4090", "rate": 4}))
        self.assert_bad_input(["estimate", "--request", request], "--rate is of traffic that is served", "llmperf serve")
        request = self.write("r.json", json.dumps({"model": "qwen-7b", "hw": "rtx4090", "batch": 4, "rate": 4}))
        self.assert_bad_input(["serve", "--request", request], "--batch has no effect on traffic")


if __name__ == "__main__":
    unittest.main()
