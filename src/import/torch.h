// The operators of PyTorch, and of libraries that vLLM and others register there, by the arguments that its profiler
// records with record_shapes: tensors with shapes and types, and scalars as text. Results are not recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/reader.h"
#include "import/kernels.h"

namespace llmperf::import {

struct TorchOp {
  std::string name;                   // "aten::mm"
  std::vector<Tensor> inputs;         // by argument; empty for what is no tensor
  std::vector<std::string> concrete;  // by argument, as text: "True", "[4096]"; of tensors empty
};
Mapped torch_row(const TorchOp& op);

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

// Calls `take` for every complete event of a list of events or of {"traceEvents": […]}. What is not JSON, and a file
// that holds no events, is a problem.
void read_trace_events(std::istream& stream, descriptor::Problems& problems,
                       const std::function<void(TraceEvent&)>& take);

}  // namespace llmperf::import
