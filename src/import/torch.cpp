// The operators of PyTorch, and of libraries that vLLM and others register there, by the arguments that its profiler
// records with record_shapes: tensors with shapes and types, and scalars as text. Results are not recorded. Arguments
// stand where the operators' schemas have them (native_functions.yaml of PyTorch; bindings of vLLM and of
// flash-attention).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <unordered_map>

#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "import/collector.h"
#include "import/kernels.h"

namespace llmperf::import {
namespace {

using graph::VectorKind;

struct TorchOp {
  std::string name;                   // "aten::mm"
  std::vector<Tensor> inputs;         // by argument; empty for what is no tensor
  std::vector<std::string> concrete;  // by argument, as text: "True", "[4096]"; of tensors empty
};

const Tensor& input(const TorchOp& op, std::size_t i) {
  static const Tensor kAbsent;
  return i < op.inputs.size() ? op.inputs[i] : kAbsent;
}

// A flag among the arguments; nothing when the profiler did not record it.
std::optional<bool> flag(const TorchOp& op, std::size_t i) {
  if (i >= op.concrete.size()) return std::nullopt;
  const std::string text = to_lower(trim(op.concrete[i]));
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

// The product of two inputs. `turned`: the second is [n, k] (aten::linear).
Mapped product_row(const Tensor& a, const Tensor& b, bool turned) {
  if (!elements(a) || !elements(b)) return kNoShapes;
  if (a.shape.size() < 2 || b.shape.size() < 2) return kNoProduct;
  if (a.element.dtype != b.element.dtype) return "operands of different types";
  const std::size_t last = b.shape.size() - 1;
  const std::int64_t inner = b.shape[turned ? last : last - 1];
  if (a.shape.back() != inner) return kNoProduct;
  Shape out = a.shape;
  if (b.shape.size() > 2) {
    if (a.shape.size() > b.shape.size()) return kOtherShapes;
    out = b.shape;
    out[last - 1] = a.shape[a.shape.size() - 2];
  }
  out.back() = b.shape[turned ? last - 1 : last];
  return gemm_row(a, b, out, a.element.dtype);
}
Mapped mm(const TorchOp& op) { return product_row(input(op, 0), input(op, 1), false); }
Mapped linear(const TorchOp& op) { return product_row(input(op, 0), input(op, 1), true); }
Mapped addmm(const TorchOp& op) { return product_row(input(op, 1), input(op, 2), false); }

// [batch, heads, tokens, head_dim] or [batch, tokens, heads, head_dim]; `Causal`: the argument that says so.
template <HeadLayout Layout, std::size_t Causal>
Mapped attention(const TorchOp& op) {
  const std::optional<bool> causal = flag(op, Causal);
  const Tensor& query = input(op, 0);
  const std::size_t tokens = Layout == HeadLayout::head_major ? 2 : 1;
  if (query.shape.size() != 4) return query.shape.empty() ? kNoShapes : "lengths are not in the shapes";
  if (!causal && query.shape[tokens] != 1) return "causal or not is not in the trace";
  return attention_row({.query = query, .key = input(op, 1), .causal = causal}, Layout);
}

// Sequences of all lengths behind each other have offsets as argument 3.
template <std::size_t Causal>
Mapped packed_attention(const TorchOp& op) {
  if (!input(op, 3).shape.empty()) return "lengths are not in the shapes";
  return attention<HeadLayout::token_major, Causal>(op);
}

template <VectorKind Kind, std::size_t Argument>
Mapped rows_of(const TorchOp& op) {
  return vector_row(Kind, input(op, Argument));
}

// Norms over the last dimension alone; their weight says how many there are.
template <VectorKind Kind>
Mapped norm(const TorchOp& op) {
  const Tensor& weight = input(op, 2);
  if (weight.shape.size() > 1) return kOtherShapes;
  return vector_row(Kind, input(op, 0));
}

// The larger of two shapes that are broadcast, as numpy does; nothing when they are not.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

// The result of element-wise work: the inputs broadcast, in the widest of their types.
std::optional<Tensor> result_of(std::span<const Tensor* const> inputs) {
  std::optional<Tensor> out;
  for (const Tensor* t : inputs) {
    if (!out) {
      out = *t;
      continue;
    }
    const std::optional<Shape> shape = broadcast(out->shape, t->shape);
    if (!shape) return std::nullopt;
    if (t->element.bits > out->element.bits) out->element = t->element;
    out->shape = *shape;
  }
  return out;
}

std::vector<const Tensor*> tensors(const TorchOp& op) {
  std::vector<const Tensor*> list;
  for (const Tensor& t : op.inputs) {
    if (!t.shape.empty()) list.push_back(&t);
  }
  return list;
}

Mapped elementwise(const TorchOp& op) {
  std::vector<const Tensor*> all = tensors(op);
  const std::optional<Tensor> out = result_of(all);
  if (!out) return all.empty() ? kNoShapes : kOtherShapes;
  all.push_back(&*out);
  return elementwise_row(all);
}

template <VectorKind Kind>
Mapped binary(const TorchOp& op) {
  const std::vector<const Tensor*> all = tensors(op);
  if (all.size() != 2) return elementwise(op);
  const std::optional<Tensor> out = result_of(all);
  return out ? binary_row(Kind, all, *out) : Mapped(kOtherShapes);
}

// The source is read and the destination written, or the other way about.
Mapped copy(const TorchOp& op) {
  const std::array<const Tensor*, 2> both = {&input(op, 0), &input(op, 1)};
  return elementwise_row(both);
}
Mapped clone(const TorchOp& op) {
  const std::array<const Tensor*, 2> both = {&input(op, 0), &input(op, 0)};
  return elementwise_row(both);
}

Mapped embedding(const TorchOp& op) {
  const Tensor& table = input(op, 0);
  const Tensor& indices = input(op, 1);
  if (table.shape.size() != 2) return kNoShapes;
  Tensor out = table;
  out.shape = indices.shape;
  out.shape.push_back(table.shape.back());
  return gather_row(table, indices, out);
}

// index_select(self, dim, index): rows of the first dimension.
Mapped index_select(const TorchOp& op) {
  if (op.concrete.size() < 2 || trim(op.concrete[1]) != "0") return "not rows of a table";
  TorchOp rows = op;
  rows.inputs = {input(op, 0), input(op, 2)};
  return embedding(rows);
}

// _C::silu_and_mul(out, gate and up): the result is half as wide.
Mapped gated(const TorchOp& op) { return vector_row(VectorKind::gated_activation, input(op, 0)); }

// _C::rotary_embedding(positions, query, key, head_size, …): [tokens, heads x head_size] each.
Mapped rope(const TorchOp& op) {
  const std::optional<std::int64_t> size =
      op.concrete.size() > 3 ? parse_int(trim(op.concrete[3])) : std::optional<std::int64_t>();
  const std::optional<std::int64_t> tokens = elements(input(op, 0));
  const std::optional<std::int64_t> q = elements(input(op, 1));
  const std::optional<std::int64_t> k = elements(input(op, 2));
  if (!tokens || !q || !k || !size || *size <= 0) return kNoShapes;
  if (*size > *q || *q % (*tokens * *size) != 0 || *k % (*tokens * *size) != 0) return kOtherShapes;
  if (!input(op, 1).element.dtype) return kNoElementType;
  return measure::row_of(*input(op, 1).element.dtype, measure::VectorShape{.layer = "rope",
                                                                           .tokens = (*q + *k) / *size,
                                                                           .width = *size,
                                                                           .heads = *q / *tokens / *size,
                                                                           .kv_heads = *k / *tokens / *size});
}

Mapped cache(const TorchOp& op) { return cache_row(input(op, 0)); }

struct OperatorRule {
  std::string_view names;  // without the underscore of an operator in place
  Mapped (*map)(const TorchOp& op);
};
constexpr OperatorRule kOperatorRules[] = {
    {"aten::mm|aten::bmm|aten::matmul|aten::_int_mm|aten::_scaled_mm", mm},
    {"aten::linear", linear},
    {"aten::addmm|aten::baddbmm|aten::_addmm_activation", addmm},
    {"aten::scaled_dot_product_attention", attention<HeadLayout::head_major, 5>},
    {"aten::_scaled_dot_product_flash_attention", attention<HeadLayout::head_major, 4>},
    {"aten::_scaled_dot_product_efficient_attention|aten::_scaled_dot_product_cudnn_attention",
     attention<HeadLayout::head_major, 6>},
    {"aten::_flash_attention_forward", packed_attention<8>},
    {"flash_attn::_flash_attn_forward", attention<HeadLayout::token_major, 5>},
    {"aten::layer_norm|aten::native_layer_norm", norm<VectorKind::layer_norm>},
    {"aten::rms_norm|aten::_fused_rms_norm", norm<VectorKind::rms_norm>},
    {"_C::rms_norm", rows_of<VectorKind::rms_norm, 1>},
    {"_C::fused_add_rms_norm", rows_of<VectorKind::add_rms_norm, 0>},
    {"_C::silu_and_mul|_C::gelu_and_mul|_C::gelu_tanh_and_mul", gated},
    {"_C::rotary_embedding", rope},
    {"_C_cache_ops::reshape_and_cache|_C_cache_ops::reshape_and_cache_flash", cache},
    {"aten::silu|aten::gelu|aten::relu", rows_of<VectorKind::activation, 0>},
    {"aten::_softmax|aten::softmax", rows_of<VectorKind::softmax, 0>},
    {"aten::add", binary<VectorKind::add>},
    {"aten::mul", binary<VectorKind::multiply>},
    {"aten::embedding", embedding},
    {"aten::index_select", index_select},
    {"aten::copy", copy},
    {"aten::clone", clone},
    {"aten::sub|aten::div|aten::neg|aten::pow|aten::exp|aten::sqrt|aten::rsqrt|aten::sigmoid|aten::tanh|aten::cos|aten:"
     ":sin|aten::clamp|aten::masked_fill|aten::reciprocal",
     elementwise},
};

Mapped torch_row(const TorchOp& op) {
  std::string_view name = op.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  for (const OperatorRule& rule : kOperatorRules) {
    if (is_among(name, rule.names)) return op.inputs.empty() ? kNoShapes : rule.map(op);
  }
  return kNoSuchOp;
}

// ---- The events of a file in the Chrome Trace Event format, one after the other: a trace may be larger than memory.

using Json = nlohmann::json;

// A complete event ("ph": "X") and the arguments that PyTorch's profiler gives it.
struct TraceEvent {
  std::string name;
  std::string category;
  std::optional<double> duration;  // us
  std::optional<std::int64_t> external_id;
  std::optional<std::int64_t> correlation;
  const Json& arguments;  // kArguments: lists of shapes, types and values, what a collective sends
  int line = 0;
  int column = 0;  // of its end
};

// Hands a stream on and counts lines on the way.
class CountingBuffer : public std::streambuf {
 public:
  explicit CountingBuffer(std::streambuf& from) : from_(&from) {
    setg(data_.data(), data_.data(), data_.data());
    counted_ = gptr();
  }

  int line() {
    count();
    return line_;
  }
  int column() {
    count();
    return column_;
  }

 protected:
  int_type underflow() override {
    count();
    const std::streamsize got = from_->sgetn(data_.data(), static_cast<std::streamsize>(data_.size()));
    setg(data_.data(), data_.data(), data_.data() + std::max<std::streamsize>(got, 0));
    counted_ = gptr();
    return got > 0 ? traits_type::to_int_type(data_[0]) : traits_type::eof();
  }

 private:
  // Every character once: positions are asked for at every event.
  void count() {
    for (; counted_ != gptr(); ++counted_) {
      ++column_;
      if (*counted_ == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  }

  std::streambuf* from_;
  const char* counted_ = nullptr;
  std::array<char, 1 << 16> data_;
  int line_ = 1;
  int column_ = 1;
};

// nlohmann's parser asks what to keep: the few members of an event that matter, and of a hostile file's no more than
// any operator has; the event itself is taken and dropped. Positions are those the stream has been read to.

const Json& member(const Json& object, const char* key) {
  static const Json kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_number() ? value.dump() : std::string();
}
std::optional<std::int64_t> whole_of(const Json& value) {
  const bool whole = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX : value.is_number_integer();
  return whole ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}
const Json& list_of(const Json& value) {
  static const Json kNone;
  return value.is_array() ? value : kNone;
}

constexpr std::array<std::string_view, 5> kMembers = {"name", "cat", "ph", "dur", "args"};
// Versions of the profiler differ in capitals.
constexpr std::array<std::string_view, 13> kArguments = {
    "External id", "external id",     "correlation",     "graph node id", "Input Dims",     "Input dims", "Input type",
    "dtype",       "Concrete Inputs", "Collective name", "In msg nelems", "Out msg nelems", "Group size"};

using Event = Json::parse_event_t;

// Calls `take` for every complete event of a list of events or of {"traceEvents": […]}. What is not JSON, and a file
// that holds no events, is a problem.
void read_trace_events(std::istream& stream, descriptor::Problems& problems,
                       const std::function<void(const TraceEvent&)>& take) {
  constexpr int kMostNested = 3;
  constexpr std::size_t kMostValues = 4096;
  constexpr std::size_t kMostText = 4096;
  struct Full {};
  CountingBuffer buffer(*stream.rdbuf());
  std::istream counted(&buffer);
  int events = 0;  // how deep they stand; 0: outside of their list
  bool found = false;
  bool events_next = false;
  std::size_t kept = 0;  // values of an event
  const auto keep = [&](int depth, Event what, Json& value) {
    switch (what) {
      case Event::key:
        if (events == 0) return events_next = depth == 1 && value == "traceEvents";
        return depth == events + 1 ? contains(kMembers, value.get_ref<const std::string&>())
                                   : contains(kArguments, value.get_ref<const std::string&>());
      case Event::array_start:
        if (events > 0) return depth > events && depth < events + 2 + kMostNested;
        if (depth > 1 || (depth == 1 && !events_next)) return false;
        events = depth + 1;
        return found = true;
      case Event::array_end:
        if (depth + 1 == events) events = 0;
        return true;
      case Event::object_start:
        if (depth == events) kept = 0;
        return events == 0 || depth < events + 2;
      case Event::object_end: {
        if (events == 0 || depth != events) return true;
        if (text_of(member(value, "ph")) != "X") return false;
        const Json& args = member(value, "args");
        const Json& duration = member(value, "dur");
        take({.name = text_of(member(value, "name")),
              .category = to_lower(text_of(member(value, "cat"))),
              .duration = duration.is_number() ? std::optional(duration.get<double>()) : std::nullopt,
              .external_id = whole_of(member(args, args.contains("External id") ? "External id" : "external id")),
              .correlation = whole_of(member(args, "correlation")),
              .arguments = args,
              .line = buffer.line(),
              .column = buffer.column() - 1});
        if (problems.full()) throw Full();
        return false;
      }
      case Event::value:
        if (value.is_string() && value.get_ref<const std::string&>().size() > kMostText) {
          value.get_ref<std::string&>().resize(kMostText);
        }
        return depth > events && ++kept <= kMostValues;
    }
    return true;
  };
  try {
    const Json rest = Json::parse(counted, keep);  // of which nothing is left
    if (problems.empty() && !found) {
      problems.add(1, 1, "holds no events: neither a list nor an object with \"traceEvents\"");
    }
  } catch (const Full&) {
    return;
  } catch (const Json::exception& error) {
    std::string_view message = error.what();
    const std::size_t dash = message.find(" - ");
    if (dash != std::string_view::npos) message.remove_prefix(dash + 3);
    message = message.substr(0, message.find("; last read: "));
    const bool truncated = message.find("unexpected end of input") != std::string_view::npos ||
                           message.find("missing closing quote") != std::string_view::npos;
    problems.add(buffer.line(), std::max(buffer.column() - 1, 1),
                 fmt::format("not valid JSON: {}", message.substr(0, 200)), truncated ? "is the file truncated?" : "");
  }
}

// ---- PyTorch's profiler writes operators of the CPU with the shapes of their arguments, and kernels of the device
// with their times. Both name the operator by "External id"; kernels of some versions only name the launch
// ("correlation"), which in turn names the operator. An operator may stand before or behind its kernels, so that they
// are matched when the file has been read.

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

Mapped collective_of(const TraceEvent& e) {
  const std::string collective = text_of(member(e.arguments, "Collective name"));
  const std::optional<std::int64_t> ranks = whole_of(member(e.arguments, "Group size"));
  if (collective.empty() || !ranks) return "no sizes";
  std::string name = collective_in(collective);
  // Several collectives in one kernel, or one of sparse tensors or of nothing, are no measurement of one.
  for (const char* other : {"coalesced", "sparse", "barrier"}) {
    if (collective.find(other) != std::string::npos) name.clear();
  }
  const std::optional<std::int64_t> count =  // of elements
      whole_of(member(e.arguments, name == "all_gather" ? "Out msg nelems" : "In msg nelems"));
  if (!measure::collective_kind(name)) return kNoSuchOp;
  if (!count || *count <= 0) return "no sizes";
  const ElementType element = element_type(text_of(member(e.arguments, "dtype")));
  return collective_row(name, *ranks, static_cast<double>(*count) * element.bits / 8, element.dtype);
}

Shape shape_of(const Json& value) {
  Shape shape;
  for (const Json& item : list_of(value)) {
    const std::optional<std::int64_t> size = whole_of(item);
    if (!size || *size <= 0) return {};
    shape.push_back(*size);
  }
  return shape;
}

TorchOp torch_op(const TraceEvent& e) {
  TorchOp op{.name = e.name, .inputs = {}, .concrete = {}};
  const Json& shapes = list_of(member(e.arguments, e.arguments.contains("Input Dims") ? "Input Dims" : "Input dims"));
  const Json& types = list_of(member(e.arguments, "Input type"));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Tensor t;
    t.shape = shape_of(shapes[i]);
    if (i < types.size()) t.element = element_type(text_of(types[i]));
    op.inputs.push_back(std::move(t));
  }
  for (const Json& value : list_of(member(e.arguments, "Concrete Inputs"))) op.concrete.push_back(text_of(value));
  return op;
}

class ChromeTrace {
 public:
  ChromeTrace(Problems& problems, Collector& into) : problems_(&problems), into_(&into) {}

  void read(std::istream& stream) {
    read_trace_events(stream, *problems_, [&](const TraceEvent& e) { take(e); });
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
    const std::string& category = e.category;
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
      add(collective_type(e.name), Class::communication, *time, collective_of(e), e.line);
    } else if (whole_of(member(e.arguments, "graph node id")).value_or(0) != 0) {
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
