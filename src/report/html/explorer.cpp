#include "report/html/explorer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "report/html/assets.h"
#include "report/html/frame.h"
#include "report/html/writer.h"
#include "request/request.h"

namespace llmperf::report {
namespace {

std::string tagged(std::string_view tag, std::string_view attributes, std::string_view text) {
  return fmt::format("<{0} {1}>{2}</{0}>\n", tag, attributes, text);
}

// What fields are called in both languages, by their keys. Of the form: what the page's own script has no word for.
Json field_labels() {
  const Labels english(Language::english);
  const Labels chinese(Language::chinese);
  Json labels = Json::object();
  for (const request::Field& field : request::fields()) {
    std::string key(field.name);
    std::replace(key.begin(), key.end(), '-', '_');
    labels[key] = {english.key(key), chinese.key(key)};
  }
  return labels;
}

// `type`: of scripts that wait, one that no browser runs.
std::string engine_elements(std::string_view type) {
  const ExplorerAssets& assets = explorer_assets();
  return tagged("script", "type=\"text/plain\" id=\"engine-packed\"", assets.packed) +
         tagged("script", fmt::format("{}id=\"engine-script\"", type), assets.engine) +
         tagged("script", "type=\"application/json\" id=\"engine-catalog\"", assets.catalog) +
         json_element("explorer-labels", field_labels());
}

}  // namespace

std::string explorer_missing() { return std::string(explorer_assets().missing); }

std::string render_explorer(const std::string& request, const FileNames& names, Language language) {
  const ExplorerAssets& assets = explorer_assets();
  if (!assets.missing.empty()) throw Error::failed(explorer_missing());
  Json state = {{"request", Json::parse(request)}, {"names", Json::object()}};
  for (const auto& [field, name] : names) state["names"][field] = name;
  if (language == Language::chinese) state["lang"] = "zh";
  return page_head("llmperf explorer", Labels(language), kExplorerPolicy, assets.style) +
         "<body>\n<div id=\"explorer\"></div>\n<noscript><p class=\"starting\">" +
         html_escaped(Labels(language).text("explorer_script")) + "</p></noscript>\n" + json_element("state", state) +
         engine_elements({}) + tagged("script", "id=\"explorer-script\"", assets.script) + "</body>\n</html>\n";
}

ExplorerPart explorer_part(const Labels& labels) {
  const ExplorerAssets& assets = explorer_assets();
  if (!assets.missing.empty()) return {};
  constexpr std::string_view kAsleep = "type=\"text/plain\" ";
  return {"<p class=\"explore\" hidden><button type=\"button\" id=\"explore\">" + html_escaped(labels.text("explore")) +
              "</button></p>",
          tagged("style", "id=\"explorer-style\" media=\"not all\"", assets.style) + engine_elements(kAsleep) +
              tagged("script", "type=\"text/plain\" id=\"explorer-script\"", assets.script)};
}

}  // namespace llmperf::report
