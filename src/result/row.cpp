#include "result/row.h"

#include <cmath>

#include "base/number.h"

namespace llmperf::result {
namespace {

class RowVisitor final : public Visitor {
 public:
  explicit RowVisitor(points::Row& row) : row_(row) {}

  void fill(const Type& type, const void* object) {
    for (const Field& field : type.fields) {
      if (field.in == In::json) continue;
      field_ = &field;
      if (object == nullptr || (field.there != nullptr && !field.there(object))) {
        nothing();
      } else {
        field.visit(object, *this);
      }
    }
  }

  void nothing() override {
    if (field_->flat) {
      fill(field_->shape.type(), nullptr);
    } else {
      row_.add_none(field_->key);
    }
  }
  void truth(bool value) override { row_.add(field_->key, value); }
  void number(double value) override { row_.add(field_->key, value); }
  void text(std::string_view value) override { row_.add(field_->key, value); }
  void object(const Type& type, const void* object) override { fill(type, object); }
  // Lists and maps are in JSON alone.
  void begin(bool) override {}
  void key(std::string_view) override {}
  void end() override {}

 private:
  points::Row& row_;
  const Field* field_ = nullptr;
};

void add_columns(std::vector<Column>& columns, const Type& type) {
  for (const Field& field : type.fields) {
    if (field.in == In::json) continue;
    if (field.flat) {
      add_columns(columns, field.shape.type());
    } else {
      columns.push_back({field.key, field.doc, field.shape.kind});
    }
  }
}

}  // namespace

void fill_row(points::Row& row, const Type& type, const void* object) { RowVisitor(row).fill(type, object); }

std::vector<Column> columns(const Type& type) {
  std::vector<Column> columns;
  add_columns(columns, type);
  return columns;
}

std::string plain(double value) {
  std::string text;
  if (std::isfinite(value)) append_shortest(text, value);
  return text;
}

std::string cell_text(const points::Cell& cell) {
  switch (cell.kind) {
    case points::Cell::Kind::none: return {};
    case points::Cell::Kind::number: return plain(cell.number);
    case points::Cell::Kind::truth: return cell.number != 0 ? "true" : "false";
    case points::Cell::Kind::text: return cell.text;
  }
  return {};
}

}  // namespace llmperf::result
