#!/usr/bin/env bash
# From a fresh Debian 12 machine to a first estimate: installs what is missing, builds the release preset, runs it. With --explorer
# the program has the page that computes by itself, too, which emscripten compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

explorer=""
case "${1:-}" in
  "") ;;
  --explorer) explorer=explorer ;;
  *) echo "quickstart.sh: unknown word '$1' (--explorer)" >&2; exit 2 ;;
esac
scripts/setup.sh build $explorer
cmake --preset release -DLLMPERF_TESTS=OFF -DLLMPERF_BENCHMARKS=OFF -DLLMPERF_EXPLORER="${explorer:+ON}"
cmake --build --preset release --target llmperf
echo
build/release/llmperf estimate --model qwen-7b --hw rtx4090
if ! build/release/llmperf explore -o - >/dev/null 2>&1; then
  echo
  echo "scripts/quickstart.sh --explorer adds 'llmperf explore', the page that recomputes as one drags."
fi
