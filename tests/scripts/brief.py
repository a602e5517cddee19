#!/usr/bin/env python3
"""Runs a test and passes on what it says, of a long report the beginning, the end and between them the lines that name a failure: at most
a hundred lines, none of them long, so that what failed can be read in the log of a build. LLMPERF_WHOLE=1 passes on all of it.

usage: brief.py COMMAND WORD…"""
import os
import re
import subprocess
import sys

FIRST, BETWEEN, LAST, WIDE = 40, 29, 30, 500
NAMES_A_FAILURE = re.compile(r"^\s*(not ok|FAIL|ERROR|# fail [1-9])|FAILED|[Ee]rror:")  # node's tests, unittest, Catch2


def brief(text):
    lines = [line if len(line) <= WIDE else f"{line[:WIDE]}… ({len(line)} characters)" for line in text.splitlines()]
    if len(lines) > FIRST + BETWEEN + LAST:
        kept = [line for line in lines[FIRST:-LAST] if NAMES_A_FAILURE.search(line)][:BETWEEN]
        left_out = len(lines) - FIRST - len(kept) - LAST
        lines[FIRST:-LAST] = [f"… {left_out} lines left out; LLMPERF_WHOLE=1 shows them …", *kept]
    return "".join(line + "\n" for line in lines)


def main():
    whole = bool(os.environ.get("LLMPERF_WHOLE"))
    done = subprocess.run(sys.argv[1:], stdout=None if whole else subprocess.PIPE, stderr=None if whole else subprocess.STDOUT,
                          encoding="utf-8", errors="replace", check=False)
    if not whole:
        sys.stdout.write(brief(done.stdout))
    if done.returncode < 0:
        print(f"{sys.argv[1]}: ended by signal {-done.returncode}")
        return 128 - done.returncode
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
