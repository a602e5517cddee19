#!/usr/bin/env python3
"""Video generation as a user sees it: estimate and compare of a video model, its flags, and what is refused."""
import csv
import io
import os
import subprocess
import unittest

from program import DONE, INFEASIBLE, PROGRAM, SECONDS, ProgramTest

MODEL = ["-m", "stdit3-xl2"]
H100 = [*MODEL, "--hw", "h100-sxm"]
SMALL = [*H100, "--resolution", "480p", "--seconds", "2"]
FUSIONS = "fused_qk_norm,fused_modulate,fused_gate,fused_rope,skip_frame_mask,flash_any_length"


class Video(ProgramTest):
    def estimate(self, *words, **options):
        return self.json("estimate", *words, **options)

    def assert_sums(self, document):
        for phase in document["phases"]:
            whole = phase["time_s"] + phase["overlapped_s"] + phase["pipelined_s"]
            self.assertAlmostEqual(sum(op["time_s"] for op in phase["ops"]), whole, delta=1e-9 * whole)
            for key in ("flops", "bytes", "network_bytes"):
                self.assertAlmostEqual(sum(op[key] for op in phase["ops"]), phase[key], delta=1e-9 * phase[key] + 1e-9)
            for op in phase["ops"]:
                self.assertGreaterEqual(op["time_s"] * (1 + 1e-9), op["roof_s"], op["name"])
        generation = document["generation_s"]
        self.assertAlmostEqual(sum(phase["total_s"] for phase in document["phases"]), generation, delta=1e-9 * generation)
        step = document["phases"][1]
        self.assertEqual(document["step_s"], step["time_s"])
        self.assertAlmostEqual(sum(c["time_s"] for c in document["classes"]), step["ops_time_s"], delta=1e-9 * step["ops_time_s"])
        for one in document["classes"]:
            ops = sum(op["time_s"] for op in step["ops"] if op["class"] == one["name"])
            self.assertAlmostEqual(ops, one["time_s"], delta=1e-9 * step["time_s"])
        memory = document["memory"]
        self.assertEqual(memory["total_bytes"], sum(memory[key] for key in (
            "weight_bytes", "kv_cache_bytes", "activation_bytes", "reserve_bytes")))
        self.assertEqual(memory["weight_bytes"], sum(memory[key] for key in (
            "transformer_bytes", "text_encoder_bytes", "autoencoder_bytes")))

    def test_a_generation_on_every_device_of_the_guide(self):
        for device, words in (("h100-sxm", []), ("atlas-800i-a2", []), ("tx8", []), ("rtx4090", ["--text-weights", "bf16"])):
            for runtime in ([], ["--runtime", "none"]):
                with self.subTest(device, runtime=runtime):
                    document = self.estimate(*MODEL, "--hw", device, "--resolution", "720p", "--aspect", "9:16", "--seconds", "4",
                                             *words, *runtime)
                    self.assertTrue(document["fits"])
                    self.assertEqual(document["inputs"]["shape"]["tokens"], 108000)
                    self.assertEqual([phase["name"] for phase in document["phases"][:3]],
                                     ["text encoding", "denoising step", "VAE decoding"])
                    self.assert_sums(document)

    def test_seconds_and_frames_are_two_ways_to_say_it(self):
        def result(*words):
            document = self.estimate(*H100, *words)
            self.assertIn(" ".join(words), document.pop("command"))
            document.pop("request")
            return document
        self.assertEqual(result("--seconds", "4"), result("--frames", "102"))
        self.assertEqual(result(), result("--frames", "102", "--resolution", "720x1280", "--steps", "30", "--cfg", "on", "--text-tokens",
                                          "300", "--batch", "1"))

    def test_an_image_has_no_video_to_write(self):
        document = self.estimate(*H100, "--frames", "1")
        self.assertEqual([op["name"] for op in document["phases"][3]["ops"]], ["generation_fixed", "write_file"])

    def test_every_plan_adds_up(self):
        for words in (["--sp", "ulysses:4"], ["--tp", "2"], ["--tp", "2x2"], ["--tp", "4", "--megatron-sp"],
                      ["--batch", "2", "--dp", "2"], ["--pp", "4"], ["--pp", "2", "--patches", "9"],
                      ["--stages", "0-9,10-27", "--patches", "5", "--die-link", "64GB/s"],
                      ["--stages", "0-9@2x2/2d,10-19@2x2,20-27@1x2/tensor", "--patches", "4"]):
            with self.subTest(words):
                document = self.estimate(*SMALL, *words)
                self.assert_sums(document)
                self.assertEqual(document["inputs"]["devices"], sum(stage["devices"] for stage in document["stages"]))

    def test_patches_make_a_pipeline_worth_its_devices(self):
        whole = self.estimate(*H100)["step_s"]
        stages = self.estimate(*H100, "--pp", "4")["step_s"]
        patches = self.estimate(*H100, "--pp", "4", "--patches", "9")["step_s"]
        self.assertGreater(stages, whole)
        self.assertLess(patches, whole / 3)

    def test_a_model_that_does_not_fit_says_what_would(self):
        words = [*MODEL, "--hw", "rtx4090"]
        done = self.run_program("estimate", *words)
        self.assert_error(done, INFEASIBLE, "a video of 102 frames of 720x1280 by stdit3-xl2 does not fit on rtx4090: needs ",
                          "has 23.52 GiB", "it fits with --text-weights bf16")
        self.assertIn("does not fit", done.stdout)
        document = self.estimate(*words, status=INFEASIBLE)
        self.assertEqual((document["fits"], document["phases"], document["step_s"]), (False, [], None))
        self.assertTrue(self.estimate(*words, "--text-weights", "bf16")["fits"])
        long = self.run_program("estimate", *words, "--text-weights", "bf16", "--seconds", "64")
        self.assert_error(long, INFEASIBLE, "it fits with --frames ")

    def test_bad_values_name_the_flag_and_what_it_takes(self):
        for words, fragments in (
                (["--resolution", "7x720"], ["--resolution", "has no latent"]),
                (["--frames", "0"], ["--frames: 0 frames leave no latent frame"]),
                (["--frames", "51", "--seconds", "2"], ["--frames and --seconds both"]),
                (["--aspect", "9:61"], ["--aspect", "'9:61'", "'9:16'"]),
                (["--resolution", "702p"], ["--resolution", "'702p'", "'720p'"]),
                (["--resolution", "480x640", "--aspect", "9:16"], ["--aspect", "already says height and width"]),
                (["--seconds", "0"], ["--seconds"]),
                (["--cfg", "yes"], ["--cfg: unknown value 'yes'", "on, off"]),
                (["--steps", "0"], ["--steps"]),
                (["--text-tokens", "301"], ["--text-tokens", "takes 300 tokens"]),
                (["--text-weights", "int8"], ["int8"]),
                (["--weights", "q4_k_m"], ["--weights", "GGUF"]),
                (["--sp", "ring:2"], ["--sp ring", "--sp ulysses"]),
                (["--pp", "3"], ["--pp", "2 or 4"]),
                (["--pp", "2", "--stages", "0-13,14-27"], ["--stages and --pp"]),
                (["--stages", "0-13"], ["--stages: they end at 13"]),
                (["--stages", "0-27@2"], ["--stages: cannot read the sub-mesh"]),
                (["--stages", "0-27@1x2/tensr"], ["--stages: unknown strategy 'tensr'", "'tensor'"]),
                (["--stages", "0to27"], ["--stages: cannot read '0to27'"]),
                (["--patches", "2"], ["--patches", "--pp"]),
                (["--pp", "2", "--patches", "46"], ["--patches: 45 rows", "at most 45"]),
                (["--die-link", "fast"], ["--die-link: cannot read 'fast'"]),
                (["--batch", "3", "--dp", "2"], ["--batch", "--batch 4"]),
                (["--options", "fused_modulat"], ["'fused_modulat'", "'fused_modulate'"]),
                (["--runtime", "vllm"], ["unknown runtime 'vllm'", "pytorch"]),
                (["--resolutio", "480p"], ["unknown flag '--resolutio'", "'--resolution'"])):
            with self.subTest(words):
                self.assert_bad_input(["estimate", *H100, *words], *fragments)

    def test_flags_of_the_other_sort_of_model_are_refused_by_name(self):
        for words in (["--prompt", "512"], ["--gen", "8"], ["--kv", "fp8"], ["--pipeline-batches", "2"], ["--ep", "2"],
                      ["--training"], ["--gpu-layers", "3"], ["--embedding", "sharded"]):
            with self.subTest(words):
                self.assert_bad_input(["estimate", *H100, *words], f"{words[0]} is for language models")
        for command in ("estimate", "compare"):
            more = ["--with", "all"] if command == "compare" else []
            for words in (["--resolution", "480p"], ["--seconds", "4"], ["--cfg", "on"], ["--patches", "1"]):
                with self.subTest(command, words=words):
                    self.assert_bad_input([command, "-m", "llama-2-7b", "--hw", "h100-sxm", *words, *more],
                                          f"{words[0]} is for models that generate video")

    def test_commands_for_language_models_say_so(self):
        for words in (["explain", *H100], ["limits", *H100], ["parallel", *H100, "--devices", "4"]):
            with self.subTest(words[0]):
                self.assert_bad_input(words, "stdit3-xl2", "generates video")

    def test_every_step_of_a_comparison_is_the_estimate_of_its_options(self):
        document = self.json("compare", *SMALL, "--with", FUSIONS)
        self.assertEqual(len(document["steps"]), 7)
        for step in document["steps"]:
            alone = self.estimate(*SMALL, "--options", step["options"])
            self.assertEqual((step["step_s"], step["generation_s"]), (alone["step_s"], alone["generation_s"]))
            classes = {one["name"]: one["time_s"] for one in alone["classes"]}
            for one in step["classes"]:
                self.assertEqual(one["after"]["time_s"], classes.get(one["name"], 0))
        first, last = document["steps"][0], document["steps"][-1]
        for key in ("step", "generation"):
            self.assertAlmostEqual(sum(step[key + "_gain_s"] for step in document["steps"]), first[key + "_s"] - last[key + "_s"],
                                   delta=1e-9 * first[key + "_s"])
        self.assertAlmostEqual(sum(one["gain_s"] for one in document["classes"]), first["step_s"] - last["step_s"],
                               delta=1e-9 * first["step_s"])
        self.assertEqual([phase["name"] for phase in document["phases"]],
                         ["text encoding", "denoising step", "VAE decoding", "other"])

    def test_a_slower_second_set_is_exit_status_4(self):
        def run(*words):
            return subprocess.run([PROGRAM, "compare", *SMALL, *words], cwd=self.folder, timeout=SECONDS, capture_output=True,
                                  env=dict(os.environ, LLMPERF_PATH=""), stdin=subprocess.DEVNULL, encoding="utf-8", check=False)
        slower = run("--options", FUSIONS, "--with", "none", "--max-slowdown", "0.5")
        self.assertEqual(slower.returncode, 4, slower.stderr)
        self.assertIn("generation is", slower.stderr)
        self.assertEqual(run("--with", FUSIONS, "--max-slowdown", "0.5").returncode, DONE)

    def test_pages_are_at_most_a_hundred_columns_wide(self):
        for words in (["estimate", *H100, "--detail", "ops"], ["estimate", *MODEL, "--hw", "rtx4090", "--frames", "1"],
                      ["estimate", *H100, "--stages", "0-9@2x2/2d,10-27@2x2", "--patches", "4"], ["compare", *SMALL, "--with", FUSIONS]):
            with self.subTest(words):
                for line in self.output(*words).splitlines():
                    self.assertLessEqual(len(line), 100, line)

    def test_tables_for_spreadsheets(self):
        summary = list(csv.DictReader(io.StringIO(self.output("estimate", *SMALL, "--format", "csv"))))
        document = self.estimate(*SMALL)
        self.assertEqual(len(summary), 1)
        self.assertEqual(float(summary[0]["generation_s"]), document["generation_s"])
        self.assertEqual(summary[0]["tokens"], "23850")
        ops = list(csv.DictReader(io.StringIO(self.output("estimate", *SMALL, "--detail", "ops", "--format", "csv"))))
        self.assertEqual(len(ops), sum(len(phase["ops"]) for phase in document["phases"]))


if __name__ == "__main__":
    unittest.main()
