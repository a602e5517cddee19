#!/usr/bin/env python3
"""Every `$ llmperf …` line in a ```console block of the README, docs/ and docs/zh/ is run, and what it prints is compared.

A block holds commands and their output; a line `# exit N` after the output states an exit status other than 0; a line that is
just `…` skips any number of output lines. Commands run in one folder, where the project's files are and those that commands
before them wrote. A block under a line that ends in `docs/examples/NAME:` shows that file. `--update` rewrites all of them.

A page of docs/zh has the commands of the page of its name in docs/, in the same order; the guide's table has every subcommand;
links from page to page lead to a page and a heading.
"""
import functools
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
FILE = re.compile(r"(docs/examples/[\w./-]+)[:：]\n\n```\w+\n(.*?)^```$", re.M | re.S)


@functools.lru_cache(maxsize=None)  # pages in two languages have the same commands
def run(command, folder):
    words = shlex.split(command)
    assert words[0] == "llmperf", f"only llmperf commands are documented this way: {command}"
    env = dict(os.environ, LLMPERF_PATH="", NO_COLOR="1")
    done = subprocess.run([os.path.abspath(PROGRAM)] + words[1:], cwd=folder, env=env, timeout=60,
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


def commands(text):
    return [command for block in BLOCK.findall(text) for command, _ in entries(block)]


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def subcommands_without_a_row():
    """Subcommands that the guide's first table leaves out, and rows of it that are none."""
    listed = subprocess.run([PROGRAM, "--help"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    listed = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", listed.split("Subcommands:\n")[1], re.M)
    table = read("docs", "guide.md").split("| subcommand |")[1].split("\n\n")[0]
    rows = {word for row in re.findall(r"^\| (.*?) \|", table, re.M) for word in re.findall(r"`([a-z-]+)`", row)}
    return sorted(set(listed) ^ rows)


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


@functools.lru_cache(maxsize=None)
def anchors(page):
    words = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)$", without_code(read(page)), re.M)]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in words}


def broken_links(page):
    for link in re.findall(r"\]\(([^)\s:]*\.md(?:#[^)\s]*)?|#[^)\s]*)\)", without_code(read(page))):
        name, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if not os.path.exists(os.path.join(ROOT, target)) or (anchor and anchor not in anchors(target)):
            yield f"{page}: no {link}"


def main():
    update = "--update" in sys.argv
    failures = checked = 0
    pages = [os.path.join(ROOT, "README.md")]
    for folder in ("docs", os.path.join("docs", "zh")):
        pages += sorted(glob.glob(os.path.join(ROOT, folder, "*.md")))
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(ROOT):
            if not name.startswith("."):
                os.symlink(os.path.abspath(os.path.join(ROOT, name)), os.path.join(folder, name))
        for path in pages:
            text = open(path, encoding="utf-8").read()
            name = os.path.relpath(path, ROOT)

            def check(match):
                nonlocal failures, checked
                out = []
                for command, expected in entries(match.group(1)):
                    actual = run(command[2:], folder)
                    checked += 1
                    if not matches(expected, actual):
                        failures += 1
                        if not update:
                            print(f"{name}: {command}\n--- documented\n{expected}\n--- printed\n{actual}\n")
                        elif "…" in [line.strip() for line in expected.split("\n")]:
                            expected = rewritten(expected, actual)
                        else:
                            expected = actual
                    out.append(command + "\n" + expected + "\n")
                return "```console\n" + "\n".join(out) + "```"

            def show(match):
                nonlocal failures, checked
                checked += 1
                shown = read(match.group(1))
                if match.group(2) != shown:
                    failures += 1
                    if not update:
                        print(f"{name}: {match.group(1)} is not what it shows\n")
                return match.group(0).replace(match.group(2), shown)

            new = FILE.sub(show, BLOCK.sub(check, text))
            if update and new != text:
                open(path, "w", encoding="utf-8").write(new)
    faults = []
    for path in pages:
        faults += broken_links(os.path.relpath(path, ROOT))
        if os.path.basename(os.path.dirname(path)) == "zh":
            other = os.path.join("docs", os.path.basename(path))
            if commands(read(path)) != commands(read(other)):
                faults.append(f"{os.path.relpath(path, ROOT)} has other commands than {other}")
    faults += [f"docs/guide.md, the table of subcommands: {name}" for name in subcommands_without_a_row()]
    print("".join(fault + "\n" for fault in faults), end="")
    print(f"{checked} documented commands and files, {failures} differ" + (" (updated)" if update else ""))
    return 1 if (failures and not update) or faults or checked == 0 else 0


sys.exit(main())
