#!/usr/bin/env bash
# Changes constants of the cost model, kernels and estimates one at a time, and asks the unit tests whether they notice.
# Usage: scripts/mutate.sh [--list] [NUMBER|NAME ...]      all of them without arguments
#
# Works on a copy of the tree, uncommitted changes included, in $MUTATE_DIR (kept, so that the next run builds little) or
# in a temporary folder. Only unit tests count: golden files and documents do not run. Exit status 1: a change survived;
# 2: a change no longer matches one place of its file, or the tests fail without any.
set -euo pipefail
cd "$(dirname "$0")/.."

# name :: file :: text that is there once :: what takes its place
mutations=$(grep -v '^$' <<'LIST'
adam_flops :: src/graph/vector_op.h :: {adam, "adam", 12 :: {adam, "adam", 10
attention_backward_time :: src/mapper/roofline/efficiency.cpp :: attention.backward ? 2.5 * :: attention.backward ? 2.0 *
usual_cores :: src/mapper/roofline/efficiency.cpp :: kUsualCores = 100 :: kUsualCores = 64
attention_backward_products :: src/cost/work.cpp :: (3 * qk_dim + 2 * v_dim) :: (2 * qk_dim + 2 * v_dim)
append_overlap :: src/mapper/roofline/attention_kernel.cpp :: kOverlap = 4 :: kOverlap = 2
cached_share :: src/mapper/roofline/efficiency.cpp :: std::clamp(2 - 2 * passing :: std::clamp(1 - 1 * passing
launch_bound :: src/mapper/roofline/efficiency.cpp :: launch > 0.5 * t.total :: launch > 0.3 * t.total
rms_norm_flops :: src/graph/vector_op.h :: {rms_norm, "rms_norm", 4 :: {rms_norm, "rms_norm", 3
rope_flops :: src/graph/vector_op.h :: {rope, "rope", 3 :: {rope, "rope", 2
mask_flops :: src/graph/vector_op.h :: {mask, "mask", 2 :: {mask, "mask", 1
dropout_flops :: src/graph/vector_op.h :: {dropout, "dropout", 2 :: {dropout, "dropout", 1
softmax_flops :: src/graph/vector_op.h :: {softmax, "softmax", 5 :: {softmax, "softmax", 4
cache_unpacking :: src/cost/work.cpp :: bits(activation) ? 2 : 0 :: bits(activation) ? 1 : 0
backward_softmax :: src/cost/work.cpp :: w.vector = 2 * w.vector :: w.vector = 3 * w.vector
backward_reads :: src/cost/work.cpp :: queries + 2 * results : queries :: queries + 1 * results : queries
network_latency :: src/cost/cluster.cpp :: kNetworkLatency{5e-6} :: kNetworkLatency{1e-5}
network_rate :: src/cost/cluster.cpp :: kNetworkRate{12.5e9} :: kNetworkRate{25e9}
cards_per_server :: src/cost/cluster.cpp :: kCardsPerServer = 8 :: kCardsPerServer = 4
pcie_latency :: src/cost/cluster.cpp :: Topology::pcie_tree ? 2e-6 :: Topology::pcie_tree ? 4e-6
mesh_rings :: src/cost/collective.cpp :: x_.ranks == 6 ? n - 2 :: x_.ranks == 6 ? n - 1
posted_steps :: src/cost/collective.cpp :: kPostedSteps = 4 :: kPostedSteps = 3
pipeline_fill :: src/cost/collective.cpp :: 2 * std::sqrt( :: 1 * std::sqrt(
blocks_per_core :: src/mapper/roofline/attention_kernel.cpp :: kBlocksPerCore = 2 :: kBlocksPerCore = 1
most_splits :: src/mapper/roofline/attention_kernel.cpp :: kMaxSplits = 128 :: kMaxSplits = 64
full_enough :: src/mapper/roofline/attention_kernel.cpp :: kFullEnough = 0.8 :: kFullEnough = 0.9
good_enough :: src/mapper/roofline/attention_kernel.cpp :: kGoodEnough = 0.85 :: kGoodEnough = 0.5
partial_results :: src/mapper/roofline/attention_kernel.cpp :: kPartialBytes = 4 :: kPartialBytes = 2
product_depth :: src/mapper/roofline/gemm_kernel.cpp :: kDepth = 32 :: kDepth = 16
partial_sums :: src/mapper/roofline/gemm_kernel.cpp :: kPartBytes = 8 :: kPartBytes = 4
few_rows :: src/mapper/roofline/gemm_kernel.cpp :: kSmallRows = 64 :: kSmallRows = 32
head_granule :: src/mapper/roofline/attention_kernel.cpp :: kHeadGranule = 32 :: kHeadGranule = 64
append_block :: src/mapper/roofline/attention_kernel.cpp :: kBlockElements = 512 :: kBlockElements = 256
collective_calls :: src/mapper/roofline/step_overhead.cpp :: kCollectiveCalls = 5 :: kCollectiveCalls = 3
vector_rows :: src/mapper/roofline/gemm_kernel.cpp :: kVectorRows = 8 :: kVectorRows = 16
cache_kept :: src/mapper/roofline/gemm_kernel.cpp :: kCacheKept = 0.4 :: kCacheKept = 0.6
awq_idle :: src/mapper/roofline/gemm_kernel.cpp :: return 0.5 * d.cores :: return 1.0 * d.cores
exchange_blocks :: src/estimate/training.cpp :: kExchangeBlocks = 24 :: kExchangeBlocks = 12
gathers_of_zero3 :: src/estimate/training.cpp :: pipelined ? 1 : 2 * times :: pipelined ? 1 : 1 * times
model_flops :: src/estimate/training.cpp :: (3 * d(e.scenario.global_batch)) :: (2 * d(e.scenario.global_batch))
copied_weights :: src/estimate/training.cpp :: VectorKind::add, 32, weight_bits_ :: VectorKind::add, 16, weight_bits_
LIST
)
if [[ ${1-} == --list ]]; then
  cut -d' ' -f1 <<<"$mutations" | nl
  exit
fi

# The folder that a file is in: what only tests farther away notice is not guarded where it stands.
folder_of() { cut -d/ -f2 <<<"$1"; }

dir=${MUTATE_DIR-$(mktemp -d)}
[[ -n ${MUTATE_DIR-} ]] || trap 'rm -rf "$dir"' EXIT
rm -rf "$dir/tree"
mkdir -p "$dir/tree"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read |
  tar --extract --directory="$dir/tree"
# What the run before had changed was built from the change, so that it has to look newer than that.
if [[ -f $dir/changed ]]; then while read -r file; do touch "$dir/tree/$file"; done <"$dir/changed"; fi
launcher=$(command -v ccache || true)
cmake -S "$dir/tree" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS=-O0 -DLLMPERF_BENCHMARKS=OFF \
  -DLLMPERF_INSTALL=OFF -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$dir/log"

build() { cmake --build "$dir/build" --target test_estimates >"$dir/log" 2>&1 || { tail -n 20 "$dir/log"; exit 2; }; }
# The search for mappings on arrays of tiles takes nothing from these files, and long.
passes() {
  local tests=("[tests/$1]~[.]") source
  if [[ $1 == mapper ]]; then
    tests=()
    for source in "$dir"/tree/tests/mapper/*_test.cpp; do
      [[ $source == */tile_* ]] || tests+=("[tests/$1][#$(basename "$source" .cpp)]")
    done
  fi
  (IFS=, && "$dir/build/tests/test_estimates" --abort --filenames-as-tags "${tests[*]}" >"$dir/log" 2>&1)
}

build
for folder in graph cost mapper estimate; do
  passes "$folder" || { tail -n 20 "$dir/log"; echo "the tests of $folder fail without any change"; exit 2; }
done
: >"$dir/changed"
number=0 survivors=0 stale=0
while read -r line; do
  number=$((number + 1))
  name=${line%% *}
  if [[ $# -gt 0 && " $* " != *" $number "* && " $* " != *" $name "* ]]; then continue; fi
  file=$(awk -F ' :: ' '{print $2}' <<<"$line")
  kept=$(mktemp -p "$dir")
  cp "$dir/tree/$file" "$kept"
  echo "$file" >>"$dir/changed"
  if ! python3 - "$dir/tree/$file" "$line" <<'PYTHON'
import sys
path, line = sys.argv[1:]
old, new = line.split(" :: ")[2:]
text = open(path, encoding="utf-8").read()
if text.count(old) != 1:
    sys.exit(1)
open(path, "w", encoding="utf-8").write(text.replace(old, new))
PYTHON
  then
    printf '%2d %-28s stale: its text is not there once\n' "$number" "$name"
    stale=$((stale + 1))
    rm "$kept"
    continue
  fi
  folder=$(folder_of "$file")
  build
  if passes "$folder"; then
    printf '%2d %-28s SURVIVED\n' "$number" "$name"
    survivors=$((survivors + 1))
  else
    printf '%2d %-28s killed by tests of %s\n' "$number" "$name" "$folder"
  fi
  cp "$kept" "$dir/tree/$file"
  rm "$kept"
done <<<"$mutations"
echo "$survivors survived, $stale stale"
[[ $stale -eq 0 ]] || exit 2
[[ $survivors -eq 0 ]]
