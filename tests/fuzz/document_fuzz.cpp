// Documents: every value of one is read in every way, as the readers of files do.
#include <array>
#include <string>

#include "base/error.h"
#include "descriptor/reader.h"
#include "fuzz.h"

namespace {

void walk(llmperf::descriptor::Reader reader) {
  using namespace llmperf::descriptor;
  constexpr std::array<std::string_view, 3> kChoices = {"rms", "layer", "none"};
  const std::vector<Node::Entry>& entries = reader.node().entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& key = entries[i].key;
    switch (i % 8) {  // the last key is never asked for, so that finish() has one to report
      case 0: reader.require_int(key, {1, 100000}); break;
      case 1: reader.optional_double(key, -1, 1e6); break;
      case 2: reader.optional_bool(key); break;
      case 3: reader.choice(key, kChoices); break;
      case 4: reader.optional_bytes(key); break;
      case 5: reader.optional_ints(key); break;
      case 6: reader.require_string(key); break;
      default: break;
    }
    if (entries[i].value.kind == Node::Kind::mapping) {
      if (std::optional<Reader> inner = reader.optional_mapping(key)) walk(*inner);
    } else if (entries[i].value.kind == Node::Kind::sequence) {
      for (const Reader& item : reader.optional_mappings(key)) walk(item);
    }
  }
  reader.require_string("name");
  reader.finish();
}

// Bad input must end in an Error; anything else is a finding.
template <class Parse>
void parse_and_walk(Parse parse) {
  using namespace llmperf::descriptor;
  try {
    const Document document = parse();
    Problems problems(document.file);
    walk(Reader(document.root, problems, "document"));
    problems.throw_if_any();
  } catch (const llmperf::Error&) {
  }
}

}  // namespace

void fuzz_json(std::string_view text) {
  parse_and_walk([text] { return llmperf::descriptor::parse_json(text, "fuzz.json"); });
}
void fuzz_yaml(std::string_view text) {
  parse_and_walk([text] { return llmperf::descriptor::parse_yaml(text, "fuzz.yaml"); });
}
