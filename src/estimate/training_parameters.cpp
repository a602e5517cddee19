#include "estimate/training_parameters.h"

#include <algorithm>

#include "model/parameters.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

bool is_routed(const model::Tensor& tensor) { return tensor.name.starts_with("mlp.experts."); }

ParameterShare layer_share(const model::Decoder& model, const model::Layer& layer, const graph::Plan& plan) {
  ParameterShare share;
  const std::vector<model::Tensor> whole = model::layer_tensors(model, layer);
  if (plan.tensor_rows > 0) {  // everything is divided by rows and columns, vectors too
    for (const model::Tensor& tensor : whole) share.dense += d(tensor.elements()) / d(plan.tensor);
  } else {
    const std::vector<model::Tensor> local = model::layer_tensors(model, graph::shard(layer, plan));
    for (std::size_t i = 0; i < local.size(); ++i) {
      const double elements = d(local[i].elements());
      (is_routed(local[i]) ? share.expert : share.dense) += elements;
      const bool vector = local[i].role == model::Role::vector && !is_routed(local[i]);
      if (vector && local[i].n == whole[i].n) share.summands += elements;
    }
  }
  share.largest_dense = share.dense;
  share.largest_experts = share.expert;
  return share;
}

}  // namespace

ParameterShare& ParameterShare::add(const ParameterShare& other, double times) {
  dense += other.dense * times;
  expert += other.expert * times;
  summands += other.summands * times;
  if (times > 0) {
    largest_dense = std::max(largest_dense, other.largest_dense);
    largest_experts = std::max(largest_experts, other.largest_experts);
  }
  return *this;
}

ParameterShares::ParameterShares(const model::Decoder& model) : model_(model) {
  before_.resize(model.kinds.size());
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    before_[kind].push_back(0);
    for (const unsigned char k : model.layer_kinds) before_[kind].push_back(before_[kind].back() + (k == kind ? 1 : 0));
  }
  for (const model::Tensor& tensor : model::outer_tensors(model)) {
    if (tensor.role == model::Role::position_embedding) positions_ += d(tensor.elements());
    if (tensor.part == model::Part::norm) final_norm_ += d(tensor.elements());
  }
  if (model.lm_head_bias) head_bias_ = 1;
}

const ParameterShares::Entry& ParameterShares::of(const graph::Plan& plan) {
  for (const Entry& entry : entries_) {
    if (entry.tensor == plan.tensor && entry.rows == plan.tensor_rows && entry.expert == plan.expert) return entry;
  }
  Entry entry{plan.tensor, plan.tensor_rows, plan.expert, {}};
  for (const model::Layer& layer : model_.kinds) entry.kinds.push_back(layer_share(model_, layer, plan));
  entries_.push_back(std::move(entry));
  return entries_.back();
}

std::int64_t ParameterShares::layers(const graph::StageSplit& split, std::int64_t stage, std::size_t kind) const {
  std::int64_t count = 0;
  for (std::int64_t run = stage; run < split.runs(); run += split.stages) {
    const auto before = [&](std::int64_t r) {
      return before_[kind][static_cast<std::size_t>(split.first[static_cast<std::size_t>(r)])];
    };
    count += before(run + 1) - before(run);
  }
  return count;
}

double ParameterShares::tied(const graph::Plan& plan) const {
  return model_.tied_embeddings && plan.pipeline > 1 ? d(graph::shard_vocab(model_, plan) * model_.hidden) : 0;
}

ParameterShare ParameterShares::stage(const graph::Plan& plan, const graph::StageSplit& split, std::int64_t stage) {
  ParameterShare share;
  const Entry& entry = of(plan);
  for (std::size_t kind = 0; kind < entry.kinds.size(); ++kind) {
    share.add(entry.kinds[kind], d(layers(split, stage, kind)));
  }
  // What a two-dimensional plan divides beside the vocabulary.
  const double vectors = plan.tensor_rows > 0 ? d(plan.tensor) : 1;
  const double table = d(graph::shard_vocab(model_, plan) * model_.hidden);
  share.outer = -share.dense;
  if (stage == 0) {
    share.dense += table + positions_ / vectors;
    share.summands += positions_ / vectors;
  }
  if (stage == plan.pipeline - 1) {
    share.dense += final_norm_ / vectors + head_bias_ * d(graph::shard_vocab(model_, plan));
    share.summands += final_norm_ / vectors;
    if (!model_.tied_embeddings || plan.pipeline > 1) share.dense += table;
  }
  share.outer += share.dense;
  return share;
}

}  // namespace llmperf::estimate
