#include "sweep/row.h"

#include <algorithm>
#include <iterator>

namespace llmperf::sweep {

Better better(std::string_view column) {
  constexpr std::string_view kInputs[] = {"devices_per_node", "host_capacity_bytes", "capacity_bytes"};
  if (std::find(std::begin(kInputs), std::end(kInputs), column) != std::end(kInputs)) return Better::unsaid;
  constexpr std::string_view kHigher[] = {"largest_batch", "longest_context_tokens", "fits", "mfu"};
  if (std::find(std::begin(kHigher), std::end(kHigher), column) != std::end(kHigher)) return Better::higher;
  if (column.find("_per_second") != std::string_view::npos) return Better::higher;
  const bool spent =
      column.starts_with("cost_") || column.starts_with("request_cost_") || column.starts_with("joules_");
  if (spent || column.ends_with("_s") || column.ends_with("_bytes") || column == "devices") return Better::lower;
  return Better::unsaid;
}

}  // namespace llmperf::sweep
