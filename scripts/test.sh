#!/usr/bin/env bash
# Installs what is missing, builds the release preset with its tests and runs all of them. In CI (the variable is set)
# warnings of the compiler are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build test
cmake --preset release -DLLMPERF_TESTS=ON -DLLMPERF_BENCHMARKS=ON ${CI:+-DLLMPERF_WERROR=ON}
cmake --build --preset release
ctest --preset release -j "$(nproc)" "$@"
