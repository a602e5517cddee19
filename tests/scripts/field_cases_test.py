#!/usr/bin/env python3
"""Questions that people asked in public, with the answers that were found to be right: tests/cases/cases.csv."""
import csv
import json
import os
import re
import shlex
import shutil
import unittest

from program import INFEASIBLE, ROOT, ProgramTest

FOLDER = os.path.join(ROOT, "tests", "cases")


def rows():
    with open(os.path.join(FOLDER, "cases.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class FieldCases(ProgramTest):
    def answer(self, row):
        """What the row looks at; None where the program does not say it."""
        words = [os.path.join(".", word) if os.path.exists(self.path(word)) else word for word in shlex.split(row["command"])[1:]]
        stream, _, pattern = row["look"].partition(":")
        done = self.run_program(*words, *([] if pattern or stream == "exit" else ["--format", "json"]))
        if stream == "exit":
            return done.returncode
        if pattern:
            found = re.search(pattern, done.stdout + (done.stderr if stream == "output" else ""))
            return found and (found[1] if found.re.groups else found[0])
        document = json.loads(done.stdout) if done.returncode in (0, INFEASIBLE) else None
        values = []
        for path in stream.split("/"):  # a/b: the ratio of two
            value = document
            for key in path.split("."):
                value = value and value[int(key) if isinstance(value, list) else key]
            values.append(value)
        return values[0] if len(values) == 1 else values[0] / values[1]

    def test_the_page_on_memory_has_every_log(self):
        """Rewritten with LLMPERF_UPDATE_DOCS=1."""
        lines = ["| log | engine, model, device | | printed | predicted | off |", "|---|---|---|---:|---:|---:|"]
        for row in rows():
            if row["kind"] not in ("K1", "K2", "K3") or row["look"] == "exit" or " serve " in row["command"]:
                continue
            words = dict(zip(*[iter(shlex.split(row["command"])[2:])] * 2))
            what = f"{words['--runtime']}, {words['-m']}, {words.get('--tp', words.get('--dp', '1'))} x {words['--hw']}"
            have, want = float(self.answer(row)), float(row["right"])
            lines.append(f"| {row['source']} | {what} | {row['look'].replace('kv.', '')} | {want:,.0f} | {have:,.0f} | {100 * (have / want - 1):+.1f} % |")
        path = os.path.join(ROOT, "docs", "memory.md")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        table = "<!-- logs -->\n" + "\n".join(lines) + "\n<!-- end -->"
        updated = re.sub(r"<!-- logs -->\n.*<!-- end -->", lambda _: table, page, flags=re.S)
        if os.environ.get("LLMPERF_UPDATE_DOCS"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(updated)
        else:
            self.assertEqual(page, updated)

    def test_every_case(self):
        cases = rows()
        self.assertGreater(len(cases), 10)
        for row in cases:
            with self.subTest(**row):
                if os.path.isdir(os.path.join(FOLDER, row["id"])):
                    shutil.copytree(os.path.join(FOLDER, row["id"]), self.folder, dirs_exist_ok=True)
                have = self.answer(row)
                self.assertIsNotNone(have)
                if row["relation"] == "matches":
                    self.assertRegex(str(have), row["right"])
                    continue
                want = float(row["right"])
                slack = (float(row["tolerance"] or 0) / 100 + 1e-12) * abs(want)
                if row["relation"] != ">=":
                    self.assertLessEqual(float(have), want + slack)
                if row["relation"] != "<=":
                    self.assertGreaterEqual(float(have), want - slack)


if __name__ == "__main__":
    unittest.main()
