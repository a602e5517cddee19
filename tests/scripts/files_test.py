#!/usr/bin/env python3
"""Files in and out: exports that are whole or not there, full disks, and models and devices of one's own."""
import json
import os
import subprocess
import unittest

from program import FAILED, INFEASIBLE, PROGRAM, ROOT, ProgramTest, USAGE

ESTIMATE = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]


def source(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


class Exports(ProgramTest):
    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_each_export_equals_what_stdout_would_print(self):
        words = [word for name in ["a.json", "a.csv", "a.md"] for word in ("--export", name)]
        table = self.output(*ESTIMATE, *words)
        self.assertEqual(table, self.output(*ESTIMATE))
        for name, form in [("a.json", "json"), ("a.csv", "csv"), ("a.md", "md")]:
            self.assertEqual(self.read(name), self.output(*ESTIMATE, "--format", form))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.csv", "a.json", "a.md"])

    def test_an_export_replaces_what_was_there(self):
        self.write("a.json", "old " * 100_000)
        self.output(*ESTIMATE, "--export", "a.json")
        self.assertEqual(json.loads(self.read("a.json"))["schema"], "llmperf.estimate")

    def test_a_dash_is_stdout(self):
        self.assertEqual(self.output(*ESTIMATE, "--export", "-", "--json"), self.output(*ESTIMATE, "--json"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_export_that_cannot_be_written_fails_before_the_work_and_leaves_nothing(self):
        os.mkdir(self.path("folder.json"))
        for bad in ["no/such/folder/a.json", "folder.json", "x" * 300 + ".json", "/proc/a.json"]:
            done = self.run_program(*ESTIMATE, "--export", "good.json", "--export", bad)
            self.assert_error(done, FAILED, f"cannot write {bad}: ")
            self.assertEqual(os.listdir(self.folder), ["folder.json"])

    def test_a_bad_request_leaves_no_export(self):
        for words in (["--batch", "0"], ["--export", "b.txt"], ["--export", "./a.json"], ["--options", "x"]):
            self.assert_bad_input([*ESTIMATE, "--export", "a.json", *words])
        self.assert_bad_input(["limits", "-m", "qwen-7b,nosuch", "--hw", "rtx4090", "--export", "a.json"], "unknown model")
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_does_not_fit_is_exported_too(self):
        done = self.run_program("estimate", "-m", "llama-3-70b", "--hw", "rtx4090", "--export", "a.json")
        self.assertEqual(done.returncode, 3)
        self.assertIs(json.loads(self.read("a.json"))["fits"], False)


class BrokenOutputs(ProgramTest):
    def test_a_full_disk_is_an_error(self):
        for words in (ESTIMATE, [*ESTIMATE, "--json"], ["--help"], ["--version"], ["list", "models"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.assert_error(self.run_program(*words, stdout=full), FAILED, "cannot write stdout: No space left on device")

    def test_a_message_nobody_can_read_leaves_the_exit_status(self):
        too_large = ["estimate", "-m", "llama-3-70b", "--hw", "rtx4090"]
        for words, status in (([], USAGE), (["estimat"], USAGE), (too_large, INFEASIBLE)):
            ours, theirs = os.pipe()
            os.close(ours)
            try:
                done = subprocess.run([PROGRAM, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=theirs, check=False)
            finally:
                os.close(theirs)
            self.assertEqual(done.returncode, status, words)

    def test_a_closed_stdout_does_not_spoil_an_export(self):
        command = f'exec "{PROGRAM}" {" ".join(ESTIMATE)} --export a.json >&-'
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("cannot write stdout", done.stderr)
        self.assertIn(os.listdir(self.folder), ([], ["a.json"]))
        if os.path.exists(self.path("a.json")):
            with open(self.path("a.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["schema"], "llmperf.estimate")


class OwnFiles(ProgramTest):
    def test_a_model_and_a_device_by_path(self):
        model = self.write("my.yaml", source("models", "qwen-7b.yaml").replace("name: qwen-7b", "name: mine"))
        device = self.write("card.yaml", source("hardware", "devices", "rtx4090.yaml").replace("1008 GB/s", "2016 GB/s"))
        mine = self.json("estimate", "-m", model, "--hw", device, "--runtime", "none")
        self.assertEqual(mine["inputs"]["model"]["name"], "mine")
        # Decoding is bound by memory: twice the bandwidth, half the time.
        self.assertAlmostEqual(mine["tpot_s"] * 2, self.json(*ESTIMATE, "--runtime", "none")["tpot_s"], delta=1e-12)

    def test_a_folder_on_the_search_path_overrides_and_adds_names(self):
        text = source("models", "qwen-7b.yaml")
        self.write("first/models/qwen-7b.yaml", text.replace("num_layers: 32", "num_layers: 16"))
        self.write("second/models/qwen-7b.yaml", text.replace("num_layers: 32", "num_layers: 8"))
        self.write("second/models/own.yaml", text.replace("num_layers: 32", "num_layers: 4"))
        self.write("second/hardware/devices/card.yaml", source("hardware", "devices", "rtx4090.yaml"))
        search_path = f"{self.path('first')}:/no/such/folder::{self.path('second')}"
        self.assertEqual(self.json("show", "model", "qwen-7b", search_path=search_path)["num_layers"], 16)
        self.assertEqual(self.json("show", "model", "own", search_path=search_path)["num_layers"], 4)
        self.json("estimate", "-m", "own", "--hw", "card", search_path=search_path)
        self.assertEqual(self.json("show", "model", "qwen-7b")["num_layers"], 32)
        self.assert_bad_input(["show", "model", "owm"], "hint: did you mean 'own'?", search_path=search_path)

    def test_a_file_in_place_of_a_built_in_one_is_named(self):
        profile = "h100-sxm-vllm.yaml"
        self.write("h/hardware/devices/h100-sxm.yaml", source("hardware", "devices", "h100-sxm.yaml"))
        self.write("m/models/qwen-7b.yaml", source("models", "qwen-7b.yaml"))
        self.write("r/hardware/runtimes/" + profile, source("hardware", "runtimes", profile))
        device, model, runtime = (self.path(name) for name in ("h/hardware/devices/h100-sxm.yaml", "m/models/qwen-7b.yaml", "r/hardware/runtimes/" + profile))
        words = ["-m", "qwen-7b", "--hw", "H100 SXM"]  # by whatever name
        plain = self.json("estimate", *words)["label"]
        for folder, path in (("h", device), ("m", model), ("r", runtime)):
            label = self.json("estimate", *words, search_path=self.path(folder))["label"]
            self.assertEqual(label, f"{plain}; {path}, in place of the built-in file")
            self.assertIn(os.path.basename(path), self.output("estimate", *words, search_path=self.path(folder)).replace("\n", ""))
        every = ":".join(self.path(folder) for folder in "hmr")
        self.assertEqual(self.json("estimate", *words, "--training", "--tp", "8", search_path=every)["label"].count("in place of"), 2)  # no profile of inference
        self.assertTrue(self.json("show", "hardware", "h100-sxm", search_path=every)["source"].startswith(device + ", in place of the built-in file; "))
        for kind, key, path in (("models", "models", model), ("hardware", "hardware", device), ("runtimes", "runtimes", runtime)):
            listed = self.json("list", kind, search_path=every)[key]
            self.assertEqual([one["file"] for one in listed if "file" in one], [path])
            self.assertIn(path, self.output("list", kind, search_path=every).replace("\n", ""))
        # A scenario has no source, and is read as it stands.
        self.write("h/scenarios/which-card.yaml", source("scenarios", "which-card.yaml"))
        self.assertEqual(self.output("run", "which-card", "--dry-run", search_path=every), self.output("run", "which-card", "--dry-run"))

    def test_a_name_does_not_leave_the_search_path(self):
        self.write("secret.yaml", source("models", "qwen-7b.yaml"))
        os.mkdir(self.path("models"))
        self.assert_bad_input(["show", "model", ".."], "unknown model", search_path=self.folder)

    def test_a_bad_file_on_the_search_path_is_named(self):
        self.write("models/qwen-7b.yaml", "name: 3\nhidden: 4\n")
        path = os.path.join(self.folder, "models", "qwen-7b.yaml")
        self.assert_bad_input(["show", "model", "qwen-7b"], f"error: {path}:2:1: unknown key 'hidden'", search_path=self.folder)

    def test_a_hugging_face_config_gives_the_parameters_of_the_built_in_model(self):
        for name in ["llama-3.2-1b", "qwen-7b", "deepseek-v2-lite", "gemma-2-9b", "gpt-oss-20b"]:
            config = self.json("show", "model", os.path.join(ROOT, "tests", "model", "configs", name + ".json"))
            self.assertEqual(config["parameters"], self.json("show", "model", name)["parameters"], name)

    def test_a_checkpoint_counts_as_it_is_stored(self):
        os.mkdir(self.path("Llama-FP8"))
        self.write("Llama-FP8/config.json", source("tests", "model", "configs", "llama-3.1-8b.json"))
        self.write("Llama-FP8/hf_quant_config.json", json.dumps({"quantization": {
            "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}))
        # 32 layers of 218,103,808 weights in a byte each; embedding and lm_head of 128,256 x 4096 and norms in two
        size = 32 * 218_103_808 + 2 * (2 * 128_256 * 4096 + 65 * 4096)
        for name in ["./Llama-FP8", "Llama-FP8/", "Llama-FP8/config.json"]:
            shown = self.json("show", "model", name)
            self.assertEqual((shown["name"], shown["weights"], shown["kv"], shown["weight_bytes"]), ("Llama-FP8", "fp8", "fp8", size))
        estimate = ["estimate", "-m", "./Llama-FP8", "--hw", "h100-sxm"]
        self.assertIn("weights fp8, KV cache fp8 (checkpoint)", self.output(*estimate))
        self.assertIn("weights bf16, KV cache bf16\n", self.output(*estimate, "--weights", "bf16", "--kv", "bf16"))

    def test_an_architecture_it_does_not_know_is_an_error(self):
        file = self.write("config.json", '{"model_type": "t5", "hidden_size": 768}')
        done = self.run_program("show", "model", file)
        self.assert_error(done, USAGE, f"{file}:1:16: ", "'t5'", "cross-attention")


if __name__ == "__main__":
    unittest.main()
