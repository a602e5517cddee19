#!/usr/bin/env python3
"""Manual pages: of every subcommand, with every flag of its help, without a warning of groff or mandoc, and examples that work."""
import os
import re
import shlex
import shutil
import subprocess
import unittest

from program import DONE, FAILED, LONG, PROGRAM, USAGE, ProgramTest

PROGRAM_TEXT = """\
module {
  func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = stablehlo.add %a, %b : tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}
"""
NCCL = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    50.00   20.97   36.70      0
"""
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"]


def plain(roff):
    """The text of a page, without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").replace("\\&", "")
    return re.sub(r"\\\[u([0-9A-F]+)\]", lambda match: chr(int(match.group(1), 16)), text)


class ManPages(ProgramTest):
    seconds = LONG

    def setUp(self):
        super().setUp()
        self.output("man", "--out", "pages")
        self.pages = {}
        for name in os.listdir(self.path("pages")):
            with open(self.path("pages/" + name), encoding="ascii") as file:  # escapes for everything else
                self.pages[name.removesuffix(".1")] = file.read()

    def subcommands(self, *command):
        text = self.output(*command, "--help")
        return re.findall(r"(?m)^  ([a-z-]+) ", text[text.index("Subcommands:"):]) if "Subcommands:" in text else []

    def test_every_subcommand_has_one_and_all_are_seen_from_the_first(self):
        names = self.subcommands()
        self.assertEqual(sorted(self.pages), sorted(["llmperf", *(f"llmperf-{name}" for name in names)]))
        see = plain(self.pages["llmperf"]).split(".SH SEE ALSO")[1]
        self.assertEqual(re.findall(r"llmperf-([a-z-]+)\(1\)", see), names)

    def test_a_page_printed_is_the_page_written(self):
        self.assertEqual(self.output("man"), self.pages["llmperf"])
        self.assertEqual(self.output("man", "estimate"), self.pages["llmperf-estimate"])

    def test_sections_are_the_usual_ones_in_the_usual_order(self):
        for name, page in self.pages.items():
            sections = re.findall(r"(?m)^\.SH (.*)$", page)
            expected = [s for s in SECTIONS if s in sections]
            self.assertEqual([s for s in sections if s != "SUBCOMMANDS"], expected, name)
            self.assertLessEqual(set(SECTIONS) - {"EXAMPLES"}, set(sections), name)
            self.assertRegex(plain(page), rf"(?m)^\.SH NAME\n{name} - \S")

    def test_every_flag_of_the_help_is_in_the_page_with_what_it_means(self):
        for name in self.subcommands():
            page = plain(self.pages["llmperf-" + name])
            for command in [[name, sub] for sub in self.subcommands(name)] or [[name]]:
                text = self.output(*command, "--help")
                for flag in re.findall(r"(?m)^  (?:-[a-z],)?(--[a-z-]+)", text):
                    self.assertRegex(page, rf"(?m)^(-[a-z], )?{flag}( \S+)?\n\S", command)
        self.assertIn("requests processed together. Default: 1.", plain(self.pages["llmperf-estimate"]))

    def test_every_built_in_limit_of_roff_is_kept(self):
        for name, page in self.pages.items():
            for line in page.splitlines():
                self.assertNotRegex(line, r"^'", name)
                self.assertRegex(line, r"^([^.]|\.(TH|SH|SS|TP|PP|in|nf|fi)\b)", name)  # no text is taken for a request

    @unittest.skipIf(shutil.which("mandoc") is None, "mandoc is not installed")
    def test_mandoc_has_nothing_to_warn_of_but_the_date(self):
        # There is none, so that the same sources make the same pages.
        files = [self.path(f"pages/{name}.1") for name in self.pages]
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *files], stdout=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual([line for line in done.stdout.splitlines() if "missing date" not in line], [])

    @unittest.skipIf(shutil.which("groff") is None, "groff is not installed")
    def test_groff_has_nothing_to_warn_of(self):
        for name in self.pages:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", self.path(f"pages/{name}.1")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, encoding="utf-8", check=False)
            self.assertEqual(done.stderr, "", name)
            self.assertIn("Print this help message and exit.", done.stdout)

    def examples(self, name):
        part = plain(self.pages[name]).split(".SH EXAMPLES")
        return re.findall(r"\.nf\n(.*)\n\.fi", part[1]) if len(part) > 1 else []

    def test_examples_are_commands_that_work(self):
        self.write("program.mlir", PROGRAM_TEXT)
        self.write("all_reduce_perf.txt", NCCL)
        for name in self.subcommands():
            examples = self.examples("llmperf-" + name)
            self.assertTrue(examples, f"llmperf-{name} has no example")
            for example in examples:
                if example.startswith("eval "):
                    continue  # of a shell
                words = shlex.split(example)
                self.assertEqual(words[:2], ["llmperf", name])
                if name == "replay":
                    continue  # it measures for minutes
                if name == "report":
                    self.output("estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--export", "result.json")
                for part in ("1", "2") if name == "merge" else ():
                    self.output("sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1-8*2", "--shard", part + "/2",
                                "--export", f"part{part}.csv")
                if name == "calibrate":
                    with open(self.path("measurements.csv"), "w", encoding="utf-8") as file:
                        file.write(self.measurements())
                done = self.run_program(*words[1:])
                if name == "explore" and done.returncode == FAILED:
                    continue  # a build without an engine for pages
                self.assertEqual(done.returncode, DONE, f"{example}: {done.stderr}")
        self.assertEqual(len(self.examples("llmperf")), sum(len(self.examples("llmperf-" + name)) for name in self.subcommands()))

    @staticmethod
    def measurements():
        from program import ROOT
        with open(os.path.join(ROOT, "hardware", "measurements", "rtx4090-ops.csv"), encoding="utf-8") as file:
            return file.read()

    def test_an_unknown_page_is_answered_with_the_nearest(self):
        self.assert_bad_input(["man", "estimat"], "there is no manual page of 'estimat'", "'estimate'")
        self.assert_bad_input(["man", "estimate", "-o", "x"], "--out writes all pages")


if __name__ == "__main__":
    unittest.main()
