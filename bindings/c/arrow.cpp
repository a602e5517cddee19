// Columns as an array of structs of the Arrow C data interface. Source of the layout: arrow.apache.org, "The Arrow C
// data interface" and "Arrow columnar format".
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bindings/c/call.h"

// As the specification has them.
extern "C" {
struct ArrowSchema {
  const char* format = {};
  const char* name = {};
  const char* metadata = {};
  int64_t flags = {};
  int64_t n_children = {};
  ArrowSchema** children = {};
  ArrowSchema* dictionary = {};
  void (*release)(ArrowSchema*) = nullptr;
  void* private_data = {};
};
struct ArrowArray {
  int64_t length = {};
  int64_t null_count = {};
  int64_t offset = {};
  int64_t n_buffers = {};
  int64_t n_children = {};
  const void** buffers = {};
  ArrowArray** children = {};
  ArrowArray* dictionary = {};
  void (*release)(ArrowArray*) = nullptr;
  void* private_data = {};
};
}

namespace {

using llmperf::c::ColumnOfCells;

constexpr int64_t kNullable = 2;

// What a schema or an array points to. Each part shares all of it: a child that was moved out of its parent keeps what
// it needs.
struct HeldSchema {
  std::vector<std::string> names;
  std::vector<ArrowSchema> fields;
  std::vector<ArrowSchema*> children;
};
struct HeldColumn {
  std::vector<double> numbers;
  std::vector<int64_t> offsets;
  std::string text;
  std::vector<uint8_t> valid, truths;  // a bit a row
  std::array<const void*, 3> buffers = {};
};
struct HeldArray {
  std::vector<HeldColumn> columns;
  std::vector<ArrowArray> arrays;
  std::vector<ArrowArray*> children;
  std::array<const void*, 1> buffers = {};
};

template <class Part, class Held>
void release(Part* part) {
  for (int64_t i = 0; i < part->n_children; ++i) {
    if (part->children[i]->release != nullptr) part->children[i]->release(part->children[i]);
  }
  part->release = nullptr;
  delete static_cast<std::shared_ptr<Held>*>(part->private_data);  // a child may lie in what this frees
}

const char* format_of(int kind) { return kind == LLMPERF_NUMBERS ? "g" : kind == LLMPERF_TRUTHS ? "b" : "U"; }

void set(std::vector<uint8_t>& bits, std::size_t row) {
  bits[row / 8] = static_cast<uint8_t>(bits[row / 8] | (1U << (row % 8)));
}

// Returns how many rows have no value.
int64_t hold(const ColumnOfCells& column, std::size_t rows, HeldColumn& held) {
  int64_t none = 0;
  held.valid.resize((rows + 7) / 8);
  const bool texts = column.kind == LLMPERF_TEXTS;
  for (std::size_t r = 0; r < rows; ++r) {
    const bool there = texts ? column.offsets[r + 1] > column.offsets[r] : column.numbers[r] == column.numbers[r];
    there ? set(held.valid, r) : void(++none);
  }
  held.buffers[0] = held.valid.data();
  if (texts) {
    held.offsets = column.offsets;
    held.text = column.text;
    held.buffers[1] = held.offsets.data();
    held.buffers[2] = held.text.data();
  } else if (column.kind == LLMPERF_TRUTHS) {
    held.truths.resize((rows + 7) / 8);
    for (std::size_t r = 0; r < rows; ++r) {
      if (column.numbers[r] == 1) set(held.truths, r);
    }
    held.buffers[1] = held.truths.data();
  } else {
    held.numbers = column.numbers;
    held.buffers[1] = held.numbers.data();
  }
  return none;
}

void fill(const std::vector<ColumnOfCells>& columns, ArrowSchema& schema) {
  const auto held = std::make_shared<HeldSchema>();
  for (const ColumnOfCells& column : columns) held->names.push_back(column.name);
  held->fields.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    held->fields[i] = {.format = format_of(columns[i].kind),
                       .name = held->names[i].c_str(),
                       .flags = kNullable,
                       .release = release<ArrowSchema, HeldSchema>,
                       .private_data = new std::shared_ptr<HeldSchema>(held)};
    held->children.push_back(&held->fields[i]);
  }
  schema = {.format = "+s",
            .name = "",
            .n_children = static_cast<int64_t>(columns.size()),
            .children = held->children.data(),
            .release = release<ArrowSchema, HeldSchema>,
            .private_data = new std::shared_ptr<HeldSchema>(held)};
}

void fill(const std::vector<ColumnOfCells>& columns, std::size_t rows, ArrowArray& array) {
  const auto held = std::make_shared<HeldArray>();
  held->columns.resize(columns.size());
  held->arrays.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int64_t none = hold(columns[i], rows, held->columns[i]);
    held->arrays[i] = {.length = static_cast<int64_t>(rows),
                       .null_count = none,
                       .n_buffers = columns[i].kind == LLMPERF_TEXTS ? 3 : 2,
                       .buffers = held->columns[i].buffers.data(),
                       .release = release<ArrowArray, HeldArray>,
                       .private_data = new std::shared_ptr<HeldArray>(held)};
    held->children.push_back(&held->arrays[i]);
  }
  array = {.length = static_cast<int64_t>(rows),
           .n_buffers = 1,
           .n_children = static_cast<int64_t>(columns.size()),
           .buffers = held->buffers.data(),
           .children = held->children.data(),
           .release = release<ArrowArray, HeldArray>,
           .private_data = new std::shared_ptr<HeldArray>(held)};
}

}  // namespace

int llmperf_arrow(const llmperf_result* result, ArrowSchema* schema, ArrowArray* array) {
  if (result == nullptr || schema == nullptr || array == nullptr) return EINVAL;
  *schema = {};
  try {
    fill(result->columns.all(), *schema);
    fill(result->columns.all(), result->columns.rows(), *array);
    return 0;
  } catch (const std::bad_alloc&) {
    if (schema->release != nullptr) schema->release(schema);
    return ENOMEM;
  }
}
