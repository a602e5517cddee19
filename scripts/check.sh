#!/usr/bin/env bash
# What CI checks beyond the tests: formatting; the tests and fuzzers under sanitizers; the thread sanitizer and clang-tidy on
# what changed since LLMPERF_CHECK_BASE (the last commit that is older than six hours), or with --all on everything.
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
ctest --preset asan-ubsan -j "$(nproc)"

if [ -n "$(changed '^(src|tests)/(base|sweep|replay)/|^CMakePresets|CMakeLists')" ]; then
  echo "== clang, thread sanitizer: what runs threads"
  cmake --preset tsan
  cmake --build --preset tsan --target test_replay test_replay_cpu test_replay_ascend test_sweep
  ctest --preset tsan -R '^(replay(_cpu|_ascend.*)?|sweep)$'
fi

echo "== clang-tidy"
cmake --preset asan-ubsan -B build/lint -DLLMPERF_UNITY=OFF >/dev/null  # how each source compiles on its own
changed '^src/.*\.cpp$' | xargs -r -P "$(nproc)" -n 4 clang-tidy -p build/lint --quiet
