#!/usr/bin/env python3
"""Completion: what may come next, and that bash, zsh and fish offer it."""
import os
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

from program import LONG, PROGRAM, ROOT, USAGE, ProgramTest

SHELLS = ["bash", "zsh", "fish"]


class CandidatesTest(ProgramTest):
    def candidates(self, *words, **options):
        """(sort, candidates) of the last word."""
        first, *lines = self.output("completion", "candidates", "--", *words, **options).splitlines()
        return first, [line.split("\t")[0] for line in lines]

    def offered(self, *words, **options):
        sort, names = self.candidates(*words, **options)
        self.assertIn(sort, ("words", "items"), words)
        return names


class Candidates(CandidatesTest):
    def test_subcommands_are_those_of_the_help(self):
        text = self.output("--help")
        shown = re.findall(r"(?m)^  ([a-z-]+) ", text[text.index("Subcommands:"):])
        self.assertEqual(self.offered(""), shown)
        self.assertEqual(self.offered("map-"), ["map-collective"])
        self.assertEqual(self.offered("map", ""), ["gemm", "attention", "vector", "model"])
        self.assertEqual(self.offered("completion", ""), SHELLS)

    def test_flags_are_those_of_the_subcommand_with_what_they_mean(self):
        text = self.output("completion", "candidates", "--", "estimate", "--ba")
        self.assertEqual(text, "words\n--batch\trequests processed together\n")
        for name in self.offered(""):
            sub = [name] if name not in ("map", "completion") else [name, self.offered(name, "")[0]]
            shown = set(re.findall(r"(?m)^  (?:-[a-z],)?(--[a-z-]+)", self.output(*sub, "--help"))) | {"--help"}
            self.assertEqual(set(self.offered(*sub, "--")), shown, sub)

    def test_a_flag_is_offered_once_but_for_those_that_repeat(self):
        self.assertNotIn("--hw", self.offered("estimate", "--hw", "rtx4090", "--"))
        self.assertNotIn("--model", self.offered("estimate", "-m", "qwen-7b", "--"))
        self.assertIn("--export", self.offered("estimate", "--export", "a.json", "--"))

    def test_names_of_models_hardware_runtimes_and_measurements(self):
        listed = {kind: [entry["name"] for entry in self.json("list", kind)[key]]
                  for kind, key in (("models", "models"), ("hardware", "hardware"))}
        self.assertEqual(self.offered("estimate", "-m", ""), sorted(listed["models"]))
        self.assertEqual(self.offered("estimate", "--hw", ""), sorted(listed["hardware"]))
        self.assertEqual(self.offered("show", "model", ""), sorted(listed["models"]))
        self.assertEqual(self.offered("show", "hardware", "rtx2080t"), ["rtx2080ti"])
        self.assertIn("vllm", self.offered("estimate", "--runtime", ""))
        self.assertEqual(self.offered("validate", "rtx"), ["rtx-exllamav2", "rtx-pro-6000-serving", "rtx4090-ops", "rtx4090-qwen1.5", "rtx4090-serving"])
        self.assertIn("ryzen-7950x", self.offered("estimate", "--host", ""))
        self.assertNotIn("rtx4090", self.offered("estimate", "--host", ""))  # no CPU

    def test_names_on_the_search_path_are_offered(self):
        self.write("models/qwerty.yaml", "name: qwerty\n")  # not even a whole model
        self.assertEqual(self.offered("estimate", "-m", "qwert", search_path=self.folder), ["qwerty"])

    def test_a_value_may_be_joined_to_its_flag(self):
        self.assertEqual(self.offered("estimate", "--hw=rtx2080t"), ["--hw=rtx2080ti"])
        self.assertEqual(self.offered("estimate", "-mqwen-1."), ["-mqwen-1.8b"])
        self.assertEqual(self.offered("estimate", "--format=js"), ["--format=json"])
        # Flags of other tools are whole words, too: -ngl is no -n of "gl".
        self.assertEqual(self.offered("estimate", "-ngl", ""), ["all"])
        self.assertIn("--gen", self.offered("estimate", "-ngl", "12", "--"))

    def test_of_a_list_the_last_item_is_completed(self):
        sort, names = self.candidates("estimate", "--options", "all,no_fl")
        self.assertEqual(sort, "items")  # it may go on: no space
        self.assertEqual(names, ["all,no_flash_attention", "all,no_flash_any_length"])
        self.assertEqual(self.offered("limits", "-m", "qwen-7b,qwen-1."), ["qwen-7b,qwen-1.8b"])
        self.assertNotIn("fused_qkv,fused_qkv", self.offered("compare", "--with", "fused_qkv,"))

    def test_files_where_a_file_belongs_and_nothing_where_a_number_does(self):
        for words in (["estimate", "--export", "a"], ["calibrate", "-o", ""], ["calibrate", "--out=x"], ["graph", ""],
                      ["import", "msprof", ""], ["estimate", "-m", "./my"], ["estimate", "--hw", "folder/"],
                      ["map", "gemm", "--svg", ""]):
            self.assertEqual(self.candidates(*words), ("files", []), words)
        self.assertEqual(self.candidates("man", "-o", ""), ("folders", []))
        self.assertEqual(self.candidates("estimate", "--batch", ""), ("words", []))
        self.assertEqual(self.candidates("nosuch", "--x"), ("words", []))

    def test_an_empty_word_where_only_flags_can_follow_offers_them(self):
        self.assertIn("--model", self.offered("estimate", ""))

    def test_every_value_offered_is_taken_and_every_value_taken_is_offered(self):
        """What the program says it knows, when it is given what it does not know, is what completion offers."""
        closed = [["estimate", "--weights"], ["estimate", "--kv"], ["estimate", "--activations"], ["estimate", "--format"],
                  ["estimate", "--lang"], ["estimate", "--detail"], ["estimate", "--tile-model"], ["estimate", "--embedding"],
                  ["estimate", "--execution"], ["limits", "--units"], ["show", "KIND"], ["list", "KIND"],
                  ["replay", "--phase"], ["replay", "--gemm"], ["replay", "--backend"], ["replay", "--sweep"],
                  ["map-collective", "--op"], ["map-collective", "--algorithm"], ["import", "source"]]
        rest = {"estimate": ["-m", "qwen-7b", "--hw", "rtx4090"], "limits": ["-m", "qwen-7b", "--hw", "rtx4090"], "show": ["qwen-7b"],
                "list": [], "replay": ["-m", "qwen1.5-0.5b", "--hw", "ryzen-7950x"], "import": ["nosuch.csv"],
                "map-collective": ["--hw", "a100-sxm-80gb", "--ranks", "2", "--size", "1KiB"]}
        for command, flag in closed:
            with self.subTest(command=command, flag=flag):
                before = [flag] if flag.startswith("--") else []
                offered = self.offered(command, *before, "")
                others = rest[command]
                if (command, flag) == ("map-collective", "--algorithm"):
                    others = [*others, "--op", "all-reduce"]
                # Nothing is near this word, so the hint lists what is known: all, or the first eight.
                done = self.run_program(command, *before, "zzzzzzzzzzzz", *others)
                hint = re.search(r"hint: (?:known names: |one of )?(.*)", done.stderr)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                known = [name for name in re.split(r", | or ", hint.group(1)) if re.fullmatch(r"[\w.-]+", name)]
                self.assertLessEqual(set(known) - {"trace.json"}, set(offered), done.stderr)  # of commands with steps
                for value in offered:
                    if command == "replay":
                        break  # it would run
                    message = self.run_program(command, *before, value, *others).stderr
                    self.assertNotRegex(message, r"unknown (format|level|scheme|weight|KV|language|unit|way|activation)|there is no '" +
                                        re.escape(value) + "'", value)


class Scripts(CandidatesTest):
    seconds = LONG

    def shell(self, *words, **options):
        env = dict(os.environ, PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"], LLMPERF_PATH="", HOME=self.folder,
                   XDG_CONFIG_HOME=self.folder, XDG_DATA_HOME=self.folder, TERM="xterm")
        return subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", check=False, timeout=self.seconds, **options)

    # (command line, one of the offers)
    CASES = [("llmperf est", "estimate"), ("llmperf estimate --hw rtx2080t", "rtx2080ti"), ("llmperf estimate -m qwen-1.", "qwen-1.8b"),
             ("llmperf estimate --options all,no_fl", "all,no_flash_attention"), ("llmperf estimate --ba", "--batch"),
             ("llmperf calibrate -o docs/gui", "docs/guide.md"), ("llmperf completion ", "zsh")]

    def test_bash_offers_them(self):
        if shutil.which("bash") is None:
            self.skipTest("bash is not installed")
        # As readline calls it: the words split at blanks, and at = and :, each a word of its own.
        script = """
eval "$(llmperf completion bash)"
complete -p llmperf >/dev/null || exit 9
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_llmperf
printf '%s\\n' "${COMPREPLY[@]}"
"""
        cases = [(line.split(" "), offer) for line, offer in self.CASES]
        cases += [(["llmperf", "estimate", "--hw", "=", "rtx2080t"], "rtx2080ti"), (["llmperf", "estimate", "--format", "="], "json"),
                  (["llmperf", "calibrate", "--out", "=", "docs/gui"], "docs/guide.md"),
                  (["llmperf", "estimate", "-m", '"qwen-1.'], "qwen-1.8b")]
        for words, offer in cases:
            with self.subTest(words=words):
                done = self.shell("bash", "--norc", "-c", script, "bash", *words)
                self.assertEqual(done.stderr.replace("compopt: not currently executing completion function", ""), "", words)
                self.assertIn(offer, done.stdout.splitlines())
        numbers = self.shell("bash", "--norc", "-c", script, "bash", "llmperf", "estimate", "--batch", "")
        self.assertEqual(numbers.stdout.strip(), "")  # not the files of the folder

    def test_fish_offers_them(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")
        script = self.path("llmperf.fish")
        with open(script, "w", encoding="utf-8") as file:
            file.write(self.output("completion", "fish"))
        self.assertEqual(self.shell("fish", "-n", script).stderr, "")
        for line, offer in [*self.CASES, ("llmperf estimate --hw=rtx2080t", "--hw=rtx2080ti"),
                            ("llmperf calibrate --out=docs/gui", "--out=docs/guide.md")]:
            with self.subTest(line=line):
                done = self.shell("fish", "-c", f"source {script}; complete -C '{line}'")
                self.assertIn(offer, [text.split("\t")[0] for text in done.stdout.splitlines()], done.stderr)
        done = self.shell("fish", "-c", f"source {script}; complete -C 'llmperf estimate --ba'")
        self.assertEqual(done.stdout, "--batch\trequests processed together\n")

    def test_zsh_offers_them(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        script = self.path("_llmperf")
        with open(script, "w", encoding="utf-8") as file:
            file.write(self.output("completion", "zsh"))
        self.assertEqual(self.shell("zsh", "-n", script).stderr, "")
        # What it hands to zsh's own functions.
        driver = """
compdef() { registered=$2 }
_describe() { print -rl -- "${(@P)${@[(r)described]}%%:*}" }
_files() { print files }
compset() { }
source %s
[[ $registered == llmperf ]] || exit 9
words=("$@"); CURRENT=$#; PREFIX=$words[CURRENT]
_llmperf
""" % script
        for line, offer in [*self.CASES, ("llmperf estimate --hw=rtx2080t", "--hw=rtx2080ti")]:
            with self.subTest(line=line):
                done = self.shell("zsh", "-f", "-c", driver, "zsh", *line.split(" "))
                self.assertEqual(done.stderr, "")
                self.assertIn("files" if "/" in offer else offer, done.stdout.splitlines())

    def test_zsh_completes_what_is_typed(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        try:
            ours, theirs = os.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminals here: {error}")
        env = dict(os.environ, PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"], TERM="xterm", HOME=self.folder)
        process = subprocess.Popen(["zsh", "-f", "-i"], cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs,
                                   start_new_session=True)
        os.close(theirs)
        try:
            os.write(ours, b"autoload -U compinit; compinit -u -D; source <(llmperf completion zsh); print REA''DY\n")
            self.read_until(ours, "READY")
            os.write(ours, b"llmperf estimate --hw=rtx2080t\t--mod\t")
            self.read_until(ours, "--hw=rtx2080ti", "--model")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(ours)

    def read_until(self, terminal, *texts):
        seen, end = "", time.monotonic() + self.seconds
        while not all(text in seen for text in texts):
            self.assertLess(time.monotonic(), end, seen)
            if select.select([terminal], [], [], 0.5)[0]:
                seen += re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", os.read(terminal, 65536).decode(errors="replace"))

    def test_an_unknown_shell_is_answered_with_those_there_are(self):
        self.assert_bad_input(["completion", "bsh"], "unknown subcommand 'bsh'", "'bash'")
        self.assert_bad_input(["completion"], "subcommand is required")


if __name__ == "__main__":
    unittest.main()
