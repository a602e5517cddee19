#!/usr/bin/env python3
"""`llmperf run`: a study as data. What a section is, what of a result it shows, where it goes, and what a wrong file is told."""
import csv
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from program import DONE, FAILED, INFEASIBLE, LONG, PROGRAM, ROOT, SANITIZED, USAGE, ProgramTest

STUDY = """\
title: Two models
description: |
  First paragraph
  in two lines.

  Second.
flags: {hw: rtx4090, runtime: none}
sections:
  - title: One estimate
    text: A line.
    command: estimate
    flags: {model: qwen-7b, batch: 2}
  - title: Rows
    command: estimate
    flags: {prompt: 1024}
    rows:
      - {model: qwen-7b, batch: 1}
      - {model: qwen-14b, batch: 1}
      - {model: qwen-7b, batch: 4, prompt: 256}
    columns: [model, batch, {prompt_tokens: prompt}, fits, ttft_s]
"""
SCENARIOS = sorted(name[:-len(".yaml")] for name in os.listdir(os.path.join(ROOT, "scenarios")))


def section(**keys):
    """A study with one section, its keys as JSON, which is YAML too."""
    return "title: T\nsections:\n  - " + json.dumps(dict({"title": "S", "command": "estimate"}, **keys)) + "\n"


class RunTest(ProgramTest):
    seconds = LONG

    def study(self, text=STUDY, name="study.yaml"):
        return self.write(name, text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def rows(self, name):
        return list(csv.DictReader(io.StringIO(self.read(name))))

    def assert_section_error(self, words, *fragments, status=USAGE):
        """What goes wrong while sections run: it is told, and the page, which is returned, is there all the same."""
        done = self.run_program(*words)
        self.assertNotEqual(done.stdout, "", words)
        page, done.stdout = done.stdout, None
        self.assert_error(done, status, *fragments)
        return page


class Sections(RunTest):
    def test_a_section_is_the_command_that_one_would_type(self):
        commands = self.output("run", self.study(), "--dry-run").splitlines()
        self.assertEqual(commands[0], "llmperf estimate --hw rtx4090 --runtime none --model qwen-7b --batch 2")
        document = self.json("run", self.study())
        self.assertEqual([c for s in document["sections"] for c in s["commands"]], commands)
        # The same numbers as typed.
        typed = self.json(*shlex.split(commands[0])[1:])
        one = document["sections"][0]
        self.assertEqual(one["rows"][0][one["columns"].index("ttft_s")], typed["ttft_s"])

    def test_a_row_takes_the_flags_of_its_section_and_these_those_of_the_study(self):
        commands = self.output("run", self.study(), "--dry-run").splitlines()[1:]
        self.assertEqual(commands, ["llmperf estimate --hw rtx4090 --runtime none --prompt 1024 --model qwen-7b --batch 1",
                                    "llmperf estimate --hw rtx4090 --runtime none --prompt 1024 --model qwen-14b --batch 1",
                                    "llmperf estimate --hw rtx4090 --runtime none --prompt 256 --model qwen-7b --batch 4"])

    def test_true_is_a_switch_false_leaves_out_and_a_list_is_joined_by_commas(self):
        text = ("title: T\nflags: {hw: rtx4090, units: article}\nsections:\n"
                "  - {title: A, command: limits, flags: {model: [qwen-7b, qwen-14b], units: false}}\n"
                "  - {title: B, command: estimate, flags: {model: llama-3-8b, tp: 2, megatron-sp: true}}\n"
                "  - {title: C, command: list, arguments: models}\n")
        self.assertEqual(self.output("run", self.study(text), "--dry-run").splitlines(),
                         ["llmperf limits --hw rtx4090 --model qwen-7b,qwen-14b",
                          "llmperf estimate --hw rtx4090 --model llama-3-8b --tp 2 --megatron-sp", "llmperf list models"])

    def test_titles_texts_and_tables_stand_one_below_the_other(self):
        page = self.output("run", self.study())
        places = [page.index(text) for text in ("Two models\n", "First paragraph in two lines.\n\nSecond.", "One estimate\n", "A line.",
                                                "qwen-7b on NVIDIA", "\nRows\n", "model     batch  prompt  fits")]
        self.assertEqual(places, sorted(places))
        for line in page.splitlines():
            self.assertLessEqual(len(line) if not line.startswith("  $") else 0, 100, line)

    def test_only_the_named_sections_run(self):
        document = self.json("run", self.study(), "--sections", "rows")
        self.assertEqual([s["name"] for s in document["sections"]], ["rows"])
        self.assertEqual(self.output("run", self.study(), "--sections", "rows", "--format", "csv").splitlines()[0],
                         "model,batch,prompt_tokens,fits,ttft_s")
        self.assert_bad_input(["run", self.study(), "--sections", "row"], "has no section 'row'", "did you mean 'rows'")
        self.assert_bad_input(["run", self.study(), "--format", "csv"], "--format csv is one table", "--sections")

    def test_a_table_of_an_open_end_is_a_study_of_its_own(self):
        # --export works as everywhere.
        self.output("run", self.study(), "--export", "all.json", "--export", "all.md")
        self.assertEqual(json.loads(self.read("all.json"))["schema"], "llmperf.study")
        self.assertTrue(self.read("all.md").startswith("# Two models\n\nFirst paragraph in two lines.\n"))


class Views(RunTest):
    LIMITS = {"command": "limits", "flags": {"model": "qwen1.5-7b,qwen1.5-14b", "hw": "rtx4090", "weights": "w16kv16,w4kv16"}}

    def page(self, **keys):
        return self.output("run", self.study(section(**dict(self.LIMITS, **keys))))

    def test_columns_are_printed_by_the_unit_in_their_name(self):
        page = self.page(columns=["model", "precision", {"kv_bytes_per_token": "KV"}, "decode_B_s"])
        self.assertRegex(page, r"  model +precision +KV +decode B\n")
        # 262,144 values of 2 bytes; 7,098,728,448 parameters of half a byte at 1008 GB/s are 3.521 ms.
        self.assertRegex(page, r"  qwen1.5-7b +w4kv16 +512 KiB +3.521 ms\n")

    def test_only_keeps_rows_and_a_missing_value_is_a_dash(self):
        page = self.page(only={"model": "qwen1.5-14b"}, columns=["model", "precision", "kv_tokens_that_fit"])
        self.assertRegex(page, r"  qwen1.5-14b +w16kv16 +-\n")  # 26.8 GB do not fit in 24 GiB
        self.assertNotIn("qwen1.5-7b  ", page)

    def test_a_pivot_has_a_column_for_each_value(self):
        page = self.page(pivot={"rows": "model", "columns": "precision", "cells": "decode_B_s"})
        self.assertRegex(page, r"  model +w16kv16 +w4kv16\n  qwen1.5-7b +14.08 ms +3.521 ms\n")
        self.output("run", "./study.yaml", "-o", "out")
        self.assertEqual(list(self.rows("out/s.csv")[0]), ["model", "precision", "decode_B_s"])

    def test_a_pivot_never_chooses_between_two_values(self):
        path = self.study(section(**self.LIMITS, pivot={"rows": "model", "columns": "units", "cells": "decode_B_s"}))
        self.assert_section_error(["run", path], "study.yaml:3:", "'pivot' finds two values for qwen1.5-7b and units si", "narrow them with 'only'")

    def test_parts_cut_the_commands_own_page(self):
        flags = {"model": "qwen-7b", "hw": "rtx4090"}
        page = self.output("run", self.study(section(flags=flags, parts=["Memory"])))
        self.assertIn("Memory\n  what", page)
        self.assertNotIn("Phases", page)
        self.assert_section_error(["run", self.study(section(flags=flags, parts=["Memroy"]))], "no part of the result starts with 'Memroy'", "'Memory'")

    def test_names_that_the_result_does_not_have_are_errors_at_their_place(self):
        for keys in ({"columns": ["modle"]}, {"only": {"modle": "x"}}, {"pivot": {"rows": "modle", "columns": "precision", "cells": "decode_B_s"}}):
            self.assert_section_error(["run", self.study(section(**dict(self.LIMITS, **keys)))], "study.yaml:3:", "no column 'modle'", "'model'")
        self.assert_section_error(["run", self.study(section(**self.LIMITS, only={"model": "qwen-7b"}))], "no row is left by 'only'")


class WhatDoesNotFit(RunTest):
    BIG = {"model": "llama-3-70b", "hw": "rtx4090"}

    def test_of_a_row_it_is_an_answer(self):
        path = self.study(section(rows=[self.BIG, dict(self.BIG, weights="2.5")], columns=["weights", "fits", "ttft_s"]))
        self.assertRegex(self.output("run", path), r"  bf16 +no +-\n")

    def test_of_a_section_it_is_a_failure_unless_it_is_expected(self):
        done = self.run_program("run", self.study(section(flags=self.BIG)))
        self.assert_error(done, INFEASIBLE, "study.yaml:3:", "section 'S': llama-3-70b at batch 1 does not fit on rtx4090")
        self.assertIn("does not fit", done.stdout)
        page = self.output("run", self.study(section(flags=self.BIG, may_not_fit=True)))
        self.assertIn("does not fit", page)

    def test_the_other_sections_are_shown_and_the_worst_status_is_the_studys(self):
        big = json.dumps({"title": "Big", "command": "estimate", "flags": {"model": "llama-3-70b"}})
        strict = json.dumps({"title": "Strict", "command": "validate", "arguments": "rtx4090-ops", "flags": {"hw": False, "max-mape": "0.0001"}})
        command = [PROGRAM, "run", self.study(STUDY + f"  - {strict}\n")]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False, timeout=60)
        self.assertEqual(done.returncode, 4)  # a threshold
        done = self.run_program("run", self.study(STUDY + f"  - {big}\n"), "-o", "out")
        self.assertEqual(done.returncode, INFEASIBLE)
        self.assertIn("does not fit", self.read("out/README.md"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["README.md", "big.csv", "one-estimate.csv", "rows.csv"])


    def test_a_wrong_value_in_one_section_leaves_the_others(self):
        text = (STUDY + "  - {title: Three, command: estimate, flags: {model: qwen-7b, tp: 3}}\n"
                "  - {title: Mixed, command: estimate, rows: [{model: qwen-7b}, {model: qwen-7b, tp: 3}], columns: [model, fits]}\n"
                "  - {title: Columns, command: limits, flags: {model: qwen-7b, runtime: false}, columns: [modle]}\n"
                "  - {title: Last, command: limits, flags: {model: qwen-7b, runtime: false}}\n")
        errors = ("section 'Three': --tp: 32 heads of qwen-7b do not divide by 3", "section 'Mixed': --tp:", "no column 'modle'")
        page = self.assert_section_error(["run", self.study(text)], *errors)
        for line in ("Three\n\n--tp: 32 heads of qwen-7b do not divide by 3.\n", "  qwen-7b  yes\n\nRow 2: --tp: 32 heads of",
                     "Columns\n\nthe result has no column 'modle'.\n", "\nLast\n"):
            self.assertIn(line, page)
        listed = self.assert_section_error(["run", "./study.yaml", "-o", "out"], *errors).splitlines()
        names = ["one-estimate.csv", "rows.csv", "mixed.csv", "last.csv", "README.md"]
        self.assertEqual(listed, ["out/" + name for name in names])
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(names))
        self.assertIn("do not divide by 3.", self.read("out/README.md"))
        statuses = [s["status"] for s in json.loads(self.run_program("run", "./study.yaml", "--json").stdout)["sections"]]
        self.assertEqual(statuses, [DONE, DONE, USAGE, USAGE, USAGE, DONE])

    def test_of_several_exit_statuses_the_first_of_2_1_3_4_is_the_studys(self):
        sections = {
            USAGE: {"command": "estimate", "flags": {"model": "qwen-7b", "tp": 3}},
            FAILED: {"command": "sweep", "flags": {"model": "qwen-7b", "weights": "bf16,nonsense"}},
            INFEASIBLE: {"command": "estimate", "flags": {"model": "llama-3-70b"}},
            4: {"command": "validate", "arguments": "rtx4090-ops", "flags": {"hw": False, "max-mape": "0.0001"}}}
        for statuses in ([4, INFEASIBLE], [INFEASIBLE, 4], [INFEASIBLE, FAILED, 4], [4, FAILED, INFEASIBLE], [FAILED, USAGE], [4, FAILED]):
            text = "title: T\nflags: {hw: rtx4090}\nsections:\n"
            text += "".join("  - " + json.dumps(dict(sections[s], title=f"S{s}")) + "\n" for s in statuses)
            done = subprocess.run([PROGRAM, "run", self.study(text)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  encoding="utf-8", check=False, timeout=60)
            self.assertEqual(done.returncode, min(statuses, key=[USAGE, FAILED, INFEASIBLE, 4].index), statuses)


class Folder(RunTest):
    def test_every_section_writes_its_files_and_the_readme_joins_them(self):
        text = STUDY + "    write: [csv, md]\n" + "    name: table\n"
        listed = self.output("run", self.study(text), "-o", "a/b").splitlines()
        self.assertEqual(listed, ["a/b/one-estimate.csv", "a/b/table.csv", "a/b/table.md", "a/b/README.md"])
        self.assertEqual(sorted(os.listdir(self.path("a/b"))), ["README.md", "one-estimate.csv", "table.csv", "table.md"])
        rows = self.rows("a/b/table.csv")
        self.assertEqual([(r["model"], r["batch"], r["prompt_tokens"], r["fits"]) for r in rows],
                         [("qwen-7b", "1", "1024", "true"), ("qwen-14b", "1", "1024", "false"), ("qwen-7b", "4", "256", "true")])
        self.assertEqual(rows[1]["ttft_s"], "")
        readme = self.read("a/b/README.md")
        self.assertEqual(readme, self.output("run", "./study.yaml", "--format", "md"))
        for line in ("# Two models", "## Rows", "| model | batch | prompt | fits | TTFT |", "```sh",
                     "llmperf estimate --hw rtx4090 --runtime none --model qwen-7b --batch 2"):
            self.assertIn(line + "\n", readme)

    def test_a_single_result_is_written_in_every_form_with_its_command(self):
        flags = {"model": "qwen-7b", "hw": "rtx4090"}
        self.output("run", self.study(section(flags=flags, write=["json", "html", "csv"])), "-o", "out")
        document = json.loads(self.read("out/s.json"))
        self.assertEqual(document["command"], "llmperf estimate --model qwen-7b --hw rtx4090")
        self.assertEqual(document, self.json("estimate", "-m", "qwen-7b", "--hw", "rtx4090") | {"command": document["command"]})

    def test_what_cannot_be_written_is_said_before_the_work(self):
        self.write("file", "")
        slow = section(command="validate", arguments="a100-sxm-80gb-ops")
        for folder in ("file", "file/out", "/proc/none/out"):
            self.assert_error(self.run_program("run", self.study(slow), "-o", folder), FAILED, f"cannot write {folder}")
        os.makedirs(self.path("out/README.md"))
        self.assert_error(self.run_program("run", self.study(slow), "-o", "out"), FAILED, "cannot write out/README.md")
        self.assertEqual(os.listdir(self.path("out")), ["README.md"])

    def test_flags_that_would_have_no_effect_are_errors(self):
        for words in (["--json"], ["--format", "md"], ["--dry-run"]):
            self.assert_bad_input(["run", self.study(), "-o", "out", *words], "--output")
        self.assertEqual(os.listdir(self.folder), ["study.yaml"])

    def interrupted(self, *words, number=signal.SIGINT):
        """stdout of a study whose third section is long, after a signal in that."""
        rows = json.dumps([{"model": "stdit3-xl2", "hw": "tx8", "resolution": f"{h}x{w}"} for h in range(160, 1000, 48) for w in range(160, 1000, 48)])
        text = STUDY + f"  - {{title: Long, command: estimate, flags: {{runtime: false}}, rows: {rows}}}\n"
        process = subprocess.Popen([PROGRAM, "run", self.study(text), *words], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, encoding="utf-8")
        def reached():
            if "-o" in words:
                return os.path.exists(self.path("out/rows.csv"))
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:  # has a handler: sections run
                caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
            return caught >> (signal.SIGINT - 1) & 1
        for _ in range(600):
            if process.poll() is not None or reached():
                break
            time.sleep(0.05)
        if "-o" not in words:
            time.sleep(10 if SANITIZED else 1)  # the two short sections
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + number, stderr)
        self.assertIn("interrupted: 2 of 3 sections", stderr)
        return stdout

    def test_a_signal_keeps_what_is_done_and_is_the_exit_status(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.interrupted("-o", "out", number=number).splitlines(), ["out/one-estimate.csv", "out/rows.csv"])
            self.assertEqual(sorted(os.listdir(self.path("out"))), ["one-estimate.csv", "rows.csv"])
            shutil.rmtree(self.path("out"))

    def test_ctrl_c_prints_what_is_done(self):
        page = self.interrupted()
        self.assertTrue(page.startswith("Two models (interrupted: 2 of 3 sections were done)\n"), page[:100])
        self.assertIn("model     batch  prompt  fits", page)
        self.assertNotIn("Long", page)


class WrongFiles(RunTest):
    def refused(self, text, *fragments):
        self.assert_bad_input(["run", self.study(text)], *fragments)

    def told(self, text, *fragments):
        return self.assert_section_error(["run", self.study(text)], *fragments)

    def test_all_problems_of_a_file_are_told_at_once_with_their_places(self):
        done = self.run_program("run", self.study(STUDY.replace("description", "descripton").replace("columns", "colums")
                                                  .replace("batch: 4", "batch: {a: 1}")))
        self.assert_error(done, USAGE, "study.yaml:2:1: unknown key 'descripton'", "'description'", "study.yaml:19:26: flag 'batch' needs a value",
                          "study.yaml:20:5: unknown key 'colums'", "'columns'")

    def test_all_commands_are_checked_before_any_runs(self):
        done = self.run_program("run", self.study(STUDY.replace("batch: 2", "bacth: 2").replace("{prompt: 1024}", "{promt: 1024}")))
        self.assert_error(done, USAGE, "study.yaml:12:29: section 'One estimate': unknown flag '--bacth'", "'--batch'",
                          "study.yaml:15:13: section 'Rows': unknown flag '--promt'")

    def test_a_wrong_value_is_told_at_its_flag(self):
        self.told(STUDY.replace("qwen-14b", "qwen-14c"), "study.yaml:18:10: section 'Rows': unknown model 'qwen-14c'", "'qwen-14b'")
        self.told(STUDY.replace("batch: 2", "batch: two"), "study.yaml:12:29: section 'One estimate': --batch")
        self.refused(section(flags={"hw": "rtx4090"}), "study.yaml:3:31: section 'S': --model is required")

    def test_commands_that_are_no_sections(self):
        self.refused(section(command="run", arguments="study.yaml"), "study.yaml:3:31: a study does not run another")
        self.refused(section(command="estimat"), "a section has no command 'estimat'", "'estimate'")
        self.refused(section(command="completion"), "a section has no command 'completion'")
        self.refused(section(command="list", arguments="modles"), "section 'S': KIND: there is no 'modles'", "'models'")
        self.refused(section(flags={"help": True}), "unknown flag '--help'")

    def test_flags_that_say_where_a_result_goes_belong_to_the_study(self):
        for flag in ("format", "json", "export", "lang"):
            self.refused(section(flags={flag: "x.json"}), f"flag '{flag}' says where a result goes", "'write'")

    def test_keys_that_do_not_go_together(self):
        rows = [{"model": "qwen-7b", "hw": "rtx4090"}]
        self.refused(section(rows=rows, write=["json"]), "rows are several results, which json has no form for")
        self.refused(section(rows=rows, write=["cvs"]), "there is no output 'cvs'", "'csv'")
        self.refused(section(rows=[]), "'rows' must be a list of mappings")
        self.refused(section(parts=["Memory"], columns=["model"]), "'parts' cuts the command's own page")
        self.refused(section(pivot={"rows": "a", "columns": "b", "cells": "c"}, columns=["a"]), "two ways to show the same rows")
        self.refused(section(pivot={"rows": "a", "cell": "c"}), "'pivot' needs 'columns'", "'pivot' needs 'cells'", "unknown key 'cell'")
        self.refused(section(arguments=["--batch"]), "'--batch' is a flag")

    def test_names_of_files_are_names_and_differ(self):
        for name in ("../x", ".x", "a/b", "", "ü"):
            self.refused(section(name=name), "is no name for files")
        two = '  - {title: One, command: list, arguments: models}\n'
        self.refused("title: T\nsections:\n" + two + two.replace("One", "one!"), "study.yaml:4:13: the files of two sections would be called 'one'")
        self.refused(section(name="readme"), "would be called 'readme'")

    def test_a_study_has_a_title_and_sections(self):
        self.refused("{}", "missing key 'title'", "missing key 'sections'")
        self.refused("title: T\nsections: []\n", "a study needs a section")
        self.refused("title: T\nsections: [3]\n", "must be a mapping")
        self.refused("- a\n", "must be a mapping")

    def test_a_flag_of_the_study_that_no_command_has_was_misspelt(self):
        self.refused(STUDY.replace("runtime: none", "runtme: none"), "study.yaml:7:22: no section's command has a flag 'runtme'", "'runtime'")

    def test_names_are_looked_up_as_those_of_models_are(self):
        self.assert_bad_input(["run", "qwen1.5-rtx409"], "unknown scenario 'qwen1.5-rtx409'", "'qwen1.5-rtx4090'")
        self.assert_bad_input(["run", "no/such.yaml"], "no/such.yaml")
        self.assert_bad_input(["run"], "SCENARIO is required")
        self.write("path/scenarios/mine.yaml", STUDY)
        self.assertIn("Two models", self.output("run", "mine", search_path=self.path("path")))

    def test_hostile_titles_are_printed_harmlessly(self):
        text = section(title="<script>|\u001b[31m", command="list", arguments="models", name="x", only={"model": "qwen-7b"})
        self.output("run", self.study(text), "-o", "out")
        self.assertIn("## &lt;script>", self.read("out/README.md"))
        self.assertNotIn("\x1b", self.read("out/README.md"))


class Shipped(RunTest):
    def test_they_are_listed_and_shown_with_what_they_do(self):
        listed = self.json("list", "scenarios")["studies"]
        self.assertEqual([s["name"] for s in listed], SCENARIOS)
        for name in SCENARIOS:
            shown = self.json("show", "scenario", name)
            self.assertEqual(sum(s["runs"] for s in shown["sections"]), len(self.output("run", name, "--dry-run").splitlines()))
        self.assert_bad_input(["show", "scenario", SCENARIOS[0], "--kv", "fp8"], "--kv: for language models")

    def test_every_one_runs_without_an_error(self):
        for name in SCENARIOS:
            with self.subTest(name=name):
                self.assertTrue(all(s["status"] == DONE for s in self.json("run", name)["sections"]))


if __name__ == "__main__":
    unittest.main()
