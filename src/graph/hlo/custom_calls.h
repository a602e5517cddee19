// What custom calls do, by the name of their target: a table in programs/custom_calls.yaml, which a user's file
// extends.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "graph/hlo/module.h"
#include "graph/hlo/op_table.h"

namespace llmperf::descriptor {
struct Document;
}

namespace llmperf::graph::hlo {

// What a custom call calls, in either form.
std::string_view target_of(const Instruction& i);

class CustomCalls {
 public:
  // The table that is part of llmperf.
  static CustomCalls built_in();
  // Adds the entries of a YAML file; its targets replace those of the same name. Throws Error(bad_input).
  void add_file(const std::string& path);
  // Nothing when the target is not in the table. A target "name*" in the table stands for all that begin with name.
  std::optional<Traits> find(std::string_view target) const;

 private:
  void add_document(const descriptor::Document& document);
  std::map<std::string, Traits, std::less<>> entries_;
};

}  // namespace llmperf::graph::hlo
