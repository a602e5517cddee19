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

#include "base/number.h"
#include "base/text.h"
#include "import/collector.h"
#include "import/kernels.h"

namespace llmperf::import {
namespace {

using graph::VectorKind;
using measure::OpRow;

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
  return OpRow{"vector:rope", *input(op, 1).element.dtype,
               measure::VectorShape{.layer = "rope",
                                    .tokens = (*q + *k) / *size,
                                    .width = *size,
                                    .heads = *q / *tokens / *size,
                                    .kv_heads = *k / *tokens / *size}};
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

// An argument of an event: a text or number, or a list of such.
struct TraceValue {
  std::string text = {};                   // of a string or a number
  std::optional<std::int64_t> whole = {};  // of a number without a fraction
  bool list = false;
  std::vector<TraceValue> items = {};
};

// A complete event ("ph": "X") and the arguments that PyTorch's profiler gives it.
struct TraceEvent {
  std::string name;
  std::string category;
  std::optional<double> duration;  // us
  std::optional<std::int64_t> external_id;
  std::optional<std::int64_t> correlation;
  bool in_graph = false;  // launched by the replay of a captured graph
  TraceValue shapes;      // "Input Dims"
  TraceValue types;       // "Input type"
  TraceValue concrete;    // "Concrete Inputs"
  // Of collectives.
  std::string collective;
  std::string dtype;
  std::optional<std::int64_t> sent;  // elements
  std::optional<std::int64_t> received;
  std::optional<std::int64_t> ranks;
  int line = 0;
  int column = 0;  // of its end
};

// nlohmann's SAX parser says what comes next; a small state machine keeps the few members of an event that matter
// and skips the rest, however large. Positions are those the stream has been read to.

using Json = nlohmann::json;
using Value = TraceValue;

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

// Members of an event, and of its "args".
enum class Member : unsigned char { none, skipped, args, name, category, phase, duration, argument };

class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(CountingBuffer& buffer, descriptor::Problems& problems, const std::function<void(TraceEvent&)>& take)
      : buffer_(&buffer), problems_(&problems), take_(&take) {}

  bool found_events() const { return found_; }

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar({.text = value ? "True" : "False"}); }
  bool number_integer(number_integer_t value) override {
    return scalar({.text = std::to_string(value), .whole = value}, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    std::optional<std::int64_t> whole;
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) whole = static_cast<std::int64_t>(value);
    return scalar({.text = std::to_string(value), .whole = whole}, static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override { return scalar({.text = text}, value); }
  bool string(string_t& value) override { return scalar({.text = std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == event_depth_) {
      event_ = {};
      complete_ = false;
      kept_ = 0;
      member_ = Member::none;
    }
    return true;
  }
  bool key(string_t& key) override {
    if (depth_ == 1 && event_depth_ == 0) {
      events_next_ = key == "traceEvents";
    } else if (depth_ == event_depth_) {
      member_ = event_member(key);
    } else if (depth_ == event_depth_ + 1 && in_args_or_enter()) {
      member_ = Member::argument;
      argument_ = std::move(key);
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_ && complete_) {
      event_.line = buffer_->line();
      event_.column = buffer_->column() - 1;
      (*take_)(event_);
      if (problems_->full()) return false;
    }
    if (depth_ == event_depth_ + 1 && member_ == Member::argument) member_ = Member::args;
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && events_next_ && event_depth_ == 0)) {
      event_depth_ = depth_ + 1;
      found_ = true;
    } else if (Value* list = argument_list()) {
      open_.push_back(nullptr);
      if (open_.size() == 1) {
        *list = {};
        list->list = true;
        open_.back() = list;
      } else if (Value* parent = open_[open_.size() - 2]; parent != nullptr && open_.size() <= kMostNested && keep()) {
        parent->items.push_back({});
        parent->items.back().list = true;
        open_.back() = &parent->items.back();
      }
    }
    return true;
  }
  bool end_array() override {
    if (!open_.empty()) open_.pop_back();
    if (depth_ + 1 == event_depth_ && event_depth_ > 0) {
      event_depth_ = 0;  // the list of events ends
      events_next_ = false;
    }
    --depth_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string_view message = error.what();
    const std::size_t dash = message.find(" - ");
    if (dash != std::string_view::npos) message.remove_prefix(dash + 3);
    message = message.substr(0, message.find("; last read: "));
    const bool truncated = message.find("unexpected end of input") != std::string_view::npos ||
                           message.find("missing closing quote") != std::string_view::npos;
    problems_->add(buffer_->line(), std::max(buffer_->column() - 1, 1),
                   fmt::format("not valid JSON: {}", message.substr(0, 200)),
                   truncated ? "is the file truncated?" : "");
    return false;
  }

 private:
  // Enough for any operator; keeps a hostile file from filling memory with one event.
  static constexpr std::size_t kMostNested = 3;
  static constexpr std::size_t kMostValues = 4096;
  static constexpr std::size_t kMostText = 4096;

  static Member event_member(std::string_view key) {
    constexpr std::pair<std::string_view, Member> kMembers[] = {{"name", Member::name},
                                                                {"cat", Member::category},
                                                                {"ph", Member::phase},
                                                                {"dur", Member::duration},
                                                                {"args", Member::args}};
    for (const auto& [name, member] : kMembers) {
      if (name == key) return member;
    }
    return Member::skipped;
  }
  bool in_args_or_enter() const { return member_ == Member::args || member_ == Member::argument; }

  bool keep() { return ++kept_ <= kMostValues; }

  // The list that the current argument is kept in, if it is one that matters.
  Value* argument_list() {
    if (member_ != Member::argument || depth_ < event_depth_ + 2) return nullptr;
    if (argument_ == "Input Dims" || argument_ == "Input dims") return &event_.shapes;
    if (argument_ == "Input type") return &event_.types;
    if (argument_ == "Concrete Inputs") return &event_.concrete;
    return nullptr;
  }

  bool scalar(Value value, std::optional<double> number = std::nullopt) {
    if (event_depth_ == 0 || depth_ < event_depth_) return true;
    if (value.text.size() > kMostText) value.text.resize(kMostText);
    if (depth_ == event_depth_) {
      event_value(std::move(value), number);
    } else if (member_ == Member::argument && depth_ == event_depth_ + 1) {
      argument(value);
    } else if (!open_.empty() && open_.back() != nullptr && keep()) {
      open_.back()->items.push_back(std::move(value));
    }
    return true;
  }

  void event_value(Value value, std::optional<double> number) {
    switch (member_) {
      case Member::name: event_.name = std::move(value.text); break;
      case Member::category: event_.category = std::move(value.text); break;
      case Member::phase: complete_ = value.text == "X"; break;
      case Member::duration: event_.duration = number; break;
      default: break;
    }
  }

  void argument(const Value& value) {
    // Versions of the profiler differ in capitals.
    if (argument_ == "External id" || argument_ == "external id") event_.external_id = value.whole;
    if (argument_ == "correlation") event_.correlation = value.whole;
    if (argument_ == "graph node id") event_.in_graph = value.whole.value_or(0) != 0;
    if (argument_ == "Collective name") event_.collective = value.text;
    if (argument_ == "dtype") event_.dtype = value.text;
    if (argument_ == "In msg nelems") event_.sent = value.whole;
    if (argument_ == "Out msg nelems") event_.received = value.whole;
    if (argument_ == "Group size") event_.ranks = value.whole;
  }

  CountingBuffer* buffer_;
  descriptor::Problems* problems_;
  const std::function<void(TraceEvent&)>* take_;
  int depth_ = 0;
  int event_depth_ = 0;  // at which the members of events stand; 0 outside of the list of events
  bool events_next_ = false;
  bool found_ = false;
  Member member_ = Member::none;
  std::string argument_;
  std::vector<Value*> open_;  // lists of the argument that are open; null for one that is not kept
  std::size_t kept_ = 0;
  bool complete_ = false;
  TraceEvent event_;
};

// Calls `take` for every complete event of a list of events or of {"traceEvents": […]}. What is not JSON, and a file
// that holds no events, is a problem.
void read_trace_events(std::istream& stream, descriptor::Problems& problems,
                       const std::function<void(TraceEvent&)>& take) {
  CountingBuffer buffer(*stream.rdbuf());
  std::istream counted(&buffer);
  Handler handler(buffer, problems, take);
  Json::sax_parse(counted, &handler);
  if (problems.empty() && !handler.found_events()) {
    problems.add(1, 1, "holds no events: neither a list nor an object with \"traceEvents\"");
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
  if (e.collective.empty() || !e.ranks) return "no sizes";
  std::string name = collective_in(e.collective);
  // Several collectives in one kernel, or one of sparse tensors or of nothing, are no measurement of one.
  for (const char* other : {"coalesced", "sparse", "barrier"}) {
    if (e.collective.find(other) != std::string::npos) name.clear();
  }
  const std::optional<std::int64_t> count = name == "all_gather" ? e.received : e.sent;
  if (!measure::collective_kind(name)) return kNoSuchOp;
  if (!count || *count <= 0) return "no sizes";
  const ElementType element = element_type(e.dtype);
  return collective_row(name, *e.ranks, static_cast<double>(*count) * element.bits / 8, element.dtype);
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
      add(collective_type(e.name), Class::communication, *time, collective_of(e), e.line);
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
