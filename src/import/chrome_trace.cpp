// PyTorch's profiler writes operators of the CPU with the shapes of their arguments, and kernels of the device with
// their times. Both name the operator by "External id"; kernels of some versions only name the launch ("correlation"),
// which in turn names the operator. An operator may stand before or behind its kernels, so that they are matched when
// the file has been read.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "import/readers.h"
#include "import/torch_ops.h"
#include "import/trace_events.h"

namespace llmperf::import {
namespace {

using descriptor::Problems;

// "void at::native::kernel<float, 4>(int)" is at::native::kernel.
std::string kernel_type(std::string_view name) {
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    if (c == '<') ++depth;
    if (c == '(' && depth == 0 && !plain.empty() && plain != "void ") break;
    if (depth == 0) plain += c;
    if (c == '>' && depth > 0) --depth;
  }
  if (plain.starts_with("void ")) plain.erase(0, 5);
  constexpr std::size_t kLongest = 60;
  plain = std::string(trim(plain).substr(0, kLongest));
  return plain.empty() ? "unnamed" : plain;
}

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…)" is ncclDevKernel_AllReduce.
bool is_collective(std::string_view name) {
  const std::string lower = to_lower(name.substr(0, 40));
  return lower.starts_with("nccl") || lower.starts_with("rccl");
}
std::string collective_type(std::string_view name) {
  const std::size_t first = name.find('_');
  const std::size_t end = first == std::string_view::npos ? first : name.find_first_of("_(", first + 1);
  return kernel_type(name.substr(0, end));
}

Mapped collective_row(const TraceEvent& e) {
  if (e.collective.empty() || !e.ranks) return "no sizes";
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"allreduce", "all_reduce"},
                                                                      {"all_reduce", "all_reduce"},
                                                                      {"_allgather_base", "all_gather"},
                                                                      {"allgather", "all_gather"},
                                                                      {"all_gather", "all_gather"},
                                                                      {"allgather_into_tensor", "all_gather"},
                                                                      {"_reduce_scatter_base", "reduce_scatter"},
                                                                      {"reduce_scatter", "reduce_scatter"},
                                                                      {"reduce_scatter_tensor", "reduce_scatter"},
                                                                      {"all_to_all", "all_to_all"},
                                                                      {"alltoall", "all_to_all"},
                                                                      {"alltoall_base", "all_to_all"}};
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const auto& n) { return n.first == to_lower(e.collective); });
  if (found == std::end(kNames)) return kNoSuchOp;
  const auto kind = calibrate::collective_kind(found->second);
  const std::optional<std::int64_t> count = kind == graph::CollectiveKind::all_gather ? e.received : e.sent;
  const ElementType element = element_type(e.dtype);
  if (!count || *count <= 0 || !kind) return "no sizes";
  if (!element.dtype) return kNoElementType;
  const Bytes size{static_cast<double>(*count) * element.bits / 8};
  return calibrate::OpRow{std::string(found->second), *element.dtype,
                          calibrate::CollectiveShape{*kind, *e.ranks, size}};
}

Shape shape_of(const TraceValue& value) {
  Shape shape;
  for (const TraceValue& size : value.items) {
    if (!size.whole || *size.whole <= 0) return {};
    shape.push_back(*size.whole);
  }
  return shape;
}

TorchOp torch_op(const TraceEvent& e) {
  TorchOp op{.name = e.name, .inputs = {}, .concrete = {}};
  for (std::size_t i = 0; i < e.shapes.items.size(); ++i) {
    Tensor t;
    t.shape = shape_of(e.shapes.items[i]);
    if (i < e.types.items.size()) t.element = element_type(e.types.items[i].text);
    op.inputs.push_back(std::move(t));
  }
  for (const TraceValue& value : e.concrete.items) op.concrete.push_back(value.text);
  return op;
}

class ChromeTrace {
 public:
  ChromeTrace(Problems& problems, Collector& into) : problems_(&problems), into_(&into) {}

  void read(std::istream& stream) {
    read_trace_events(stream, *problems_, [&](TraceEvent& e) { take(e); });
    if (problems_->empty()) finish();
  }

 private:
  // What operators of one name, shapes and types are; a model runs the same few thousands of times.
  struct Kind {
    std::string type;
    Mapped mapped;
  };
  struct Launched {
    std::int64_t id;  // of the operator, or of the launch
    bool of_launch;
    double time;  // us
    std::uint32_t type;
    int line;
  };
  struct Run {  // of one operator
    double time = 0;
    int line = 0;
  };

  void take(const TraceEvent& e) {
    const std::string category = to_lower(e.category);
    if (category == "kernel") {
      take_kernel(e);
    } else if (category == "gpu_memcpy" || category == "gpu_memset") {
      if (const auto time = time_of(e)) add(kernel_type(e.name), Class::other, *time, "no kernel", e.line);
    } else if (!e.external_id) {
      return;
    } else if (category == "cpu_op" || category == "operator") {
      ops_[*e.external_id] = kind_of(e);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "xpu_runtime") {
      if (e.correlation) launches_[*e.correlation] = *e.external_id;
    }
  }

  void take_kernel(const TraceEvent& e) {
    const std::optional<Seconds> time = time_of(e);
    if (!time) return;
    if (is_collective(e.name)) {
      add(collective_type(e.name), Class::communication, *time, collective_row(e), e.line);
    } else if (e.in_graph) {
      add(kernel_type(e.name), Class::kernel, *time, "part of a captured graph: no shapes", e.line);
    } else if (e.external_id || e.correlation) {
      const auto [found, added] = type_index_.try_emplace(kernel_type(e.name), types_.size());
      if (added) types_.push_back(found->first);
      kernels_.push_back({e.external_id ? *e.external_id : *e.correlation, !e.external_id, time->value * 1e6,
                          static_cast<std::uint32_t>(found->second), e.line});
    } else {
      add(kernel_type(e.name), Class::kernel, *time, "no operator", e.line);
    }
  }

  std::optional<Seconds> time_of(const TraceEvent& e) {
    constexpr double kLongest = 1e12;  // us
    if (e.duration && *e.duration >= 0 && *e.duration < kLongest) return Seconds{*e.duration * 1e-6};
    problems_->add(e.line, e.column, "a kernel's \"dur\" is not a time in microseconds: " + quote(e.name));
    return std::nullopt;
  }

  std::uint32_t kind_of(const TraceEvent& e) {
    TorchOp op = torch_op(e);
    std::string key = op.name;
    for (const Tensor& t : op.inputs) {
      key += ';' + std::to_string(static_cast<int>(t.element.bits));
      key += t.element.dtype ? llmperf::name(*t.element.dtype) : "-";
      for (const std::int64_t size : t.shape) key += ',' + std::to_string(size);
    }
    for (const std::string& value : op.concrete) key += ';' + value;
    const auto [found, added] = kind_index_.try_emplace(std::move(key), static_cast<std::uint32_t>(kinds_.size()));
    if (added) kinds_.push_back({op.name, torch_row(op)});
    return found->second;
  }

  void finish() {
    std::map<std::int64_t, Run> runs;  // in the order of the operators: that of their numbers
    for (const Launched& k : kernels_) {
      std::optional<std::int64_t> op = k.id;
      if (k.of_launch) {
        const auto launch = launches_.find(k.id);
        op = launch == launches_.end() ? std::nullopt : std::optional(launch->second);
      }
      if (!op || !ops_.contains(*op)) {
        add(types_[k.type], Class::kernel, Seconds{k.time * 1e-6}, "no operator", k.line);
        continue;
      }
      Run& run = runs[*op];
      run.time += k.time;
      if (run.line == 0) run.line = k.line;
    }
    for (const auto& [id, run] : runs) {
      const Kind& kind = kinds_[ops_.at(id)];
      add(kind.type, Class::kernel, Seconds{run.time * 1e-6}, kind.mapped, run.line);
    }
  }

  void add(const std::string& type, Class of, Seconds time, Mapped mapped, int line) {
    into_->add({.type = type, .of = of, .time = time, .mapped = std::move(mapped), .line = line});
  }

  Problems* problems_;
  Collector* into_;
  std::unordered_map<std::int64_t, std::uint32_t> ops_;      // by external id: index into kinds_
  std::unordered_map<std::int64_t, std::int64_t> launches_;  // by correlation: external id
  std::vector<Kind> kinds_;
  std::unordered_map<std::string, std::uint32_t> kind_index_;
  std::vector<std::string> types_;
  std::unordered_map<std::string, std::size_t> type_index_;
  std::vector<Launched> kernels_;
};

}  // namespace

void read_chrome_trace(std::istream& stream, Problems& problems, Collector& into) {
  ChromeTrace(problems, into).read(stream);
}

}  // namespace llmperf::import
