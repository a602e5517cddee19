// JSON through nlohmann's SAX events, which carry no positions. A cursor follows the events through the text instead:
// what lies between two of them is only white space, commas and colons, and the lexer has already checked the token it
// stops at.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "descriptor/node.h"
#include "descriptor/tree_builder.h"

namespace llmperf::descriptor {
namespace {

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - invalid
// literal; last read: 'x'; expected …" reduced to "invalid literal; expected …". The text last read can be of any
// length.
std::string plain_message(std::string_view message) {
  const std::size_t dash = message.find(" - ");
  if (dash != std::string_view::npos) message.remove_prefix(dash + 3);
  const std::string_view reason = message.substr(0, message.find("; last read: "));
  const std::size_t expected = message.rfind("; expected ");
  std::string plain(reason);
  if (expected != std::string_view::npos && expected >= reason.size()) plain += message.substr(expected);
  return plain;
}

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(std::string_view text, const std::string& file, TreeBuilder& tree) : text_(text), file_(file), tree_(tree) {}

  bool null() override {
    const SourcePosition at = take_word();
    tree_.null(at.line, at.column);
    return true;
  }
  bool boolean(bool) override { return word(); }
  bool number_integer(number_integer_t) override { return word(); }
  bool number_unsigned(number_unsigned_t) override { return word(); }
  bool number_float(number_float_t, const string_t&) override { return word(); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool string(string_t& value) override {
    const SourcePosition at = take_string();
    tree_.scalar(at.line, at.column, std::move(value), true);
    return true;
  }
  bool key(string_t& value) override {
    const SourcePosition at = take_string();
    tree_.key(at.line, at.column, std::move(value));
    return true;
  }
  bool start_object(std::size_t) override { return open(Node::Kind::mapping); }
  bool start_array(std::size_t) override { return open(Node::Kind::sequence); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t read, const std::string&, const nlohmann::json::exception& error) override {
    constexpr int kNumberTooLarge = 406;
    const std::string message = plain_message(error.what());
    const bool at_end = message.starts_with("unexpected end of input");
    const bool truncated = at_end || message.find("missing closing quote") != std::string::npos;
    skip_separators();
    advance_to(at_end ? text_.size() : std::min(cursor_, std::max<std::size_t>(read, 1) - 1));
    if (error.id == kNumberTooLarge) tree_.fail(line_, column(), "number too large: " + quote(word_at_cursor()));
    tree_.fail(line_, column(), "not valid JSON: " + message, truncated ? "is the file truncated?" : "");
  }

 private:
  int column() const { return static_cast<int>(cursor_ - line_start_) + 1; }
  void advance_to(std::size_t offset) {
    // Errors may point before the cursor; counting anew is cheap enough for the one time it happens.
    const SourcePosition at = position_of(text_, offset, file_);
    cursor_ = offset;
    line_ = at.line;
    line_start_ = offset + 1 - static_cast<std::size_t>(at.column);
  }
  // To the first character of the next token.
  void skip_separators() {
    for (; cursor_ < text_.size(); ++cursor_) {
      const char c = text_[cursor_];
      if (c == '\n') {
        ++line_;
        line_start_ = cursor_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ':') {
        return;
      }
    }
  }
  SourcePosition start_token() {
    skip_separators();
    return {file_, line_, column()};
  }
  // The number, true, false or null that starts here.
  std::string_view word_at_cursor() const {
    const std::string_view rest = text_.substr(cursor_);
    return rest.substr(0, rest.find_first_of(" \t\r\n,:]}"));
  }
  SourcePosition take_word() {
    const SourcePosition at = start_token();
    cursor_ += word_at_cursor().size();
    return at;
  }
  SourcePosition take_string() {
    const SourcePosition at = start_token();
    for (++cursor_; text_[cursor_] != '"'; ++cursor_) {
      if (text_[cursor_] == '\\') ++cursor_;
    }
    ++cursor_;
    return at;
  }
  bool word() {
    const SourcePosition at = start_token();
    const std::string_view text = word_at_cursor();
    cursor_ += text.size();
    tree_.scalar(at.line, at.column, std::string(text), false);
    return true;
  }
  bool open(Node::Kind kind) {
    const SourcePosition at = start_token();
    ++cursor_;
    tree_.open(kind, at.line, at.column);
    return true;
  }
  bool close() {
    skip_separators();
    ++cursor_;
    tree_.close();
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  TreeBuilder& tree_;
  std::size_t cursor_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

// `text` with numbers of as many characters in place of NaN, Infinity and -Infinity: the parser then accepts them, and
// the tree takes the words from the text itself.
std::string with_finite_numbers(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"NaN", "100"}, {"Infinity", "10000000"}};
  const auto is_apart = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : ' ';
    return !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '.';
  };
  std::string finite(text);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;  // and what it escapes
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (i == 0 || is_apart(i - 1))) {
      for (const auto& [word, number] : kWords) {
        if (text.substr(i).starts_with(word) && is_apart(i + word.size())) finite.replace(i, word.size(), number);
      }
    }
  }
  return finite;
}

}  // namespace

Document parse_json(std::string_view text, std::string file,  // NOLINT(performance-unnecessary-value-param)
                    const JsonRules& rules) {
  text = check_source_text(text, file, rules.max_bytes);
  TreeBuilder tree(file);
  Handler handler(text, file, tree);
  const std::string finite = rules.python_numbers ? with_finite_numbers(text) : std::string();
  const std::string_view parsed = rules.python_numbers ? finite : text;
  nlohmann::json::sax_parse(parsed.begin(), parsed.end(), &handler);
  return tree.finish();
}

namespace {

// A number or a truth that JSON writes the same; other plain scalars of YAML are texts.
bool is_bare(const Node& node) {
  const std::string& text = node.scalar;
  if (node.quoted || text.empty()) return false;
  if (text == "true" || text == "false") return true;
  return (text.front() == '-' || (text.front() >= '0' && text.front() <= '9')) && nlohmann::json::accept(text);
}

void append_json(std::string& out, const Node& node) {
  const auto append_text = [&](const std::string& text) { out += nlohmann::json(text).dump(); };
  switch (node.kind) {
    case Node::Kind::null: out += "null"; break;
    case Node::Kind::scalar: is_bare(node) ? void(out += node.scalar) : append_text(node.scalar); break;
    case Node::Kind::sequence:
      out += '[';
      for (const Node& item : node.items) {
        if (&item != &node.items.front()) out += ',';
        append_json(out, item);
      }
      out += ']';
      break;
    case Node::Kind::mapping:
      out += '{';
      for (const Node::Entry& entry : node.entries) {
        if (&entry != &node.entries.front()) out += ',';
        append_text(entry.key);
        out += ':';
        append_json(out, entry.value);
      }
      out += '}';
      break;
  }
}

}  // namespace

std::string to_json(const Node& node) {
  std::string out;
  append_json(out, node);
  return out;
}

}  // namespace llmperf::descriptor
