#!/usr/bin/env python3
"""Bad values and bad files: a positioned error and exit status 2 within seconds and in bounded memory, never a number."""
import os
import unittest

from program import ROOT, ProgramTest, USAGE

MODEL = """\
name: tiny
hidden_size: 256
num_layers: 4
vocab_size: 1000
norm: rms
attention: {heads: 8, kv_heads: 2}
feed_forward: {intermediate: 512, activation: silu, gated: true}
"""
DEVICE = """\
name: board
title: A board
vendor: nobody
family: none
kind: gpu
source: made up
peaks:
  - {engine: matrix, dtype: fp16, rate: 100 TFLOP/s, provenance: assumed}
  - {engine: vector, dtype: fp32, rate: 10 TFLOP/s, provenance: assumed}
memory:
  - {name: DRAM, capacity: 16 GiB, bandwidth: 500 GB/s, provenance: assumed}
"""
CONFIG = open(os.path.join(ROOT, "tests", "model", "configs", "llama-3.2-1b.json"), encoding="utf-8").read()

NOT_COUNTS = ["-1", "0", "nan", "NaN", "inf", "-inf", "1e400", "9223372036854775808", "1" * 4000, "1.5", "1e3", "0x10", "010",
              "+4", " 4", "4 ", "4kB", "4.5k", "99999999999M", "four", "\x1b[31m", "４"]


class BadValues(ProgramTest):
    def test_counts_are_plain_whole_numbers_within_their_range(self):
        estimate = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]
        speculate = ["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--draft", "qwen-1.8b", "--accept", "0.5"]
        for command, flag in [(estimate, "--batch"), (estimate, "--prompt"), (estimate, "--gen"), (speculate, "--batch"),
                              (speculate, "--context")]:
            for value in NOT_COUNTS:
                with self.subTest(flag=flag, value=value[:20]):
                    done = self.run_program(*command, f"{flag}={value}")
                    self.assert_error(done, USAGE, f"{flag}: '", "is not a whole number between 1 and ")
                    self.assertNotIn("\x1b", done.stderr)
                    self.assertLess(len(done.stderr), 300)

    def test_the_largest_counts_give_an_answer(self):
        words = ["estimate", "-m", "deepseek-v3", "--hw", "rtx4090", "--batch", "1000000", "--prompt", "100000000", "--gen",
                 "100000000"]
        self.assertGreater(self.json(*words, status=3)["memory"]["total_bytes"], 1e18)

    def test_weight_schemes(self):
        for value in ["-4", "0", "-0", "64.1", "9223372036854775808"]:
            self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "rtx4090", f"--weights={value}"], "bits per weight")
        for value in ["nan", "inf", "1e400", "4bit", "w4a16-g0", "w4a16-g-1", "w4a16-g99999999999999999999", "bf16,fp8", "BF16 "]:
            self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "rtx4090", f"--weights={value}"], "unknown weight scheme")
        for value in ["w0kv16", "w-1kv16", "wnankv16", "w1e400kv16", "w16kv0", "w16kv", "kv16", ",", "w4kv16,", "w65kv16"]:
            self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", f"--weights={value}"])

    def test_amounts_of_memory_need_a_unit_and_a_sensible_size(self):
        for value in ["512", "-1GiB", "nanGiB", "1e308TiB", "1e19B", "1 GiB ", "GiB", "1gib", "1GiBB", "0x1GiB"]:
            self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "rtx4090", f"--reserve={value}"],
                                  "is not an amount of memory", "512MiB")

    def test_acceptance_is_a_probability(self):
        for value in ["-0.1", "1.0001", "nan", "inf", "1e400", "80%", "0,8", "9223372036854775808"]:
            self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--draft", "qwen-1.8b", f"--accept={value}"])

    def test_lists_have_no_empty_items(self):
        for value in [",", "qwen-7b,", ",qwen-7b", "qwen-7b,,qwen-14b", " "]:
            self.assert_bad_input(["limits", f"--model={value}", "--hw", "rtx4090"], "--model: ", "has an empty item")
        for value in [",", "all,", "none,none", "fused_qkv,,fused_rope", "no_no_fused_qkv", "no_all"]:
            self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "rtx4090", f"--options={value}"], "--options: ")


class BadFiles(ProgramTest):
    """Each case changes one thing in a good file and says where the error must point."""

    def check(self, kind, name, good, old, new, at, fragment):
        """`old` becomes `new`; the error stands at the first character of `at` (0: nowhere in particular)."""
        self.assertEqual(good.count(old), 1, old)
        text = good.replace(old, new)
        offset = text.index(at, good.index(old) if at in new else 0)
        line = text.count("\n", 0, offset) + 1
        column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        file = self.write(name, text)
        words = {"model": ["estimate", "-m", file, "--hw", "rtx4090"], "device": ["estimate", "-m", "qwen-7b", "--hw", file]}[kind]
        with self.subTest(new=new[:40]):
            self.assert_bad_input(words, f"llmperf: error: {file}:{line}:{column}: ", fragment)

    def test_the_files_the_cases_start_from_are_good(self):
        model, device = self.write("model.yaml", MODEL), self.write("device.yaml", DEVICE)
        self.assertEqual(self.json("estimate", "-m", model, "--hw", device)["inputs"]["model"]["name"], "tiny")
        self.json("estimate", "-m", self.write("config.json", CONFIG), "--hw", device)

    def test_numbers_of_a_model(self):
        for value in ["-1", "0", ".nan", "1e400", "9223372036854775808", "8.0", "8e0", "0x8", "010", "'8'", "[8]", "{a: 8}", "true",
                      "eight"]:
            self.check("model", "m.yaml", MODEL, "heads: 8", f"heads: {value}", value, "must be an integer between 1 and")
        for key, value in [("hidden_size: 256", "1e30"), ("num_layers: 4", "1000000"), ("vocab_size: 1000", "-5"),
                           ("intermediate: 512", "99999999999999999999")]:
            name = key.split(":", maxsplit=1)[0]
            self.check("model", "m.yaml", MODEL, key, f"{name}: {value}", value, f"'{name}' must be an integer between")

    def test_keys_and_words_of_a_model(self):
        cases = [
            ("norm: rms", "nrom: rms", "nrom", "unknown key 'nrom'\n  hint: did you mean 'norm'?"),
            ("kv_heads: 2", "kv_head: 2", "kv_head", "unknown key 'kv_head'\n  hint: did you mean 'kv_heads'"),
            ("norm: rms", "norm: rms\nnorm: layer", "norm: layer", "duplicate key 'norm'\n  hint: first given at line 5"),
            ("heads: 8,", "heads: 8, heads: 8,", "heads: 8, kv", "duplicate key 'heads'"),
            ("norm: rms", "norm: rsm", "rsm", "must be one of rms, layer, layer_no_bias, not 'rsm'\n  hint: did you mean 'rms'?"),
            ("gated: true", "gated: yes", "yes", "must be true or false"),
            ("gated: true", "gated: 1", "1}", "must be true or false"),
            ("name: tiny", "name: ''", "''", "must not be empty"),
            ("name: tiny", "name: [tiny]", "[tiny]", "must be a text, not a list"),
            ("norm: rms\n", "", "name", "missing key 'norm'"),
            ("{heads: 8, kv_heads: 2}", "8", "8\n", "must be a mapping"),
            ("kv_heads: 2", "kv_heads: 3", "8, kv", "heads (8) is not divisible by kv_heads (3)"),
            ("hidden_size: 256", "hidden_size: 250", "8, kv", "hidden_size (250) is not divisible by heads (8)"),
            ("norm: rms", "norm: &x rms", "&x", ""),
            ("norm: rms", "norm: !!str rms", "!!str", ""),
            ("norm: rms", "\tnorm: rms", "\tnorm", "not valid YAML"),
            ("name: tiny", "name: ti\x00ny", "\x00", "control character"),
        ]
        for old, new, at, fragment in cases:
            self.check("model", "m.yaml", MODEL, old, new, at, fragment)

    def test_figures_of_a_device(self):
        for value in ["-500 GB/s", "0 GB/s", "nan GB/s", "1e400 GB/s", "500", "500 GB", "fast", "[500 GB/s]", "500 Gb/s"]:
            self.check("device", "d.yaml", DEVICE, "bandwidth: 500 GB/s", f"bandwidth: {value}", value, "'bandwidth' must be")
        for value in ["-100 TFLOP/s", "0 TFLOP/s", "100", "100 TB/s", "inf TFLOP/s"]:
            self.check("device", "d.yaml", DEVICE, "rate: 100 TFLOP/s", f"rate: {value}", value, "'rate' must be")
        cases = [
            ("kind: gpu", "kind: gqu", "gqu", "hint: did you mean 'gpu'"),
            ("dtype: fp16", "dtype: fp61", "fp61", "'dtype'"),
            ("vendor: nobody", "vender: nobody", "vender", "unknown key 'vender'\n  hint: did you mean 'vendor'"),
            ("name: board", "name: board\nname: board", "name: board\nt", "duplicate key 'name'"),
        ]
        for old, new, at, fragment in cases:
            self.check("device", "d.yaml", DEVICE, old, new, at, fragment)

    def test_configs_in_the_hugging_face_format(self):
        cases = [
            ('"num_attention_heads": 32', '"num_attention_heads": 0', "0", "'num_attention_heads' must be an integer"),
            ('"num_attention_heads": 32', '"num_attention_heads": -1', "-1", "'num_attention_heads' must be an integer"),
            ('"num_attention_heads": 32', '"num_attention_heads": "32"', '"32"', "write it without quotes"),
            ('"num_attention_heads": 32', '"num_attention_heads": 1e400', "1e400", ""),
            ('"num_attention_heads": 32', '"num_attention_heads": 9223372036854775808', "9223372036854775808", "'num_attention_heads'"),
            ('"num_attention_heads": 32', '"num_attention_heads": NaN', "N", "must be an integer between"),
            ('"num_attention_heads": 32', '"num_attention_heads": 32, "num_attention_heads": 32', '"num_attention_heads": 32,\n',
             "duplicate key 'num_attention_heads'"),
            ('"num_attention_heads": 32', '"num_attention_heads": 33', "", "divisible"),
            ('"model_type": "llama"', '"model_type": "lama"', '"lama"', "nearest by name and keys: llama"),
            ('"model_type": "llama"', '"model_type": "llama", "num_atention_heads": 3', '"num_atention', "num_atention_heads"),
        ]
        for old, new, at, fragment in cases:
            if at:
                self.check("model", "config.json", CONFIG, old, new, at, fragment)
            else:
                file = self.write("config.json", CONFIG.replace(old, new))
                self.assert_bad_input(["show", "model", file], fragment)

    def test_all_problems_of_a_file_are_reported_at_once(self):
        file = self.write("m.yaml", MODEL.replace("256", "-1").replace("rms", "rsm").replace("8", "'8'"))
        done = self.run_program("show", "model", file)
        self.assert_error(done, USAGE, f"{file}:2:14: ", f"{file}:5:7: ", f"{file}:6:20: ")
        self.assertEqual(done.stderr.count("llmperf: error: "), 3)

    def test_every_truncation_of_a_config_is_an_error(self):
        for length in range(0, len(CONFIG.rstrip()) - 1, 29):
            file = self.write("config.json", CONFIG[:length])
            self.assert_bad_input(["show", "model", file], f"llmperf: error: {file}:")


class UnreadableFiles(ProgramTest):
    def check(self, file, fragment):
        self.assert_bad_input(["estimate", "-m", file, "--hw", "rtx4090"], file, fragment)
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", file], file, fragment)

    def test_a_file_of_100_megabytes_is_refused_unread(self):
        for name in ["big.yaml", "big.json"]:
            with open(self.path(name), "wb") as file:
                file.truncate(100_000_000)
            self.check("./" + name, "too large")

    def test_a_megabyte_of_anything_is_an_error(self):
        texts = {"letters": "a" * 1_000_000, "colons": "a: " * 300_000, "quotes": '"' * 1_000_000, "dashes": "- " * 500_000,
                 "keys": "".join(f"k{i}: 1\n" for i in range(80_000)), "zeros": "\0" * 1_000_000, "hashes": "#" * 1_000_000}
        for name, text in texts.items():
            for extension in ["yaml", "json"]:
                with self.subTest(text=name, extension=extension):
                    self.check(self.write(f"{name}.{extension}", text), "llmperf: error: ")

    def test_deep_nesting(self):
        for opening in ["[", '{"a":', "- ", "a: {b: ["]:
            for extension in ["yaml", "json"]:
                self.check(self.write(f"deep.{extension}", opening * 100_000), ":1:")
        self.check(self.write("deep.yaml", "a: " + "[" * 1000 + "]" * 1000), "nested deeper than 64 levels")

    def test_what_is_no_file(self):
        os.mkdir(self.path("folder.yaml"))
        self.check("./folder.yaml", "is a directory, not a file")
        self.check("./folder.yaml/", "")
        self.check("./no-such-file.yaml", "No such file")
        self.check("/dev/null", "")
        self.check("./config.txt", "accepted extensions: .yaml, .yml, .json")
        os.mkfifo(self.path("pipe.yaml"))
        self.check("./pipe.yaml", "is not a regular file")
        os.symlink("loop.yaml", self.path("loop.yaml"))
        self.check("./loop.yaml", "cannot open")
        self.check("./" + "x" * 4000 + ".yaml", "cannot open")

    def test_a_file_without_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        file = self.write("secret.yaml", MODEL)
        os.chmod(self.path("secret.yaml"), 0)
        self.check(file, "Permission denied")

    def test_a_file_of_the_other_kind(self):
        self.assert_bad_input(["estimate", "-m", self.write("d.yaml", DEVICE), "--hw", "rtx4090"], "d.yaml:")
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", self.write("m.yaml", MODEL)], "m.yaml:")


if __name__ == "__main__":
    unittest.main()
