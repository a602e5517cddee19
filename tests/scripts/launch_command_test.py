#!/usr/bin/env python3
"""--emit and --from: the command of an answer starts what was answered, and reads back as the request it was written for."""
import subprocess
import unittest

from program import DONE, PROGRAM, SANITIZED, USAGE, ProgramTest

TRAFFIC = ["--rate", "2", "--requests", "20", "--input", "256", "--output", "16"]
# Field of a request, and where an answer's settings say it: what was not asked for is what the engine would take.
SETTINGS = {"max_seqs": "max_sequences", "max_batched_tokens": "max_batched_tokens"}
DENSE = ["-m", "qwen3-8b", "--hw", "h100-sxm"]
EXPERTS = ["-m", "qwen3-30b-a3b", "--hw", "h100-sxm"]
DEEPSEEK = ["-m", "deepseek-v3", "--hw", "h200-sxm"]
ANSWERS = [
    ("vllm", DENSE), ("vllm", [*DENSE, "--tp", "2"]), ("vllm", [*DENSE, "--dp", "2"]), ("vllm", [*DENSE, "--pp", "2", "--kv-tier", "host:64GiB"]),
    ("vllm", [*DENSE, "--max-seqs", "64", "--max-batched-tokens", "4096"]), ("vllm", [*DENSE, "--max-model-len", "8192"]),
    ("vllm", [*DENSE, "--kv", "fp8", "--weights", "fp8"]), ("vllm", [*DENSE, "--weights", "awq", "--activations", "fp16"]),
    ("vllm", [*DENSE, "--block-size", "32", "--kv-utilisation", "0.85"]), ("vllm", [*DENSE, "--kv-blocks", "5000"]),
    ("vllm", [*DENSE, "--prefix-caching", "off", "--execution", "eager"]), ("vllm", [*DENSE, "--chunked-prefill", "off"]),
    ("vllm", [*DENSE, "--draft", "qwen3-0.6b:4", "--accept", "0.8"]), ("vllm", [*EXPERTS, "--tp", "2", "--ep", "2"]),
    ("vllm", [*EXPERTS, "--tp", "2", "--dp", "2", "--ep", "4"]), ("vllm", [*DEEPSEEK, "--dp", "8", "--ep", "8"]),
    ("vllm", [*DEEPSEEK, "--tp", "8", "--draft", "mtp:2", "--accept", "0.8"]), ("vllm", ["-m", "gpt-oss-20b", "--hw", "h100-sxm"]),
    ("vllm", ["-m", "llama-3.1-8b", "--hw", "mi300x"]), ("vllm", ["-m", "llama-3.1-8b", "--hw", "l40s", "--kv", "fp8"]),
    ("sglang", [*DENSE, "--max-queue", "40"]), ("sglang", [*DENSE, "--tp", "2", "--block-size", "64", "--kv-tier", "host:100GB"]), ("sglang", [*DENSE, "--dp", "2", "--kv", "fp8"]),
    ("sglang", [*EXPERTS, "--tp", "4", "--ep", "2", "--prefix-caching", "off"]), ("sglang", [*DENSE, "--chunked-prefill", "off"]),
    ("sglang", [*DEEPSEEK, "--dp", "8", "--ep", "8", "--max-seqs", "64", "--draft", "mtp:3", "--accept", "0.8"]),
    ("vllm", [*DENSE, "--lora", "16", "--adapters", "4"]), ("sglang", [*DENSE, "--lora", "32", "--adapters", "8"]),
    ("trtllm", DENSE), ("trtllm", [*DENSE, "--tp", "2", "--chunked-prefill", "on"]),
    ("trtllm", [*EXPERTS, "--tp", "4", "--ep", "4", "--max-seqs", "128"]), ("trtllm", [*DENSE, "--max-model-len", "4096"]),
]


class Launch(ProgramTest):
    seconds = 300 if SANITIZED else 60

    def refused(self, *words, hint):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, USAGE, done.stdout)
        self.assertIn(hint, done.stderr)

    def test_answers_read_back_as_the_same_request(self):
        for engine, words in ANSWERS:
            with self.subTest(engine=engine, words=words):
                words = [*words, "--engine", engine]
                hw = words[words.index("--hw") + 1]
                accept = words[words.index("--accept"):][:2] if "--accept" in words else []
                command = self.output("serve", *words, "--emit", engine)
                answer = self.json("serve", *words, *TRAFFIC)
                back = self.json("serve", "--from", command, "--hw", hw, *accept, *TRAFFIC)
                for field, value in answer["request"].items():
                    if field in ("model", "draft"):
                        continue
                    self.assertEqual(back["request"].get(field), value, (field, command))
                for field, setting in SETTINGS.items():
                    if field in back["request"] and field not in answer["request"]:
                        self.assertEqual(back["inputs"]["engine"][setting], answer["inputs"]["engine"][setting])
                # And so the answer: all that is measured.
                for key in ("ttft_s", "tpot_s", "e2e_s", "duration_s", "requests_per_second", "kv"):
                    self.assertEqual(back[key], answer[key], (key, command))

    def test_priorities_switch_the_engines_queue(self):
        classes = ("--classes", "chat:3; batch:1 input=4k priority=1")
        for engine, flags in (("vllm", ["--scheduling-policy priority"]),
                              ("sglang", ["--enable-priority-scheduling", "--schedule-low-priority-values-first"])):
            command = self.output("serve", *DENSE, "--engine", engine, *classes, "--emit", engine)
            for flag in flags:
                self.assertIn(flag, command)
            back = self.json("serve", "--from", command, "--hw", "h100-sxm", *TRAFFIC)
            self.assertFalse([note for note in back["notes"] if "not used" in note], command)

    def test_a_search_writes_the_command_of_its_best(self):
        words = ["capacity", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--tp", "1,2", "--rate", "40", "--requests", "200",
                 "--slo", "ttft.p99=2s,tpot.p95=50ms"]
        best = self.json(*words)["candidates"][0]
        manifest = self.output(*words, "--emit", "k8s")
        self.assertIn(f"replicas: {best['replicas']}\n", manifest)
        self.assertIn("nvidia.com/gpu: ", manifest)
        back = self.json("serve", "--from", self.write("m.yaml", manifest), "--hw", "h100-sxm", *TRAFFIC)
        self.assertEqual(back["request"].get("replicas", 1), best["replicas"])

    def test_a_command_is_read_from_a_file_and_from_stdin_and_flags_go_over_it(self):
        command = "vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs 64 --port 8000\n"
        words = ["--hw", "h100-sxm", "--max-seqs", "32", "--json", *TRAFFIC]
        file = self.json("serve", "--from", self.write("run.sh", command), *words[:4], *TRAFFIC)
        self.assertEqual(file["request"]["max_seqs"], 32)
        self.assertIn("not used of the command: --port 8000", file["notes"])
        done = subprocess.run([PROGRAM, "serve", "--from", "-", *words], input=command, capture_output=True, encoding="utf-8",
                              timeout=self.seconds, check=False)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_what_is_wrong_is_said_with_a_way_out(self):
        hw = ["--hw", "h100-sxm", *TRAFFIC]
        self.refused("serve", "--from", "vlm serve Qwen/Qwen3-8B", *hw, hint="did you mean 'vllm'")
        self.refused("serve", "--from", "", *hw, hint="--from needs a value")
        self.refused("serve", "--from", " ", *hw, hint="vllm serve MODEL")
        self.refused("serve", "--from", "vllm serve 'Qwen/Qwen3-8B", *hw, hint="end it with '")
        self.refused("serve", "--from", "vllm serve Qwen/Qwen9-8B", *hw, hint="did you mean")
        self.refused("serve", "--from", "vllm serve", *hw, hint="--model is required")
        self.refused("serve", "--from", "vllm serve Qwen/Qwen3-8B -tp $N", *hw, hint="write its value")
        self.refused("serve", "--from", "./none.sh", *hw, hint="none.sh")
        self.refused("serve", "--from", "vllm serve Qwen/Qwen3-8B", "--request", "r.json", *hw, hint="--request")
        self.refused("serve", *DENSE, "--emit", "sglang", hint="--engine sglang")
        self.refused("serve", *DENSE, "--emit", "tgi", hint="vllm")
        self.refused("serve", *DENSE, "--emit", "vllm", "--json", hint="leave it out")


if __name__ == "__main__":
    unittest.main()
