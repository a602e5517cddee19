#!/usr/bin/env bash
# What CI checks beyond the tests: formatting, warnings as errors under g++, the tests and fuzzers under sanitizers, clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build test check

echo "== formatting"
git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror

echo "== g++, warnings as errors"
cmake --preset dev -DLLMPERF_TESTS=OFF -DLLMPERF_BENCHMARKS=OFF
cmake --build --preset dev

echo "== clang, address and undefined-behaviour sanitizers, fuzzers"
cmake --preset asan-ubsan
cmake --build --preset asan-ubsan
ctest --preset asan-ubsan -j "$(nproc)"

echo "== clang, thread sanitizer: what runs threads"
cmake --preset tsan
cmake --build --preset tsan --target test_replay test_replay_cpu test_replay_ascend test_sweep
ctest --preset tsan -R '^(replay(_cpu|_ascend.*)?|sweep)$'

echo "== clang-tidy"
git ls-files 'src/*.cpp' | xargs -P "$(nproc)" -n 4 clang-tidy -p build/asan-ubsan --quiet
