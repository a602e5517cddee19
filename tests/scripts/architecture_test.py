#!/usr/bin/env python3
"""Dependencies point strictly down the list of src/ folders (docs/architecture.md): reads every include line. CLI11, which costs
seconds wherever it is read, is known to one file. Libraries know no command line: a message of theirs names a field, `batch`."""
import os
import re
import sys

ROOT = os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", ".."))
# A folder may include itself and everything before it; the exceptions say who else may be seen.
ORDER = ["base", "descriptor", "model", "hardware", "graph", "cost", "mapper", "estimate", "serving", "request", "program", "measure",
         "import", "replay", "points", "result", "service", "report", "cli"]
HEAVY = {"yaml-cpp/": {"descriptor"}, "Eigen/": {"measure", "replay"}, "CLI/": {"cli"}}
ONLY_CLI11 = "src/cli/command.cpp"


def problems():
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        for name in files:
            if not name.endswith((".cpp", ".h")):
                continue
            path = os.path.join(folder, name)
            here = os.path.relpath(path, os.path.join(ROOT, "src")).split(os.sep)[0]
            if here not in ORDER:
                yield f"{path}: folder '{here}' is not in the list"
                continue
            for number, line in enumerate(open(path, encoding="utf-8"), 1):
                quoted = re.match(r'#include "([^/"]+)/', line)
                if quoted and ORDER.index(quoted.group(1)) > ORDER.index(here):
                    yield f"{path}:{number}: {here} includes {quoted.group(1)}, which stands above it"
                angled = re.match(r"#include <([^>]+)>", line)
                for prefix, allowed in HEAVY.items():
                    if angled and angled.group(1).startswith(prefix) and here not in allowed:
                        yield f"{path}:{number}: only {', '.join(allowed)} may include <{angled.group(1)}>"
                    if angled and angled.group(1).startswith(prefix) and name.endswith(".h"):
                        yield f"{path}:{number}: heavy header <{angled.group(1)}> in a header"
                if line.startswith("#include <CLI/") and os.path.relpath(path, ROOT) != ONLY_CLI11:
                    yield f"{path}:{number}: only {ONLY_CLI11} knows CLI11"


def flags():
    """Flags in texts of libraries. Pages and the list of what prints which document name them, and the tools of StableHLO and
    the program for PyTorch have theirs."""
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        here = os.path.relpath(folder, os.path.join(ROOT, "src")).split(os.sep)[0]
        for name in files if here not in ("cli", "report") and not folder.endswith("replay/torch") else []:
            path = os.path.join(folder, name)
            if os.path.relpath(path, ROOT) == "src/result/document.cpp":
                continue
            for number, line in enumerate(open(path, encoding="utf-8"), 1):
                code = line.split("//")[0]
                for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code):
                    flag = re.search(r"--[a-z][a-z-]+", text)
                    if flag and not re.search(r"(stablehlo-|xla-)(translate|opt)", text):
                        yield f"{path}:{number}: {flag.group()} is a flag of the command line, the field is `{flag.group()[2:]}`"


def missing():
    """Files that docs/architecture.md and CONTRIBUTING.md send a reader to and that are not there, and the functions of the path from a
    flag to a number that their files lack."""
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        for path in sorted(set(re.findall(r"\b(?:src|tests|scripts|cmake)/[a-z0-9_/]+\.(?:cpp|h|py|sh|cmake)\b", text))):
            if not os.path.exists(os.path.join(ROOT, path)):
                yield f"{page}: no {path}"
        for name, path in re.findall(r"^\d+\. `(?:\w+::)?(\w+)\(\)` in (src/[\w/.]+\.cpp)", text, re.MULTILINE):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                if not re.search(rf"\b{name}\(", file.read()):
                    yield f"{page}: {path} has no {name}()"


# What somebody reads who wants to know where a number is from: it may grow by what a budget grants, and shrink.
KERNEL = ["base", "descriptor", "model", "hardware", "graph", "cost", "mapper", "request", "estimate", "serving"]
MOST_KERNEL_LINES = 54400  # 200 of them the busiest of devices that share experts (docs/formulas.md), 220 attention and experts apart (docs/guide.md), 430 experts placed by measured loads and served adapters (docs/serving.md), 630 of them classes of traffic, full queues and tiers (docs/serving.md), 620 what an engine's memory holds (docs/memory.md), 630 kernels, eras and boards


def too_long():
    lines = 0
    for part in KERNEL:
        for folder, _, files in os.walk(os.path.join(ROOT, "src", part)):
            for name in files:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    lines += sum(1 for _ in file) if name.endswith((".cpp", ".h", ".inc")) else 0
    if lines > MOST_KERNEL_LINES:
        yield f"the kernel has {lines} lines, more than its {MOST_KERNEL_LINES}: take some away, or say in the issue what they are for"


found = [*problems(), *flags(), *missing(), *too_long()]
print("\n".join(found) if found else "every include points down, no library names a flag, every named file is there")
sys.exit(1 if found else 0)
