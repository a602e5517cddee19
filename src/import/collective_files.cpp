#include "import/collective_files.h"

#include <algorithm>

#include "base/text.h"

namespace llmperf::import {

std::string collective_in(std::string_view name) {
  // In letters alone: all_reduce, allreduce, AllReduce and all-reduce are one. Longer names stand before their parts.
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"alltoallv", "alltoallv"},  {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},
      {"sendrecv", "sendrecv"},    {"hypercube", "hypercube"},  {"scatter", "scatter"},
      {"gather", "gather"},        {"reduce", "reduce"}};
  std::string letters;
  for (const char c : to_lower(name)) {
    if (c >= 'a' && c <= 'z') letters += c;
  }
  for (const auto& [text, collective] : kNames) {
    if (letters.find(text) != std::string::npos) return std::string(collective);
  }
  return {};
}

std::string collective_of(const Options& options, descriptor::Problems& problems, int line) {
  if (!options.collective.empty()) return options.collective;
  const std::string& file = problems.file();
  const std::string found = collective_in(std::string_view(file).substr(file.rfind('/') + 1));
  if (found.empty()) {
    problems.add(line, 1, "does not say which collective was measured",
                 "--op all_reduce, all_gather, reduce_scatter or all_to_all");
  }
  return found;
}

Mapped collective_row(const std::string& collective, std::int64_t ranks, double bytes, std::optional<Dtype> dtype) {
  const std::optional<graph::CollectiveKind> kind = calibrate::collective_kind(collective);
  if (!kind) return kNoSuchOp;
  if (!dtype) return kNoElementType;
  if (!(bytes > 0)) return "nothing sent";
  return calibrate::OpRow{collective, *dtype, calibrate::CollectiveShape{*kind, ranks, Bytes{bytes}}};
}

}  // namespace llmperf::import
