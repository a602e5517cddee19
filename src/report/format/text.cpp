#include "base/text.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "report/document.h"

namespace llmperf::report {

std::string single_line(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const std::optional<char32_t> character = decode_utf8(text, offset);
    if (!character) {
      out += "\uFFFD";
    } else if (*character == '\n' || *character == '\r' || *character == '\t') {
      out += ' ';
    } else if (is_unsafe(*character)) {
      out += '?';
    } else {
      out += text.substr(start, offset - start);
    }
  }
  return out;
}

namespace {

// The longest start of `word` that takes at most `width` columns, at least one character.
std::size_t fitting_prefix(std::string_view word, int width) {
  std::size_t end = 0;
  for (std::size_t next = 0; next < word.size();) {
    decode_utf8(word, next);
    if (end > 0 && display_width(word.substr(0, next)) > width) break;
    end = next;
  }
  return end;
}

// Words onto lines of at most `width` columns; a longer word is broken.
std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  const auto append = [&](std::string_view part) {
    lines.back() += part;
    used += display_width(part);
  };
  std::vector<std::string> together;
  bool number = false;  // which stays with what it counts, and that with its band: "17.56 ms ±4 %"
  for (const std::string_view word : split(text, ' ')) {
    const bool fits = !together.empty() && display_width(together.back()) + 1 + display_width(word) <= width;
    fits && (number || word.starts_with("±")) ? together.back().append(" ").append(word) : together.emplace_back(word);
    number = word.find_last_of("0123456789") + 1 == word.size() &&
             word.find_first_not_of("0123456789.,±") == std::string_view::npos;
  }
  for (std::string_view word : together) {
    if (used > 0 && used + 1 + display_width(word) > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used > 0) append(" ");
    while (used == 0 && display_width(word) > width && fitting_prefix(word, width) < word.size()) {
      const std::size_t end = fitting_prefix(word, width);
      lines.back() += word.substr(0, end);
      lines.emplace_back();
      word.remove_prefix(end);
    }
    append(word);
  }
  return lines;
}

std::string wrapped(std::string_view text) {
  std::string out;
  for (const std::string& line : wrap(text, kPageWidth)) out += line + "\n";
  return out;
}

std::string title_lines(const std::string& text) { return text.empty() ? "" : wrapped(single_line(text)); }

std::string plain_text(const Paragraph& p, bool) { return wrapped(single_line(p.text)); }

// The aside stands on the right of the last line when there is room, else below.
std::string plain_text(const Heading& h, bool colour) {
  constexpr int kGap = 3;
  const std::string aside = single_line(h.aside);
  const std::vector<std::string> lines = wrap(single_line(h.text), kPageWidth);
  std::string out;
  for (const std::string& line : lines) out += (colour ? "\x1b[1m" + line + "\x1b[0m" : line) + "\n";
  if (aside.empty()) return out;
  const int room = kPageWidth - display_width(lines.back()) - display_width(aside);
  if (room < kGap) return out + pad(aside, kPageWidth, false) + "\n";
  out.pop_back();
  return out + std::string(static_cast<std::size_t>(room), ' ') + aside + "\n";
}

std::string plain_text(const Fields& f, bool) {
  constexpr int kWidestLabel = 40;
  int label = 0;
  for (const auto& row : f.rows) label = std::max(label, display_width(single_line(row.first)));
  label = std::min(label, kWidestLabel);
  std::string out = title_lines(f.title);
  for (const auto& [name, value] : f.rows) {
    const std::vector<std::string> names = wrap(single_line(name), label);
    const std::vector<std::string> values = wrap(single_line(value), kPageWidth - label - 4);
    for (std::size_t i = 0; i < std::max(names.size(), values.size()); ++i) {
      std::string line = "  " + pad(i < names.size() ? names[i] : "", label, true) + "  ";
      if (i < values.size()) line += values[i];
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
  }
  return out;
}

// Never wrapped: a line is to be copied. One that starts with # is a remark.
std::string plain_text(const Commands& c, bool) {
  std::string out;
  for (const std::string& line : c.lines) {
    out += (line.starts_with('#') ? "  " : "  $ ") + single_line(line) + "\n";
  }
  return out;
}

constexpr int kMargin = 2;  // before the first column and between two

int longest_word(std::string_view text) {
  int longest = 0;
  for (const std::string_view word : split(text, ' ')) longest = std::max(longest, display_width(word));
  return longest;
}

// Narrows the widest column above its floor, one character at a time, until the table fits the page or all are at their
// floors.
void narrow(std::vector<int>& widths, const std::vector<int>& floors, int& total) {
  while (total > kPageWidth) {
    int* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > floors[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr) return;
    --*widest;
    --total;
  }
}

// As wide as the widest cell. Where that exceeds the page, text is wrapped between words; only where that is not enough
// are words and numbers broken.
std::vector<int> column_widths(const Table& t) {
  constexpr int kNarrowest = 4;
  std::vector<int> widths, words;
  int total = 0;
  for (std::size_t i = 0; i < t.columns.size(); ++i) {
    int width = display_width(t.columns[i].header);
    int word = longest_word(t.columns[i].header);
    for (const auto& row : t.rows) {
      if (i >= row.size()) continue;
      const std::string text = single_line(row[i]);
      width = std::max(width, display_width(text));
      word = std::max(word, longest_word(text));
    }
    widths.push_back(width);
    words.push_back(t.columns[i].left ? word : width);
    total += kMargin + width;
  }
  narrow(widths, words, total);
  narrow(widths, std::vector<int>(widths.size(), kNarrowest), total);
  return widths;
}

std::string plain_text(const Table& t, bool) {
  const std::vector<int> widths = column_widths(t);
  const auto print_row = [&](auto&& cell) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string text = single_line(cell(i));
      // Indentation stays where nothing has to be wrapped.
      cells.push_back(display_width(text) <= widths[i] ? std::vector{text} : wrap(text, widths[i]));
      height = std::max(height, cells.back().size());
    }
    std::string out;
    for (std::size_t line = 0; line < height; ++line) {
      for (std::size_t i = 0; i < widths.size(); ++i) {
        out +=
            std::string(kMargin, ' ') + pad(line < cells[i].size() ? cells[i][line] : "", widths[i], t.columns[i].left);
      }
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n";
    }
    return out;
  };
  std::string out = title_lines(t.title) + print_row([&](std::size_t i) { return t.columns[i].header; });
  for (const auto& row : t.rows)
    out += print_row([&](std::size_t i) { return i < row.size() ? row[i] : std::string(); });
  return out;
}

}  // namespace

std::string render_text(const Document& document, bool colour) {
  std::string out;
  for (const Block& block : document) {
    if (!out.empty()) out += "\n";
    out += std::visit([&](const auto& b) { return plain_text(b, colour); }, block);
  }
  return out;
}

}  // namespace llmperf::report
