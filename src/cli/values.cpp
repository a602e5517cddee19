#include "cli/values.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

struct NamedFormat {
  const char* name;
  report::Format format;
};
constexpr NamedFormat kFormats[] = {{"trace.json", report::Format::trace},  // before json, which it ends in
                                    {"table", report::Format::table},      {"csv", report::Format::csv},
                                    {"json", report::Format::json},        {"md", report::Format::md},
                                    {"html", report::Format::html}};

}  // namespace

report::Format format_value(std::string_view flag, std::string_view text) {
  std::vector<std::string> names;
  for (const NamedFormat& f : kFormats) {
    if (text == f.name) return f.format;
    names.emplace_back(f.name);
  }
  throw Error::bad_input(fmt::format("{}: there is no {}", flag, quote(text)), name_hint(text, names));
}

report::Format export_format(std::string_view path) {
  for (const NamedFormat& f : kFormats) {
    if (f.format != report::Format::table && path.ends_with(fmt::format(".{}", f.name))) return f.format;
  }
  throw Error::bad_input(fmt::format("--export: no format goes with the name {}", quote(path)),
                         "end it in .json, .csv, .md, .html or .trace.json");
}

}  // namespace llmperf::cli
