#!/usr/bin/env python3
"""What `estimate` shows without being asked for more: a sentence with the answer, on one screen, in one style of numbers."""
import re
import unicodedata
import unittest

from program import DONE, INFEASIBLE, ProgramTest

LINES, COLUMNS = 30, 100
REQUESTS = {
    "one card": "-m qwen-7b --hw rtx4090",
    "tensor parallel": "-m llama-3.3-70b --hw h100-sxm --weights fp8 --tp 4 --batch 16",
    "experts": "-m deepseek-v3 --hw h200-sxm --tp 8",
    "class of a device": "-m deepseek-v3 --hw mi355x --tp 8",
    "nodes": "-m deepseek-v3 --hw h100-sxm --tp 8 --dp 4 --ep 32 --batch 16 --prompt 100k --prefill-chunk 8k",
    "GGUF on Apple": "-m gpt-oss-20b --hw apple-m3-max --weights mxfp4_moe --prompt 4k",
    "experts on the host": "-m qwen3-30b-a3b --hw rtx4090 --weights q4_k_m --cpu-moe --depth 16k",
    "two unlike cards": "-m qwen3-32b --hw rtx3090+rtx3060 --weights q4_k_m",
    "draft": "-m llama-3.1-70b --hw h100-sxm --tp 4 --draft llama-3.1-8b:4 --accept 0.7",
    "prefill alone": "-m llama-3.1-8b --hw h100-sxm --phase prefill",
    "decode alone": "-m llama-3.1-8b --hw h100-sxm --phase decode --batch 64 --kv-utilisation 0.9",
    "no profile": "-m llama-3.1-8b --hw h100-sxm --runtime none",
    "array of tiles": "-m llama-3.1-8b --hw wormhole-n150 --weights bfp8",
    "step": "-m llama-3.1-8b --hw h100-sxm --step 32x1@2048,1x512@0",
    "name at a hub": "-m unsloth/Qwen3-8B-GGUF:Q4_K_M --hw rtx3090",
    "address of a page": "-m https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/config.json --hw h200-sxm --tp 8",
    "encoder": "-m bge-m3 --hw rtx4090 --batch 32",
    "video": "-m stdit3-xl2 --hw h100-sxm",
    "training": "-m megatron-22b --hw a100-sxm-80gb --tp 8 --training --runtime megatron --recompute full",
    "training on nodes": "-m llama-3.1-70b --hw h100-sxm --tp 8 --pp 4 --dp 2 --training --global-batch 64",
    "does not fit": "-m llama-3.1-405b --hw h100-sxm",
    "training does not fit": "-m llama-3.1-70b --hw h100-sxm --training",
}


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class FirstScreen(ProgramTest):
    def screen(self, name, *more):
        done = self.run_program("estimate", *REQUESTS[name].split(), *more)
        self.assertIn(done.returncode, (DONE, INFEASIBLE), done.stderr)
        self.assertEqual(done.returncode == INFEASIBLE, "not fit" in name, done.stderr)
        return done.stdout

    def sentence(self, text):
        """The second paragraph: the first is what the page is of."""
        return " ".join(text.split("\n\n")[1].split())

    def test_it_has_thirty_lines_of_a_hundred_columns(self):
        for name in REQUESTS:
            with self.subTest(name):
                lines = self.screen(name).splitlines()
                self.assertLessEqual(len(lines), LINES)
                self.assertLessEqual(max(map(width, lines)), COLUMNS)

    def test_it_opens_with_the_answer_in_one_sentence(self):
        for name in REQUESTS:
            with self.subTest(name):
                text = self.sentence(self.screen(name))
                self.assertRegex(text, r"^[^.]*(\.\d[^.]*)*\.$")  # dots of numbers, and the last
                if "not fit" in name:
                    self.assertRegex(text, r"^It does not fit: needs [\d.,]+( [MGT]iB)? of [\d.,]+ [MGT]iB")
                else:
                    self.assertRegex(text, r"; fits in [\d.,]+( [MGT]iB)? of [\d.,]+ [MGT]iB; ")
                    self.assertRegex(text, r"(±[\d.]+( to [\d.]+)? %|error not known), (extrapolated|inside of what was measured)\.$|no error band\.$")

    def test_its_figures_are_those_of_the_json(self):
        for name in ("one card", "tensor parallel"):
            document = self.json("estimate", *REQUESTS[name].split())
            text = self.sentence(self.screen(name))
            rate, first = re.match(r"([\d.,]+) tokens/s a request.*?, first token after ([\d.]+) ms; fits in", text).groups()
            self.assertAlmostEqual(float(rate.replace(",", "")) * document["tpot_s"], 1, delta=1e-3)
            self.assertAlmostEqual(float(first) / 1e3 / document["ttft_s"], 1, delta=1e-3)
            bands = [document["error_band"][phase]["mean_error"] for phase in ("prefill", "decode")]
            least, most = re.search(r"±([\d.]+)(?: to ([\d.]+))? %", text).groups()
            self.assertAlmostEqual(float(least) / 100, min(bands), delta=6e-3)
            self.assertAlmostEqual(float(most or least) / 100, max(bands), delta=6e-3)

    def test_every_number_and_band_is_of_one_style(self):
        for name in REQUESTS:
            for detail in ("summary", "full"):
                with self.subTest(name, detail=detail):
                    text = self.screen(name, "--detail", detail)
                    self.assertNotIn("+-", text)
                    self.assertNotRegex(text, r"(?m)^ +(±|%)")  # no band is torn
                    for number in re.findall(r"±[^;),.]*\d[^;),]*", text):
                        self.assertRegex(number, r"^±[\d.]+( to [\d.]+)? %")
        for name in ("one card", "experts on the host", "nodes"):
            self.assertNotRegex(self.screen(name), r"(?<![\d.,-])\d{4,} (tokens|requests|blocks|cached)")

    def test_nothing_is_said_twice_of_one_request(self):
        text = self.screen("one card")
        rates = re.findall(r"[\d.,]+ tokens/s", text)
        self.assertEqual(len(rates), len(set(rates)), rates)
        self.assertNotIn("in total", text)
        self.assertIn("in total", " ".join(self.screen("tensor parallel").split()))

    def test_one_flag_shows_the_rest(self):
        for name in REQUESTS:
            with self.subTest(name):
                short, whole, ops = (self.screen(name, "--detail", detail) for detail in ("summary", "full", "ops"))
                self.assertEqual(self.sentence(short), self.sentence(whole))
                self.assertEqual(self.sentence(whole), self.sentence(ops))
                self.assertNotIn("Rests on", short)
                if "not fit" in name:
                    continue
                self.assertIn("Rests on", whole)
                self.assertIn("--detail full", short.splitlines()[-1])
                self.assertIn("Ops of", ops)
                self.assertNotIn("Ops of", whole)

    def test_rows_of_a_device_that_no_profile_is_fitted_to_are_named(self):
        self.assertRegex(self.screen("class of a device"), r"shipped rows +[\d,]+ of this device in mi355x-ops\b")
        self.assertNotIn("llmperf validate", self.screen("one card"))  # its rows are what its profile is fitted to
        self.assertNotIn("nothing was measured", self.screen("class of a device", "--detail", "full"))


if __name__ == "__main__":
    unittest.main()
