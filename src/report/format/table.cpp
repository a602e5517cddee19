#include "report/table.h"

#include <cmath>
#include <stdexcept>

#include "base/text.h"
#include "report/quantity.h"
#include "report/rows.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

bool is_object(const Field& field) {
  return field.shape.kind == Kind::object && field.shape.lists == 0 && !field.shape.map;
}

// The fields on the way to a key, whose beginnings may be those of objects; false where there is no such key.
bool find_path(const Type& type, std::string_view key, std::vector<const Field*>& path) {
  for (const Field& field : type.fields) {
    path.push_back(&field);
    if (!is_object(field)) {
      if (field.key == key) return true;
    } else {
      if (field.flat && find_path(field.shape.type(), key, path)) return true;
      const bool below = !field.spread && key.size() > field.key.size() && key[field.key.size()] == '.';
      if (below && key.starts_with(field.key) &&
          find_path(field.shape.type(), key.substr(field.key.size() + 1), path)) {
        return true;
      }
    }
    path.pop_back();
  }
  return false;
}

// What stands at the end of a path, as people read it; a list in one line.
class TextVisitor final : public Visitor {
 public:
  explicit TextVisitor(const std::vector<const Field*>& path) : path_(path) {}

  std::string of(const void* object) {
    follow(object);
    return std::move(text_);
  }
  void nothing() override {}
  void truth(bool value) override { text(value ? "yes" : "no"); }
  void number(double value) override {
    if (!std::isfinite(value)) return;
    const bool inside = path_.size() > 1 && !path_[path_.size() - 2]->spread;
    const Field& field = *path_.back();
    text(field.unit == Unit::share  ? share_text(value)
         : field.unit == Unit::held ? format_bytes_binary(Bytes{value})
                                    : quantity_text(field.key, value, inside ? path_[path_.size() - 2]->key : ""));
  }
  void text(std::string_view value) override { text_.append(text_.empty() ? "" : ", ").append(value); }
  void object(const Type&, const void* object) override { follow(object); }
  void begin(bool) override {}
  void key(std::string_view) override {}
  void end() override {}

 private:
  void follow(const void* object) {
    const Field& field = *path_[at_++];
    if (field.there == nullptr || field.there(object)) field.visit(object, *this);
  }

  const std::vector<const Field*>& path_;
  std::size_t at_ = 0;
  std::string text_;
};

// "key: heading", or a key and what its field is called.
struct Named {
  std::string heading;
  std::vector<const Field*> path;
};
std::vector<Named> named(const Type& type, std::string_view keys) {
  std::vector<Named> all;
  for (const std::string_view one : listed(keys)) {
    const std::size_t colon = one.find(':');
    const std::string key(one.substr(0, colon));
    Named& named = all.emplace_back();
    if (!find_path(type, key, named.path)) throw std::logic_error("no such field: " + key);
    const Field& field = *named.path.back();
    named.heading = colon != std::string_view::npos ? std::string(trim(one.substr(colon + 1)))
                    : !field.label.empty()          ? std::string(field.label)
                                                    : label_of(field.key);
  }
  return all;
}

}  // namespace

std::string printed(Bare bare) {
  std::string text = format_flops(bare.flops);
  text.resize(text.size() - std::string_view("FLOP").size());
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> all;
  if (text.empty()) return all;
  for (const std::string_view one : split(text, ',')) all.push_back(trim(one));
  return all;
}

Table titled(std::string title, std::string_view headings) {
  Table table{std::move(title), {}, {}};
  for (const std::string_view heading : listed(headings)) {
    const bool left = heading.starts_with('<');
    table.columns.push_back({std::string(heading.substr(left ? 1 : 0)), left});
  }
  return table;
}

Table transposed(const Table& table, std::string_view headings) {
  Table turned = titled(table.title, headings);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::vector<std::string>& row = turned.rows.emplace_back();
    row.push_back(table.columns[column].header);
    for (const auto& of : table.rows) row.push_back(of[column]);
  }
  return turned;
}

KeyTable::KeyTable(const Type& type, std::string title, std::string_view keys) : table_{std::move(title), {}, {}} {
  for (Named& named : named(type, keys)) {
    const Kind kind = named.path.back()->shape.kind;
    table_.columns.push_back({std::move(named.heading), kind != Kind::integer && kind != Kind::number});
    paths_.push_back(std::move(named.path));
  }
}

void KeyTable::add(const void* object) {
  std::vector<std::string>& row = table_.rows.emplace_back();
  for (const std::vector<const Field*>& path : paths_) {
    std::string text = TextVisitor(path).of(object);
    const bool number = !table_.columns[row.size()].left;
    row.push_back(text.empty() && number ? "-" : std::move(text));
  }
}

Fields facts_of(std::string title, const Type& type, const void* object, std::string_view keys) {
  Fields fields{std::move(title), {}};
  for (Named& named : named(type, keys)) {
    std::string text = TextVisitor(named.path).of(object);
    if (!text.empty()) fields.add(std::move(named.heading), std::move(text));
  }
  return fields;
}

}  // namespace llmperf::report
