#!/usr/bin/env python3
"""Every `$ llmperf …` line in a ```console block of the README and docs/ is run, and what it prints is compared.

A block holds commands and their output; a line `# exit N` after the output states an exit status other than 0; a line that is
just `…` skips any number of output lines. `--update` rewrites the blocks that hold no `…` with what the program prints now.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAM = os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf"))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def run(command):
    words = shlex.split(command)
    assert words[0] == "llmperf", f"only llmperf commands are documented this way: {command}"
    env = dict(os.environ, LLMPERF_PATH="", NO_COLOR="1")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM] + words[1:], cwd=ROOT if "./" in command else folder, env=env, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    text = "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").split("\n"))
    return text + (f"\n# exit {done.returncode}" if done.returncode else "")


def matches(expected, actual):
    pattern = "\n".join(re.escape(line) if line.strip() != "…" else r".*" for line in expected.split("\n"))
    return re.fullmatch(pattern, actual, re.S) is not None


def rewritten(expected, actual):
    """The output with what it leaves out: each run of lines between two "…" as it is printed now, found by its words."""
    words = lambda line: re.sub(r"[\d.,]+|\s+", " ", line)
    printed = actual.split("\n")
    shapes = [words(line) for line in printed]
    lines = []
    for run_of_lines in re.split(r"(^\s*…\s*$)", expected, flags=re.M):
        run_of_lines = run_of_lines.strip("\n").split("\n")
        shape = [words(line) for line in run_of_lines]
        at = [i for i in range(len(shapes) - len(shape) + 1) if shapes[i:i + len(shape)] == shape]
        lines += printed[at[0]:at[0] + len(shape)] if at else run_of_lines
    return "\n".join(lines).strip("\n")


def entries(block):
    """(command, expected output) pairs of a block."""
    for part in re.split(r"^(?=\$ )", block, flags=re.M):
        if part.strip():
            command, _, output = part.partition("\n")
            yield command, output.rstrip("\n")


def main():
    update = "--update" in sys.argv
    failures = checked = 0
    for path in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        text = open(path, encoding="utf-8").read()

        def check(match):
            nonlocal failures, checked
            out = []
            for command, expected in entries(match.group(1)):
                actual = run(command[2:])
                checked += 1
                if not matches(expected, actual):
                    failures += 1
                    if not update:
                        print(f"{os.path.relpath(path, ROOT)}: {command}\n--- documented\n{expected}\n--- printed\n{actual}\n")
                    elif "…" in [line.strip() for line in expected.split("\n")]:
                        expected = rewritten(expected, actual)
                    else:
                        expected = actual
                out.append(command + "\n" + expected + "\n")
            return "```console\n" + "\n".join(out) + "```"

        new = BLOCK.sub(check, text)
        if update and new != text:
            open(path, "w", encoding="utf-8").write(new)
    print(f"{checked} documented commands, {failures} differ" + (" (updated)" if update else ""))
    return 1 if (failures and not update) or checked == 0 else 0


sys.exit(main())
