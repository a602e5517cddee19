#!/usr/bin/env bash
# From a fresh Debian 12 machine to a first estimate: installs what is missing, builds the release preset, runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
cmake --preset release -DLLMPERF_TESTS=OFF -DLLMPERF_BENCHMARKS=OFF
cmake --build --preset release --target llmperf
echo
build/release/llmperf estimate --model qwen-7b --hw rtx4090
