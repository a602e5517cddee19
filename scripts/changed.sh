#!/usr/bin/env bash
# The files whose names match PATTERN, of those that changed since LLMPERF_CHECK_BASE (the last commit that is older than six hours); all
# files where that is empty or there is no such commit.
# Usage: scripts/changed.sh PATTERN
set -euo pipefail
cd "$(dirname "$0")/.."

base=${LLMPERF_CHECK_BASE-$(git rev-list -1 --before='6 hours ago' HEAD)}
if [ -n "$base" ]; then git diff --name-only --diff-filter=d "$base"; else git ls-files; fi | grep -E "$1" || true
