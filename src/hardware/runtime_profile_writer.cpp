// Writes a runtime profile as the YAML that the reader takes.
#include <fmt/format.h>

#include "base/text.h"
#include "hardware/names.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

// Double-quoted YAML, which every text fits in.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::string list(const std::vector<std::string>& items) {
  std::vector<std::string> parts;
  for (const std::string& item : items) parts.push_back(quoted(item));
  return "[" + join(parts, ", ") + "]";
}

std::string choices_text(const KernelChoices& c) {
  std::string text = fmt::format(
      "choices:\n  tile_menu: {}\n  row_granule: {}\n  small_granule: {}\n  query_rows: {}\n  split_ungrouped: {}\n"
      "  small_rows: {}\n  format_granule: {}\n  clock: {}\n  fp16_accumulate: {}\n  allocated_kv: {}\n  "
      "overlap_bytes: {}\n"
      "  attention_appends: {}\n  tensor_padding: {}\n  tensor_granule: {}\n"
      "  activation_factor: {}\n  replicates_embedding: {}\n  caps_batch: {}\n",
      c.tile_menu, c.row_granule, c.small_granule, c.query_rows, c.split_ungrouped, c.small_rows, c.format_granule,
      c.clock, c.fp16_accumulate, c.allocated_kv, c.overlap_bytes, c.attention_appends, c.tensor_padding,
      c.tensor_granule, c.activation_factor, c.replicates_embedding, c.caps_batch);
  std::vector<std::string> serial;
  for (std::size_t i = 0; i < kFormatKernels; ++i) {
    if (c.serial[i]) serial.emplace_back(llmperf::name(static_cast<FormatKernel>(i)));
  }
  if (!serial.empty()) text += "  serial_formats: " + list(serial) + "\n";
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < kFormatKernels; ++i) {
    if (c.dequantise_rows[i] == 0) continue;
    rows.push_back(fmt::format("{}: {}", llmperf::name(static_cast<FormatKernel>(i)), c.dequantise_rows[i]));
  }
  if (!rows.empty()) text += "  dequantise_rows: {" + join(rows, ", ") + "}\n";
  return text;
}

}  // namespace

std::string format_runtime_profile(const RuntimeProfile& p) {
  std::string out = fmt::format("name: {}\n", quoted(p.name));
  const auto field = [&](const char* key, const std::string& value) {
    if (!value.empty()) out += fmt::format("{}: {}\n", key, quoted(value));
  };
  field("hardware", p.hardware);
  if (!p.families.empty()) out += fmt::format("families: {}\n", list(p.families));
  if (p.workload != Workload::language) out += fmt::format("workload: {}\n", name(p.workload));
  if (p.preferred) out += "preferred: true\n";
  field("title", p.title);
  field("source", p.source);
  field("notes", p.notes);
  out += fmt::format("dispatch: {}\nprefill_dispatch: {}\n", name(p.dispatch), name(p.prefill_dispatch));
  out +=
      fmt::format("options: \"{}\"\nbase_options: \"{}\"\nchains: {}\n", format_runtime_options(p.options, p.workload),
                  format_runtime_options(p.base, p.workload), kChainNames[static_cast<std::size_t>(p.options.chains)]);
  if (!p.ladder.empty()) {
    out += "named_options:\n";
    for (const auto& option : p.ladder) {
      out += fmt::format("  - {{name: {}, switches: {}}}\n", option.name, list(option.switches));
    }
  }
  if (!p.static_graph_needs.empty()) out += fmt::format("static_graph_needs: {}\n", list(p.static_graph_needs));
  field("gguf_era", p.gguf_era);
  out += choices_text(p.choices);
  // Every number the profile does not leave at its default.
  std::string parameters;
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    const ParameterInfo& info = parameter_info(i);
    if (p.values[i] == info.initial && p.provenance[i] == Provenance::assumed) continue;
    parameters +=
        fmt::format("  - {{name: {}, value: {:.6g}, provenance: {}", info.name, p.values[i], name(p.provenance[i]));
    if (p.prior[i] > 0 && p.prior[i] != info.initial) parameters += fmt::format(", prior: {:.6g}", p.prior[i]);
    if (p.uncertainty[i] > 0) parameters += fmt::format(", uncertainty: {:.3g}", p.uncertainty[i]);
    parameters += "}\n";
  }
  if (!parameters.empty()) out += "parameters:\n" + parameters;
  if (p.range.rows > 0) {
    const FittedRange& r = p.range;
    out += fmt::format(
        "range:\n  rows: {}\n  models: {}\n  weights: {}\n  kv: {}\n  plans: {}\n  kinds: {}\n  max_batch: {}\n  "
        "max_tokens: {}\n  max_context: {}\n"
        "  min_parameters: {:.6g}\n  max_parameters: {:.6g}\n",
        r.rows, list(r.models), list(r.weights), list(r.kv), list(r.plans), list(r.kinds), r.max_batch, r.max_tokens,
        r.max_context, r.min_parameters, r.max_parameters);
  }
  if (!p.errors.empty()) {
    out += "errors:\n";
    for (const FittedError& e : p.errors) {
      out += fmt::format("  - {{group: {}, rows: {}, mean: {:.4g}, p90: {:.4g}, bias: {:.4g}}}\n", quoted(e.group),
                         e.rows, e.mean, e.p90, e.bias);
    }
  }
  return out;
}

}  // namespace llmperf::hardware
