#include "base/text.h"
#include "study/read.h"

namespace llmperf::study {
namespace {

using descriptor::Node;
using descriptor::Reader;

Word word(const Node& node) { return {node.scalar, node.line, node.column}; }

// The items of a list, or the value itself where one is enough.
std::vector<const Node*> items(const Node* node) {
  std::vector<const Node*> found;
  if (node == nullptr) return found;
  if (node->kind != Node::Kind::sequence) return {node};
  for (const Node& item : node->items) found.push_back(&item);
  return found;
}

std::vector<Word> read_words(Reader& reader, std::string_view key) {
  std::vector<Word> words;
  for (const Node* item : items(reader.find(key))) {
    if (item->kind == Node::Kind::scalar && !item->scalar.empty()) {
      words.push_back(word(*item));
    } else {
      reader.problems().add(*item, quote(key) + " must be a text or a list of texts");
    }
  }
  return words;
}

// `ttft_s`, or `ttft_s: TTFT` with a heading.
std::vector<ShownColumn> read_columns(Reader& reader, std::string_view key) {
  std::vector<ShownColumn> columns;
  for (const Node* item : items(reader.find(key))) {
    if (item->kind == Node::Kind::scalar && !item->scalar.empty()) {
      columns.push_back({word(*item), {}});
      continue;
    }
    const bool headed = item->kind == Node::Kind::mapping && !item->entries.empty();
    bool good = headed;
    for (const Node::Entry& entry : item->entries) good = good && entry.value.kind == Node::Kind::scalar;
    if (!good) {
      reader.problems().add(*item, quote(key) + " must list names of columns, or 'name: heading'");
      continue;
    }
    for (const Node::Entry& entry : item->entries) {
      columns.push_back({{entry.key, entry.line, entry.column}, entry.value.scalar});
    }
  }
  return columns;
}

std::vector<Only> read_only(Reader& reader) {
  std::vector<Only> only;
  const Node* node = reader.find("only");
  if (node == nullptr) return only;
  const Reader mapping(*node, reader.problems(), "'only'");  // reports what is none
  for (const Node::Entry& entry : node->entries) {
    Only one{{entry.key, entry.line, entry.column}, {}};
    for (const Node* item : items(&entry.value)) {
      if (item->kind == Node::Kind::scalar) {
        one.values.push_back(item->scalar);
      } else {
        reader.problems().add(*item, quote(entry.key) + " must be a value or a list of values");
      }
    }
    only.push_back(std::move(one));
  }
  return only;
}

std::optional<Pivot> read_pivot(Reader& section) {
  std::optional<Reader> reader = section.optional_mapping("pivot");
  if (!reader) return std::nullopt;
  Pivot pivot;
  pivot.rows = read_words(*reader, "rows");
  const std::vector<Word> columns = read_words(*reader, "columns");
  pivot.cells = read_columns(*reader, "cells");
  if (pivot.rows.empty()) reader->problem("rows", "'pivot' needs 'rows': a column of the result, or several");
  if (columns.size() != 1) reader->problem("columns", "'pivot' needs 'columns': one column of the result");
  if (pivot.cells.empty()) reader->problem("cells", "'pivot' needs 'cells': what its cells show");
  if (!columns.empty()) pivot.columns = columns.front();
  reader->finish();
  return pivot;
}

}  // namespace

View read_view(Reader& section) {
  View view{.only = read_only(section),
            .columns = read_columns(section, "columns"),
            .pivot = read_pivot(section),
            .parts = read_words(section, "parts")};
  if (!view.parts.empty() && view.of_rows()) {
    section.problem("parts",
                    "'parts' cuts the command's own page; 'only', 'columns' and 'pivot' show its rows instead");
  }
  if (view.pivot && !view.columns.empty()) {
    section.problem("columns", "'columns' and 'pivot' are two ways to show the same rows", "choose one");
  }
  return view;
}

}  // namespace llmperf::study
