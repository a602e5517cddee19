#include "graph/hlo/custom_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/reader.h"

namespace llmperf::graph::hlo {
namespace {

// What a custom call can be: the classes that are costed by their operands and results alone.
constexpr std::string_view kCallable[] = {"elementwise", "movement",      "slice",         "update",   "free",
                                          "product",     "convolution",   "sort",          "random",   "attention",
                                          "transform",   "factorization", "normalization", "transfer", "reduce"};

}  // namespace

std::string_view target_of(const Instruction& i) {
  const auto text = i.find("call_target_name");
  return text ? unquoted(*text) : i.symbol;
}

CustomCalls CustomCalls::built_in() {
  CustomCalls calls;
  calls.add_document(descriptor::load(descriptor::Kind::program, "custom_calls"));
  return calls;
}

void CustomCalls::add_file(const std::string& path) { add_document(descriptor::parse_file(path)); }

void CustomCalls::add_document(const descriptor::Document& document) {
  descriptor::Problems problems(document.file);
  descriptor::Reader reader(document.root, problems, "table of custom calls");
  const std::vector<descriptor::Reader> entries = reader.optional_mappings("custom_calls");
  if (entries.empty()) reader.problem("custom_calls", "a table of custom calls has a list 'custom_calls'");
  for (descriptor::Reader entry : entries) {
    const std::size_t kind = entry.choice("as", kCallable);
    const double operations = entry.optional_double("operations", 0, 1e6).value_or(1);
    const std::vector<std::string> targets = entry.optional_strings("targets");
    if (targets.empty()) entry.problem("targets", "an entry names the targets it is about: targets: [name, prefix*]");
    for (const std::string& target : targets) entries_[target] = {*parse_op_class(kCallable[kind]), operations};
    entry.finish();
  }
  reader.optional_string("source");
  reader.finish();
  problems.throw_if_any();
}

std::optional<Traits> CustomCalls::find(std::string_view target) const {
  if (const auto found = entries_.find(target); found != entries_.end()) return found->second;
  // The longest prefix that fits.
  for (std::size_t size = target.size(); size > 0; --size) {
    const auto found = entries_.find(std::string(target.substr(0, size)) + '*');
    if (found != entries_.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace llmperf::graph::hlo
