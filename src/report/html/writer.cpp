#include "report/html/writer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "report/document.h"

namespace llmperf::report {
namespace {

constexpr std::size_t kLong = 24;  // bytes of a cell that wants a wide column
constexpr const char* kTones[] = {"plain", "good", "warn", "bad"};

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + html_escaped(value) + "\"";
}

std::string given(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : attribute(name, value);
}

std::string wrapped(std::string_view tag, std::string_view css, const std::string& markup) {
  return "<" + std::string(tag) + given("class", css) + ">" + markup + "</" + std::string(tag) + ">";
}
std::string element(std::string_view tag, std::string_view css, std::string_view text) {
  return wrapped(tag, css, html_escaped(text));
}

// Escaped, with code where the text has it between backticks.
std::string prose(std::string_view text) {
  std::string out;
  for (std::size_t open = 0; (open = text.find('`')) != std::string_view::npos;) {
    const std::size_t close = text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    out += html_escaped(text.substr(0, open)) + element("code", {}, text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  return out + html_escaped(text);
}

// The kinds of provenance that the style knows; any other text is shown as it stands.
bool known_provenance(const std::string& kind) {
  constexpr std::string_view kKinds[] = {"datasheet", "derived", "measured", "fitted", "assumed"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

std::string content(const HtmlCell& cell) {
  if (!cell.provenance || !known_provenance(cell.value)) return html_escaped(cell.text);
  return "<span class=\"provenance\"" + attribute("data-kind", cell.value) + ">" + html_escaped(cell.text) + "</span>";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t length = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (k < length ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= length ? kDigits[(group >> (18U - 6U * static_cast<std::uint32_t>(k))) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : single_line(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

void HtmlWriter::open_section(std::string_view id, std::string_view title, int level) {
  heading_ = title;
  const std::string heading = "h" + std::to_string(std::clamp(level, 2, 6));
  out_ += "<section" + given("id", id) + ">\n" + element(heading, {}, title) + "\n";
}

void HtmlWriter::open_fold(std::string_view css, std::string_view id, std::string_view summary) {
  if (!id.empty()) heading_ = summary;
  out_ += "<details" + given("class", css) + given("id", id) + ">" +
          wrapped("summary", {}, element(id.empty() ? "span" : "h2", {}, summary)) + "\n";
}

void HtmlWriter::paragraph(std::string_view text, std::string_view css) {
  out_ += wrapped("p", css, prose(text)) + "\n";
}

void HtmlWriter::without_script(std::string_view text) {
  out_ += "<noscript>" + element("p", "no-charts", text) + "</noscript>\n";
}

void HtmlWriter::list(const std::vector<std::string>& items) {
  out_ += "<ul>\n";
  for (const std::string& item : items) out_ += wrapped("li", {}, prose(item)) + "\n";
  out_ += "</ul>\n";
}

void HtmlWriter::fields(const std::vector<HtmlField>& fields) {
  if (fields.empty()) return;
  out_ += "<dl class=\"fields\">\n";
  for (const HtmlField& f : fields) {
    const bool exact = !f.cell.value.empty() && !f.cell.provenance;
    out_ += "<div>" + element("dt", {}, f.label) + "<dd" +
            (exact ? attribute("data-value", f.cell.value) : std::string()) + ">" + content(f.cell) + "</dd></div>\n";
  }
  out_ += "</dl>\n";
}

void HtmlWriter::cards(const std::vector<HtmlCard>& cards) {
  if (cards.empty()) return;
  out_ += "<div class=\"cards\">\n";
  for (const HtmlCard& c : cards) {
    out_ += "<div class=\"card\"" + attribute("data-tone", kTones[static_cast<std::size_t>(c.tone)]) + ">";
    out_ += element("div", "card-label", c.label) + element("div", "card-value", c.value);
    if (!c.note.empty()) out_ += element("div", "card-note", c.note);
    out_ += "</div>\n";
  }
  out_ += "</div>\n";
}

void HtmlWriter::table(const HtmlTable& table) {
  if (table.columns.empty() || table.rows.empty()) return;
  out_ += "<div class=\"table-frame\"><table class=\"data\"" + attribute("data-name", table.name);
  const bool said = table.caption == heading_;  // right above it
  out_ += said ? attribute("aria-label", table.caption) + ">" : ">" + element("caption", {}, table.caption);
  out_ += "\n<thead><tr>";
  for (const HtmlColumn& c : table.columns) {
    out_ += "<th scope=\"col\"" + attribute("data-key", c.key) + attribute("data-type", c.number ? "number" : "text") +
            (c.number ? " class=\"number\">" : ">") + html_escaped(c.label) + "</th>";
  }
  out_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out_ += "<tr>";
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      static const HtmlCell kEmpty;
      const HtmlCell& cell = i < row.size() ? row[i] : kEmpty;
      out_ += "<td";
      if (!cell.value.empty() && !cell.provenance) out_ += attribute("data-value", cell.value);
      if (table.columns[i].number) out_ += " class=\"number\"";
      if (!table.columns[i].number && cell.text.size() > kLong) out_ += " class=\"long\"";
      out_ += ">" + content(cell) + "</td>";
    }
    out_ += "</tr>\n";
  }
  out_ += "</tbody></table></div>\n";
}

void HtmlWriter::figure(std::string_view chart, std::string_view phase, std::string_view title, std::string_view rows) {
  out_ += "<figure class=\"chart\"" + attribute("data-chart", chart) + given("data-phase", phase) +
          given("data-rows", rows) + " hidden>" + element("figcaption", {}, title) +
          "<div class=\"canvas\" role=\"img\"" + attribute("aria-label", title) + "></div></figure>\n";
}

void HtmlWriter::command(std::string_view text) { out_ += element("pre", "command", text) + "\n"; }

void HtmlWriter::svg_image(std::string_view svg, std::string_view title, bool unscripted) {
  const std::string image =
      "<img class=\"drawing\" src=\"data:image/svg+xml;base64," + base64(svg) + "\"" + attribute("alt", title) + ">";
  out_ += (unscripted ? "<noscript>" + image + "</noscript>" : image) + "\n";
}

}  // namespace llmperf::report
