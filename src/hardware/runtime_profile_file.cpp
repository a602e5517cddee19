// Runtime profiles and engines as files. Reading is strict like that of devices: every problem of a file is reported at
// once.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/list.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"
#include "hardware/engine.h"
#include "hardware/names.h"
#include "hardware/runtime_profile.h"

namespace llmperf::hardware {
namespace {

using descriptor::IntRange;
using descriptor::Problems;
using descriptor::Reader;

constexpr IntRange kRows{0, 1'000'000'000};

// Every choice but those by format: `visit` gets the key, the value and its bounds. Reading and writing go through the
// one list.
template <class Choices, class Visit>
void each_choice(Choices& c, Visit&& visit) {
  visit("tile_menu", c.tile_menu, 0, 1);
  visit("tile_mappings", c.tile_mappings, 0, 1);
  visit("multicast_senders", c.multicast_senders, 0, 1);
  visit("masked_attention", c.masked_attention, 0, 1);
  visit("near_rows", c.near_rows, 0, 1e9);
  visit("head_tiles", c.head_tiles, 0, 1e9);
  visit("cube_tiles", c.cube_tiles, 0, 1);
  visit("ggml", c.ggml, 0, 1);
  visit("integer_products", c.integer_products, 0, 1);
  visit("grouped_experts", c.grouped_experts, 0, 1);
  visit("cached_activations", c.cached_activations, 0, 1);
  visit("row_granule", c.row_granule, 1, 4096);
  visit("small_granule", c.small_granule, 1, 4096);
  visit("query_rows", c.query_rows, 1, 4096);
  visit("split_ungrouped", c.split_ungrouped, 0, 1);
  visit("copied_head", c.copied_head, 0, 4096);
  visit("queries_scaled", c.queries_scaled, 0, 1);
  visit("token_decodes", c.token_decodes, 0, 1);
  visit("small_rows", c.small_rows, 0, 1e9);
  visit("format_granule", c.format_granule, 1, 4096);
  visit("mxfp4_width", c.mxfp4_width, 0, 1e9);
  visit("clock", c.clock, 0.2, 1);
  visit("head_keys", c.head_keys, 0, 1);
  visit("prompt_chunk", c.prompt_chunk, 0, 1e9);
  visit("fp16_accumulate", c.fp16_accumulate, 0, 1);
  visit("allocated_kv", c.allocated_kv, 0, 1e9);
  visit("overlap_bytes", c.overlap_bytes, 0, 1e12);
  visit("custom_all_reduce", c.custom_all_reduce, 0, 1e12);
  visit("custom_fastest", c.custom_fastest, 0, 1);
  visit("switch_reduces", c.switch_reduces, 0, 1);
  visit("rings", c.rings, 0, 1);
  visit("small_collective", c.small_collective, 0, 1e12);
  visit("exchange_tokens", c.exchange_tokens, 0, 1e9);
  visit("exchange_network", c.exchange_network, 0, 1);
  visit("power", c.power, 0, 0);
  visit("attention_appends", c.attention_appends, 0, 1);
  visit("eager", c.eager, 0, 1);
  visit("fused_training", c.fused_training, 0, 1);
  visit("gradient_buffers", c.gradient_buffers, 0, 1);
  visit("compiled", c.compiled, 0, 1);
  visit("early_stop", c.early_stop, 0, 1);
  visit("tensor_padding", c.tensor_padding, 0, 1 << 20);
  visit("tensor_granule", c.tensor_granule, 1, 1 << 30);
  visit("activation_factor", c.activation_factor, 1, 100);
  visit("replicates_embedding", c.replicates_embedding, 0, 1);
  visit("caps_batch", c.caps_batch, 0, 1);
  visit("graph_rows", c.graph_rows, 0, 1e9);
  visit("graph_context", c.graph_context, 0, 1e9);
  visit("graph_pieces", c.graph_pieces, 0, 1);
  visit("joint_attention", c.joint_attention, 0, 1);
  visit("overlapped", c.overlapped, 0, 1);
  visit("fused_quantising", c.fused_quantising, 0, 1);
  visit("absorbed_rows", c.absorbed_rows, 0, 1);
  visit("packing_launches", c.packing_launches, 0, 100);
}

// Numbers of rows by format; "all" is that of those that a file does not list.
struct RowsByFormat {
  const char* key;
  std::array<std::int64_t, kFormatKernels> KernelChoices::*rows;
};
constexpr RowsByFormat kRowsByFormat[] = {{"dequantise_rows", &KernelChoices::dequantise_rows},
                                          {"few_rows", &KernelChoices::few_rows}};

// ---- Reading

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

std::vector<FormatKernel> read_formats(Reader& reader, std::string_view key) {
  std::vector<FormatKernel> formats;
  const std::vector<std::string> listed = reader.optional_strings(key);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kFormatKernels && !listed.empty(); ++i) {
    names.emplace_back(name(static_cast<FormatKernel>(i)));
  }
  for (const std::string& format : listed) {
    const auto found = std::ranges::find(names, format);
    if (found == names.end()) {
      reader.problem(key, "unknown format " + quote(format), name_hint(format, names));
    } else {
      formats.push_back(static_cast<FormatKernel>(found - names.begin()));
    }
  }
  return formats;
}

// The first version that has it, and when that came out.
void read_since(Reader& reader, std::string& since, std::string& date) {
  since = reader.string_or("since", "");
  if (!since.empty() && !parse_version(since)) {
    reader.problem("since", fmt::format("{} is no version", quote(since)), "numbers with dots between, as \"0.8\"");
  }
  date = reader.string_or("since_date", "");
  if (!date.empty() && !is_date(parse_version(date).value_or(Version()))) {
    reader.problem("since_date", fmt::format("{} is no date", quote(date)), "as \"2024-06-24\"");
  }
}

void read_choices(Reader& reader, KernelChoices& c) {
  each_choice(c, [&](const char* key, auto& value, double min, double max) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      value = reader.bool_or(key, value);
    } else if constexpr (std::is_same_v<Value, double>) {
      value = reader.optional_double(key, min, max).value_or(value);
    } else if constexpr (std::is_same_v<Value, Power>) {
      value = static_cast<Power>(reader.choice(key, kPowerNames, static_cast<std::size_t>(value)));
    } else {
      value = reader.int_or(key, value, {static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)});
    }
  });
  c.attention = static_cast<AttentionKernels>(
      reader.choice("attention", kAttentionKernelsNames, static_cast<std::size_t>(c.attention)));
  if (reader.has("triton_attention")) c.triton_attention.clear();
  for (Reader& item : reader.optional_mappings("triton_attention")) {
    const auto said = [&](const char* key) {
      return item.has(key) ? std::optional(item.bool_or(key, false)) : std::nullopt;
    };
    c.triton_attention.push_back({.head = item.int_or("head", 0, kRows),
                                  .most_grouped = item.int_or("most_grouped", 0, kRows),
                                  .window = said("window"),
                                  .narrow = said("narrow"),
                                  .prompts = said("prompts"),
                                  .skips = item.bool_or("skips", false)});
    item.finish();
  }
  if (reader.has("serial_formats")) c.serial.fill(false);
  for (const FormatKernel format : read_formats(reader, "serial_formats"))
    c.serial[static_cast<std::size_t>(format)] = true;
  if (auto tiles = reader.optional_mapping("product_tiles")) {
    for (std::size_t i = 0; i < kFormatKernels; ++i) {
      c.product_tiles[i] =
          static_cast<ProductTiles>(tiles->choice(name(static_cast<FormatKernel>(i)), kProductTilesNames, 0));
    }
    tiles->finish();
  }
  for (const RowsByFormat& by_format : kRowsByFormat) {
    auto rows = reader.optional_mapping(by_format.key);
    if (!rows) continue;
    const std::int64_t others = rows->int_or("all", 0, kRows);
    for (std::size_t i = 0; i < kFormatKernels; ++i) {
      (c.*by_format.rows)[i] = rows->int_or(name(static_cast<FormatKernel>(i)), others, kRows);
    }
    rows->finish();
  }
  reader.finish();
}

// Those that the list has.
std::vector<std::size_t> read_parameters(Reader& reader, RuntimeProfile& profile) {
  std::vector<std::size_t> listed;
  for (Reader& item : reader.optional_mappings("parameters")) {
    const std::string name = item.require_string("name");
    const std::optional<std::size_t> found = find_parameter(name);
    if (!found) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < kAllParameters; ++i) names.push_back(parameter_info(i).name);
      item.problem("name", "unknown parameter " + quote(name), name_hint(name, names));
      item.ignore("value provenance uncertainty prior alone");
      continue;
    }
    const ParameterInfo& info = parameter_info(*found);
    profile.values[*found] = item.require_double("value", info.min, info.max);
    profile.provenance[*found] = static_cast<Provenance>(item.choice("provenance", kProvenanceNames));
    profile.alone[*found] = item.optional_double("alone", info.min, info.max).value_or(0);
    profile.prior[*found] = item.optional_double("prior", info.min, info.max).value_or(0);
    profile.uncertainty[*found] = item.optional_double("uncertainty", 0, 100).value_or(0);
    item.finish();
    listed.push_back(*found);
  }
  return listed;
}

// What an engine and a profile say in the same words, over what `p` has.
std::vector<std::size_t> read_settings(Reader& reader, RuntimeProfile& p) {
  p.dispatch = static_cast<Dispatch>(reader.choice("dispatch", kDispatchNames, static_cast<std::size_t>(p.dispatch)));
  p.prefill_dispatch = static_cast<Dispatch>(
      reader.choice("prefill_dispatch", kDispatchNames,
                    static_cast<std::size_t>(reader.has("dispatch") ? p.dispatch : p.prefill_dispatch)));
  p.options = read_options(reader, "options", p.workload, p.options);
  p.base = read_options(reader, "base_options", p.workload, p.base);
  const auto chains =
      static_cast<Chains>(reader.choice("chains", kChainNames, static_cast<std::size_t>(p.options.chains)));
  p.options.chains = p.base.chains = chains;
  if (auto choices = reader.optional_mapping("choices")) read_choices(*choices, p.choices);
  if (reader.has("host_class")) p.host_class = kHostClassNames[reader.choice("host_class", kHostClassNames)];
  return read_parameters(reader, p);
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

// A profile has its own groups of errors, and those of kernels of the one that it is based on.
void read_errors(Reader& reader, RuntimeProfile& profile) {
  for (Reader& item : reader.optional_mappings("errors")) {
    FittedError error;
    error.group = item.require_string("group");
    error.rows = item.require_int("rows", kRows);
    error.mean = item.require_double("mean", 0, 1e3);
    error.p90 = item.require_double("p90", 0, 1e3);
    error.bias = item.optional_double("bias", -1, 1e3).value_or(0);
    item.finish();
    std::erase_if(profile.errors, [&](const FittedError& known) { return known.group == error.group; });
    profile.errors.push_back(std::move(error));
  }
}

RuntimeProfile defaults() {
  RuntimeProfile profile;
  for (std::size_t i = 0; i < kAllParameters; ++i) profile.values[i] = parameter_info(i).initial;
  profile.provenance.fill(Provenance::assumed);
  return profile;
}

// Whether what a profile is based on comes round, to that profile or to another.
bool goes_round(descriptor::Kind kind, const std::string& base) {
  std::vector<std::string> seen;
  for (std::string next = base; !next.empty();) {
    if (contains(seen, next)) return true;
    seen.push_back(next);
    next = join(descriptor::values(kind, next, {"based_on"}).front(), "");
  }
  return false;
}

// What a profile starts from: parameters and choices of the one it is based on.
RuntimeProfile start(Reader& reader, const std::string& base) {
  RuntimeProfile profile = defaults();
  if (!base.empty()) {
    if (goes_round(descriptor::Kind::runtime, base)) {
      reader.problem("based_on", "a profile cannot be based on itself");
    } else {
      profile = parse_runtime_profile(descriptor::load(descriptor::Kind::runtime, base));
    }
    profile.families.clear();
    profile.preferred = false;
    profile.range = {};
    // Errors of whole steps are its own, but of a stack of training, whose releases have one set of sites.
    const bool trains = profile.workload == Workload::training;
    std::erase_if(profile.errors, [&](const FittedError& e) {
      return e.group == "prefill" || e.group == "decode" || e.group == "video" || (e.group == "training" && !trains);
    });
    profile.notes.clear();
  }
  return profile;
}

void read_engine(Reader& reader, RuntimeProfile& p) {
  const std::string engine = reader.string_or("engine", p.engine);
  // Over another device's profile the engine's steps are told anew: they may have run on this one.
  if (engine == p.engine && (p.range.rows > 0 || !reader.has("engine"))) return;
  try {
    const EngineEra era = load_engine(engine);  // before `p` is moved from, for there may be none
    p = with_engine(std::move(p), era);
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics()) reader.problem("engine", d.message, d.hint);
  }
}

// Errors of steps are the engine's where it was measured on the profile's device. On others nothing is known of steps.
void take_step_errors(RuntimeProfile& p, const std::vector<FittedError>& engine, bool measured) {
  const auto of_steps = [](const FittedError& e) { return e.group == "prefill" || e.group == "decode"; };
  std::erase_if(p.errors, of_steps);
  if (measured) std::copy_if(engine.begin(), engine.end(), std::back_inserter(p.errors), of_steps);
}

// What an engine lists of its own, at the defaults.
void forget_engine(RuntimeProfile& p) {
  p.host_class.clear();
  p.format_kernels.clear();
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    if (!of_host(i) && i != index(Parameter::vector_draw_bytes)) continue;  // a sampler is the engine's
    p.values[i] = parameter_info(i).initial;
    p.provenance[i] = Provenance::assumed;
    p.prior[i] = p.uncertainty[i] = 0;
  }
  const KernelChoices none;
  p.choices.graph_rows = none.graph_rows;
  p.choices.graph_context = none.graph_context;
  p.choices.graph_pieces = none.graph_pieces;
  p.choices.joint_attention = none.joint_attention;
  p.choices.overlapped = none.overlapped;
  p.choices.fused_quantising = none.fused_quantising;
}

void lay_settings(Reader& reader, bool measured, RuntimeProfile& p);

// What an engine's document is over: another's settings, or the defaults.
void lay_base(Reader& reader, bool measured, RuntimeProfile& p) {
  const std::string base = reader.string_or("based_on", "");
  if (base.empty()) return forget_engine(p);
  try {
    if (goes_round(descriptor::Kind::engine, base)) {
      return reader.problem("based_on", "an era cannot be based on itself");
    }
    const descriptor::Document document = descriptor::load(descriptor::Kind::engine, base);
    Problems problems(document.file);
    Reader below(document.root, problems, "engine");
    lay_settings(below, measured, p);
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics()) reader.problem("based_on", d.message, d.hint);
  }
}

// Of an engine's document what is no range and no error. Numbers that were not `measured` on the profile's device are
// assumptions there.
void lay_settings(Reader& reader, bool measured, RuntimeProfile& p) {
  lay_base(reader, measured, p);
  for (const std::size_t i : read_settings(reader, p)) {
    if (measured) continue;
    p.provenance[i] = Provenance::assumed;
    p.prior[i] = p.uncertainty[i] = 0;
  }
  p.gguf_era = reader.string_or("gguf_era", p.gguf_era);
  if (reader.has("format_kernels")) p.format_kernels.clear();
  for (Reader& item : reader.optional_mappings("format_kernels")) {
    RuntimeProfile::FormatKernels kernels = {.name = item.require_string("name"),
                                             .formats = read_formats(item, "formats")};
    read_since(item, kernels.since, kernels.since_date);
    kernels.families = item.optional_strings("families");
    if (kernels.formats.empty()) item.problem("formats", "a kernel is of one format at least");
    item.finish();
    p.format_kernels.push_back(std::move(kernels));
  }
}

// The part of an engine's document that changes a profile.
void lay_over(Reader& reader, const EngineEra& era, RuntimeProfile& p) {
  const bool measured = contains(era.measured_on, p.hardware);
  p.engine = era.name;
  lay_settings(reader, measured, p);
  RuntimeProfile steps;
  if (auto range = reader.optional_mapping("range")) read_range(*range, steps.range);
  read_errors(reader, steps);
  p.foreign_steps.clear();
  // What a class says of steps holds for devices left out, under any engine that it is for.
  if (p.hardware.empty() && p.range.rows > 0) return;
  take_step_errors(p, steps.errors, measured);
  const std::int64_t rows = std::exchange(p.range, {}).rows;
  if (p.hardware.empty()) return;  // of a class nothing was measured, which is said already
  p.range = std::move(steps.range);
  p.range.rows = measured ? std::max(rows, p.range.rows) : rows;  // that the device's numbers were fitted to
  if (measured) return;
  const std::string release = era.since.empty() ? era.name : fmt::format("{} from {}", era.name, era.since);
  p.foreign_steps = era.measured_on.empty() ? fmt::format("{} (no steps of it were fitted)", release)
                                            : fmt::format("{} on this device (its steps were fitted on {})", release,
                                                          join(era.measured_on, ", "));
}

}  // namespace

EngineEra parse_engine(const descriptor::Document& document) {
  Problems problems(document.file);
  Reader reader(document.root, problems, "engine");
  EngineEra era;
  era.name = reader.require_string("name");
  era.engine = reader.require_string("engine");
  read_since(reader, era.since, era.since_date);
  era.newest = reader.string_or("newest", "");
  for (Reader& item : reader.optional_mappings("tools")) {
    era.tools.push_back({item.require_string("name"), item.require_double("step_s", 0, 1)});
    item.finish();
  }
  era.families = reader.optional_strings("families");
  era.measured_on = reader.optional_strings("measured_on");
  era.title = reader.require_string("title");
  era.source = reader.require_string("source");
  era.notes = reader.string_or("notes", "");
  RuntimeProfile trial = defaults();
  lay_over(reader, era, trial);
  era.host_class = trial.host_class;
  if (era.host_class.empty()) reader.problem("host_class", "an engine says what its host's numbers were measured on");
  reader.finish();
  problems.throw_if_any();
  era.document = document;
  return era;
}

RuntimeProfile with_engine(RuntimeProfile profile, const EngineEra& era) {
  Problems problems(era.document.file);
  Reader reader(era.document.root, problems, "engine");
  lay_over(reader, era, profile);
  return profile;
}

RuntimeProfile by_itself(const EngineEra& era) {
  RuntimeProfile p = defaults();
  if (!era.measured_on.empty()) p.hardware = era.measured_on.front();
  p = with_engine(std::move(p), era);
  p.name = era.name;
  p.title = era.title;
  p.source = era.source;
  p.notes = era.notes;
  p.families = era.families;
  return p;
}

RuntimeProfile parse_runtime_profile(const descriptor::Document& document) {
  Problems problems(document.file);
  Reader reader(document.root, problems, "runtime profile");
  RuntimeProfile p = start(reader, reader.string_or("based_on", ""));
  p.name = reader.require_string("name");
  const std::string base = std::exchange(p.hardware, reader.string_or("hardware", ""));
  if (!p.hardware.empty()) p.origin = p.hardware;
  if (p.hardware != base) {  // what was fitted on one device is an assumption on another
    p.provenance.fill(Provenance::assumed);
    p.uncertainty.fill(0);
    p.prior.fill(0);
    p.foreign_steps.clear();
    if (!p.hardware.empty()) p.errors.clear();
  }
  read_engine(reader, p);
  std::string since, since_date;  // by which the catalog chooses
  read_since(reader, since, since_date);
  p.families = reader.optional_strings("families");
  p.workload =
      static_cast<Workload>(reader.choice("workload", kWorkloadNames, static_cast<std::size_t>(Workload::language)));
  p.preferred = reader.bool_or("preferred", false);
  p.tool = reader.string_or("tool", "");
  p.title = reader.require_string("title");
  p.source = reader.require_string("source");
  p.notes = reader.string_or("notes", "");
  if (reader.has("named_options")) p.ladder.clear();
  read_ladder(reader, p);
  read_settings(reader, p);
  p.gguf_era = reader.string_or("gguf_era", p.gguf_era);
  if (reader.has("static_graph_needs")) p.static_graph_needs = reader.optional_strings("static_graph_needs");
  if (reader.has("repeated_kv")) p.repeated_kv = reader.optional_strings("repeated_kv");
  if (auto range = reader.optional_mapping("range")) {
    p.foreign_steps.clear();
    p.range = {};
    read_range(*range, p.range);
  }
  if (reader.has("errors")) read_errors(reader, p);
  if (p.hardware.empty() == p.families.empty()) {
    reader.problem("hardware", "a profile names the hardware it was measured on, or the families it is a default of");
  }
  reader.finish();
  problems.throw_if_any();
  return p;
}

// ---- Writing: the YAML that the reader takes

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

std::string choices_text(const KernelChoices& c, const KernelChoices& blank) {
  std::string text = "choices:\n";
  each_choice(c, [&](const char* key, const auto& value, double, double) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Power>) {
      text += fmt::format("  {}: {}\n", key, name(value));
    } else {
      text += fmt::format("  {}: {}\n", key, value);
    }
  });
  text += fmt::format("  attention: {}\n", name(c.attention));
  std::vector<std::string> cases;
  for (const AttentionCase& of : c.triton_attention) {
    std::vector<std::string> said;
    if (of.head > 0) said.push_back(fmt::format("head: {}", of.head));
    if (of.most_grouped > 0) said.push_back(fmt::format("most_grouped: {}", of.most_grouped));
    if (of.window) said.push_back(fmt::format("window: {}", *of.window));
    if (of.narrow) said.push_back(fmt::format("narrow: {}", *of.narrow));
    if (of.prompts) said.push_back(fmt::format("prompts: {}", *of.prompts));
    if (of.skips) said.push_back("skips: true");
    cases.push_back("{" + join(said, ", ") + "}");
  }
  if (c.triton_attention != blank.triton_attention)
    text += fmt::format("  triton_attention: [{}]\n", join(cases, ", "));
  std::vector<std::string> serial;
  for (std::size_t i = 0; i < kFormatKernels; ++i) {
    if (c.serial[i]) serial.emplace_back(llmperf::name(static_cast<FormatKernel>(i)));
  }
  if (c.serial != blank.serial) text += "  serial_formats: " + list(serial) + "\n";
  std::vector<std::string> tiles;
  for (std::size_t i = 0; i < kFormatKernels; ++i) {
    const std::string_view format = llmperf::name(static_cast<FormatKernel>(i));
    if (c.product_tiles[i] != ProductTiles::unpacked) {
      tiles.push_back(fmt::format("{}: {}", format, name(c.product_tiles[i])));
    }
  }
  if (c.product_tiles != blank.product_tiles) text += fmt::format("  product_tiles: {{{}}}\n", join(tiles, ", "));
  for (const RowsByFormat& by_format : kRowsByFormat) {
    const auto& values = c.*by_format.rows;
    if (values == blank.*by_format.rows) continue;
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < kFormatKernels; ++i) {
      if (values[i] != 0) rows.push_back(fmt::format("{}: {}", llmperf::name(static_cast<FormatKernel>(i)), values[i]));
    }
    text += fmt::format("  {}: {{{}}}\n", by_format.key, join(rows, ", "));
  }
  return text;
}

}  // namespace

std::string format_runtime_profile(const RuntimeProfile& p) {
  RuntimeProfile blank = defaults();  // what a reader starts from
  blank.hardware = p.hardware;
  if (!p.engine.empty()) blank = with_engine(std::move(blank), load_engine(p.engine));
  std::string out = fmt::format("name: {}\n", quoted(p.name));
  const auto field = [&](const char* key, const std::string& value) {
    if (!value.empty()) out += fmt::format("{}: {}\n", key, quoted(value));
  };
  field("hardware", p.hardware);
  if (!p.families.empty()) out += fmt::format("families: {}\n", list(p.families));
  if (p.workload != Workload::language) out += fmt::format("workload: {}\n", name(p.workload));
  if (p.preferred) out += "preferred: true\n";
  field("engine", p.engine);
  field("tool", p.tool);
  field("host_class", p.host_class);
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
  if (!p.repeated_kv.empty()) out += fmt::format("repeated_kv: {}\n", list(p.repeated_kv));
  field("gguf_era", p.gguf_era);
  out += choices_text(p.choices, blank.choices);
  // Every number that is not the engine's, or else the default.
  std::string parameters;
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    const ParameterInfo& info = parameter_info(i);
    if (p.values[i] == blank.values[i] && p.provenance[i] == blank.provenance[i] &&
        p.uncertainty[i] == blank.uncertainty[i]) {
      continue;
    }
    parameters +=
        fmt::format("  - {{name: {}, value: {:.6g}, provenance: {}", info.name, p.values[i], name(p.provenance[i]));
    if (p.alone[i] > 0) parameters += fmt::format(", alone: {:.6g}", p.alone[i]);
    if (p.prior[i] > 0 && p.prior[i] != info.initial) parameters += fmt::format(", prior: {:.6g}", p.prior[i]);
    if (p.uncertainty[i] > 0) parameters += fmt::format(", uncertainty: {:.3g}", p.uncertainty[i]);
    parameters += "}\n";
  }
  if (!parameters.empty()) out += "parameters:\n" + parameters;
  if (p.range.rows > 0 && p.range != blank.range) {
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
