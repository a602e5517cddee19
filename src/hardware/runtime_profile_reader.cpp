// Reads a runtime profile. Strict like the reader of devices: every problem of a file is reported at once.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"
#include "hardware/names.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

using descriptor::IntRange;
using descriptor::Problems;
using descriptor::Reader;

constexpr IntRange kRows{0, 1'000'000'000};

// A list of --options as the file has it; errors get the file's position.
RuntimeOptions read_options(Reader& reader, std::string_view key, Workload workload, RuntimeOptions fallback) {
  const std::optional<std::string> list = reader.optional_string(key);
  if (!list) return fallback;
  try {
    return parse_runtime_options(*list, workload);
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics()) reader.problem(key, d.message, d.hint);
    return fallback;
  }
}

void read_ladder(Reader& reader, RuntimeProfile& profile) {
  for (Reader& item : reader.optional_mappings("named_options")) {
    RuntimeProfile::NamedOption option{item.require_string("name"), item.optional_strings("switches")};
    for (const std::string& word : option.switches) {
      if (is_option(word, profile.workload)) continue;
      item.problem("switches", "unknown runtime option " + quote(word),
                   name_hint(word, runtime_option_names(profile.workload)));
    }
    item.finish();
    profile.ladder.push_back(std::move(option));
  }
}

void read_choices(Reader& reader, KernelChoices& c) {
  c.tile_menu = reader.bool_or("tile_menu", c.tile_menu);
  c.row_granule = reader.int_or("row_granule", c.row_granule, {1, 4096});
  c.small_granule = reader.int_or("small_granule", c.small_granule, {1, 4096});
  c.query_rows = reader.int_or("query_rows", c.query_rows, {1, 4096});
  c.split_ungrouped = reader.bool_or("split_ungrouped", c.split_ungrouped);
  c.small_rows = reader.int_or("small_rows", c.small_rows, kRows);
  c.format_granule = reader.int_or("format_granule", c.format_granule, {1, 4096});
  c.clock = reader.optional_double("clock", 0.2, 1).value_or(c.clock);
  c.fp16_accumulate = reader.bool_or("fp16_accumulate", c.fp16_accumulate);
  c.allocated_kv = reader.int_or("allocated_kv", c.allocated_kv, kRows);
  c.overlap_bytes = reader.int_or("overlap_bytes", c.overlap_bytes, {0, 1'000'000'000'000});
  c.attention_appends = reader.bool_or("attention_appends", c.attention_appends);
  c.tensor_padding = reader.int_or("tensor_padding", c.tensor_padding, {0, 1 << 20});
  c.tensor_granule = reader.int_or("tensor_granule", c.tensor_granule, {1, 1 << 30});
  c.activation_factor = reader.optional_double("activation_factor", 1, 100).value_or(c.activation_factor);
  c.replicates_embedding = reader.bool_or("replicates_embedding", c.replicates_embedding);
  c.caps_batch = reader.bool_or("caps_batch", c.caps_batch);
  if (reader.has("serial_formats")) c.serial.fill(false);
  for (const std::string& format : reader.optional_strings("serial_formats")) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kFormatKernels; ++i) names.emplace_back(name(static_cast<FormatKernel>(i)));
    const auto found = std::find(names.begin(), names.end(), format);
    if (found == names.end()) {
      reader.problem("serial_formats", "unknown format " + quote(format), name_hint(format, names));
    } else {
      c.serial[static_cast<std::size_t>(found - names.begin())] = true;
    }
  }
  if (auto rows = reader.optional_mapping("dequantise_rows")) {
    for (std::size_t i = 0; i < kFormatKernels; ++i) {
      c.dequantise_rows[i] = rows->int_or(name(static_cast<FormatKernel>(i)), 0, kRows);
    }
    rows->finish();
  }
  reader.finish();
}

void read_parameters(Reader& reader, RuntimeProfile& profile) {
  for (Reader& item : reader.optional_mappings("parameters")) {
    const std::string name = item.require_string("name");
    const std::optional<std::size_t> found = find_parameter(name);
    if (!found) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < kAllParameters; ++i) names.push_back(parameter_info(i).name);
      item.problem("name", "unknown parameter " + quote(name), name_hint(name, names));
      item.ignore(std::initializer_list<std::string_view>{"value", "provenance", "uncertainty", "prior"});
      continue;
    }
    const ParameterInfo& info = parameter_info(*found);
    profile.values[*found] = item.require_double("value", info.min, info.max);
    profile.provenance[*found] = static_cast<Provenance>(item.choice("provenance", kProvenanceNames));
    profile.prior[*found] = item.optional_double("prior", info.min, info.max).value_or(0);
    profile.uncertainty[*found] = item.optional_double("uncertainty", 0, 100).value_or(0);
    item.finish();
  }
}

void read_range(Reader& reader, FittedRange& r) {
  r.rows = reader.require_int("rows", kRows);
  r.models = reader.optional_strings("models");
  r.weights = reader.optional_strings("weights");
  r.kv = reader.optional_strings("kv");
  r.plans = reader.optional_strings("plans");
  r.kinds = reader.optional_strings("kinds");
  r.max_batch = reader.int_or("max_batch", 0, kRows);
  r.max_tokens = reader.int_or("max_tokens", 0, kRows);
  r.max_context = reader.int_or("max_context", 0, kRows);
  r.min_parameters = reader.optional_double("min_parameters", 0, 1e15).value_or(0);
  r.max_parameters = reader.optional_double("max_parameters", 0, 1e15).value_or(0);
  reader.finish();
}

void read_errors(Reader& reader, RuntimeProfile& profile) {
  profile.errors.clear();
  for (Reader& item : reader.optional_mappings("errors")) {
    FittedError error;
    error.group = item.require_string("group");
    error.rows = item.require_int("rows", kRows);
    error.mean = item.require_double("mean", 0, 1e3);
    error.p90 = item.require_double("p90", 0, 1e3);
    error.bias = item.optional_double("bias", -1, 1e3).value_or(0);
    item.finish();
    profile.errors.push_back(std::move(error));
  }
}

// What a profile starts from: parameters and choices of the one it is based on, which are assumptions here.
RuntimeProfile start(Reader& reader, const std::string& base) {
  RuntimeProfile profile;
  if (!base.empty()) {
    if (reader.problems().file().ends_with(base + ".yaml")) {
      reader.problem("based_on", "a profile cannot be based on itself");
    } else {
      profile = parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, base));
    }
    profile.families.clear();
    profile.preferred = false;
    profile.hardware.clear();
    profile.range = {};
    profile.notes.clear();
  } else {
    for (std::size_t i = 0; i < kAllParameters; ++i) profile.values[i] = parameter_info(i).initial;
    profile.provenance.fill(Provenance::assumed);
  }
  profile.provenance.fill(Provenance::assumed);
  profile.uncertainty.fill(0);
  return profile;
}

}  // namespace

RuntimeProfile parse_runtime_profile(const descriptor::Document& document) {
  Problems problems(document.file);
  Reader reader(document.root, problems, "runtime profile");
  RuntimeProfile p = start(reader, reader.string_or("based_on", ""));
  p.name = reader.require_string("name");
  const std::string base = std::exchange(p.hardware, reader.string_or("hardware", ""));
  if (p.hardware != base) {  // what was fitted on one device is an assumption on another
    p.provenance.fill(Provenance::assumed);
    p.uncertainty.fill(0);
    p.prior.fill(0);
  }
  p.families = reader.optional_strings("families");
  p.workload =
      static_cast<Workload>(reader.choice("workload", kWorkloadNames, static_cast<std::size_t>(Workload::language)));
  p.preferred = reader.bool_or("preferred", false);
  p.title = reader.require_string("title");
  p.source = reader.require_string("source");
  p.notes = reader.string_or("notes", "");
  p.dispatch = static_cast<Dispatch>(reader.choice("dispatch", kDispatchNames, static_cast<std::size_t>(p.dispatch)));
  p.prefill_dispatch = static_cast<Dispatch>(
      reader.choice("prefill_dispatch", kDispatchNames,
                    static_cast<std::size_t>(reader.has("dispatch") ? p.dispatch : p.prefill_dispatch)));
  p.options = read_options(reader, "options", p.workload, p.options);
  p.base = read_options(reader, "base_options", p.workload, p.base);
  const auto chains =
      static_cast<Chains>(reader.choice("chains", kChainNames, static_cast<std::size_t>(p.options.chains)));
  p.options.chains = p.base.chains = chains;
  if (reader.has("named_options")) p.ladder.clear();
  read_ladder(reader, p);
  p.gguf_era = reader.string_or("gguf_era", p.gguf_era);
  if (reader.has("static_graph_needs")) p.static_graph_needs = reader.optional_strings("static_graph_needs");
  if (auto choices = reader.optional_mapping("choices")) read_choices(*choices, p.choices);
  read_parameters(reader, p);
  if (auto range = reader.optional_mapping("range")) read_range(*range, p.range);
  if (reader.has("errors")) read_errors(reader, p);
  if (p.hardware.empty() == p.families.empty()) {
    reader.problem("hardware", "a profile names the hardware it was measured on, or the families it is a default of");
  }
  reader.finish();
  problems.throw_if_any();
  return p;
}

}  // namespace llmperf::hardware
