#include "report/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmperf::report {
namespace {

using model::Role;

std::vector<std::int64_t> shape_of(std::int64_t count, std::int64_t n, std::int64_t k, bool vector) {
  std::vector<std::int64_t> shape;
  if (count > 1) shape.push_back(count);
  shape.push_back(n);
  if (!vector) shape.push_back(k);
  return shape;
}

std::string type_of(const model::StoredFormat& format) {
  if (!format.name.empty()) return std::string(format.name);
  if (format.group > 0) return fmt::format("{} bits, groups of {}", format.bits, format.group);
  if (format.block > 0) return fmt::format("{} bits, blocks of {}", format.bits, format.block);
  if (format.bits_per_row > 0) return fmt::format("{} bits, scale per row", format.bits);
  return fmt::format("{} bits", format.bits);
}

std::vector<TensorRow> rows_of_file(const std::vector<model::GgufTensor>& tensors) {
  std::vector<TensorRow> rows;
  rows.reserve(tensors.size());
  for (const model::GgufTensor& t : tensors) {
    rows.push_back({.name = t.name(),
                    .type = std::string(model::info(t.type).name),
                    .shape = shape_of(t.count, t.n, t.k, t.is_vector()),
                    .elements = t.elements(),
                    .bytes = t.bytes()});
  }
  return rows;
}

std::vector<TensorRow> rows_of_scheme(const model::Decoder& model, const model::WeightLayout& layout) {
  std::vector<TensorRow> rows;
  const auto add = [&](const std::string& prefix, const model::Tensor& t, const model::StoredFormat& format) {
    const bool vector = t.role == Role::vector;
    rows.push_back({.name = prefix + std::string(t.name),
                    .type = vector ? fmt::format("{} bits", layout.vector_bits) : type_of(format),
                    .shape = shape_of(t.count, t.n, t.k, vector),
                    .elements = t.elements(),
                    .bytes = model::tensor_bytes(layout, format, t)});
  };
  const std::vector<model::Tensor> outer = model::outer_tensors(model);
  const auto add_outer = [&](bool embedding) {
    for (const model::Tensor& t : outer) {
      if ((t.part == model::Part::embedding) == embedding) add("", t, layout.outer(t.role));
    }
  };
  add_outer(true);
  for (std::size_t i = 0; i < model.layer_kinds.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const auto group = std::find_if(layout.groups.begin(), layout.groups.end(), [&](const model::LayerGroup& g) {
      return std::binary_search(g.layers.begin(), g.layers.end(), index);
    });
    for (const model::Tensor& t : model::layer_tensors(model, model.kinds[group->kind])) {
      add(fmt::format("model.layers.{}.", i), t, (*group)[t.role]);
    }
  }
  add_outer(false);
  return rows;
}

}  // namespace

std::vector<TensorRow> tensor_rows(const ModelView& view) {
  return view.tensors ? rows_of_file(*view.tensors) : rows_of_scheme(view.model, view.layout);
}

std::vector<TypeShare> type_shares(const std::vector<TensorRow>& rows) {
  std::vector<TypeShare> shares;
  for (const TensorRow& row : rows) {
    auto share = std::find_if(shares.begin(), shares.end(), [&](const TypeShare& s) { return s.type == row.type; });
    if (share == shares.end()) share = shares.insert(shares.end(), TypeShare{row.type, 0, 0, {}});
    ++share->tensors;
    share->elements += row.elements;
    share->bytes += row.bytes;
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return shares;
}

}  // namespace llmperf::report
