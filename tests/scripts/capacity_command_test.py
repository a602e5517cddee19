#!/usr/bin/env python3
"""`llmperf capacity`: what its answer promises, and its flags."""
import json
import math
import os
import signal
import subprocess
import time
import unittest

from program import INFEASIBLE, PROGRAM, USAGE, ProgramTest

INTERRUPTED = 130

ASKED = ("capacity", "-m", "llama-3.1-8b", "--rate", "20", "--slo", "ttft.p99=1s,tpot.p99=50ms", "--input", "1000",
         "--output", "200")
CARDS = ("--hw", "h100-sxm,l40s", "--tp", "1,2", "--weights", "bf16,fp8")


class Capacity(ProgramTest):
    def candidates(self, *words, **options):
        return self.json(*ASKED, *words, **options)["candidates"]

    DEEPSEEK = ("capacity", "-m", "deepseek-v3", "--slo", "ttft.p99=2s,tpot.p95=50ms", "--input", "2000", "--output", "500")

    def test_experts_are_dealt_out_without_being_told(self):
        document = self.json(*self.DEEPSEEK, "--hw", "h200-sxm", "--rate", "4")
        plans = {c["plan"] for c in document["candidates"]}
        self.assertLessEqual({"tp 8", "tp 8, ep 8", "ep 8, dp 8", "ep 16, dp 16", "ep 32, dp 32"}, plans)
        self.assertLessEqual(document["candidates"][0]["devices"], 16)
        named = self.json(*self.DEEPSEEK, "--hw", "h200-sxm", "--rate", "4", "--tp", "8", "--ep", "1,8")["candidates"]
        self.assertEqual({c["plan"] for c in named}, {"tp 8", "tp 8, ep 8"})
        self.assertEqual(named[0]["cost_per_hour"], document["candidates"][0]["cost_per_hour"])

    def test_a_fleet_takes_the_highest_rate(self):
        document = self.json(*self.DEEPSEEK, "--fleet", "16xh200-sxm")
        met = [c for c in document["candidates"] if c["meets"]]
        rates = [c["fleet_requests_per_second"] for c in met]
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertEqual(document["rate"], rates[0])
        for c in met:
            self.assertLessEqual(c["devices"], 16)
            self.assertAlmostEqual(c["fleet_requests_per_second"], c["replicas"] * c["max_requests_per_second"])
            self.assertAlmostEqual(c["tokens_per_second_per_device"], c["fleet_requests_per_second"] * 500 / c["devices"])

    def test_a_fleet_is_split_into_prompts_and_decode(self):
        # Pools apart, without queues of one for the other: many splits of few devices, so that all may be tried by hand.
        words = ("-m", "llama-3.1-8b", "--slo", "ttft.p99=1s,tpot.p99=12ms", "--input", "4000", "--output", "200", "--weights", "fp8",
                 "--requests", "200", "--kv-link", "50GB/s")
        document = self.json("capacity", *words, "--fleet", "6xh100-sxm", "--tp", "1", "--pd")
        best = document["candidates"][0]
        self.assertTrue(best["meets"])
        self.assertGreater(best["decode_replicas"], 0)
        self.assertEqual(best["replicas"] + best["decode_replicas"], 6)
        self.assertEqual(best["devices"], 6)
        self.assertEqual(document["rate"], best["fleet_requests_per_second"])
        rates = {}
        for prompts in range(1, 6):
            split = ("--prefill-replicas", str(prompts), "--decode-replicas", str(6 - prompts))
            one = self.json("serve", *words, "--hw", "h100-sxm", *split, "--rate", "max")
            rates[prompts] = one["inputs"]["traffic"]["requests_per_second"]
        self.assertAlmostEqual(rates[best["replicas"]], best["fleet_requests_per_second"])
        self.assertEqual(max(rates.values()), rates[best["replicas"]])

    def test_unlike_devices_of_a_fleet_may_each_have_one_of_the_two_jobs(self):
        document = self.json("capacity", "-m", "llama-3.1-8b", "--slo", "ttft.p99=1s,tpot.p99=25ms", "--input", "4000", "--output", "400",
                             "--weights", "fp8", "--requests", "100", "--fleet", "2xh100-sxm,4xl40s", "--tp", "1", "--pd")
        there = {"h100-sxm": 2, "l40s": 4}
        apart = [c for c in document["candidates"] if c["meets"] and c["decode_replicas"] > 0]
        self.assertTrue([c for c in apart if c["decode_hardware"] not in (None, c["hardware"])])
        for c in apart:
            other = c["decode_hardware"] or c["hardware"]
            self.assertLessEqual(c["replicas"], there[c["hardware"]])
            self.assertLessEqual(c["decode_replicas"], there[other])
            self.assertEqual(c["devices"], c["replicas"] + c["decode_replicas"])

    def test_an_api_is_cheaper_below_the_break_even(self):
        document = self.json(*self.DEEPSEEK, "--hw", "h200-sxm", "--rate", "4", "--price", "2", "--api-price", "0.5,2")
        best, even = document["candidates"][0], document["break_even"]
        request = (2000 * 0.5 + 500 * 2) / 1e6  # 0.002
        self.assertAlmostEqual(even["api_cost_per_hour"], 4 * 3600 * request)
        self.assertAlmostEqual(even["requests_per_second"], 2 * best["devices"] / 3600 / request)
        self.assertAlmostEqual(even["requests_per_day"], even["requests_per_second"] * 86400)
        self.assertAlmostEqual(even["utilisation"], even["requests_per_second"] / best["replicas"] / best["max_requests_per_second"])

    def test_a_day_has_as_many_replicas_as_each_part_needs(self):
        document = self.json(*ASKED[:3], *ASKED[5:], "--hw", "h100-sxm", "--tp", "1", "--weights", "bf16", "--price", "2", "--day", "5,0,60,20")
        best, day = document["candidates"][0], document["day"]
        self.assertEqual(document["rate"], 60)
        replicas = [part["replicas"] for part in day["parts"]]
        self.assertEqual(replicas[2], best["replicas"])
        self.assertEqual(replicas[1], 1)
        self.assertEqual(replicas, [max(1, math.ceil(best["replicas"] * rate / 60)) for rate in (5, 0, 60, 20)])
        self.assertAlmostEqual(day["fixed_cost"], 24 * 2 * best["devices"])
        self.assertAlmostEqual(day["scaled_cost"], sum(6 * 2 * n for n in replicas))

    def test_replicas_that_start_are_paid_before_they_serve(self):
        day = ("--day", "5,0,60,20", "--price", "2")
        plain, slow = (self.json(*ASKED[:3], *ASKED[5:], "--hw", "h100-sxm", "--tp", "1", "--weights", "bf16", *day, *more)["day"]
                       for more in ((), ("--scale-time", "1800s")))
        devices = [part["devices"] for part in plain["parts"]]
        started = sum(max(0, devices[i] - devices[i - 1]) for i in range(4))  # the day before ended as this one
        self.assertGreater(started, 0)
        self.assertAlmostEqual(slow["scaled_cost"] - plain["scaled_cost"], started * 0.5 * 2)
        self.assertEqual(slow["fixed_cost"], plain["fixed_cost"])
        self.assert_bad_input((*ASKED, "--scale-time", "10s"), "--scale-time", "--day")
        for wrong in ("wake:", "wake:fast", "wake:0GB/s", "asleep"):
            self.assert_bad_input((*ASKED[:3], *ASKED[5:], *day, "--scale-time", wrong), "wake:7GB/s")

    def test_a_replica_wakes_as_long_as_its_weights_take(self):
        words = (*ASKED[:3], *ASKED[5:], "--hw", "h100-sxm", "--tp", "2", "--weights", "bf16", "--price", "2", "--day", "5,0,90,20")
        weights = self.json("serve", *ASKED[1:3], "--hw", "h100-sxm", "--tp", "2", "--rate", "1", "--requests", "10")["kv"]["memory"]["weight_bytes"]
        link = self.json("show", "hardware", "h100-sxm")["host_link"]["per_direction_bytes_per_s"]
        for text, seconds in (("wake", weights / link), ("wake:7GB/s", 2 * weights / 7e9)):
            day = self.json(*words, "--scale-time", text)["day"]
            self.assertAlmostEqual(day["start_s"], seconds)
            started = sum(max(0, part["devices"] - day["parts"][i - 1]["devices"]) for i, part in enumerate(day["parts"]))
            self.assertAlmostEqual(sum(part["cost"] for part in day["parts"]),
                                   sum(6 * 2 * part["devices"] for part in day["parts"]) + started * 2 * seconds / 3600)
        self.assertIn("of weights / 7000 MB/s of storage", self.output(*words, "--scale-time", "wake:7GB/s"))

    def test_classes_keep_their_own_promises(self):
        classes = "chat:3 input=500 output=200; batch:1 input=8k output=1k"
        words = ("capacity", "-m", "llama-3.1-8b", "--rate", "30", "--hw", "h100-sxm", "--weights", "fp8", "--tp", "1", "--slo", "chat:ttft.p99=500ms,batch:e2e.p95=60s")
        best = {}
        for name, text in (("alike", classes), ("urgent", classes + " priority=1")):
            document = self.json(*words, "--classes", text)
            best[name] = document["candidates"][0]
            self.assertEqual([b["class"] for b in best[name]["at"]["slo"]], ["chat", "batch"])
            self.assertTrue(all(b["met"] for b in best[name]["at"]["slo"]))
        self.assertLess(best["urgent"]["devices"], best["alike"]["devices"])  # batches may wait

    def test_the_hours_of_a_trace_are_a_day(self):
        # Three hours: 360 requests evenly in the first, none in the second, 36 in the third.
        times = [10 * i for i in range(360)] + [7200 + 100 * (i + 1) for i in range(36)]
        trace = self.write("day.csv", "arrival_s,input_tokens,output_tokens\n" + "".join(f"{t},300,30\n" for t in times))
        words = ["capacity", "-m", "llama-3.1-8b", "--hw", "l4", "--tp", "1", "--weights", "fp8", "--price", "2",
                 "--slo", "ttft.p99=1s", "--trace", trace]
        document = self.json(*words, "--day", "trace")
        self.assertAlmostEqual(document["rate"], 0.1)
        day = document["day"]
        self.assertEqual([round(part["rate"], 9) for part in day["parts"]], [0.1, 0, 0.01])
        self.assertEqual([part["from_h"] for part in day["parts"]], [0, 1, 2])
        self.assertAlmostEqual(day["fixed_cost"], 3 * 2 * document["candidates"][0]["devices"])
        # Ten minutes are one part, of ten minutes.
        short = self.write("short.csv", "arrival_s,input_tokens,output_tokens\n" + "".join(f"{i / 2},300,30\n" for i in range(1201)))
        document = self.json(*words[:-1], short, "--day", "trace")
        self.assertAlmostEqual(document["rate"], 1201 / 600)
        self.assertAlmostEqual(document["day"]["fixed_cost"], 2 * document["candidates"][0]["devices"] / 6)
        self.assert_bad_input([*words[:-2], "--day", "trace"], "--trace")
        lengths = self.write("lengths.csv", "input_tokens,output_tokens\n100,10\n")
        self.assert_bad_input([*words[:-1], lengths, "--day", "trace"], "no times")

    def test_narrower_weights_are_tried_where_the_device_multiplies_them(self):
        tried = lambda hw: {c["weights"] for c in self.candidates("--hw", hw, "--tp", "1")}
        self.assertEqual(tried("h100-sxm"), {"bf16", "fp8", "w4a16-g128"})
        self.assertEqual(tried("a100-sxm-80gb"), {"bf16", "w4a16-g128"})

    def test_what_fleets_days_and_prices_refuse(self):
        for words, message in ((("--fleet", "h200-sxm"), "no number of devices"), (("--fleet", "16xh200-sxm", "--rate", "4"), "--rate says one"),
                               (("--fleet", "8xnothing"), "nothing"), (("--day", "1,2", "--rate", "4"), "--day"), (("--day", "0,0"), "above 0"),
                               (("--rate", "4", "--dp", "auto", "--ep", "8"), "--dp auto"),
                               (("--hw", "h100-sxm", "--rate", "1", "--api-price", "3"), "--api-price"), ((), "--fleet")):
            with self.subTest(words=words):
                self.assert_bad_input([*self.DEEPSEEK, *words], message)

    def test_sessions_too_long_to_simulate_meet_no_rate(self):
        found = self.json("capacity", "-m", "llama-3.1-8b", "--tp", "1", "--weights", "bf16", "--input", "200", "--output", "100",
                          "--slo", "ttft.p99=1s", "--fleet", "1xh100-sxm", "--turns", "10", "--think", "300s", status=INFEASIBLE)["candidates"][0]
        self.assertFalse(found["meets"])
        self.assertIn("too long to simulate", found["why"])

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

    def test_the_rate_that_is_listed_is_one_that_serve_meets(self):
        words = ["-m", "llama-3.1-8b", "--input", "lognormal:1155:0.8", "--output", "lognormal:211:0.7", "--prefix", "512", "--hw", "h100-sxm", "--weights", "bf16"]
        listed = self.json("capacity", *words, "--tp", "1", "--rate", "4", "--slo", "ttft.p99=1s,tpot.p99=50ms")["candidates"][0]
        for factor, meets in ((1, True), (1.15, False)):
            served = self.json("serve", *words, "--rate", f"{factor * listed['max_requests_per_second']:.6g}")
            self.assertEqual(served["stable"] and served["ttft_s"]["p99"] <= 1 and served["tpot_s"]["p99"] <= 0.05, meets)

    def test_devices_are_those_of_all_replicas(self):
        words = ["capacity", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--tp", "1,2", "--slo", "ttft.p99=1s", "--input", "1000",
                 "--output", "200"]
        needed = min(c["devices"] for c in self.json(*words, "--rate", "100")["candidates"])
        self.assertGreater(needed, 2)
        enough = self.json(*words, "--rate", "100", "--devices", str(needed))["candidates"]
        self.assertTrue(enough[0]["meets"])
        self.assertTrue(all(c["devices"] <= needed for c in enough if c["meets"]))
        few = self.json(*words, "--rate", "100", "--devices", str(needed - 1), status=INFEASIBLE)["candidates"]
        self.assertFalse(any(c["meets"] for c in few))
        self.assertTrue(all(f"there are {needed - 1}" in c["why"] for c in few))

    def test_fewest_devices_and_least_power(self):
        fewest = self.candidates(*CARDS, "--minimise", "devices")
        devices = [c["devices"] for c in fewest if c["meets"]]
        self.assertEqual(devices, sorted(devices))
        power = [c["power_w"] for c in self.candidates(*CARDS, "--minimise", "energy") if c["meets"]]
        self.assertEqual(power, sorted(power))

    def test_prompts_and_decode_apart(self):
        found = self.candidates("--hw", "h100-sxm", "--tp", "1", "--weights", "bf16", "--pd")
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
        first, = self.json("capacity", "-m", "llama-3.1-70b", "--rate", "1", "--slo", "ttft.p99=10s", "--weights", "bf16", "--hw", "rtx4090",
                           "--tp", "1", status=INFEASIBLE)["candidates"]
        self.assertEqual(first["binding"], "memory")

    def test_the_keys_that_scripts_rely_on(self):
        best = self.candidates(*CARDS)[0]
        for key in ("hardware", "devices", "plan", "weights", "engine", "max_requests_per_second", "replicas", "cost_per_hour",
                    "cost_per_million_output_tokens", "meets", "binding"):
            self.assertIsNotNone(best[key], key)

    def test_best_first_and_what_misses_the_bounds_has_no_costs(self):
        met = [c["meets"] for c in self.candidates(*CARDS)]
        self.assertEqual(met, sorted(met, reverse=True))
        found = self.json(*ASKED[:5], "--slo", "ttft.p99=60ms", "--input", "lognormal:1000:1", "--hw", "h100-sxm", "--tp", "1,2",
                          status=INFEASIBLE)["candidates"]
        missed = [c for c in found if not c["meets"] and c["simulated"]]
        self.assertTrue(missed)
        for c in missed:
            self.assertEqual((c["replicas"], c["devices"], c["cost_per_hour"], c["power_w"]), (0, 0, None, None))

    def test_none_of_the_front_is_beaten(self):
        met = [c for c in self.candidates(*CARDS) if c["meets"]]
        for c in met:
            beaten = any(o["cost_per_hour"] <= c["cost_per_hour"] and o["at"]["e2e_mean_s"] <= c["at"]["e2e_mean_s"] and o is not c
                         for o in met)
            self.assertEqual(c["pareto"], not beaten, c)

    def test_the_table_has_the_statistics_that_are_bounded(self):
        one = ("--hw", "h100-sxm", "--tp", "1")
        for slo, there in (("ttft.p95=1s,tpot.p99=50ms", ("TTFT p95", "TPOT p99")), ("tpot.p95=50ms", ("TTFT p99", "TPOT p95")),
                           ("e2e.p50=20s", ("TTFT p99", "TPOT p99", "E2E p50"))):
            text = self.output(*ASKED[:5], "--slo", slo, *one)
            for title in there:
                self.assertIn(title, text)
            at = self.json(*ASKED[:5], "--slo", slo, *one)["candidates"][0]["at"]
            self.assertEqual([bound["name"].split("=")[0] for bound in at["slo"]], [part.split("=")[0] for part in slo.split(",")])
            self.assertTrue(all(bound["met"] for bound in at["slo"]))

    def test_a_trace_is_what_is_sent(self):
        trace = self.write("long.csv", "arrival_s,input_tokens,output_tokens\n" +
                           "".join(f"{i},{1500 + 1000 * (i % 2)},100\n" for i in range(300)))
        document = self.json(*ASKED[:7], "--trace", trace, "--hw", "h100-sxm", "--tp", "1")
        self.assertEqual((document["trace"], document["input"], document["output"]), (trace, "2000", "100"))
        best = document["candidates"][0]
        self.assertAlmostEqual(best["cost_per_million_output_tokens"], best["cost_per_hour"] / (20 * 100 * 3600 / 1e6))
        made = self.json(*ASKED[:7], "--input", "1500-2500", "--output", "100", "--burstiness", "inf", "--hw", "h100-sxm", "--tp", "1")["candidates"][0]
        self.assertAlmostEqual(best["at"]["ttft_mean_s"] / made["at"]["ttft_mean_s"], 1, delta=0.2)
        down = self.write("down.csv", "arrival_s,input_tokens,output_tokens\n5,10,10\n4,10,10\n")
        self.assert_error(self.run_program(*ASKED[:7], "--trace", down, "--hw", "h100-sxm"), USAGE, "down.csv:3:1", "sort the trace")
        self.assert_error(self.run_program(*ASKED[:7], "--trace", trace, "--burstiness", "2", "--hw", "h100-sxm"), USAGE, "random")
        self.assert_error(self.run_program(*ASKED, "--trace", trace, "--hw", "h100-sxm"), USAGE, "--input", "the trace says it")

    def test_an_answer_is_held_against_as_many_seeds_as_are_asked_for(self):
        one, three = (self.json(*ASKED, "--hw", "h100-sxm", "--tp", "1", "--seeds", n) for n in ("1", "3"))
        self.assertGreater(three["simulations"], one["simulations"])
        self.assertGreaterEqual(three["candidates"][0]["at"]["ttft_p99_s"], one["candidates"][0]["at"]["ttft_p99_s"])

    def test_what_has_no_effect_is_refused(self):
        for words, fragment in (("--replicas 3", "--replicas"), ("--prefill-replicas 1", "--prefill-replicas"), ("--concurrency 4", "--concurrency"),
                                ("--kv-link 1GB/s", "--kv-link"), ("--router round-robin", "--router")):
            with self.subTest(words=words):
                self.assert_error(self.run_program(*ASKED, "--hw", "h100-sxm", *words.split()), USAGE, fragment)
        self.json(*ASKED, "--hw", "h100-sxm", "--tp", "1", "--pd", "--kv-link", "100GB/s", "--router", "round-robin")

    def test_names_that_there_are_none_of_are_errors_among_others_too(self):
        for words, fragment in (("--weights foo,bf16", "foo"), ("--engine vllm,foo", "foo"), ("--hw ,", "--hw")):
            with self.subTest(words=words):
                extra = () if words.startswith("--hw") else ("--hw", "h100-sxm")
                self.assert_error(self.run_program(*ASKED, *extra, *words.split()), USAGE, fragment)

    def test_requests_that_are_too_long(self):
        long = ("capacity", "-m", "llama-3.1-8b", "--rate", "2", "--slo", "ttft.p99=9s", "--hw", "h100-sxm,l40s", "--tp", "1", "--weights", "bf16")
        self.assert_error(self.run_program(*long, "--input", "200000"), USAGE, "131,072", "is made for")
        found = self.json(*long, "--kv-blocks", "40", status=INFEASIBLE)["candidates"]
        self.assertEqual([c["binding"] for c in found], ["length", "length"])
        self.assertIn("longer than the KV cache", found[0]["why"])

    def test_an_interrupted_search_keeps_what_is_done(self):
        process = subprocess.Popen([PROGRAM, "capacity", "-m", "llama-3.1-8b", "--rate", "200", "--slo", "ttft.p99=1s", "--requests", "100k",
                                    "--minimise", "devices", "--json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertRegex(err, r"^llmperf: interrupted: \d+ of \d+ candidates were done\n$")
        document = json.loads(out)
        self.assertTrue(document["interrupted"])
        self.assertTrue(any(c["why"] == "interrupted" for c in document["candidates"]))

    def test_pages_in_both_languages(self):
        for language, words in (("en", ("Answer", "What meets the bounds")), ("zh", ("方案", "满足目标的方案"))):
            self.output(*ASKED, *CARDS, "--export", "x.html", "--lang", language)
            with open(self.path("x.html"), encoding="utf-8") as file:
                page = file.read()
            for part in (*words, 'data-chart="capacity-front"'):
                self.assertIn(part, page)
            os.remove(self.path("x.html"))

    def test_tables_are_at_most_100_columns_wide(self):
        for words in (CARDS, (*CARDS, "--pd", "--engine", "vllm,sglang"), ("--hw", "h100-sxm", "--tp", "1")):
            for line in self.output(*ASKED, *words).splitlines():
                self.assertLessEqual(len(line), 100, line)

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
