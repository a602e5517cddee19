// YAML through yaml-cpp's events. The subset is what a data file needs: one document of mappings with plain keys,
// sequences and scalars. Anchors, aliases and tags are errors: they would let a small file expand without bound, or
// change what a value means.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "descriptor/node.h"
#include "descriptor/tree_builder.h"

namespace llmperf::descriptor {
namespace {

class Handler : public YAML::EventHandler {
 public:
  Handler(std::string_view text, TreeBuilder& tree) : text_(text), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      fail(mark, "text after the end of the document", "one document per file: check the indentation, or remove '---'");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (tree_.expects_key()) fail(mark, "a key must be a name, not empty");
    if (bare_key_)
      fail(*bare_key_, "a key without a colon and a value", "write 'key: value'; or is a bracket left open?");
    tree_.null(mark.line + 1, mark.column + 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { fail(mark, "aliases (*name) are not supported"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    const auto start = static_cast<std::size_t>(mark.pos);
    const char first = start < text_.size() ? text_[start] : '\0';
    const bool in_quotes = first == '"' || first == '\'';
    const std::size_t end = in_quotes ? end_of_quoted(start) : start + value.size();
    // yaml-cpp would take the rest of the file for the string.
    if (end == std::string_view::npos) fail(mark, "not valid YAML: a quote that is never closed");
    if (tree_.expects_key()) {
      tree_.key(mark.line + 1, mark.column + 1, value);
      if (!colon_follows(end)) bare_key_ = mark;
    } else {
      tree_.scalar(mark.line + 1, mark.column + 1, value, tag == kQuoted);
      bare_key_.reset();
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { tree_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { tree_.close(); }

 private:
  // The tags yaml-cpp gives to nodes that have none: plain, and quoted or block scalars.
  static constexpr const char* kPlain = "?";
  static constexpr const char* kQuoted = "!";

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check(mark, tag, anchor);
    if (tree_.expects_key())
      fail(mark, "a list or a mapping where a key is expected, or a bracket that is never closed");
    tree_.open(kind, mark.line + 1, mark.column + 1);
    bare_key_.reset();
  }
  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) fail(mark, "anchors (&name) are not supported");
    const auto start = static_cast<std::size_t>(mark.pos);
    const bool explicit_tag = tag == kQuoted && text_.substr(std::min(start, text_.size())).starts_with('!');
    if (explicit_tag || (!tag.empty() && tag != kPlain && tag != kQuoted)) {
      fail(mark, "tags are not supported: " + quote(tag));
    }
  }
  // Behind the quoted text that starts at `start`; npos when its quote is never closed.
  std::size_t end_of_quoted(std::size_t start) const {
    const char quote = text_[start];
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        const bool doubled = quote == '\'' && text_.substr(i + 1).starts_with(quote);
        if (!doubled) return i + 1;
        ++i;
      }
    }
    return std::string_view::npos;
  }
  bool colon_follows(std::size_t end) const {
    const std::size_t next = text_.find_first_not_of(" \t", end);
    return next != std::string_view::npos && text_[next] == ':';
  }
  [[noreturn]] void fail(const YAML::Mark& mark, std::string message, std::string hint = {}) {
    tree_.fail(mark.line + 1, mark.column + 1, std::move(message), std::move(hint));
  }

  std::string_view text_;
  TreeBuilder& tree_;
  // yaml-cpp takes a word on a line of its own for a key with an empty value; a forgotten colon must not pass for that.
  std::optional<YAML::Mark> bare_key_;
  int documents_ = 0;
};

}  // namespace

Document parse_yaml(std::string_view text, std::string file) {
  text = check_source_text(text, file);
  std::istringstream stream{std::string(text)};
  TreeBuilder tree(std::move(file));
  Handler handler(text, tree);
  tree.null(1, 1);  // what an empty file is
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& error) {
    std::string reason = error.msg;  // may end in the character it did not like, whatever that is
    std::erase_if(reason, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    tree.fail(error.mark.line + 1, error.mark.column + 1, "not valid YAML: " + reason);
  }
  return tree.finish();
}

}  // namespace llmperf::descriptor
