#include "result/json.h"

#include <cmath>

#include "base/version.h"
#include "result/document.h"

namespace llmperf::result {
namespace {

class TreeVisitor final : public Visitor {
 public:
  explicit TreeVisitor(Json& slot) : slot_(&slot) {}

  void nothing() override { put(nullptr); }
  void truth(bool value) override { put(value); }
  void number(double value) override { put(result::number(value)); }
  void integer(std::int64_t value) override { put(value); }
  void text(std::string_view value) override { put(std::string(value)); }
  void object(const Type& type, const void* object) override {
    Json made = Json::object();
    fill(spread_ ? *slot_ : made, type, object);
    if (!spread_) put(std::move(made));
  }
  void begin(bool map) override {
    Json& list = put(map ? Json::object() : Json::array());
    around_.push_back(slot_);
    slot_ = &list;
  }
  void key(std::string_view name) override { key_ = name; }
  void end() override {
    slot_ = around_.back();
    around_.pop_back();
  }

 private:
  // Into the list or map that is open, or the place of the value itself.
  Json& put(Json value) {
    if (around_.empty()) return *slot_ = std::move(value);
    if (slot_->is_array()) return slot_->emplace_back(std::move(value));
    return (*slot_)[std::string(key_)] = std::move(value);
  }
  static void fill(Json& into, const Type& type, const void* object) {
    for (const Field& field : type.fields) {
      if (field.in == In::row) continue;
      const bool there = field.there == nullptr || field.there(object);
      if (!there && field.left_out) continue;
      TreeVisitor inner(field.spread ? into : into[std::string(field.key)]);
      inner.spread_ = field.spread;
      if (there) field.visit(object, inner);
    }
  }

  Json* slot_;
  std::vector<Json*> around_;
  std::string_view key_;
  bool spread_ = false;
};

}  // namespace

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 9007199254740992.0) return static_cast<std::int64_t>(value);
  return value;
}

Json tree(const Type& type, const void* object) {
  Json json;
  TreeVisitor(json).object(type, object);
  return json;
}

Json header(const char* schema) {
  return {{"schema", schema}, {"schema_version", 1}, {"tool", {{"name", "llmperf"}, {"version", source_version()}}}};
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string document(const char* schema, const Type& type, const void* object) {
  Json json = header(schema);
  json.update(tree(type, object));
  return dump(json);
}

}  // namespace llmperf::result
