#!/usr/bin/env python3
"""The command line as a whole: help, names and their suggestions, flags and exit statuses."""
import json
import os
import unittest

from program import DONE, FAILED, INFEASIBLE, USAGE, ProgramTest

SUBCOMMANDS = ["estimate", "explain", "limits", "map", "map-collective", "parallel", "sweep", "merge", "run", "calibrate", "validate", "compare",
               "replay", "import", "report", "list", "show", "completion", "man", "help"]
ESTIMATE = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]


class Help(ProgramTest):
    def test_without_a_word_it_prints_its_help_as_an_error(self):
        done = self.run_program()
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))
        for name in SUBCOMMANDS:
            self.assertRegex(done.stderr, rf"(?m)^  {name} ")

    def test_help_and_version_go_to_stdout(self):
        self.assertIn("Usage: llmperf", self.output("--help"))
        self.assertRegex(self.output("--version"), r"^llmperf \d+\.\d+\.\d+(\+[0-9a-z.]+)?\n$")

    def test_version_says_what_was_built(self):
        document = json.loads(self.output("--version", "--json"))
        self.assertEqual(list(document), ["schema", "schema_version", "version", "commit", "compiler", "data_date"])
        self.assertEqual((document["schema"], document["schema_version"]), ("llmperf.version", 1))
        self.assertEqual(self.output("--version"), f"llmperf {document['version']}\n")
        self.assertRegex(document["compiler"], r"^\w+ \d+\.")
        self.assertRegex(document["commit"] or "0" * 40, "^[0-9a-f]{40}$")
        self.assertRegex(document["data_date"] or "2026-01-01", r"^20\d\d-\d\d-\d\d$")
        self.assert_bad_input(["--json"], "--json requires --version")

    def test_every_subcommand_has_help(self):
        for name in SUBCOMMANDS:
            self.assertIn(f"Usage: llmperf {name}", self.output(name, "--help"))
            self.assertEqual(self.output(name, "-h"), self.output(name, "--help"))

    def test_help_needs_no_other_flag_and_a_typo_beats_it(self):
        self.output("estimate", "--help", "-m", "no-such-model")
        self.assert_bad_input(["estimate", "--help", "--bacth", "4"], "unknown flag '--bacth'")
        # And it needs no value that another flag could take.
        self.assertIn("Usage: llmperf estimate", self.output("estimate", "--batch", "x", "--detail", "no-such", "--help"))
        self.assert_bad_input(["help", "--", "explore", "-o"], "--output needs a value")


class Names(ProgramTest):
    def test_unknown_names_are_answered_with_the_nearest(self):
        cases = [
            (["estimat"], "unknown subcommand 'estimat'", "did you mean 'estimate'?"),
            (["hlep"], "unknown subcommand 'hlep'", "did you mean 'help'?"),
            (["zzzzzz"], "unknown subcommand 'zzzzzz'", "known names: estimate, serve, capacity, compare, explain, explore, graph, limits"),
            (["--versoin"], "unknown flag '--versoin'", "'--version'"),
            (["-b"], "unknown flag '-b'", "known names"),
            ([*ESTIMATE, "--bacth", "4"], "unknown flag '--bacth'", "'--batch'"),
            ([*ESTIMATE, "--bacth=4"], "unknown flag '--bacth'", "'--batch'"),
            ([*ESTIMATE, "-b", "4"], "unknown flag '-b'", "'--batch'"),
            (["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--unit", "si"], "unknown flag '--unit'", "'--units'"),
            (["estimate", "-m", "qwen-7c", "--hw", "rtx4090"], "unknown model 'qwen-7c'", "'qwen-7b'"),
            (["estimate", "-m", "qwen-7b", "--hw", "rtx409"], "unknown hardware 'rtx409'", "'rtx4090'"),
            ([*ESTIMATE, "--weights", "w4a17"], "unknown weight scheme 'w4a17'", "'w4a16'"),
            ([*ESTIMATE, "--weights", "int4"], "unknown weight scheme 'int4'", "w4a16", "nf4"),
            ([*ESTIMATE, "--weights", "q4_kn"], "unknown weight scheme 'q4_kn'", "q4_k_m"),
            ([*ESTIMATE[:3], "--hw", "8xh100"], "a list of devices", "--hw h100-sxm --tp 8"),
            ([*ESTIMATE[:3], "--hw", "8xh100-sxm"], "a list of devices", "--hw h100-sxm --tp 8"),
            ([*ESTIMATE, "--kv", "fp9"], "unknown KV cache type 'fp9'", "'fp8'"),
            ([*ESTIMATE, "--activations", "fp8"], "unknown activation type 'fp8'", "fp16"),
            ([*ESTIMATE, "--format", "jsn"], "--format: there is no 'jsn'", "'json'"),
            ([*ESTIMATE, "--detail", "op"], "--detail: there is no 'op'", "'ops'"),
            ([*ESTIMATE, "--options", "flash"], "--options: unknown runtime option 'flash'", "'flash_attention'"),
            ([*ESTIMATE, "--options", "all,no_fused_kqv"], "unknown runtime option 'fused_kqv'", "'fused_qkv'"),
            ([*ESTIMATE, "--export", "result.txt"], "--export: no format goes with the name 'result.txt'", ".json"),
            (["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--units", "articel"], "--units: there is no 'articel'", "'article'"),
            (["limits", "-m", "qwen-7b,qwen-7c", "--hw", "rtx4090"], "unknown model 'qwen-7c'", "'qwen-7b'"),
            (["explain", "ttft", "-m", "qwen-7b", "--hw", "rtx4090"], "'ttft'", "'ttft_s'"),
            (["list", "modles"], "'modles'", "'models'"),
            (["show", "hardwear", "rtx4090"], "'hardwear'", "'hardware'"),
            (["show", "model", "llama-3-70"], "unknown model 'llama-3-70'", "'llama-3-70b'"),
            (["show", "hardware", "tx9"], "unknown hardware 'tx9'", "'tx8'"),
        ]
        for words, *fragments in cases:
            with self.subTest(words=words):
                self.assert_bad_input(words, *fragments, "\n  hint: ")


class Flags(ProgramTest):
    def test_missing_flags_and_arguments_are_named(self):
        self.assert_bad_input(["estimate"], "--model is required", "estimate --help")
        self.assert_bad_input(["estimate", "-m", "qwen-7b"], "--hw is required")
        self.assert_bad_input(["limits", "--hw", "rtx4090"], "--model is required")
        self.assert_bad_input(["list"], "KIND is required")
        self.assert_bad_input(["show", "model"], "NAME is required")

    def test_a_flag_without_its_value_is_an_error_never_a_default(self):
        for flag in ["--batch", "--prompt", "--gen", "--weights", "--kv", "--activations", "--options", "--reserve", "--detail",
                     "--format", "--export"]:
            with self.subTest(flag=flag):
                for words in ([flag], [flag, ""], [flag + "="], [flag, "--json"]):
                    self.assert_bad_input(ESTIMATE + words, f"{flag} needs a value: {flag} ")
        self.assert_bad_input(["estimate", "-m"], "--model needs a value: --model MODEL")
        self.assert_bad_input(["estimate", "-m", "", "--hw", "rtx4090"], "--model needs a value")
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "--batch", "4"], "--hw needs a value: --hw DEVICE")
        self.assert_bad_input(["explain", "", "-m", "qwen-7b", "--hw", "rtx4090"], "an argument is empty")
        # What is attached is the value, also where it looks like a flag; a switch has none.
        self.assert_bad_input([*ESTIMATE, "--weights=--json"], "unknown weight scheme '--json'")
        for word in ("--json=true", "--json={}", "--json="):
            self.assert_bad_input([*ESTIMATE, word], "--json takes no value", "leave it out")

    def test_flags_stand_behind_their_command(self):
        self.assert_bad_input(["--hw", "rtx4090", "estimate", "-m", "qwen-7b"], "unknown flag '--hw'")
        self.assert_bad_input(["compare", "[]", "b.json"], "compare")

    def test_a_flag_given_twice_is_an_error_never_the_last(self):
        self.assert_bad_input([*ESTIMATE, "--batch", "2", "--batch", "4"], "--batch is given more than once")
        self.assert_bad_input([*ESTIMATE, "--model", "qwen-14b"], "--model is given more than once")
        self.assert_bad_input([*ESTIMATE, "--json", "--format", "csv"], "--json", "--format")

    def test_what_changes_nothing_says_so(self):
        eager = " ".join(self.output(*ESTIMATE, "--runtime", "vllm", "--execution", "eager").split())
        self.assertIn("execution eager takes as long as vllm's own", eager)
        self.assertNotIn("takes as long", self.output(*ESTIMATE, "--runtime", "transformers", "--execution", "static-graph"))
        own = " ".join(self.output(*ESTIMATE, "--weights", "q4_k_m", "--runtime", "llama.cpp@b4000", "--detail", "full").split())
        self.assertIn("options all of the stack, without flash attention", own)

    def test_words_too_many_are_errors(self):
        self.assert_bad_input([*ESTIMATE, "4", "5"], "unexpected argument '4'")
        self.assert_bad_input(["list", "models", "qwen"], "unexpected argument 'qwen'")
        self.assert_bad_input([*ESTIMATE, "--export", "a.json", "b.json"], "unexpected argument 'b.json'")

    def test_flags_are_taken_in_every_usual_spelling(self):
        expected = self.output(*ESTIMATE)
        self.assertEqual(self.output("estimate", "--hw=rtx4090", "--model=qwen-7b"), expected)
        self.assertEqual(self.output("estimate", "-mqwen-7b", "--hw", "rtx4090"), expected)
        self.assertEqual(self.output(*ESTIMATE, "--batch", "1", "--options", "all", "--detail", "summary"), expected)

    def test_flags_of_engines_and_their_tools_are_taken(self):
        for command, ours, theirs in (
                ("estimate", "-m qwen-7b --hw h100-sxm --tp 2 --batch 4 --prompt 1000 --gen 64 --weights fp8 --kv fp8",
                 "-m qwen-7b --gpu h100-sxm --tensor-parallel-size 2 --batch-size 4 --input-len 1000 --output-len 64 --quantization fp8 "
                 "--kv-cache-dtype fp8_e4m3"),
                ("estimate", "-m qwen-7b --hw h100-sxm --tp 2 --pp 2 --activations fp16 --kv-utilisation 0.8",
                 "-m qwen-7b --hw=h100-sxm --tp_size=2 --pipeline-parallel-size=2 --dtype half --gpu-memory-utilization=0.8"),
                ("estimate", "-m qwen-7b --hw rtx4090 --weights q4_k_m --gpu-layers 20 --prompt 64 --gen 32 --ubatch 256",
                 "-m qwen-7b --hw rtx4090 --weights q4_k_m -ngl 20 -p 64 -n 32 -ub 256"),
                ("estimate", "-m qwen-7b --hw rtx4090", "-m qwen-7b --hw rtx4090 --dtype auto --kv-cache-dtype auto"),
                ("serve", "-m qwen-7b --hw h100-sxm --rate 2 --requests 50 --input 300 --output 20 --max-seqs 64",
                 "-m qwen-7b --hw h100-sxm --qps 2 --num-prompts 50 --input-len 300 --output-len 20 --max-num-seqs 64")):
            with self.subTest(theirs):
                expected = self.json(command, *ours.split())
                document = self.json(command, *theirs.split())
                self.assertEqual(document.pop("command", None) == expected.pop("command", None), ours == theirs)
                self.assertEqual(document, expected)
        self.assert_bad_input([*ESTIMATE, "--batch", "2", "--batch-size", "4"], "--batch is given more than once")

    def test_flags_of_engines_that_are_something_else_are_explained(self):
        for words, hint in ((["--ctx-size", "8192"], "--prompt and --gen"), (["-c", "8192"], "longest context"),
                            (["--enable-expert-parallel"], "--ep"), (["--enforce-eager"], "--execution eager")):
            self.assert_bad_input([*ESTIMATE, *words], f"unknown flag '{words[0]}'", hint)

    def test_one_cause_is_one_error(self):
        done = self.run_program("estimate", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--tp", "3")
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        self.assertIn("--tp: 32 heads, 8 KV heads, 14336 MLP columns of llama-3.1-8b do not divide by 3", done.stderr)

    def test_flags_that_would_have_no_effect_are_errors(self):
        limits = ["limits", "-m", "qwen-7b", "--hw", "rtx4090"]
        for words in (["--batch", "8"], ["--context", "100"], ["--accept", "0.8"], ["--draft", "qwen-1.8b"]):
            self.assert_bad_input(limits + words, "go together")
        self.assert_bad_input(["limits", "-m", "qwen-7b,qwen-14b", "--hw", "rtx4090", "--draft", "qwen-1.8b", "--accept", "0.8"],
                              "--draft takes a single --model")
        self.assert_bad_input(["show", "hardware", "rtx4090", "--weights", "fp8"], "--weights: for language models")


class Requests(ProgramTest):
    def again(self, *words):
        """The answer of a request, and of the request that the answer names: from its file, from stdin's, and with a flag over it."""
        first = self.json(*words, "--export", "first.json")
        again = self.json("estimate", "--request", "first.json")
        for document in (first, again):
            document.pop("command")
        self.assertEqual(first, again)
        self.write("request.json", json.dumps(first["request"]))
        alone = self.json("estimate", "--request", "request.json")
        alone.pop("command")
        self.assertEqual(first, alone)
        return first["request"]

    def test_a_result_holds_the_request_that_gives_it_again(self):
        asked = self.again("estimate", "-m", "llama-3-70b", "--hw", "a100-sxm-80gb", "--tp", "4", "--megatron-sp", "--prompt", "2k", "--weights", "w4a16",
                           "--reserve", "1GiB", "--options", "all,no_fused_qkv", "--batch", "8")
        self.assertEqual(asked, {"model": "llama-3-70b", "hw": "a100-sxm-80gb", "batch": 8, "prompt": 2048, "weights": "w4a16",
                                 "options": "all,no_fused_qkv", "reserve_bytes": 1073741824, "tp": "4", "megatron_sp": True})
        self.again("estimate", "-m", "megatron-22b", "--hw", "a100-sxm-80gb", "--training", "--tp", "8", "--dp", "2", "--zero", "1", "--optimizer-bits", "64")
        self.again("estimate", "-m", "stdit3-xl2", "--hw", "h100-sxm", "--seconds", "2.5", "--resolution", "480p", "--cfg", "off", "--die-link", "64GB/s",
                   "--sp", "ulysses:2")

    def test_flags_go_over_the_request_of_a_file(self):
        self.write("r.json", '{"model": "qwen-7b", "hw": "rtx4090", "batch": 2}')
        asked = self.json("estimate", "--request", "r.json", "--batch", "4")["request"]
        self.assertEqual(asked, {"model": "qwen-7b", "hw": "rtx4090", "batch": 4})
        self.assert_bad_input(["estimate", "--request", self.write("bad.json", '{"batc": 2}')], "bad.json:1:2", "unknown key 'batc'", "'batch'")
        self.assert_bad_input(["estimate", "--request", self.write("part.json", '{"hw": "rtx4090"}')], "--model is required")
        self.assert_bad_input(["estimate", "--request", self.write("no.json", '{"model": "qwen-7b", "hw": "rtx4090", "batch": 0}')],
                              "no.json", "--batch: '0' is not a whole number")

    def test_help_of_a_command_has_its_flags_in_groups(self):
        text = self.output("help", "estimate")
        self.assertEqual(text, self.output("estimate", "--help"))
        for group in ("Model:", "Hardware:", "Workload:", "Plan:", "Runtime:", "GGUF:", "Video:", "Training:", "Output:"):
            self.assertIn(f"\n{group}\n", text)
        self.assertIn("Usage: llmperf map gemm", self.output("help", "map", "gemm"))
        self.assertEqual(self.output("help"), self.output("--help"))
        self.assert_bad_input(["help", "estimat"], "unknown subcommand 'estimat'", "'estimate'")

    def test_names_and_numbers_as_people_type_them(self):
        words = ["--prompt", "1024", "--batch", "2"]
        self.assertEqual(self.output("estimate", "-m", "Qwen/Qwen-7B-Chat", "--hw", "RTX 4090", "--prompt", "1k", "--batch", "2"),
                         self.output("estimate", "-m", "qwen-7b", "--hw", "rtx4090", *words))
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "a100"], "'a100' may be more than one hardware", "a100-sxm-40gb")
        sweep = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090"]
        self.assert_bad_input([*sweep, "--batch", "1-100"], "--batch: the range '1-100' has no step", "1-100+1")
        self.assertEqual(self.output(*sweep, "--prompt", "1k-4k*2", "--format", "csv"), self.output(*sweep, "--prompt", "1024-4096*2", "--format", "csv"))
        devices = [row["name"] for row in self.json("list", "hardware")["hardware"]]
        rows = self.run_program("sweep", "-m", "qwen1.5-0.5b", "--hw", "all", "--prompt", "16", "--gen", "1", "--columns", "hardware,error", "--format", "csv").stdout.splitlines()
        self.assertEqual([row.split(",")[0] for row in rows[1:]], devices)

    def test_flags_without_effect_are_refused_with_the_reason(self):
        self.assert_bad_input([*ESTIMATE, "--export", "a.json", "--lang", "zh"], "--lang is the language of HTML reports", "FILE.html")
        self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--kv", "fp8"], "--kv: every precision", "name none")
        parallel = ["parallel", "-m", "gpt-block", "--hw", "h100-sxm", "--devices"]
        self.assert_bad_input([*parallel, "4", "--symbolic", "--top", "3"], "--top: no effect beside --symbolic")
        self.assert_bad_input([*parallel, "1", "--devices-per-node", "8"], "--devices-per-node: there is one device")
        self.assert_bad_input([*ESTIMATE, "--runtime", "vllm", "--options", "none"], "--options none: the stack of profile vllm")


class ExitStatus(ProgramTest):
    def test_done_failed_usage_and_infeasible_differ(self):
        self.assertEqual(self.run_program(*ESTIMATE).returncode, DONE)
        self.assertEqual(self.run_program(*ESTIMATE, "--export", "no/such/folder/a.json").returncode, FAILED)
        self.assertEqual(self.run_program(*ESTIMATE, "--batch", "x").returncode, USAGE)
        self.assertEqual(self.run_program("estimate", "-m", "llama-3-70b", "--hw", "rtx4090").returncode, INFEASIBLE)

    def test_what_does_not_fit_says_what_it_needs_what_there_is_and_what_would_fit(self):
        words = ["estimate", "-m", "llama-3-70b", "--hw", "rtx4090"]
        done = self.run_program(*words)
        # 70.55e9 parameters of 2 bytes are 131.4 GiB.
        self.assert_error(done, INFEASIBLE, "does not fit on rtx4090", "needs 132.2 GiB", "131.4 GiB of it weights", "has 23.52 GiB",
                          "fp8, int8 and w4a16 do not fit either; it fits with --weights 2.7")
        self.assertIn("does not fit", done.stdout)
        self.assertNotIn("TTFT", done.stdout)
        document = self.json(*words, status=INFEASIBLE)
        self.assertIs(document["fits"], False)
        for key in ["ttft_s", "tpot_s", "tpot_first_s", "tpot_last_s", "total_s", "tokens_per_second",
                    "tokens_per_second_per_request", "prefill_tokens_per_second", "decode_tokens_per_second"]:
            self.assertIsNone(document[key], key)
        self.assertEqual(document["phases"], [])
        self.assertGreater(document["memory"]["total_bytes"], document["memory"]["capacity_bytes"])
        self.assertEqual(document["largest_batch"], 0)

    def test_the_scheme_it_proposes_fits_and_a_wider_one_does_not(self):
        for model, hardware, scheme in [("llama-3-70b", "rtx4090", "2.7"), ("llama-2-13b", "rtx4090", "fp8"),
                                        ("llama-2-70b", "a100-sxm-80gb", "w4a16")]:
            words = ["estimate", "-m", model, "--hw", hardware]
            self.assert_error(self.run_program(*words), INFEASIBLE, f"--weights {scheme}")
            self.output(*words, "--weights", scheme)
        self.assertEqual(self.run_program("estimate", "-m", "llama-3-70b", "--hw", "rtx4090", "--weights", "2.8").returncode,
                         INFEASIBLE)

    def test_the_largest_batch_fits_and_one_more_does_not(self):
        largest = self.json(*ESTIMATE)["largest_batch"]
        self.output(*ESTIMATE, "--batch", str(largest))
        done = self.run_program(*ESTIMATE, "--batch", str(largest + 1))
        self.assert_error(done, INFEASIBLE, f"largest batch that fits is {largest}")


class Terminal(ProgramTest):
    def test_no_colour_when_stdout_is_no_terminal(self):
        self.assertNotIn("\x1b", self.output(*ESTIMATE))

    def test_headings_are_bold_on_a_terminal_unless_NO_COLOR_is_set(self):
        for variables, coloured in (({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)):
            try:
                ours, theirs = os.openpty()
            except OSError as error:
                self.skipTest(f"no pseudo-terminals here: {error}")
            try:
                self.run_program(*ESTIMATE, stdout=theirs, **variables)
                text = os.read(ours, 1 << 16).decode()
            finally:
                os.close(ours)
                os.close(theirs)
            self.assertEqual("\x1b[1m" in text, coloured, variables)


if __name__ == "__main__":
    unittest.main()
