#include "report/document.h"

namespace llmperf::report {
namespace {

// Pipes would end a cell, angle brackets and ampersands start HTML, the rest emphasis, code and links.
std::string cell(const std::string& text) {
  constexpr std::string_view kMarkup = "|\\`*_[]~";
  std::string out;
  for (const char c : single_line(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string title(const std::string& text) { return text.empty() ? "" : "### " + cell(text) + "\n\n"; }

// ---- A block of each kind

std::string markdown(const Heading& h) {
  return std::string(static_cast<std::size_t>(h.level), '#') + " " + cell(h.text) +
         (h.aside.empty() ? "" : " (" + cell(h.aside) + ")") + "\n";
}

std::string markdown(const Paragraph& p) { return cell(p.text) + "\n"; }

std::string markdown(const Fields& f) {
  std::string out = title(f.title);
  for (const auto& [name, value] : f.rows) out += "* **" + cell(name) + "**: " + cell(value) + "\n";
  return out;
}

std::string markdown(const Table& t) {
  std::string out = title(t.title) + "|";
  std::string rule = "|";
  for (const Column& c : t.columns) {
    out += " " + cell(c.header) + " |";
    rule += c.left ? " --- |" : " ---: |";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : t.rows) {
    out += "|";
    for (std::size_t i = 0; i < t.columns.size(); ++i) out += " " + (i < row.size() ? cell(row[i]) : "") + " |";
    out += "\n";
  }
  return out;
}

std::string markdown(const Commands& c) {
  std::string out = "```sh\n";
  for (const std::string& line : c.lines) out += single_line(line) + "\n";
  return out + "```\n";
}

}  // namespace

std::string render_markdown(const Document& document) {
  std::string out;
  for (const Block& block : document) {
    if (!out.empty()) out += "\n";
    out += std::visit([](const auto& b) { return markdown(b); }, block);
  }
  return out;
}

}  // namespace llmperf::report
