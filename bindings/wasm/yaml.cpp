// In place of descriptor/yaml.cpp: what is embedded is JSON here (embed.cpp). YAML that a user has is made JSON by the
// page.
#include "base/error.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {

Document parse_yaml(std::string_view text, std::string file) {
  const std::size_t json = text.rfind("\n{\"");  // behind the lines by which names are looked up
  if (json == std::string_view::npos) {
    throw Error(ErrorKind::bad_input,
                {{{std::move(file), 0, 0}, "YAML is read by the page", "give its values as JSON"}});
  }
  return parse_json(text.substr(json + 1), std::move(file));
}

}  // namespace llmperf::descriptor
