#!/usr/bin/env bash
# Packages of the program, in FOLDER (packages, when it is not named): llmperf_*.deb, llmperf-dev_*.deb (the C++ library),
# llmperf-*.tar.gz, the Python wheel, llmperf-*.spdx.json (what is linked in) and SHA256SUMS. The same commit makes the same bytes.
# Usage: scripts/package.sh [--check] [--build BUILD] [FOLDER]
#   --build BUILD  a release that is built already; else the preset `package` is built
#   --check        packs a second time, and fails where that makes other bytes
set -euo pipefail
umask 022
root=$(cd "$(dirname "$0")/.." && pwd)
build="" out=packages check=""
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=${2:?--build wants a folder}; shift 2 ;;
    --check) check=1; shift ;;
    -*) echo "package.sh: unknown flag '$1' (--build, --check)" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -z "$build" ]; then
  build=$root/build/package
  (cd "$root" && cmake --preset package && cmake --build --preset package)
fi
build=$(cd "$build" && pwd)

version=$("$build/llmperf" --version | cut -d' ' -f2)
project=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
case "$version" in
  "$project" | "$project"+*) ;;
  *) echo "package.sh: the tag says $version, CMakeLists.txt $project" >&2; exit 1 ;;
esac
maintainer=${LLMPERF_MAINTAINER:-llmperf developers <noreply@llmperf.invalid>}
# Files are as old as the commit; without one, as the newest line of the change log may be.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/CHANGELOG.md")}
export SOURCE_DATE_EPOCH DPKG_DEB_THREADS_MAX=1 TZ=UTC LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$out"/llmperf*.deb "$out"/llmperf-*.tar.gz "$out"/llmperf-*.whl "$out"/llmperf-*.spdx.json "$out"/SHA256SUMS

# What is linked in, and on what terms.
sbom=$work/llmperf-$version.spdx.json
python3 "$root/scripts/sbom.py" "$build" >"$sbom"
cp "$sbom" "$out"
licences() {
  local library
  mkdir -p "$1/licences"
  for library in libyaml-cpp-dev libfmt-dev nlohmann-json3-dev libeigen3-dev libcli11-dev libstdc++6; do
    [ ! -e "/usr/share/doc/$library/copyright" ] || cp "/usr/share/doc/$library/copyright" "$1/licences/$library"
  done
  cp "$sbom" "$1/llmperf.spdx.json"
  chmod -R u=rwX,go=rX "$1"
}

install_component() { cmake --install "$build" --strip --component "$1" --prefix "$2" >/dev/null; }
all_as_old_as_the_commit() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# ---- llmperf-VERSION-linux-x86_64.tar.gz: unpack it anywhere.
name=llmperf-$version-linux-$(uname -m)
archive() {
  install_component program "$work/$name"
  licences "$work/$name/share/doc/llmperf"
  if [ -e "$root/scripts/python_wheel.py" ]; then
    LLMPERF_LIBRARY=$(realpath "$build/libllmperf.so") python3 "$root/scripts/python_wheel.py" "$out" >/dev/null
    install -D -m 644 -t "$work/$name/python" "$out"/llmperf-*.whl
  fi
  all_as_old_as_the_commit "$work/$name"
  tar -C "$work" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -n >"$out/$name.tar.gz"
}
archive &
made=$!

# ---- The Debian packages: what Debian wants and other systems do not is a copyright file and a change log of its own form,
# compressed pages, and another folder for completions of zsh.
architecture=$(dpkg --print-architecture)
debian_package() {  # package component section dependencies suggestions; the description on stdin
  local package=$1 tree=$work/debian/$1 doc=$work/debian/$1/usr/share/doc/$1
  mkdir -p "$tree/DEBIAN" "$doc"
  install_component "$2" "$tree/usr"
  licences "$doc"
  cp "$root/cmake/debian/copyright" "$doc/copyright"
  rm -f "$doc/LICENSE"  # which the copyright file names
  [ ! -e "$doc/CHANGELOG.md" ] || mv "$doc/CHANGELOG.md" "$doc/changelog"
  printf '%s (%s-1) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
    llmperf "$version" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" >"$doc/changelog.Debian"
  find "$doc" "$tree/usr/share/man" \( -name 'changelog*' -o -name '*.1' \) -exec gzip -9n {} + 2>/dev/null || true
  [ ! -d "$tree/usr/share/zsh" ] || mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
  local depends=$4
  if [ "$depends" = shlibs ]; then
    mkdir -p "$work/shlibs/debian" && touch "$work/shlibs/debian/control"
    depends=$(cd "$work/shlibs" && find "$tree" -type f \( -name llmperf -path '*/bin/*' -o -name 'lib*.so.*' \) \
      -exec dpkg-shlibdeps -O {} + 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
  fi
  cat >"$tree/DEBIAN/control" <<CONTROL
Package: $package
Version: $version-1
Section: $3
Priority: optional
Architecture: $architecture
Maintainer: $maintainer
Depends: $depends
${5:+Suggests: $5
}Installed-Size: $(find "$tree/usr" -type f -printf '%s\n' | awk '{ size += int(($1 + 1023) / 1024) } END { print size }')
Description: $(cat)
CONTROL
  (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  [ -z "$(find "$tree/usr" -name 'lib*.so.*')" ] || echo "activate-noawait ldconfig" >"$tree/DEBIAN/triggers"
  all_as_old_as_the_commit "$tree"
  # The last level packs once what the program and the shared library have in common; of the rest time counts more.
  dpkg-deb --root-owner-group -Zxz "-z${6:-1}" --build "$tree" "$out/${package}_$version-1_$architecture.deb" >/dev/null
}

debian_package llmperf program science shlibs "libdnnl2" 9 <<'DESCRIPTION'
performance model of language models on accelerators
 llmperf says how fast a language model (or a diffusion transformer for
 video) runs on a piece of hardware, what limits it and whether it fits, before
 anything is bought or deployed. It works offline and answers in milliseconds.
DESCRIPTION
headers=libyaml-cpp-dev
grep -qx 'LLMPERF_PORTABLE:BOOL=ON' "$build/CMakeCache.txt" || headers="libfmt-dev, $headers"
debian_package llmperf-dev library libdevel "$headers" <<'DESCRIPTION'
performance model of language models on accelerators (C++ library)
 Headers, static libraries and a CMake package of llmperf, for programs that
 make estimates themselves.
DESCRIPTION

wait "$made"
(cd "$out" && sha256sum llmperf*.deb llmperf-*.tar.gz $(ls llmperf-*.whl 2>/dev/null) llmperf-*.spdx.json >SHA256SUMS)
if [ -n "$check" ]; then
  "$root/scripts/package.sh" --build "$build" "$work/again" >/dev/null
  cmp "$out/SHA256SUMS" "$work/again/SHA256SUMS"
fi
ls -l "$out"
