// The page is its data: it is made from a result's JSON alone, whether the command runs now or a saved file is read.
// That file may come from anyone. Nothing in it is trusted: every text is escaped for its place (writer.cpp), a
// drawing is shown as an image, and no value is taken to be of the type that it should be.
#include "report/html/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "report/html/assets.h"
#include "report/html/values.h"
#include "request/request.h"
#include "result/row.h"

namespace llmperf::report {
namespace {

// ---- Around what stands on a page: its head, and what its scripts read.

// From the doctype to the end of the head. `policy`: what scripts may do besides what those of any report may, and
// `style`: on top of theirs.
std::string page_head(const std::string& title, const Labels& labels, std::string_view policy,
                      std::string_view style = {}) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:; script-src 'unsafe-inline'{}\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n",
      labels.language() == Language::chinese ? "zh-CN" : "en", policy, html_escaped(title), html_assets().style, style);
}

// JSON in a script element: nothing in it may end the element, and no line separator that JavaScript knows.
std::string in_script(const Json& json) {
  std::string out;
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i, 3);
    if (text[i] == '<' || text[i] == '>' || text[i] == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[i]));
    } else if (rest == "\u2028" || rest == "\u2029") {
      out += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string json_element(std::string_view id, const Json& json) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, in_script(json));
}

// ---- The explorer: a page that computes, and asleep a part of one that reports.

// What the content security policy of a page that computes allows besides that of a report.
constexpr std::string_view kExplorerPolicy = " 'wasm-unsafe-eval'; worker-src blob:";

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

// What makes a report's page recompute: a button, and all that the explorer is made of, asleep until it is pressed.
// Empty where there is no engine.
struct ExplorerPart {
  std::string button;
  std::string scripts;
};
ExplorerPart explorer_part(const Labels& labels) {
  const ExplorerAssets& assets = explorer_assets();
  if (!assets.missing.empty()) return {};
  constexpr std::string_view kAsleep = "type=\"text/plain\" ";
  return {"<p class=\"explore\" hidden><button type=\"button\" id=\"explore\">" + html_escaped(labels.text("explore")) +
              "</button></p>",
          tagged("style", "id=\"explorer-style\" media=\"not all\"", assets.style) + engine_elements(kAsleep) +
              tagged("script", "type=\"text/plain\" id=\"explorer-script\"", assets.script)};
}

// ---- The report of a result.

constexpr int kMostDepth = 64;  // of objects in objects; what is drawn by recursion has to end
constexpr const char* kHint = "a report is made of what a command writes with `json` or `export` FILE.json";

[[noreturn]] void refuse(std::string message, SourcePosition where = {}) {
  throw Error(ErrorKind::bad_input, {{std::move(where), std::move(message), kHint}});
}

SourcePosition position(const std::string& text, std::size_t byte) {
  SourcePosition where{{}, 1, 1, {}};
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    where.column = text[i] == '\n' ? 1 : where.column + 1;
    where.line += text[i] == '\n' ? 1 : 0;
  }
  return where;
}

Json parsed(const std::string& text) {
  if (trim(text).empty()) refuse("empty, not a result");
  try {
    return Json::parse(text, [](int depth, Json::parse_event_t event, Json& value) {
      if (depth > kMostDepth) refuse(fmt::format("objects lie in each other deeper than {}", kMostDepth));
      const bool text_read = event == Json::parse_event_t::value && value.is_string();
      if (text_read) value = without_unsafe(value.get_ref<const std::string&>(), false);
      return true;
    });
  } catch (const Json::parse_error& e) {
    refuse("not JSON from here on", position(text, e.byte));
  } catch (const Json::exception&) {
    refuse("not JSON: a number is out of range");
  }
}

Json result_of(const std::string& text) {
  Json json = parsed(text);
  const std::string schema = find_text(json, "schema");
  if (!schema.starts_with("llmperf.")) {
    refuse(schema.empty() ? "not a result of llmperf: it has no 'schema'"
                          : "not a result of llmperf: its schema is " + quote(schema));
  }
  const auto version = find_number(json, "schema_version");
  if (!version || *version != 1) {
    refuse(fmt::format("this llmperf reads version 1 of {}, and the result is {}", quote(schema),
                       version ? "of version " + plain(*version) : "without a version"));
  }
  return json;
}

std::string first_text(const Json& json, std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    std::string text = find_text(json, path);
    if (!text.empty()) return text;
  }
  return {};
}

// The axes of a sweep: "batch × prompt".
std::string axes_text(const Json& json, const Labels& labels) {
  std::string text;
  for (const Json& axis : list_at(json, "axes")) {
    const std::string name = labels.key(find_text(axis, "column"));
    if (!name.empty()) text = text.empty() ? name : labels.text("two_axes", {text, name});
  }
  return text;
}

// The sides of a comparison: "a.json → b.json", with their folders where these tell them apart; the first of several.
std::string sides_text(const Json& json, const Labels& labels) {
  constexpr std::size_t kNamed = 4;
  if (const Json& results = list_at(json, "results"); !results.empty()) {
    std::string text = find_text(results[0], "name");
    for (std::size_t i = 1; i < std::min(kNamed, results.size()); ++i) {
      text = labels.text("two_sides", {text, find_text(results[i], "name")});
    }
    return text + (results.size() > kNamed ? " …" : "");
  }
  std::string before = find_text(json, "before.source");
  std::string after = find_text(json, "after.source");
  if (before.empty() || after.empty()) return {};
  const std::string names[] = {before.substr(before.rfind('/') + 1), after.substr(after.rfind('/') + 1)};
  if (names[0] != names[1]) {
    before = names[0];
    after = names[1];
  }
  return labels.text("two_sides", {before, after});
}

// "Estimate: qwen-7b on rtx4090"
std::string title_of(const Json& json, const Labels& labels) {
  const std::string schema = find_text(json, "schema");
  const std::string kind = labels.value("schema", schema.substr(schema.find('.') + 1));
  if (const std::string title = find_text(json, "title"); schema == "llmperf.study" && !title.empty()) return title;
  const std::string model = first_text(json, {"inputs.model.name", "inputs.model", "model"});
  std::string hardware = first_text(json, {"inputs.hardware.name", "inputs.hardware", "hardware"});
  // Cards of several kinds are named as they were asked for.
  if (const std::string cards = find_text(json, "request.hw"); cards.find('+') != std::string::npos) {
    hardware = cards;
  } else if (const auto devices = find_number(json, "inputs.devices"); devices && *devices > 1 && !hardware.empty()) {
    hardware = labels.text("two_axes", {plain(*devices), hardware});
  }
  if (!model.empty() && !hardware.empty())
    return labels.text("one_phase", {kind, labels.text("on", {model, hardware})});
  std::string name;
  if (schema == "llmperf.sweep") name = axes_text(json, labels);
  if (schema == "llmperf.difference") name = sides_text(json, labels);
  if (name.empty()) {
    name = first_text(json, {"inputs.model.name", "inputs.model", "model", "inputs.hardware.name", "hardware", "name",
                             "path", "program", "what"});
  }
  return name.empty() ? kind : labels.text("one_phase", {kind, name});
}

// "predicted: vllm on rtx4090 · batch 1 · prompt 512 · …"
std::string subtitle_of(const Json& json, const Labels& labels) {
  std::vector<std::string> parts;
  for (const char* key : {"label", "selection"}) {
    const std::string text = find_text(json, key);
    if (!text.empty()) parts.push_back(labels.sentence(text));
  }
  for (const char* key : {"batch", "prompt_tokens", "generate_tokens", "global_batch", "micro_batch", "sequence_tokens",
                          "videos", "steps", "weights", "kv", "devices"}) {
    const Json* value = find(json, std::string("inputs.") + key);
    if (value == nullptr || value->is_null() || !is_scalar(*value)) continue;
    parts.push_back(labels.key(key) + " " + shown(*value, key, {}, labels).text);
  }
  return join(parts, " · ");
}

void collect_keys(const Json& json, Json& labels, const Labels& words) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) labels[key] = words.key(key);
    if (!is_scalar(value)) collect_keys(value, labels, words);
    if (key == "columns" && is_list_of_texts(&value)) {  // of a study's tables
      for (const Json& column : value) labels[column] = words.key(column.get<std::string>());
    }
  }
}

std::string scripts(const Json& json, const Labels& labels) {
  Json keys = Json::object();
  collect_keys(json, keys, labels);
  const Json words = {{"lang", labels.language() == Language::chinese ? "zh" : "en"}, {"labels", keys}};
  std::string out = json_element("result", json) + json_element("labels", words);
  const HtmlAssets& assets = html_assets();
  if (!assets.script.empty()) out += "<script>" + std::string(assets.script) + "</script>\n";
  return out;
}

// Whether a page could compute it anew: generated text, of what the engine has itself.
bool explorable(const Json& json) {
  const Json* request = find(json, "request");
  if (find_text(json, "schema") != "llmperf.estimate" || request == nullptr || !request->is_object()) return false;
  if (find(json, "inputs.prompt_tokens") == nullptr) return false;
  for (const char* key : {"model", "hw"}) {
    const std::string name = find_text(*request, key);
    if (name.empty() || name.starts_with('/') || name.starts_with('.') || name.ends_with(".yaml") ||
        name.ends_with(".json") || name.ends_with(".gguf")) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string render_html(const std::string& text, Language language) {
  const Json json = result_of(text);
  const Labels labels(language);
  const std::string title = title_of(json, labels);
  HtmlWriter page;
  write_page(page, json, labels);
  const std::string tool = labels.text(
      "made_by", {first_text(json, {"tool.name"}), first_text(json, {"tool.version"}), find_text(json, "schema"), "1"});
  const ExplorerPart explorer = explorable(json) ? explorer_part(labels) : ExplorerPart{};
  return page_head(title, labels, explorer.scripts.empty() ? "" : kExplorerPolicy) +
         "<body>\n<header class=\"page-head\"><h1>" + html_escaped(title) + "</h1><p class=\"subtitle\">" +
         html_escaped(subtitle_of(json, labels)) + "</p>" + explorer.button + "</header>\n<main>\n" + page.html() +
         "</main>\n<footer>" + html_escaped(tool) + "</footer>\n" + scripts(json, labels) + explorer.scripts +
         "</body>\n</html>\n";
}

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

}  // namespace llmperf::report
