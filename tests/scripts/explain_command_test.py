#!/usr/bin/env python3
"""`llmperf explain`: the numbers it explains are the numbers `estimate` prints."""
import math
import unittest

from program import INFEASIBLE, ProgramTest, USAGE

WORDS = ["-m", "qwen-7b", "--hw", "rtx4090"]


def lookup(document, path):
    """phases.decode.ops.attention#2.bytes: an entry of a list is found by its name, the second of that name by name#2."""
    value = document
    for key in path.split("."):
        if isinstance(value, list):
            name, _, number = key.partition("#")
            value = [entry for entry in value if entry["name"] == name][int(number or 1) - 1]
        else:
            value = value[key]
    return value


class Explain(ProgramTest):
    def test_without_a_path_it_lists_every_number_with_the_value_that_estimate_prints(self):
        for words in (WORDS, ["-m", "deepseek-v2-lite", "--hw", "h200-sxm", "--batch", "2"],
                      ["-m", "gemma-2-9b", "--hw", "rtx4090", "--runtime", "none", "--options", "none", "--gen", "1"]):
            document = self.json("estimate", *words)
            listed = {entry["path"]: entry["value"] for entry in self.json("explain", *words)["paths"]}
            self.assertGreater(len(listed), 100)
            for path in ["ttft_s", "tokens_per_second", "memory.total_bytes", "largest_batch", "longest_context_tokens",
                         "phases.prefill.flops", "phases.prefill.ops.down_proj.time_s"]:
                self.assertIn(path, listed)
            for path, value in listed.items():
                with self.subTest(words=words, path=path):
                    self.assertTrue(math.isclose(lookup(document, path), value, rel_tol=1e-12, abs_tol=1e-300))

    def test_formula_and_values_of_a_number(self):
        for path in ["ttft_s", "tpot_s", "memory.total_bytes", "memory.kv_cache_bytes", "phases.decode.ops.qkv_proj.bytes",
                     "phases.prefill.flops", "largest_batch"]:
            with self.subTest(path=path):
                document = self.json("explain", path, *WORDS)
                self.assertEqual(document["path"], path)
                self.assertTrue(document["formula"])
                for variable in document["variables"]:
                    self.assertIn(variable["name"], document["formula"])
                    self.assertTrue(variable["meaning"])
                text = self.output("explain", path, *WORDS)
                for label in [path, "value", "formula", "with values"]:
                    self.assertIn(label, text)

    def test_the_kv_cache_by_hand(self):
        document = self.json("explain", "memory.kv_cache_bytes", *WORDS)
        # K and V of 32 layers, 4096 values each, 2 bytes, 512 + 128 tokens.
        self.assertEqual((document["value"], document["unit"]), (2 * 32 * 4096 * 2 * 640, "B"))

    def test_it_takes_the_flags_of_estimate(self):
        flags = ["--batch", "3", "--weights", "w4a16", "--kv", "int8", "--runtime", "none", "--options", "none"]
        expected = self.json("estimate", *WORDS, *flags)
        for path in ["ttft_s", "tpot_s", "memory.total_bytes"]:
            self.assertTrue(math.isclose(self.json("explain", path, *WORDS, *flags)["value"], lookup(expected, path), rel_tol=1e-12))

    def test_what_does_not_fit_has_memory_but_no_times(self):
        words = ["-m", "llama-3-70b", "--hw", "rtx4090"]
        paths = [entry["path"] for entry in self.json("explain", *words)["paths"]]
        self.assertIn("memory.total_bytes", paths)
        self.assertFalse([path for path in paths if path.endswith("_s")])
        self.json("explain", "memory.weight_bytes", *words)
        done = self.run_program("explain", "ttft_s", *words)
        self.assertIn(done.returncode, (USAGE, INFEASIBLE))
        self.assertIn("does not fit", done.stderr)

    def test_unknown_paths_are_errors(self):
        for path in ["ttft", "phases.decode.ops.attnetion.bytes", "phases", "memory.", ".", "a" * 1000, "phases.prefill.ops.x.bytes"]:
            self.assert_bad_input(["explain", path, *WORDS], "no number")


if __name__ == "__main__":
    unittest.main()
