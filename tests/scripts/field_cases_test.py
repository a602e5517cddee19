#!/usr/bin/env python3
"""Questions that people asked in public, with the answers that were found to be right: tests/cases/cases.csv."""
import csv
import json
import os
import re
import shlex
import shutil
import unittest

from program import ROOT, ProgramTest

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
        value = json.loads(done.stdout) if done.returncode == 0 else None
        for key in stream.split("."):
            value = value and value[int(key) if isinstance(value, list) else key]
        return value

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
