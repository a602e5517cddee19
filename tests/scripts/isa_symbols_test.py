#!/usr/bin/env python3
"""Code for a wider instruction set than every processor has must not leave the files it was compiled in: of inline
functions with one name the linker keeps any, so none but those in the kernels' own namespaces may be weak there.
Arguments: the static library of the cpu backend, and nm."""
import re
import subprocess
import sys

library, nm = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "nm"
VARIANTS = ("baseline", "avx2", "avx512")
HELPERS = r"typeinfo (name )?for |DW\.ref\.|__clang_call_terminate|__(asan|odr_asan|sancov|start|stop|emutls)|\."

text = subprocess.run([nm, "-C", "--defined-only", library], check=True, capture_output=True, text=True).stdout
problems = []
seen = set()
variant = None
for line in text.splitlines():
    member = re.match(r"(\S+\.o(?:bj)?):$", line)
    if member:
        found = re.match(r"kernels_(\w+)\.", member.group(1))
        variant = found.group(1) if found else None
        seen.update({variant} - {None})
        continue
    symbol = re.match(r"[0-9a-f]*\s+([A-Za-z])\s+(.*)$", line)
    if variant is None or not symbol or symbol.group(1) in "trdbna":
        continue  # of another file, or local
    kind, name = symbol.groups()
    # Tables are what the files are for. The compiler's own helpers and a sanitiser's notes and types carry none of our
    # code.
    own = f"Eigen_{variant}::" in name or name == f"llmperf::replay::cpu::k{variant.capitalize()}Kernels"
    if not own and not re.match(HELPERS, name):
        problems.append(f"kernels_{variant}: {kind} {name}")

if not seen & set(VARIANTS):
    problems.append(f"{library} has none of the kernels' files")
print("\n".join(problems) if problems else f"symbols of {', '.join(sorted(seen))} keep to themselves")
sys.exit(1 if problems else 0)
