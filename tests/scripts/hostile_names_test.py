#!/usr/bin/env python3
"""Names that mean something to a spreadsheet, a browser or a terminal are text in every report: CSV per RFC 4180 with formulas
defused, Markdown and HTML with markup escaped, JSON that reads back the same."""
import csv
import io
import json
import os
import re
import unittest

from program import DONE, ROOT, ProgramTest

MODEL = """\
name: {name}
notes: {name}
hidden_size: 256
num_layers: 4
vocab_size: 1000
norm: rms
attention: {{heads: 8, kv_heads: 2}}
feed_forward: {{intermediate: 512, activation: silu, gated: true}}
"""
NAMES = ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-2+3", "\t=1+1", "\r=1+1", " \n =1+1", "＝1+1", "<script>alert(1)</script>", 'a,"b"\nc',
         '"', ",", "a|b", "[x](javascript:alert)", "&lt;b&gt;", "</script><script>", "-->", "模型", "a\\", "`x`", "*b*", "\u202eabc"]
FORMULA = re.compile(r"^\s*[=+@＝＋＠－-]")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
NCCL = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    50.00   20.97   36.70      0
"""


def shown(name):
    """As one line: what a table, CSV and Markdown show."""
    return re.sub(r"[\u202e]", "?", re.sub(r"[\n\r\t]", " ", name))


class HostileNames(ProgramTest):
    def commands(self, name):
        """Every sort of command that shows the name of a model or of a device."""
        model = self.write("m.yaml", MODEL.format(name=json.dumps(name)))
        with open(os.path.join(ROOT, "hardware", "devices", "rtx4090.yaml"), encoding="utf-8") as file:
            text = re.sub(r"(?m)^(name|full_name|title|notes): .*(\n +.*)*$", lambda match: f"{match.group(1)}: {json.dumps(name)}", file.read())
        device = self.write("d.yaml", text)
        on = ["-m", model, "--hw", "rtx4090"]
        yield "model", ["show", "model", model]
        yield "model", ["estimate", *on]
        yield "model", ["estimate", *on, "--detail", "ops"]
        yield "model", ["estimate", *on, "--training"]
        yield "model", ["limits", *on]
        yield "model", ["compare", *on, "--with", "none"]
        yield "model", ["parallel", "-m", model, "--hw", "a100-sxm-80gb", "--devices", "2"]
        yield "hardware", ["show", "hardware", device]
        yield "hardware", ["estimate", "-m", "qwen-7b", "--hw", device]
        yield "hardware", ["limits", "-m", "qwen-7b", "--hw", device]
        yield "hardware", ["parallel", "-m", "qwen-7b", "--hw", device, "--devices", "1"]

    CACHE = {}

    def reports(self, names=tuple(NAMES)):
        """(name, what it is the name of, command, reports by extension) of every name and command; made once for all tests."""
        for name in names:
            if name not in self.CACHE:
                self.CACHE[name] = [(what, words, self.report(words)) for what, words in self.commands(name)]
            for what, words, report in self.CACHE[name]:
                yield name, what, words, report

    def report(self, words):
        endings = ["csv", "json", "md", "html"]
        report = {"table": self.output(*words, *(word for ending in endings for word in ("--export", "r." + ending)))}
        for ending in endings:
            with open(self.path("r." + ending), encoding="utf-8", newline="") as file:
                report[ending] = file.read()
        return report

    def test_csv_is_rfc_4180_and_holds_no_formula(self):
        for name, what, words, report in self.reports():
            with self.subTest(name=name, words=words):
                rows = list(csv.reader(io.StringIO(report["csv"], newline=""), strict=True))
                self.assertEqual({len(row) for row in rows}, {len(rows[0])})
                for cell in (cell for row in rows for cell in row):
                    self.assertFalse(FORMULA.match(cell) and not NUMBER.fullmatch(cell), cell)
                if what in rows[0]:
                    cell = rows[1][rows[0].index(what)]
                    self.assertEqual(cell, ("'" if FORMULA.match(name) else "") + shown(name))

    def test_json_reads_back_the_same(self):
        found = 0
        for name, what, words, report in self.reports():
            with self.subTest(name=name, words=words):
                document = json.loads(report["json"])
                entry = document if words[0] == "show" else document.get("inputs", {}).get(what)
                if isinstance(entry, str):
                    entry = {"name": entry}
                if entry and "name" in entry:
                    found += 1
                    self.assertEqual(entry["name"], name)
        self.assertGreaterEqual(found, 8 * len(NAMES))

    def test_markdown_holds_no_markup_of_a_name(self):
        for name, _, words, report in self.reports():
            with self.subTest(name=name, words=words):
                text = report["md"]
                self.assertNotRegex(text, r"<script|</script|&lt;b&gt;|(?<!\\)\]\(javascript")
                for block in (block.splitlines() for block in text.split("\n\n") if block.startswith("|")):
                    # A pipe of a name would be one column more.
                    columns = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block]
                    self.assertEqual(len(set(columns)), 1, block)

    def test_html_holds_no_markup_of_a_name(self):
        def scripts(report):
            return len(re.findall(r"(?i)</?script", report["html"]))

        # As many script elements as with a plain name: none comes from it.
        plain = [scripts(report) for _, _, _, report in self.reports(["plain"])]
        for i, (name, _, words, report) in enumerate(self.reports()):
            with self.subTest(name=name, words=words):
                if "<html" not in report["html"]:
                    continue
                self.assertEqual(scripts(report), plain[i % len(plain)])

    def test_tables_keep_control_characters_from_the_terminal(self):
        for name, _, words, report in self.reports([*NAMES, "a\x1b[2Jb", "\x9b2J", "a\x7f"]):
            with self.subTest(name=name, words=words):
                for ending in ("table", "csv", "md"):
                    self.assertNotRegex(report[ending], "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    def test_nothing_reorders_the_text_of_json_or_of_a_page(self):
        for name, _, words, report in self.reports(["\u202eabc", "a\u2066b\u200fc", "\ufeffa"]):
            with self.subTest(name=name, words=words):
                for ending in ("json", "html"):
                    self.assertNotRegex(report[ending], "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
                # Programs read the same from JSON (above); a page shows what its data says, so that this has it neither.
                self.assertNotRegex(report["html"], r"\\u202e|\\u2066|\\u200f|\\ufeff")

    def test_a_hostile_file_name_is_text_too(self):
        file = self.write("=1+1,'<script>.yaml", MODEL.format(name="plain"))
        document = self.json("estimate", "-m", file, "--hw", "rtx4090")
        self.assertIn("'./=1+1,'\\''<script>.yaml'", document["command"])  # as a shell reads it
        done = self.run_program("estimate", "-m", self.path("a\x1b[2Jb.yaml"), "--hw", "rtx4090")
        self.assertNotIn("\x1b", done.stderr)

    def test_measurements_are_read_back_whatever_their_names(self):
        self.write("all_reduce_perf.txt", NCCL)
        for name in ['=1+1,"x"', "#comment", "a\nb", "<script>", "模型"]:
            with self.subTest(name=name):
                words = ["import", "nccl-tests", "all_reduce_perf.txt", "--ranks", "8", "--hw", name, "-o", "m.csv"]
                self.output(*words)
                with open(self.path("m.csv"), encoding="utf-8", newline="") as file:
                    lines = [line for line in file if not line.startswith("# ")]
                rows = list(csv.DictReader(lines, strict=True))
                self.assertEqual([row["hardware"] for row in rows], [shown(name)] * len(rows))
                self.assertGreater(len(rows), 0)
                # Read as measurements: refused because no such device is known, not because it cannot be read.
                done = self.run_program("validate", "./m.csv")
                self.assertNotEqual(done.returncode, DONE)
                self.assertRegex(done.stderr, "hardware")


if __name__ == "__main__":
    unittest.main()
