#!/usr/bin/env python3
"""Prefill and decode apart (--phase), decode steps that verify several tokens (--verify, --accept) and two micro-batches that
hide each other's exchanges (--overlap-batches): in every output, with the other commands, and what is wrong with them."""
import csv
import io
import re
import unittest

from program import INFEASIBLE, USAGE, ProgramTest

LLAMA = ["-m", "llama-3-8b", "--hw", "h100-sxm", "--batch", "16", "--prompt", "2048", "--gen", "101"]
WIDE = ["-m", "deepseek-r1", "--hw", "ascend-910b2", "--runtime", "none", "--weights", "w8a8", "--kv", "int8",
        "--dp", "128", "--ep", "128", "--batch", "6144", "--prompt", "4096"]
TP8 = ["-m", "llama-3-70b", "--hw", "h100-sxm", "--tp", "8", "--batch", "64"]


class Phase(ProgramTest):
    def test_decode_alone_has_the_times_of_decode_and_nothing_of_the_prefill(self):
        whole = self.json("estimate", *LLAMA)
        decode = self.json("estimate", *LLAMA, "--phase", "decode")
        self.assertEqual([phase["name"] for phase in decode["phases"]], ["decode"])
        self.assertEqual(decode["phases"][0], whole["phases"][1])
        self.assertEqual(decode["tpot_s"], whole["tpot_s"])
        for key in ("ttft_s", "prefill_tokens_per_second"):
            self.assertIsNone(decode[key])
        self.assertIsNone(decode["error_band"]["prefill"])
        self.assertEqual(decode["error_band"]["decode"], whole["error_band"]["decode"])
        self.assertAlmostEqual(decode["tokens_per_second"], 16 * 100 / decode["total_s"])
        self.assertLess(decode["memory"]["activation_bytes"], whole["memory"]["activation_bytes"])
        self.assertEqual(decode["inputs"]["phase"], "decode")
        self.assertNotIn("phase", whole["inputs"])

    def test_prefill_alone_has_no_decode(self):
        whole = self.json("estimate", *LLAMA)
        prefill = self.json("estimate", *LLAMA[:-2], "--phase", "prefill")
        self.assertEqual(prefill["phases"], whole["phases"][:1])
        self.assertEqual(prefill["total_s"], whole["ttft_s"])
        for key in ("tpot_s", "tpot_first_s", "tpot_last_s", "tokens_per_second", "tokens_per_second_per_request", "decode_tokens_per_second"):
            self.assertIsNone(prefill[key])
        self.assertLess(prefill["memory"]["kv_cache_bytes"], whole["memory"]["kv_cache_bytes"])
        self.assertTrue(all(point["decode_step_s"] is None for point in prefill["context_curve"]))

    def test_decode_fits_where_the_prompts_of_all_requests_do_not(self):
        self.assertEqual(self.run_program("estimate", *WIDE).returncode, INFEASIBLE)
        decode = self.json("estimate", *WIDE, "--phase", "decode")
        self.assertTrue(decode["fits"])
        self.assertGreater(decode["tokens_per_second"], 0)

    def test_every_output_and_command_takes_it(self):
        for phase in ("prefill", "decode"):
            words = [*LLAMA[:-2], "--phase", phase]
            for output in (["--format", "csv"], ["--format", "md"], ["--export", "page.html"], ["--export", "x.trace.json"], ["--detail", "ops"]):
                with self.subTest(phase=phase, output=output):
                    self.assertEqual(self.run_program("estimate", *words, *output).returncode, 0)
            document = self.json("explain", *words)
            self.assertTrue(any(number["path"] == "total_s" for number in document["paths"]), document)
            text = self.output("estimate", *words)
            self.assertEqual("TTFT" in text, phase == "prefill")
            self.assertEqual("TPOT" in text, phase == "decode")
        rows = list(csv.DictReader(io.StringIO(self.output("sweep", *LLAMA[:-2], "--phase", "both,prefill,decode", "--format", "csv"))))
        self.assertEqual([(row["ttft_s"] != "", row["tpot_s"] != "") for row in rows], [(True, True), (True, False), (False, True)])
        self.assertEqual([row["error"] for row in rows], [""] * 3)
        self.output("compare", *LLAMA, "--phase", "decode", "--against", "--weights fp8")
        self.output("compare", *LLAMA, "--against", "--phase decode")
        self.output("compare", *LLAMA, "--phase", "decode", "--with", "all")

    def test_plans_are_ranked_by_a_decode_step(self):
        words = ["parallel", "-m", "llama-2-70b", "--hw", "h100-sxm", "--devices", "8", "--batch", "8"]
        prefill, decode = self.json(*words), self.json(*words, "--phase", "decode")
        self.assertEqual(decode["inputs"]["phase"], "decode")
        self.assertLess(decode["plans"][0]["step_s"], prefill["plans"][0]["step_s"] / 10)
        self.assertIn("the fastest decode step first", self.output(*words, "--phase", "decode"))


class Verify(ProgramTest):
    def test_the_time_per_token_is_the_step_over_what_it_keeps(self):
        document = self.json("estimate", *LLAMA, "--verify", "4", "--accept", "2.5")
        decode = document["phases"][1]
        self.assertEqual((decode["new_tokens"], decode["steps"]), (4, 40))
        self.assertAlmostEqual(document["tpot_s"], decode["time_s"] / 2.5)
        self.assertEqual((document["inputs"]["verify_tokens"], document["inputs"]["accepted_tokens"]), (4, 2.5))
        self.assertIn("what drafts the other 3 is left out", document["notes"][0])
        self.assertIn("verifies 4 tokens", self.output("estimate", *LLAMA, "--verify", "4"))
        self.assertIn("step_s / accepted_tokens", self.output("explain", "tpot_s", *LLAMA, "--verify", "4", "--accept", "2.5"))

    def test_what_drafts_is_left_out_and_estimated_in_a_note(self):
        words = ["estimate", "-m", "deepseek-r1", "--hw", "h200-sxm", "--runtime", "none", "--tp", "8", "--batch", "32", "--verify", "2"]
        document = self.json(*words)
        notes = [note for note in document["notes"] if "the model's own module, a layer and the head, takes about" in note]
        self.assertEqual(len(notes), 1, document["notes"])
        plain = self.json(*words[:-2])["phases"][1]
        head = sum(op["time_s"] for op in plain["ops"] if op["name"] == "lm_head")
        value, unit = re.search(r"about ([\d.]+) (ms|us)", notes[0]).groups()
        guess = float(value) * {"ms": 1e-3, "us": 1e-6}[unit]
        self.assertGreater(guess, head)
        self.assertLess(guess, head + 2 * plain["time_s"] / 61)

    def test_rows_of_measured_steps_that_verify(self):
        header = "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n"
        row = "h100-sxm,1,vllm,,,llama-3-8b,bf16,16,{},{},2048,9\n"
        rows = self.write("rows.csv", header + row.format("verify", 4) + row.format("verify", 1) + row.format("decode", 1))
        predicted = [r["predicted_s"] for r in self.json("validate", rows)["rows"]]
        self.assertAlmostEqual(predicted[1], predicted[2])
        self.assertGreater(predicted[0], predicted[1])
        step = self.json("estimate", *LLAMA[:-2], "--gen", "2", "--verify", "4")
        self.assertAlmostEqual(step["phases"][1]["time_s"] / predicted[0], 1, 9)


class TwoMicroBatches(ProgramTest):
    def test_exchanges_run_beside_the_other_s_ops(self):
        one = self.json("estimate", *TP8)
        two = self.json("estimate", *TP8, "--overlap-batches", "2")
        for before, after in zip(one["phases"], two["phases"]):
            self.assertAlmostEqual(after["ops_time_s"] - after["overlapped_s"], after["time_s"])
            self.assertGreater(after["overlapped_s"], 0)
            self.assertAlmostEqual(after["network_bytes"] / before["network_bytes"], 1)
        self.assertLess(two["ttft_s"], one["ttft_s"])
        self.assertEqual(two["inputs"]["overlap_batches"], 2)
        longer = [note for note in two["notes"] if "two micro-batches make a step of decode longer" in note]
        self.assertEqual(len(longer), int(two["tpot_s"] > one["tpot_s"]), two["notes"])
        self.output("estimate", *TP8, "--overlap-batches", "2", "--export", "x.trace.json")
        self.assertIn("beside", self.output("explain", "tpot_s", *TP8, "--overlap-batches", "2"))


class Wrong(ProgramTest):
    def check(self, words, *texts):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_what_makes_no_sense_is_said(self):
        estimate = ["estimate", *LLAMA]
        for words, texts in (
                ([*estimate, "--phase", "foo"], ("--phase", "foo")),
                ([*estimate, "--phase", "decod"], ("did you mean 'decode'",)),
                ([*estimate, "--phase", "prefill"], ("--gen: --phase prefill decodes nothing",)),
                ([*estimate[:-2], "--phase", "prefill", "--verify", "2"], ("--verify: --phase prefill decodes nothing",)),
                ([*estimate[:-2], "--gen", "1", "--phase", "decode"], ("the first token comes out of the prefill",)),
                ([*estimate, "--verify", "0"], ("--verify", "between 1 and 64")),
                ([*estimate, "--accept", "2"], ("a step that verifies 1 token cannot keep 2", "--verify 2")),
                ([*estimate, "--verify", "3", "--accept", "3.5"], ("a step that verifies 3 tokens cannot keep 3.5", "--verify 4")),
                ([*estimate, "--verify", "2", "--accept", "0.5"], ("--accept", "between 1 and 64")),
                ([*estimate, "--overlap-batches", "2"], ("one device exchanges nothing",)),
                ([*estimate, "--overlap-batches", "3"], ("--overlap-batches", "between 1 and 2")),
                (["estimate", *TP8[:-1], "1", "--overlap-batches", "2"], ("--batch", "micro-batches")),
                (["estimate", "-m", "llama-3-8b", "--hw", "h100-sxm", "--training", "--verify", "2"], ("--verify", "training")),
                (["estimate", "-m", "llama-3-8b", "--hw", "h100-sxm", "--training", "--phase", "decode"], ("--phase", "training")),
                (["estimate", "-m", "stdit3-xl2", "--hw", "h100-sxm", "--phase", "decode"], ("--phase is for language models",)),
                (["estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--weights", "q4_k_m", "--pp", "2", "--batch", "2",
                  "--overlap-batches", "2"], ("--overlap-batches: llama.cpp",))):
            with self.subTest(words=words):
                self.check(words, *texts)


if __name__ == "__main__":
    unittest.main()
