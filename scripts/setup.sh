#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, only those that are missing (sudo when not root), and what
# tests of the Python module take from PyPI.
# Usage: scripts/setup.sh [build|explorer|test|check|torch] …
set -euo pipefail

build="g++ cmake ninja-build libcli11-dev nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libeigen3-dev libdnnl-dev nodejs npm ca-certificates"
test="emscripten catch2 libbenchmark-dev python3 python3-venv python3-numpy chromium-headless-shell fonts-droid-fallback zsh fish groff-base mandoc dpkg-dev file git"
torch="python3-torch"  # tests/replay/torch, which is passed over without it
check="clang clang-format clang-tidy libclang-rt-14-dev"

wanted=""
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=" $build" ;;
    test) wanted+=" $test" ;;
    check) wanted+=" $check" ;;
    explorer) wanted+=" emscripten" ;;
    torch) wanted+=" $torch" ;;
    *) echo "setup.sh: unknown group '$group' (build, explorer, test, check, torch)" >&2; exit 2 ;;
  esac
done

# Node from elsewhere brings its own npm, and Debian's package npm does not install beside it.
if command -v npm >/dev/null && command -v node >/dev/null; then
  # shellcheck disable=SC2086
  wanted=$(printf '%s\n' $wanted | grep -vxE 'nodejs|npm' | tr '\n' ' ')
fi

missing=""
for package in $wanted; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=" $package"
done
if [ -n "$missing" ]; then
  root=""
  [ "$(id -u)" -eq 0 ] || root="sudo"
  echo "installing:$missing"
  $root apt-get update -qq
  # shellcheck disable=SC2086
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

# Tests of the Python module have an environment of their own beside Debian's NumPy. Where PyPI cannot be reached those
# that need it are passed over, and say so.
case " ${*:-build} " in *" test "*) ;; *) exit 0 ;; esac
cd "$(dirname "$0")/.."
wanted=tests/python/requirements.txt folder=build/test-python
if ! cmp -s "$wanted" "$folder/installed.txt"; then
  echo "installing: $wanted into $folder"
  if /usr/bin/python3 -m venv --clear --system-site-packages "$folder" && "$folder/bin/pip" install -q -r "$wanted"; then
    cp "$wanted" "$folder/installed.txt"
  else
    echo "setup.sh: $wanted could not be installed: what needs it is passed over" >&2
  fi
fi
