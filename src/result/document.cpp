#include "result/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/text.h"
#include "result/catalog.h"
#include "result/compare.h"
#include "result/difference.h"
#include "result/explanation.h"
#include "result/generation.h"
#include "result/limits.h"
#include "result/mapping.h"
#include "result/measured.h"
#include "result/parallel.h"
#include "result/program.h"
#include "result/serving.h"
#include "result/study.h"

namespace llmperf::result {
namespace {

// "text or null", "list of numbers".
std::string kind_text(const Shape& shape) {
  const bool many = shape.lists > 0 || shape.map;
  const auto word = [&]() -> std::string {
    switch (shape.kind) {
      case Kind::truth: return "true or false";
      case Kind::integer:
      case Kind::number: return many ? "numbers" : "number";
      case Kind::text: return many ? "texts" : "text";
      case Kind::any: return many ? "values" : "value";
      case Kind::object: return many ? "objects" : "object";
    }
    return {};
  };
  std::string text = word();
  if (shape.map) text += " by name";
  if (shape.lists > 0) text = "list of " + text;
  return shape.nullable ? text + " or null" : text;
}

// "#error-band", as Markdown's readers link to a heading.
std::string link(std::string_view name) {
  std::string anchor(name);
  std::replace(anchor.begin(), anchor.end(), ' ', '-');
  return fmt::format("[{}](#{})", name, anchor);
}

// A row for each key; objects of no name of their own go on below theirs.
void add_rows(std::string& out, const Type& type, const std::string& path) {
  for (const Field& field : type.fields) {
    if (field.in == In::row) continue;
    const Type* inner = field.shape.kind == Kind::object ? &field.shape.type() : nullptr;
    if (field.spread) {
      if (inner->name.empty()) {
        add_rows(out, *inner, path);
      } else {
        out += fmt::format("| `{}…` | | the keys of {} |\n", path, link(inner->name));
      }
      continue;
    }
    const std::string key = path + std::string(field.key) +
                            (field.shape.lists > 0 ? "[]"
                             : field.shape.map     ? "{}"
                                                   : "");
    const bool named = inner != nullptr && !inner->name.empty();
    out +=
        fmt::format("| `{}` | {}{} | {}{}{} |\n", key, kind_text(field.shape), field.left_out ? ", may be absent" : "",
                    field.doc, named && !field.doc.empty() ? ": " : "", named ? link(inner->name) : "");
    if (inner != nullptr && !named) add_rows(out, *inner, key + ".");
  }
}

std::string table(const Type& type) {
  std::string out = "| key | value | meaning |\n|---|---|---|\n";
  add_rows(out, type, "");
  return out;
}

void add_named(std::vector<const Type*>& found, const Type& type) {
  for (const Field& field : type.fields) {
    if (field.in == In::row || field.shape.kind != Kind::object) continue;
    const Type& inner = field.shape.type();
    if (std::find(found.begin(), found.end(), &inner) != found.end()) continue;
    if (!inner.name.empty()) found.push_back(&inner);
    add_named(found, inner);
  }
}

struct Meaning {
  std::string_view label;
  Unit unit = Unit::of_key;
};

void add_meanings(const Type& type, std::set<const Type*>& seen, std::map<std::string_view, Meaning>& meanings) {
  if (!seen.insert(&type).second) return;
  for (const Field& field : type.fields) {
    Meaning& meaning = meanings[field.key];
    if (meaning.label.empty()) meaning.label = field.label;
    if (meaning.unit == Unit::of_key) meaning.unit = field.unit;
    if (field.shape.kind == Kind::object) add_meanings(field.shape.type(), seen, meanings);
  }
}

const Meaning* meaning_of(std::string_view key) {
  static const auto meanings = [] {
    std::map<std::string_view, Meaning> all;
    std::set<const Type*> seen;
    for (const Documented& document : documents()) add_meanings(document.type(), seen, all);
    return all;
  }();
  const auto found = meanings.find(key);
  return found == meanings.end() ? nullptr : &found->second;
}

}  // namespace

std::string label_of(std::string_view key) {
  constexpr std::string_view kUnits[] = {"_bytes_per_s", "_flops_per_s", "_bytes", "_hz", "_usd", "_s", "_w"};
  constexpr std::string_view kAcronyms[] = {"ttft", "tpot", "itl",  "kv",   "mfu", "hfu", "vae", "tp",
                                            "cfg",  "slo",  "sram", "dram", "noc", "lm",  "gguf"};
  const Meaning* meaning = meaning_of(key);
  if (meaning != nullptr && !meaning->label.empty()) return std::string(meaning->label);
  const auto* unit =
      std::ranges::find_if(kUnits, [&](auto end) { return key.size() > end.size() && key.ends_with(end); });
  if (unit != std::end(kUnits)) key.remove_suffix(unit->size());
  std::vector<std::string> words;
  for (const std::string_view word : split(key, '_')) {
    std::string& text = words.emplace_back(word == "flops" ? "FLOPs" : word);
    if (std::ranges::find(kAcronyms, word) == std::end(kAcronyms)) continue;
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  std::string text = join(words, " ");
  constexpr std::string_view kRate = " per second";
  if (const std::size_t rate = text.find(kRate); rate != std::string::npos) text.replace(rate, kRate.size(), "/s");
  return text;
}

Unit unit_of(std::string_view key) {
  const Meaning* meaning = meaning_of(key);
  return meaning == nullptr ? Unit::of_key : meaning->unit;
}

std::span<const Documented> documents() {
  static constexpr Documented kDocuments[] = {
      {"llmperf.estimate", "llmperf estimate --json", &type_of<Generation>},
      {"llmperf.estimate of a video model", "llmperf estimate --json", &type_of<Video>},
      {"llmperf.training", "llmperf estimate --training --json", &type_of<Training>},
      {"llmperf.serve", "llmperf serve --json", &type_of<Serving>},
      {"llmperf.capacity", "llmperf capacity --json", &type_of<result::CapacityResult>},
      {"llmperf.parallel", "llmperf parallel --json", &type_of<ParallelStudy>},
      {"llmperf.parallel_symbolic", "llmperf parallel --symbolic --json", &type_of<StrategyStudy>},
      {"llmperf.graph", "llmperf graph --json", &type_of<ProgramStudy>},
      {"llmperf.compare", "llmperf compare --json", &type_of<TextComparison>},
      {"llmperf.compare of a video model", "llmperf compare --json", &type_of<VideoComparison>},
      {"llmperf.difference", "llmperf compare A.json B.json --json", &type_of<Difference>},
      {"llmperf.difference of more than two", "llmperf compare A.json B.json C.json --json", &type_of<Differences>},
      {"llmperf.explanation", "llmperf explain PATH --json", &type_of<Explanation>},
      {"llmperf.explainable", "llmperf explain --json", &type_of<Explainable>},
      {"llmperf.limits", "llmperf limits --json", &type_of<Limits>},
      {"llmperf.gguf", "llmperf limits --weights all-gguf --json", &type_of<GgufLimits>},
      {"llmperf.mapping", "llmperf map gemm|attention|vector --json", &type_of<MappingStudy>},
      {"llmperf.step_mapping", "llmperf map model --json", &type_of<StepMapping>},
      {"llmperf.collective", "llmperf map-collective --json", &type_of<CollectiveStudy>},
      {"llmperf.validate", "llmperf validate --json", &type_of<measure::Validation>},
      {"llmperf.calibrate", "llmperf calibrate --json", &type_of<measure::Calibration>},
      {"llmperf.replay", "llmperf replay --json", &type_of<replay::Study>},
      {"llmperf.self_test", "llmperf replay --self-test --json", &type_of<SelfTest>},
      {"llmperf.import", "llmperf import --json", &type_of<import::Imported>},
      {"llmperf.model", "llmperf show model --json", &type_of<ModelShown>},
      {"llmperf.video_model", "llmperf show model --json, of a video model", &type_of<VideoModelShown>},
      {"llmperf.models", "llmperf list models --json", &type_of<ModelList>},
      {"llmperf.hardware", "llmperf show hardware --json", &type_of<hardware::Device>},
      {"llmperf.hardware_list", "llmperf list hardware --json", &type_of<DeviceList>},
      {"llmperf.runtime", "llmperf show runtime --json", &type_of<hardware::RuntimeProfile>},
      {"llmperf.runtime_list", "llmperf list runtimes --json", &type_of<RuntimeList>},
      {"llmperf.measurement_list", "llmperf list measurements --json", &type_of<MeasurementList>},
      {"llmperf.sweep", "llmperf sweep --json, llmperf merge --json", &type_of<SweepResult>},
      {"llmperf.study", "llmperf run --json", &type_of<StudyRun>},
      {"llmperf.studies", "llmperf list scenarios --json", &type_of<StudyList>},
      {"llmperf.study_summary", "llmperf show scenario --json", &type_of<StudySummary>},
  };
  return kDocuments;
}

std::string documentation(const Documented& d) {
  const Type& type = d.type();
  return fmt::format("## {}\n\n`{}`\n\n{}{}{}", d.title, d.command, type.doc, type.doc.empty() ? "" : "\n\n",
                     table(type));
}

std::string documentation_of_parts() {
  std::vector<const Type*> named;
  for (const Documented& d : documents()) add_named(named, d.type());
  std::sort(named.begin(), named.end(), [](const Type* a, const Type* b) { return a->name < b->name; });
  std::string out = "## Parts of documents\n\nObjects that several of the documents above have.\n";
  for (const Type* type : named) {
    out += fmt::format("\n### {}\n\n{}{}{}", type->name, type->doc, type->doc.empty() ? "" : "\n\n", table(*type));
  }
  return out;
}

}  // namespace llmperf::result
