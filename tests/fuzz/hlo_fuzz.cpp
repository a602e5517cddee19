// StableHLO and MHLO programs: a text that is accepted must lower to ops whose work is a number, and one that is
// refused is refused at a place in it.
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "cost/work.h"
#include "fuzz.h"
#include "program/blocks.h"
#include "program/flatten.h"
#include "program/lower.h"
#include "program/partition.h"

using namespace llmperf;
namespace hlo = llmperf::program;

namespace {

void check_work(const hlo::Program& program, hlo::Fusion fusion, std::int64_t devices) {
  const hlo::Lowered lowered = hlo::lower(program, {.fusion = fusion, .devices = devices});
  for (const hlo::LoweredOp& lowered_op : lowered.ops) {
    const cost::Work work = cost::work_of(lowered_op.op);
    for (const double x : {work.matrix.value, work.vector.value, work.bytes().value, work.network.value}) {
      if (!std::isfinite(x) || x < 0) std::abort();
    }
    if (lowered_op.op.count <= 0 || lowered_op.nodes.empty()) std::abort();
  }
  const double intermediate = lowered.intermediate.value;
  if (!std::isfinite(intermediate) || intermediate < 0) std::abort();
}

}  // namespace

void fuzz_hlo(std::string_view text) {
  try {
    const hlo::Module module = hlo::parse_text("fuzz.mlir", std::string(text));
    hlo::Program program = hlo::flatten(module, {.max_nodes = 5000});
    hlo::recover_blocks(program);
    const std::int64_t devices = hlo::partition(program, {}).devices;
    hlo::recover_blocks(program);
    check_work(program, hlo::Fusion::none, devices);
    check_work(program, hlo::Fusion::elementwise, devices);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input || error.diagnostics().empty()) std::abort();
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      if (diagnostic.where.line <= 0 || diagnostic.where.column <= 0) std::abort();
    }
  }
}
