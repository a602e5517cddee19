#!/usr/bin/env bash
# Installs what is missing, builds the release preset with its tests and runs all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build test
cmake --preset release -DLLMPERF_TESTS=ON -DLLMPERF_BENCHMARKS=ON
cmake --build --preset release
ctest --preset release -j "$(nproc)" "$@"
