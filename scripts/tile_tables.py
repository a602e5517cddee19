#!/usr/bin/env python3
"""Writes the tables of docs/tiles.md: the mapper of llmperf beside the published one, op by op.

    scripts/tile_tables.py build/release/llmperf            writes them
    scripts/tile_tables.py build/release/llmperf --check    exit status 1 when they are not what the program says now

Every row is one call of `llmperf map … --tile-model published --json`.
"""
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..")))
PAGE = os.path.join(ROOT, "docs", "tiles.md")
BEGIN, END = "<!-- tables begin: written by scripts/tile_tables.py -->\n", "<!-- tables end -->"
HEADER = ["op", "bound", "closed form", "simulated", "published choice, simulated here", "published figure"]


def gemm(m, n, k, then=""):
    return ["gemm", f"--m={m}", f"--n={n}", f"--k={k}"] + ([f"--then={then}"] if then else [])


def attention(sequences, heads, queries, keys, head_dim):
    return ["attention", f"--batch={sequences}", f"--heads={heads}", f"--queries={queries}", f"--keys={keys}",
            f"--head-dim={head_dim}"]


def vector(kind, rows, width):
    return ["vector", f"--kind={kind}", f"--rows={rows}", f"--width={width}"]


# Llama-7B, 4096 tokens: how often an op runs in a layer, and what it is.
LLAMA = [("RMSNorm", 2, vector("rms_norm", 4096, 4096)), ("QKV", 1, gemm(4096, 12288, 4096)),
         ("flash attention", 1, attention(1, 32, 4096, 4096, 128)), ("output", 1, gemm(4096, 4096, 4096)),
         ("residual", 2, vector("add", 4096, 4096)), ("up and SiLU", 1, gemm(4096, 11008, 4096, "activation")),
         ("gate", 1, gemm(4096, 11008, 4096)), ("multiply", 1, vector("multiply", 4096, 11008)),
         ("down", 1, gemm(4096, 4096, 11008))]
FRAMES, TEXT, HIDDEN, HEAD = 30, 300, 1152, 72


def stdit(tokens, batch, heads, width, out, ffn, spatial):
    """Ops of a chip in a pair of STDiT blocks: `tokens` of `batch` sequences, `heads` of the 16."""
    return [("modulate", 1, vector("modulate", tokens, HIDDEN)), ("QKV", 1, gemm(tokens, width, HIDDEN)),
            ("spatial attention", 1, attention(batch * FRAMES, heads, spatial, spatial, HEAD)),
            ("temporal attention", 1, attention(batch * spatial, heads, FRAMES, FRAMES, HEAD)),
            ("output", 1, gemm(tokens, HIDDEN, out)),
            ("cross attention", 1, attention(batch, heads, FRAMES * spatial, TEXT, HEAD)),
            ("up and GELU", 1, gemm(tokens, ffn, HIDDEN, "activation")), ("down", 1, gemm(tokens, HIDDEN, ffn)),
            ("residual", 1, vector("add", tokens, HIDDEN))]


def sections():
    yield "Llama-7B, 4096 tokens, one layer (mean over all keys, nothing masked)", LLAMA, 32
    for spatial, size in ((3600, "720p"), (920, "360p")):
        tokens = 2 * FRAMES * spatial
        yield (f"STDiT3, {size}, 4 s, on 16 chips: Ulysses (tokens divided; one head inside attention)",
               stdit(tokens // 16, 2, 1, 3 * HIDDEN, HIDDEN, 4 * HIDDEN, spatial), 0)
        yield (f"STDiT3, {size}, 4 s, on 16 chips: Megatron (matrices divided)",
               stdit(tokens, 2, 1, 3 * HIDDEN // 16, HIDDEN // 16, 4 * HIDDEN // 16, spatial), 0)
        yield (f"STDiT3, {size}, 4 s, on 16 chips: two-dimensional (one sequence, matrices over 8)",
               stdit(tokens // 2, 1, 2, 3 * HIDDEN // 8, HIDDEN // 8, 4 * HIDDEN // 8, spatial), 0)


def mapped(program, op):
    done = subprocess.run([program, "map", *op, "--hw=tx8", "--tile-model=published", "--json"], check=False,
                          env=dict(os.environ, LLMPERF_PATH=""), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=600)
    if done.returncode != 0:
        sys.exit(f"map {' '.join(op)}: {done.stderr}")
    return json.loads(done.stdout)


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.4g} ms"


def recosted(published):
    if published["time_s"] is None:
        return "none"
    choice = published["mapped_here"]
    if choice["simulated_s"] is not None:
        return milliseconds(choice["simulated_s"])
    text = f"does not fit: {choice['sram_bytes'] / 2**20:.2f} MiB of a tile"
    if choice["spilled_s"] is not None:
        text += f"; at least {milliseconds(choice['spilled_s'])} through DRAM"
    return text


def rows(program, ops, layers):
    total = [0.0] * 4
    for name, times, op in ops:
        document = mapped(program, op)
        published = document["published"]
        cells = [document["bound_s"], document["closed_form_s"], document["time_s"], published["time_s"]]
        for i, seconds in enumerate(cells):
            total[i] += times * (seconds or 0)
        label = f"{name}, twice" if times == 2 else name
        yield [label, *map(milliseconds, cells[:3]), recosted(published), milliseconds(cells[3])]
    if layers:
        yield [f"{layers} layers", *(milliseconds(layers * seconds) for seconds in total[:3]), "",
               milliseconds(layers * total[3])]


def table(cells):
    lines = ["| " + " | ".join(row) + " |" for row in [HEADER, *cells]]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(HEADER) - 1), *lines[1:]])


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    program = words[0] if words else os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf"))
    parts = [f"### {title}\n\n{table(rows(program, ops, layers))}\n" for title, ops, layers in sections()]
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    written = page[:begin] + "\n" + "\n".join(parts) + "\n" + page[end:]
    if "--check" not in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(written)
    elif written != page:
        sys.exit("docs/tiles.md is not what the program says now: scripts/tile_tables.py PROGRAM writes it")


main()
