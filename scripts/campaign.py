#!/usr/bin/env python3
"""The ops that say most about a GPU or NPU, as a file that `llmperf replay --ops` reads: docs/replay.md, "A campaign".

    scripts/campaign.py h100-sxm > ops.csv
    llmperf replay --ops ops.csv --hw h100-sxm --emit torch > replay.py     # and there: python3 replay.py --seconds 300

Products of several types, warm and cold, singly, in batches and of experts, and one under load for the clock and the power; attention
over caches and prompts in the layouts that models have; norms and the like, lookups, cache writes and copies over the link.
"""
import sys

COLUMNS = ("hardware op dtype weights batch m n k hidden inter topk experts tp ep distribution q_len kv_len heads kv_heads head_dim kv_dtype "
           "bytes power copies latency_us").split()
MATRICES = [(4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (128256, 4096)]  # n, k; Llama's and a square
EXPERTS = [(4096, 14336, 2, 8, 1), (2048, 768, 8, 128, 1), (7168, 2048, 8, 256, 8)]  # hidden, inner, of how many, all, ranks of them
LAYOUTS = [(32, 8, 128), (64, 8, 128), (40, 8, 128), (16, 16, 64)]  # heads, KV heads, size


def rows():
    yield {"op": "gemm", "m": 8192, "n": 8192, "k": 8192, "power": "sustained"}
    for n, k in MATRICES:
        for m in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
            if m * n <= 1 << 28:
                yield {"op": "gemm", "m": m, "n": n, "k": k}
                yield {"op": "gemm", "dtype": "fp8", "m": m, "n": n, "k": k}
                if m > 1 and n <= 28672:  # cuBLAS takes no single row
                    yield {"op": "gemm", "dtype": "fp8", "weights": "fp8-block128", "m": m, "n": n, "k": k}
            if m in (8, 64, 1024) and n <= 28672:
                yield {"op": "gemm", "dtype": "fp16", "m": m, "n": n, "k": k}
                yield {"op": "gemm", "m": m, "n": n, "k": k, "weights": "w4a16-g128"}
            if m in (1, 16, 128) and n <= 28672:  # weights that stay in the cache, and that do not
                for copies in (1, 2, 4, 16):
                    yield {"op": "gemm", "m": m, "n": n, "k": k, "copies": copies}
    for batch in (8, 32, 128):
        for m in (1, 16, 128):
            yield {"op": "gemm", "batch": batch, "m": m, "n": 4096, "k": 1408}
    for hidden, inter, topk, experts, ep in EXPERTS:
        for m in (1, 8, 32, 128, 512, 2048, 8192):
            yield {"op": "moe_products", "m": m, "hidden": hidden, "inter": inter, "topk": topk, "experts": experts, "tp": 1, "ep": ep,
                   "distribution": "balanced"}
    for heads, kv_heads, size in LAYOUTS:
        shape = {"heads": heads, "kv_heads": kv_heads, "head_dim": size}
        for length in (256, 1024, 4096, 8192, 32768, 131072):
            for batch in (1, 8, 32, 64, 256):
                if batch * length <= 1 << 20:
                    yield {"op": "attention_decode", "batch": batch, "q_len": 1, "kv_len": length, **shape}
                    if heads == 32:
                        yield {"op": "attention_decode", "batch": batch, "q_len": 1, "kv_len": length, "kv_dtype": "fp8", **shape}
        for length in (128, 512, 1024, 2048, 4096, 8192, 16384):
            yield {"op": "attention_prefill", "batch": 1, "q_len": length, "kv_len": length, **shape}
        yield {"op": "attention_prefill", "batch": 8, "q_len": 512, "kv_len": 512, **shape}
        yield {"op": "attention_prefill", "batch": 1, "q_len": 512, "kv_len": 8192, **shape}
    for m in (1, 16, 128, 1024, 8192):
        for kind in ("rms_norm", "add_rms_norm", "layer_norm", "add", "softmax"):
            yield {"op": f"vector:{kind}", "m": m, "n": 4096}
        yield {"op": "vector:gated_activation", "m": m, "n": 14336}
        yield {"op": "vector:rope", "m": 40 * m, "n": 128, "heads": 32, "kv_heads": 8}
        yield {"op": "gather", "m": m, "n": 4096, "k": 128256}
        yield {"op": "kv_write", "m": m, "kv_heads": 8, "head_dim": 128}
    for m in (1, 8, 64):
        yield {"op": "vector:sampling", "m": m, "n": 128256}
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28):
        for op in ("copy_to_device", "copy_to_host"):
            yield {"op": op, "bytes": size}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print("# Ops to be timed: latency_us says nothing of them.")
    print(",".join(COLUMNS))
    for row in rows():
        row = {"hardware": sys.argv[1], "dtype": "bf16", "latency_us": 1, **row}
        print(",".join(str(row.get(column, "")) for column in COLUMNS))


if __name__ == "__main__":
    main()
