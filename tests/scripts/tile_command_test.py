#!/usr/bin/env python3
"""Estimates on an array of tiles: sums, options, models of the tiles, and bad input."""
import os
import unittest

from program import INFEASIBLE, ROOT, ProgramTest

LLAMA = ["estimate", "-m", "llama-2-7b", "--hw", "tx8", "--prompt", "1024", "--gen", "4"]


class Tiles(ProgramTest):
    def text(self):
        with open(os.path.join(ROOT, "hardware", "devices", "tx8.yaml"), encoding="utf-8") as file:
            return file.read()

    def device(self, old, new):
        text = self.text()
        self.assertIn(old, text)
        return self.write("device.yaml", text.replace(old, new))

    def test_ops_and_what_is_not_waited_for_add_up(self):
        document = self.json(*LLAMA)
        prefill, decode = document["phases"]
        for phase in (prefill, decode):
            self.assertAlmostEqual(sum(op["time_s"] for op in phase["ops"]), phase["time_s"] + phase["overlapped_s"], places=9)
            for op in phase["ops"]:
                self.assertGreaterEqual(op["time_s"], op["roof_s"] * (1 - 1e-9))
        self.assertGreater(prefill["overlapped_s"], 0)
        self.assertEqual([op["name"] for op in prefill["ops"]],
                         ["embed", "qkv_proj", "attention", "o_proj", "gate_up_proj", "down_proj", "lm_head", "sampling"])
        self.assertIn("+rms_norm +rope +cache", prefill["ops"][1]["shape"])

    def test_options_and_models_of_the_tiles(self):
        def ttft(*words):
            return self.json(*LLAMA, *words)["ttft_s"]
        best = ttft()
        self.assertLess(best, ttft("--options", "all,joined_vectors"))
        self.assertLess(best * 1.2, ttft("--options", "all"))
        self.assertLess(ttft("--tile-model", "roofline"), best)
        self.assertLess(ttft("--options", "all", "--tile-model", "published"), ttft("--options", "all"))

    def test_compare_says_what_joining_is_worth(self):
        document = self.json("compare", *LLAMA[1:], "--options", "all", "--with", "all,joined_vectors,prefetch_weights")
        gains = {step["option"]: step for step in document["steps"]}
        self.assertEqual(set(gains), {None, "joined_vectors", "prefetch_weights"})

    def test_bandwidth_of_dram_by_tile(self):
        path = self.device("bandwidth: 100 GB/s", "bandwidth_per_tile: 6.25 GB/s")
        words = ["estimate", "-m", "llama-2-7b", "--prompt", "64", "--gen", "1", "--hw"]
        self.assertEqual(self.json(*words, path)["ttft_s"], self.json(*words, "tx8")["ttft_s"])

    def test_bad_input(self):
        self.assert_bad_input([*LLAMA, "--tile-model", "best"], "one of default, published, roofline")
        self.assert_bad_input(["estimate", "-m", "llama-2-7b", "--hw", "rtx4090", "--tile-model", "published"], "is no array of tiles")
        for old, new, message in (("bandwidth: 100 GB/s", "bandwidth: 0 GB/s", "'bandwidth' must be a positive number"),
                                  ("noc_link: 128 GB/s", "noc_link: 0 GB/s", "'noc_link' must be a positive number"),
                                  ("mesh: 4x4", "mesh: 4x5", "a mesh of 4x5 has 20 tiles, not 16")):
            self.assert_bad_input(["estimate", "-m", "llama-2-7b", "--hw", self.device(old, new)], message)
        self.assert_bad_input([*LLAMA[:3], "--hw", self.write("few.yaml", self.text().replace("tiles: 16", "tiles: 8")
                               .replace("mesh: 4x4", "mesh: 4x2")), "--tile-model", "published"], "16 tiles")
        small = self.device("capacity: 3 MiB", "capacity: 512 B")
        for model in ("llama-2-7b", "stdit3-xl2"):
            done = self.run_program("estimate", "-m", model, "--hw", small)
            self.assertEqual(done.returncode, INFEASIBLE)
            self.assertIn("no mapping fits into 512 B of a tile", done.stderr)


if __name__ == "__main__":
    unittest.main()
