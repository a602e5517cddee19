#!/usr/bin/env bash
# Rehearses a user's first day: the README's two commands, on a Debian 12 that has nothing else, of the newest commit (and what is not
# committed yet, where git follows it). FOLDER becomes that system, some 4 GB; one that is there already is used again, with what an earlier
# rehearsal installed in it. The environment is empty but for PATH, HOME and LLMPERF_*.
# Usage, as root: scripts/try_bare.sh FOLDER [WORD of ctest]…      (wants debootstrap; half an hour on two cores)
set -euo pipefail
folder=${1:?usage: try_bare.sh FOLDER [WORD of ctest]…}
shift
root=$(cd "$(dirname "$0")/.." && pwd)

if [ ! -e "$folder/etc/debian_version" ]; then
  debootstrap --variant=minbase bookworm "$folder" >/dev/null
fi
# How this machine finds others and whom it trusts is no part of what is tried.
cp /etc/resolv.conf "$folder/etc/resolv.conf"
mkdir -p "$folder/usr/local/share/ca-certificates"
find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$folder/usr/local/share/ca-certificates" {} +
# As an archive holds it: without a repository. In /src, a path so short that it occurs in any program.
rm -rf "$folder/src" && mkdir "$folder/src"
git -C "$root" ls-files -z | (cd "$root" && xargs -0 sh -c 'for name; do [ ! -e "$name" ] || printf "%s\0" "$name"; done' files) |
  tar -C "$root" --null --files-from=- -cf - | tar -C "$folder/src" --no-same-owner -xf -

words=$(printf ' %q' "$@")
exec unshare --mount --pid --fork /bin/sh -euc '
  folder=$1 words=$2
  mount -t proc proc "$folder/proc"
  mkdir -p "$folder/dev/shm" "$folder/dev/pts"
  mount -t tmpfs tmpfs "$folder/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$folder/dev/pts"  # a test looks at a terminal
  exec chroot "$folder" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    /bin/bash -euc "cd /src; scripts/quickstart.sh; scripts/test.sh $words"
' try_bare "$folder" "$words"
