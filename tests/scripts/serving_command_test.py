#!/usr/bin/env python3
"""Prefill and decode apart (--phase), decode steps that verify several tokens (--verify, --accept), what drafts them
(--draft) and two micro-batches that hide each other's exchanges (--overlap-batches): in every output, with the other
commands, and what is wrong with them."""
import csv
import io
import json
import unittest

from program import INFEASIBLE, USAGE, ProgramTest

LLAMA = ["-m", "llama-3-8b", "--hw", "h100-sxm", "--batch", "16", "--prompt", "2048", "--gen", "101"]
WIDE = ["-m", "deepseek-r1", "--hw", "ascend-910b2", "--runtime", "none", "--weights", "w8a8", "--kv", "int8",
        "--dp", "128", "--ep", "128", "--batch", "6144", "--prompt", "4096"]
TP8 = ["-m", "llama-3-70b", "--hw", "h100-sxm", "--tp", "8", "--batch", "64"]


class Step(ProgramTest):
    """--step: one step of continuous batching."""
    WORDS = ["-m", "llama-3.1-70b", "--hw", "h100-sxm", "--tp", "4", "--runtime", "vllm", "--batch", "4"]

    def step(self, text, *more):
        phases = self.json("estimate", *self.WORDS, "--step", text, *more)["phases"]
        self.assertEqual([phase["name"] for phase in phases], ["prefill", "decode", "step"])
        return phases[-1]

    def test_it_is_a_phase_of_its_own_whose_ops_add_up(self):
        step = self.step("32x1@2048,1x512@0")
        self.assertEqual(step["groups"], [
            {"sequences": 32, "new_tokens": 1, "context": 2048, "longest_context": 2048},
            {"sequences": 1, "new_tokens": 512, "context": 0, "longest_context": 0}])
        self.assertAlmostEqual(sum(op["time_s"] for op in step["ops"]), step["time_s"])
        plain = self.json("estimate", *self.WORDS)
        self.assertEqual([phase["name"] for phase in plain["phases"]], ["prefill", "decode"])

    def test_sequences_that_decode_are_one_group(self):
        step = self.step("1x1@1000,1x1@3000,2x1@2000,1x64@16")
        self.assertEqual(step["groups"][0], {"sequences": 4, "new_tokens": 1, "context": 2000, "longest_context": 3000})

    def test_one_group_alone_is_the_phase_of_the_estimate(self):
        whole = self.json("estimate", *self.WORDS, "--prompt", "512")
        self.assertEqual(self.step("4x512@0")["time_s"], whole["phases"][0]["time_s"])
        self.assertEqual(self.step("4x1@512")["time_s"], whole["tpot_first_s"])

    def test_text_says_what_the_parts_take(self):
        text = self.output("estimate", *self.WORDS, "--step", "32x1@2k,1x512@0", "--detail", "full")
        for words in ("Step of 33 sequences", "attention of 32 x 1 new after 2048", "attention of 1 x 512 new after 0",
                      "logits and sampling", "beside the kernels"):
            self.assertIn(words, text)
        short = " ".join(self.output("estimate", *self.WORDS, "--step", "32x1@2k,1x512@0").split())
        self.assertRegex(short, r" step [\d.]+ ms: products, .* attention of 1 x 512 new after 0 [\d.]+ %, logits and sampling ")

    def test_wrong_texts_are_told_with_their_place(self):
        for text, words in (("32x1@2048,1y512@0", ("group 2 ('1y512@0', from character 11)", "no x between")),
                            ("32x1", ("group 1 ('32x1', from character 1)", "no @ before")),
                            ("0x1@5", ("group 1", "between 1 and")),
                            ("1x@5", ("group 1",)),
                            ("", ("--step",))):
            with self.subTest(text=text):
                self.assert_usage(words, "estimate", *self.WORDS, "--step", text)

    def assert_usage(self, words, *arguments):
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, USAGE, result.stdout)
        for word in words:
            self.assertIn(word, result.stderr)


class KvCache(ProgramTest):
    """--kv-utilisation: the blocks of an engine's cache."""
    WORDS = ["-m", "llama-3.1-8b", "--hw", "rtx4090", "--gen", "16", "--max-model-len", "8192", "--kv-utilisation", "0.9"]

    def test_blocks_are_those_that_vllm_prints(self):
        # casys-kaist/LLMServingSim at 5daddb2: vLLM 0.19.0, 2,588 blocks of 16.
        kv = self.json("estimate", *self.WORDS, "--runtime", "vllm@0.19.0")["kv"]
        self.assertAlmostEqual(kv["blocks"] / 2588, 1, delta=0.03)
        self.assertEqual(kv["tokens"], 16 * kv["blocks"])
        self.assertEqual(kv["block_bytes"], 16 * 131072)

    def test_only_where_it_is_asked_for(self):
        self.assertNotIn("kv", self.json("estimate", *self.WORDS[:-4]))
        self.assertIn("KV cache of an engine", self.output("estimate", *self.WORDS))

    def test_a_share_of_weights_and_cache_or_of_what_is_free_under_other_engines(self):
        words = ["-m", "llama-3.1-8b", "--hw", "h100-sxm", "--max-model-len", "32768", "--kv-utilisation", "0.9", "--max-seqs", "1024"]
        kv = {runtime: self.json("estimate", *words, "--runtime", runtime)["kv"] for runtime in ("vllm", "sglang", "trtllm")}
        self.assertGreater(kv["sglang"]["tokens"], kv["vllm"]["tokens"])
        self.assertGreater(kv["trtllm"]["tokens"], kv["vllm"]["tokens"])

    def test_whatever_an_engine_is_told_asks_for_it(self):
        words = ["--max-model-len", "8192"]
        for flag, value in (("--block-size", "64"), ("--max-batched-tokens", "4096"), ("--max-seqs", "64"), ("--max-model-len", "4096")):
            with self.subTest(flag=flag):
                self.assertGreater(self.json("estimate", *self.WORDS[:-4], *(words if flag in words else [*words, flag, value]))["kv"]["tokens"], 0)

    def test_what_does_not_start_is_refused_with_the_nearest_that_does(self):
        words = ["estimate", *self.WORDS[:-4], "--kv-utilisation", "0.9"]
        result = self.run_program(*words, "--format", "json")
        self.assertEqual(result.returncode, INFEASIBLE)
        kv = json.loads(result.stdout)["kv"]
        self.assertIn("one sequence of 131,072 tokens", kv["refusal"])
        self.assertIn(f"--max-model-len {kv['longest_tokens']}", result.stderr)
        longest = self.json(*words, "--max-model-len", str(kv["longest_tokens"]))
        self.assertEqual(longest["kv"]["refusal"], "")
        self.assertEqual(longest["longest_context_tokens"], kv["longest_tokens"])
        self.assertEqual(self.run_program(*words, "--max-model-len", str(kv["longest_tokens"] + 1)).returncode, INFEASIBLE)

    def test_requests_are_no_longer_than_the_longest_sequence(self):
        for command in (["estimate", "--prompt", "2000"], ["serve", "--rate", "1", "--input", "2000", "--output", "10"]):
            result = self.run_program(command[0], "-m", "llama-3.1-8b", "--hw", "rtx4090", "--max-model-len", "1000", *command[1:])
            self.assertEqual(result.returncode, INFEASIBLE)
            self.assertIn("longer than --max-model-len", result.stderr)

    def test_how_many_and_how_long_are_the_engines_answer(self):
        alone = self.json("estimate", "-m", "llama-3.1-8b", "--hw", "rtx4090", "--gen", "16", "--max-model-len", "8192")
        self.assertEqual(alone["longest_context_tokens"], 8192)
        self.assertEqual(alone["largest_batch"], alone["kv"]["blocks"] // (528 // 16))
        few = self.json("estimate", "-m", "llama-3.1-8b", "--hw", "rtx4090", "--gen", "16", "--max-model-len", "8192", "--max-seqs", "8")
        self.assertEqual(few["largest_batch"], 8)
        self.assert_bad_input(["estimate", "-m", "bge-m3", "--hw", "h100-sxm", "--max-seqs", "8"], "bge-m3 is an encoder")

    def test_a_log_stands_beside_what_is_predicted(self):
        with open(self.path("engine.log"), "w", encoding="utf-8") as log:
            log.write("INFO version 0.19.0\nINFO GPU KV cache size: 41,408 tokens\nINFO Available KV cache memory: 5.06 GiB\n")
        words = ["estimate", *self.WORDS, "--runtime", "vllm@0.19.0", "--engine-log", self.path("engine.log")]
        self.assertIn("Start-up log of 0.19.0", self.output(*words))
        document = self.json(*words)
        parts = {part["name"]: part for part in document["engine_log"]["parts"]}
        self.assertEqual(parts["tokens"]["printed"], 41408)
        self.assertEqual(parts["tokens"]["predicted"], document["kv"]["tokens"])
        self.assertEqual(self.run_program(*words[:-1], self.path("no.log")).returncode, USAGE)


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

    def test_a_note_names_the_layer_that_could_draft(self):
        words = ["estimate", "-m", "deepseek-r1", "--hw", "h200-sxm", "--runtime", "none", "--tp", "8", "--batch", "32", "--verify", "2"]
        self.assertIn("(the model's own layer for further tokens, say)", "".join(self.json(*words)["notes"]))

    def test_rows_of_measured_steps_that_verify(self):
        header = "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n"
        row = "h100-sxm,1,vllm,,,llama-3-8b,bf16,16,{},{},2048,9\n"
        rows = self.write("rows.csv", header + row.format("verify", 4) + row.format("verify", 1) + row.format("decode", 1))
        predicted = [r["predicted_s"] for r in self.json("validate", rows)["rows"]]
        self.assertAlmostEqual(predicted[1], predicted[2])
        self.assertGreater(predicted[0], predicted[1])
        step = self.json("estimate", *LLAMA[:-2], "--gen", "2", "--verify", "4")
        self.assertAlmostEqual(step["phases"][1]["time_s"] / predicted[0], 1, 9)


SMALL = ["--draft", "llama-3.2-1b:3", "--accept", "0.8"]


class Draft(ProgramTest):
    def test_a_cycle_is_what_drafts_and_the_step_that_verifies(self):
        document = self.json("estimate", *LLAMA, *SMALL)
        names = [phase["name"] for phase in document["phases"]]
        self.assertEqual(names, ["prefill", "decode", "draft"])
        verify, drafts = document["phases"][1:]
        draft = document["draft"]
        self.assertEqual((draft["tokens"], draft["acceptance"], draft["best_of"]), (3, [0.8], None))
        self.assertAlmostEqual(draft["kept_tokens"], 2.952)
        self.assertAlmostEqual(document["tpot_s"], (verify["time_s"] + drafts["time_s"]) / 2.952)
        self.assertEqual((draft["draft_s"], draft["verify_s"]), (drafts["time_s"], verify["time_s"]))
        self.assertEqual((verify["new_tokens"], verify["steps"]), (4, 34))  # 100 / 2.952
        self.assertAlmostEqual(document["total_s"], document["ttft_s"] + 34 * (verify["time_s"] + drafts["time_s"]))
        memory = document["memory"]
        parts = ("weight_bytes", "kv_cache_bytes", "draft_weight_bytes", "draft_cache_bytes", "activation_bytes", "reserve_bytes")
        self.assertEqual(memory["total_bytes"], sum(memory[part] for part in parts))
        self.assertNotIn("draft_weight_bytes", self.json("estimate", *LLAMA)["memory"])

    def test_a_model_of_its_own_begins_a_step_for_each_token(self):
        one = ["--hw", "h100-sxm", "--batch", "16", "--gen", "2"]
        draft = self.json("estimate", "-m", "llama-3-8b", *one, "--prompt", "2048", *SMALL)["draft"]
        alone = self.json("estimate", "-m", "llama-3.2-1b", *one, "--prompt", "2049")["tpot_s"]
        self.assertAlmostEqual(draft["draft_s"] / (3 * alone), 1, 9)

    def test_without_a_number_the_best_length_is_taken_and_marked(self):
        words = ["estimate", *LLAMA, "--draft", "eagle", "--accept", "0.8,0.7,0.5"]
        document = self.json(*words)
        rounds = document["draft"]["rounds"]
        self.assertEqual([r["draft_length"] for r in rounds], list(range(1, 9)))
        best = max(rounds, key=lambda r: r["speedup"])
        self.assertEqual((document["draft"]["tokens"], document["draft"]["best_of"]), (best["draft_length"], 8))
        self.assertAlmostEqual(document["tpot_s"], (best["draft_s"] + best["verify_s"]) / best["expected_tokens"])
        plain = self.json("estimate", *LLAMA)
        self.assertAlmostEqual(plain["tpot_s"] / document["tpot_s"], best["speedup"])
        self.assertIn(f"best with {best['draft_length']}: ", self.output(*words))
        self.assertRegex(self.output(*words, "--detail", "full"), rf"\n +{best['draft_length']} .* best, taken\n")

    def test_every_output_and_command_takes_it(self):
        words = [*LLAMA, *SMALL]
        for output in (["--format", "csv"], ["--format", "md"], ["--export", "page.html"], ["--export", "x.trace.json"], ["--detail", "ops"]):
            with self.subTest(output=output):
                self.assertEqual(self.run_program("estimate", *words, *output).returncode, 0)
        text = self.output("explain", "tpot_s", *words)
        self.assertIn("(step_s + draft_s) / accepted_tokens", text)
        self.assertIn("draft_weight_bytes", self.output("explain", "memory.total_bytes", *words))
        done = self.run_program(
            "sweep", *LLAMA, "--draft", "llama-3.2-1b:1,llama-3.2-1b:5,eagle,mtp", "--accept", "0.8,0.9/0.5", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(len(rows), 8)
        self.assertEqual([row["error"] != "" for row in rows], [False, False, False, True] * 2)  # of each acceptance
        self.assertIn("llama-3-8b has no layers", rows[3]["error"])
        self.assertEqual([row["draft_tokens"] for row in rows[:2]], ["1", "5"])
        self.assertGreater(int(rows[2]["draft_tokens"]), 1)
        self.assertEqual(len({row["tpot_s"] for row in rows}), 7)  # and none where it failed
        self.output("compare", *LLAMA, "--against", "--draft eagle:3 --accept 0.7")

    def test_a_request_keeps_it(self):
        first = self.json("estimate", *LLAMA, *SMALL)
        again = self.json("estimate", "--request", self.write("result.json", json.dumps(first)))
        self.assertEqual((again["request"], again["tpot_s"]), (first["request"], first["tpot_s"]))

    def test_acceptance_can_be_a_file(self):
        table = self.write("rates.txt", "0.9\n0.7\n")
        document = self.json("estimate", *LLAMA, "--draft", "eagle:2", "--accept", table)
        self.assertAlmostEqual(document["draft"]["kept_tokens"], 1 + 0.9 + 0.63)

    def test_limits_takes_the_same(self):
        words = ["-m", "llama-3-8b", "--hw", "h100-sxm", "--weights", "bf16", "--batch", "4", "--context", "1000"]
        study = self.json("limits", *words, "--draft", "eagle", "--accept", "0.8,0.7")["speculation"]
        self.assertEqual((study["draft"], study["acceptance"], study["acceptance_table"]), ("EAGLE-3 of llama-3-8b", 0.8, [0.8, 0.7]))
        self.assertAlmostEqual(study["rounds"][1]["expected_tokens"], 1 + 0.8 + 0.56)
        estimate = self.json("estimate", "-m", "llama-3-8b", "--hw", "h100-sxm", "--runtime", "none", "--kv", "fp16", "--batch", "4",
                             "--prompt", "1000", "--gen", "2", "--draft", "eagle:4", "--accept", "0.8,0.7")["draft"]
        for key in ("draft_s", "verify_s"):
            self.assertAlmostEqual(study["rounds"][3][key] / estimate[key], 1, 9)


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
                ([*estimate, "--draft", "eagle"], ("--draft takes --accept", "--accept 0.8")),
                ([*estimate, "--draft", "eagle", "--accept", "1.2"], ("--accept", "chance between 0 and 1")),
                ([*estimate, "--draft", "eagle:0", "--accept", "0.8"], ("--draft", "between 1 and 32")),
                ([*estimate, "--draft", "eagle:99", "--accept", "0.8"], ("--draft", "between 1 and 32")),
                ([*estimate, "--draft", "mtp", "--accept", "0.8"], ("--draft: llama-3-8b has no layers that predict further tokens",)),
                ([*estimate, "--draft", "lama-3.2-1b", "--accept", "0.8"], ("--draft", "llama-3.2-1b")),
                ([*estimate, "--draft", "qwen2.5-0.5b:2", "--accept", "0.8"], ("--draft", "vocabulary of 151936")),
                ([*estimate, *SMALL, "--verify", "2"], ("--draft and --verify both",)),
                ([*estimate[:-2], "--phase", "prefill", *SMALL], ("--draft: --phase prefill decodes nothing",)),
                ([*estimate, "--weights", "q4_k_m", "--draft", "eagle", "--accept", "0.8"], ("models of their own draft",)),
                (["limits", "-m", "llama-3-8b", "--hw", "h100-sxm", *SMALL], ("limits compares all lengths",)),
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
