#include "result/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/utf8.h"
#include "base/version.h"
#include "result/document.h"

namespace llmperf::result {
namespace {

// Writes values as text as they come, byte for byte as nlohmann's dump would write a tree of them: making and freeing
// the tree would be most of what an estimate costs.
class TextVisitor final : public Visitor {
 public:
  // `indent`: blanks for each level; negative: everything in one line.
  TextVisitor(std::string& out, int indent) : out_(out), indent_(indent) {}

  void nothing() override { put("null"); }
  void truth(bool value) override { put(value ? "true" : "false"); }
  void number(double value) override {
    if (!std::isfinite(value)) return nothing();
    if (is_whole(value)) return integer(static_cast<std::int64_t>(value));
    char digits[64];
    const char* end = nlohmann::detail::to_chars(digits, digits + sizeof digits, value);
    put({digits, static_cast<std::size_t>(end - digits)});
  }
  void integer(std::int64_t value) override {
    const fmt::format_int digits(value);
    put({digits.data(), digits.size()});
  }
  void text(std::string_view value) override {
    begin_value();
    append_quoted(value);
  }
  void object(const Type& type, const void* object) override {
    if (std::exchange(spread_, false)) return fields(type, object);
    open('{');
    fields(type, object);
    close('}');
  }
  void begin(bool map) override { open(closing_.emplace_back(map ? '}' : ']') == '}' ? '{' : '['); }
  void key(std::string_view name) override {
    begin_item();
    append_quoted(name);
    out_ += indent_ < 0 ? ":" : ": ";
    keyed_ = true;
  }
  void end() override {
    close(closing_.back());
    closing_.pop_back();
  }
  void fields(const Type& type, const void* object) {
    for (const Field& field : type.fields) {
      if (field.in == In::row) continue;
      const bool there = field.there == nullptr || field.there(object);
      if (!there && (field.left_out || field.spread)) continue;
      if (field.spread) {
        spread_ = true;
      } else {
        key(field.key);
      }
      there ? field.visit(object, *this) : nothing();
    }
  }
  // In an object that has fields already.
  void go_on() { empty_.push_back(false); }
  void close(char bracket) {
    const bool empty = empty_.back();
    empty_.pop_back();
    if (!empty) new_line();
    out_ += bracket;
  }

 private:
  void put(std::string_view text) {
    begin_value();
    out_ += text;
  }
  // A value stands behind its key, or is an item of a list, or all there is.
  void begin_value() {
    if (!std::exchange(keyed_, false) && !empty_.empty()) begin_item();
  }
  void begin_item() {
    if (!empty_.back()) out_ += ',';
    empty_.back() = false;
    new_line();
  }
  void new_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(empty_.size() * static_cast<std::size_t>(indent_), ' ');
  }
  void open(char bracket) {
    begin_value();
    out_ += bracket;
    empty_.push_back(true);
  }
  void append_quoted(std::string_view text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '"' && c != '\\';
    });
    if (plain) {
      out_.append(1, '"').append(text).append(1, '"');
    } else {
      out_ += quoted(std::string(text));
    }
  }

  std::string& out_;
  const int indent_;
  std::vector<bool> empty_;  // of each object and list that is open
  std::vector<char> closing_;
  bool keyed_ = false;
  bool spread_ = false;
};

}  // namespace

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (is_whole(value)) return static_cast<std::int64_t>(value);
  return value;
}

std::string line(const Type& type, const void* object) {
  std::string out;
  TextVisitor(out, -1).object(type, object);
  return out;
}

Json header(const char* schema) {
  return {{"schema", schema}, {"schema_version", 1}, {"tool", {{"name", "llmperf"}, {"version", source_version()}}}};
}

std::string dump(const Json& json) {
  return without_unsafe(json.dump(2, ' ', false, Json::error_handler_t::replace), true) + "\n";
}

std::string quoted(const std::string& text) {
  return without_unsafe(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace), true);
}

std::string document(const char* schema, const Type& type, const void* object) {
  constexpr std::size_t kUsual = std::size_t{1} << 16;  // room that most fit into, so that little is copied
  std::string out;
  out.reserve(kUsual);
  out += dump(header(schema));
  out.resize(out.rfind("\n}"));
  TextVisitor text(out, 2);
  text.go_on();
  text.fields(type, object);
  text.close('}');
  out += '\n';
  return out;
}

std::string version_document(const Build& build) {
  const auto known = [](std::string_view text) { return text.empty() ? Json() : Json(text); };
  return dump({{"schema", "llmperf.version"},
               {"schema_version", 1},
               {"version", build.version},
               {"commit", known(build.commit)},
               {"compiler", build.compiler},
               {"data_date", known(build.data_date)}});
}

}  // namespace llmperf::result
