#!/usr/bin/env bash
# Installs the packages of FOLDER in systems that have nothing else, unpacks the archive there, and runs an estimate with each.
# Usage, as root: scripts/try_packages.sh FOLDER ROOT…     (ROOT: debootstrap --variant=minbase bookworm ROOT)
set -euo pipefail
folder=${1:?usage: try_packages.sh FOLDER ROOT…}
shift
words="estimate --model qwen-7b --hw rtx4090"
for root in "$@"; do
  here=$root/tmp/llmperf
  rm -rf "$here" && mkdir -p "$here"
  cp "$folder"/llmperf_*.deb "$folder"/llmperf-*.tar.gz "$here"
  # Without a network: what the package depends on has to be there already.
  system=$(. "$root/etc/os-release" && echo "$PRETTY_NAME")
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive /bin/sh -euc "
    dpkg -i /tmp/llmperf/llmperf_*.deb >/dev/null
    /usr/bin/llmperf $words >/tmp/llmperf/installed.txt
    cd /tmp/llmperf
    start=\$(date +%s%N)
    tar xf llmperf-*.tar.gz && llmperf-*/bin/llmperf $words >unpacked.txt
    end=\$(date +%s%N)
    cmp installed.txt unpacked.txt
    test -e /usr/lib/libllmperf.so
    dpkg --purge llmperf >/dev/null
    echo \"$system: \$(llmperf-*/bin/llmperf --version), \$(((end - start) / 1000000)) ms from the archive to the estimate\""
  rm -rf "$here"
done
