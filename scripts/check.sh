#!/usr/bin/env bash
# What CI checks beyond the tests, by what changed (scripts/changed.sh): formatting; the fuzzers and, under sanitizers, the tests of what
# reads, writes, runs threads and is called from outside, those of the mathematics where it changed; the thread sanitizer where threads
# did; clang-tidy on the sources that did. With --all it is every test, and everything instead of what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

all=""
case "${1:-}" in
  "") ;;
  --all) all="nothing"; export LLMPERF_CHECK_BASE="" ;;
  *) echo "check.sh: unknown word '$1' (--all)" >&2; exit 2 ;;
esac
scripts/setup.sh build test check
changed() { scripts/changed.sh "$1"; }
build='^(CMakePresets|CMakeLists|src/CMakeLists|tests/CMakeLists)'

echo "== formatting"
git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror

echo "== clang, address and undefined-behaviour sanitizers, fuzzers"
targets="llmperf fuzz test_base test_inputs test_results test_replay test_c"
left_out="repeats"
if [ -n "$(changed "^(src|tests)/(graph|cost|mapper|estimate|serving)/|$build")" ]; then
  targets+=" test_estimates"
else
  left_out+="|maths"
fi
cmake --preset asan-ubsan
# shellcheck disable=SC2086
cmake --build --preset asan-ubsan --target $targets
ctest --preset asan-ubsan -j "$(nproc)" -LE "${all:-$left_out}"

threads='std::(thread|mutex|atomic|condition_variable|once_flag)|in_parallel|ThreadPool'
if [ -n "$(changed "^(src|tests)/(points|service|replay|c)/|^bindings/c/|$build")$(changed '^(src|tests)/.*\.(cpp|h)$' | xargs -r grep -lE "$threads")" ]; then
  echo "== clang, thread sanitizer: what runs threads"
  cmake --preset tsan
  cmake --build --preset tsan --target test_replay test_base test_results test_c
  ctest --preset tsan -R '^(replay(_cpu|_ascend.*)?|base|points|service|result|c)$'
fi

echo "== clang-tidy"
# Sources are read as they are compiled, several in one file, of which what did not change is struck out.
cmake --preset tidy
changed '^src/.*\.cpp$' | sed "s|^|$PWD/|" >build/tidy/changed.txt
{
  for unity in build/tidy/src/CMakeFiles/*/Unity/*.cxx; do
    if grep -Ff build/tidy/changed.txt "$unity" >build/tidy/kept.txt; then cp build/tidy/kept.txt "$unity"; echo "$unity"; fi
  done
  sed -n 's/^ *"file": "\(.*\)".*/\1/p' build/tidy/compile_commands.json | grep -xFf build/tidy/changed.txt || true
} | xargs -r -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet --checks=-bugprone-suspicious-include
