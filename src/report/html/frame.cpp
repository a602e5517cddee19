#include "report/html/frame.h"

#include <fmt/format.h>

#include "report/html/assets.h"
#include "report/html/writer.h"

namespace llmperf::report {

std::string page_head(const std::string& title, const Labels& labels, std::string_view policy, std::string_view style) {
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

}  // namespace llmperf::report
