#!/usr/bin/env bash
# What CI checks beyond the tests: formatting; the fuzzers and, under sanitizers, the tests that do not repeat others; the
# thread sanitizer and clang-tidy on what changed since LLMPERF_CHECK_BASE (the last commit that is older than six hours).
# With --all it is every test, and everything instead of what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build test check

base=${LLMPERF_CHECK_BASE:-$(git rev-list -1 --before='6 hours ago' HEAD)}
[ "${1:-}" != --all ] || base=""
# The files that match a pattern, of those that changed since then (all files where there is no such commit).
changed() {
  { [ -n "$base" ] && git diff --name-only --diff-filter=d "$base" || git ls-files; } | grep -E "$1" || true
}

echo "== formatting"
git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror

echo "== clang, address and undefined-behaviour sanitizers, fuzzers"
cmake --preset asan-ubsan
cmake --build --preset asan-ubsan
ctest --preset asan-ubsan -j "$(nproc)" ${base:+-LE repeats}

if [ -n "$(changed '^(src|tests)/(base|sweep|replay|answer|c)/|^bindings/c/|capacity|^CMakePresets|CMakeLists')" ]; then
  echo "== clang, thread sanitizer: what runs threads"
  cmake --preset tsan
  cmake --build --preset tsan --target test_replay test_replay_cpu test_replay_ascend test_base test_sweep test_result test_c
  ctest --preset tsan -R '^(replay(_cpu|_ascend.*)?|base|sweep|result|c)$'
fi

echo "== clang-tidy"
# Sources are read as they are compiled: several in one file, which is where they are looked for first.
built=build/asan-ubsan
changed '^src/.*\.cpp$' | sed "s|^|$PWD/|" >$built/changed.txt
{
  grep -lFf $built/changed.txt $built/src/CMakeFiles/*/Unity/*.cxx || true
  sed -n 's/^ *"file": "\(.*\)".*/\1/p' $built/compile_commands.json | grep -xFf $built/changed.txt || true
} | xargs -r -P "$(nproc)" -n 1 clang-tidy -p $built --quiet --checks=-bugprone-suspicious-include
