#!/usr/bin/env bash
# Installs what is missing, builds the release preset with its tests and runs all of them. In CI (the variable is set)
# warnings of the compiler are errors, and the engine of pages is built, and tested, where what it is made of or its tests changed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build test
engine=ON
if [ -n "${CI:-}" ]; then
  made_of='^(src|bindings|cmake|models|hardware|programs|scenarios|reports/web|tests/web)/|^CMake|(engine|explorer)_test'
  [ -n "$(scripts/changed.sh "$made_of" | grep -vE '^src/(cli|report|replay|import|measure)/')" ] || engine=OFF
fi
cmake --preset release -DLLMPERF_TESTS=ON -DLLMPERF_BENCHMARKS=ON -DLLMPERF_EXPLORER=$engine ${CI:+-DLLMPERF_WERROR=ON}
cmake --build --preset release
ctest --preset release -j "$(nproc)" "$@"
