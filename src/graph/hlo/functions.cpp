#include "graph/hlo/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "graph/hlo/op_table.h"

namespace llmperf::graph::hlo {
namespace {

void note_callees(const Block& block, std::set<std::string_view>& called) {
  for (const Instruction& i : block.body) {
    const std::string_view callee = callee_of(i);
    if (!callee.empty()) called.insert(callee);
    for (const Block& inner : i.regions) note_callees(inner, called);
  }
}

// Of the functions of one program of the file.
void add_entries(std::span<const Function> functions, std::vector<const Function*>& entries) {
  std::vector<const Function*> found;
  std::set<std::string_view> called;
  for (const Function& f : functions) {
    if (f.declared) continue;
    if (f.name == "main") {
      entries.push_back(&f);
      return;
    }
    found.push_back(&f);
    note_callees(f.body, called);
  }
  std::erase_if(found, [&](const Function* f) { return called.contains(f->name); });
  const bool some_public = std::any_of(found.begin(), found.end(), [](const Function* f) { return !f->is_private; });
  if (some_public) std::erase_if(found, [](const Function* f) { return f->is_private; });
  entries.insert(entries.end(), found.begin(), found.end());
}

}  // namespace

std::string_view callee_of(const Instruction& i) {
  for (const std::string_view key : {"callee", "decomposition", "called_computation"}) {
    if (const auto text = i.find(key)) return unquoted(*text);
  }
  if (const auto text = i.find("called_computations")) {
    const std::size_t at = text->find('@');
    if (at == std::string_view::npos) return {};
    return text->substr(at + 1, text->find_first_of(",] ", at) - at - 1);
  }
  return i.op() == "custom_call" ? std::string_view{} : i.symbol;
}

Functions::Functions(const Module& module) : module_(module) {
  for (const Function& f : module.functions) by_name_.try_emplace({f.chunk, f.name}, &f);
}

const Function* Functions::find(std::string_view name, int chunk) const {
  const std::size_t nested = name.rfind("::@");
  if (nested != std::string_view::npos) name.remove_prefix(nested + 3);
  const auto found = by_name_.find({chunk, name});
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<const Function*> Functions::entries(const std::string& name) const {
  const auto fail = [&](SourcePosition where, std::string message, std::string hint) {
    throw Error(ErrorKind::bad_input, {{std::move(where), std::move(message), std::move(hint)}});
  };
  const std::vector<Function>& all = module_.functions;
  if (!name.empty()) {
    std::vector<std::string> names;
    for (const Function& f : all) {
      if (f.name == name && !f.declared) return {&f};
      names.emplace_back(f.name);
    }
    fail({module_.source->name(), 0, 0}, fmt::format("there is no function {}", quote(name)), name_hint(name, names));
  }
  std::vector<const Function*> found;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && all[end].chunk == all[begin].chunk) ++end;
    add_entries(std::span(all).subspan(begin, end - begin), found);
    begin = end;
  }
  if (found.empty()) {
    const auto body = std::find_if(all.begin(), all.end(), [](const Function& f) { return !f.declared; });
    if (body != all.end()) {
      fail(module_.source->position(body->offset), "every function is called by another: there is none to begin with",
           "--entry NAME takes one");
    }
    fail(module_.source->position(0), "there are no ops in it",
         "a StableHLO or MHLO module as text; bytecode is printed by stablehlo-opt");
  }
  return found;
}

double Functions::unfolded(const Function& f, int depth) {
  const auto found = unfolded_.find(&f);
  if (found != unfolded_.end()) return found->second;
  if (depth > kMaxCalls) return 0;  // the calls themselves are refused
  unfolded_[&f] = 0;                // of a function that calls itself, too
  const double size = unfolded(f.body, f.chunk, depth);
  return unfolded_[&f] = size;
}

double Functions::unfolded(const Block& block, int chunk, int depth) {
  double size = 0;
  for (const Instruction& i : block.body) {
    size += static_cast<double>(std::max<std::size_t>(1, i.results.size()));  // values take memory as ops do
    const std::string_view callee = callee_of(i);
    const Function* f = callee.empty() ? nullptr : find(callee, chunk);
    if (f != nullptr) size += unfolded(*f, depth + 1);
    const OpClass c = traits_of(i.name).op_class;
    if (c != OpClass::loop && c != OpClass::branch && c != OpClass::region && c != OpClass::free) continue;
    for (const Block& inner : i.regions) size += unfolded(inner, chunk, depth);
  }
  return size;
}

}  // namespace llmperf::graph::hlo
