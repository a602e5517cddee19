#!/usr/bin/env python3
"""Images and encoders as a user sees them: numbers, every command with such a model, and what is refused."""
import csv
import io
import unittest

from program import DONE, USAGE, ProgramTest

VL = ["-m", "qwen3-vl-8b", "--hw", "h100-sxm"]
ENCODER = ["-m", "bge-m3", "--hw", "h100-sxm"]


class Refused(ProgramTest):
    def refused(self, *words):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, USAGE, words)
        return done.stderr


class Images(Refused):
    def test_ttft_is_the_images_and_the_prefill(self):
        for runtime in ([], ["--runtime", "none"]):
            document = self.json("estimate", *VL, *runtime, "--images", "2", "--image-size", "1920x1080", "--prompt", "100")
            vision, prefill = document["phases"][:2]
            self.assertEqual([vision["name"], prefill["name"]], ["vision", "prefill"])
            self.assertAlmostEqual(document["ttft_s"], vision["time_s"] + prefill["time_s"], delta=1e-12)
            inputs = document["inputs"]
            self.assertEqual((inputs["prompt_tokens"], inputs["images"], inputs["image_tokens"]), (100, 2, 2 * 2042))
            self.assertEqual(inputs["image_scaled"], "1920x1088")
            self.assertAlmostEqual(sum(op["time_s"] for op in vision["ops"]), vision["time_s"], delta=1e-9)

    def test_without_images_only_the_weights_are_more(self):
        own = self.json("estimate", *VL, "--runtime", "none")
        text = self.json("estimate", "-m", "qwen3-8b", *VL[2:], "--runtime", "none")
        self.assertEqual(own["ttft_s"], text["ttft_s"])
        self.assertEqual(own["memory"]["weight_bytes"] - text["memory"]["weight_bytes"], 2 * 576388336)
        self.assertNotIn("images", own["inputs"])

    def test_images_are_an_axis(self):
        rows = list(csv.DictReader(io.StringIO(self.output(
            "sweep", *VL, "--runtime", "none", "--images", "0,1,4", "--image-size", "1024x1024", "--prompt", "64,256", "--format",
            "csv"))))
        self.assertEqual(len(rows), 6)
        self.assertEqual([row["prompt_tokens"] for row in rows], ["64", "256"] * 3)
        for row in rows:
            words = ["--images", row["images"]] if row.get("images") else []
            self.assertEqual(row.get("error", ""), "", words)
        times = [float(row["ttft_s"]) for row in rows]
        self.assertLess(times[0], times[2])
        self.assertLess(times[2], times[4])
        one = self.json("estimate", *VL, "--runtime", "none", "--images", "4", "--prompt", "256")
        self.assertEqual(times[5], one["ttft_s"])

    def test_show_model_lists_the_tower(self):
        document = self.json("show", "model", "qwen3-vl-8b")
        self.assertEqual(document["parameters"]["vision"], 576388336)
        self.assertEqual(document["parameters"]["total"], 8190735360)
        self.assertEqual(document["parameters"]["checkpoint"], 8767123696)
        self.assertIn("vision tower", self.output("show", "model", "qwen3-vl-8b"))
        self.assertNotIn("vision", self.json("show", "model", "qwen3-8b")["parameters"])

    def test_every_number_is_explained(self):
        words = [*VL, "--runtime", "none", "--images", "2", "--batch", "3"]
        for path in ("ttft_s", "memory.weight_bytes", "memory.activation_bytes", "phases.vision.flops", "largest_batch",
                     "longest_context_tokens"):
            self.assertEqual(self.run_program("explain", *words, path).returncode, DONE, path)
        self.assertEqual(self.run_program("explain", *words).returncode, DONE)
        for more in (["--tp", "2"], ["--pp", "2"], ["--dp", "3"]):
            self.assertEqual(self.run_program("explain", *words, *more).returncode, DONE, more)

    def test_what_is_refused(self):
        text = ["-m", "qwen3-8b", "--hw", "h100-sxm"]
        self.assertIn("no vision tower", self.refused("estimate", *text, "--images", "1"))
        self.assertIn("no vision tower", self.refused("estimate", *text, "--image-size", "10x10"))
        self.assertIn("there are no images", self.refused("estimate", *VL, "--image-size", "10x10"))
        self.assertIn("WIDTHxHEIGHT", self.refused("estimate", *VL, "--images", "1", "--image-size", "10"))
        self.assertIn("200 times", self.refused("estimate", *VL, "--images", "1", "--image-size", "10x4000"))
        self.assertIn("between 0 and 1000", self.refused("estimate", *VL, "--images", "1001"))
        self.assertIn("--images", self.refused("estimate", *VL, "--images", "-1"))
        self.assertIn("training", self.refused("estimate", *VL, "--images", "1", "--training"))


class Encoders(Refused):
    def test_one_pass(self):
        document = self.json("estimate", *ENCODER, "--batch", "32", "--prompt", "512")
        self.assertEqual([phase["name"] for phase in document["phases"]], ["encode"])
        self.assertAlmostEqual(document["sequences_per_second"], 32 / document["ttft_s"])
        self.assertIsNone(document["tpot_s"])
        self.assertIsNone(document["tokens_per_second"])
        self.assertEqual(document["memory"]["kv_cache_bytes"], 0)
        self.assertEqual(document["inputs"]["generate_tokens"], 0)
        self.assertEqual(list(document["error_band"]), ["encode"])
        text = self.output("estimate", *ENCODER)
        self.assertIn("sequences/s", text)
        for word in ("TPOT", "TTFT", "KV cache", "generate"):
            self.assertNotIn(word, text)

    def test_flags_of_decoding_and_of_the_cache_are_refused(self):
        for words in (["--gen", "8"], ["--depth", "8"], ["--prefill-chunk", "8"], ["--phase", "decode"], ["--phase", "prefill"], ["--kv", "fp8"],
                      ["--verify", "2"], ["--cache-type-k", "q8_0"], ["--verify", "4", "--accept", "2"]):
            with self.subTest(words=words):
                self.assertIn("encoder", self.refused("estimate", *ENCODER, *words))
        self.assertIn("sp", self.refused("estimate", *ENCODER, "--sp", "ring:2"))

    def test_other_commands(self):
        self.assertIn("encoder", self.refused("limits", *ENCODER))
        self.refused("estimate", *ENCODER, "--training")
        self.assertEqual(self.run_program("explain", *ENCODER).returncode, DONE)
        self.assertEqual(self.run_program("explain", *ENCODER, "sequences_per_second").returncode, DONE)
        self.assertEqual(self.run_program("parallel", *ENCODER, "--devices", "4", "--batch", "8").returncode, DONE)
        self.assertIn("encoder", self.refused("parallel", *ENCODER, "--devices", "4", "--phase", "decode"))
        self.refused("parallel", *ENCODER, "--devices", "4", "--training")
        self.assertEqual(self.run_program("compare", *ENCODER, "--runtime", "none", "--with", "all").returncode, DONE)
        document = self.json("show", "model", "bge-m3")
        self.assertEqual(document["parameters"]["total"], 567754752)
        self.assertEqual(document["kv_bytes_per_token"], 0)

    def test_a_sweep_over_encoders_and_decoders(self):
        rows = list(csv.DictReader(io.StringIO(self.output(
            "sweep", "-m", "bge-m3,qwen3-0.6b", "--hw", "h100-sxm", "--runtime", "none", "--batch", "8,64", "--gen", "16", "--format",
            "csv"))))
        self.assertEqual([row["error"] for row in rows], [""] * 4)
        self.assertEqual([bool(row["sequences_per_second"]) for row in rows], [True, True, False, False])
        done = self.run_program("sweep", "-m", "bge-m3,qwen3-0.6b", "--hw", "h100-sxm", "--phase", "decode", "--format", "csv")
        self.assertIn("encoder", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
