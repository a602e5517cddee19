#include "report/parallel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/number.h"
#include "base/text.h"
#include "graph/plan.h"
#include "report/estimate_report.h"
#include "report/plan_json.h"

namespace llmperf::report {
namespace {

using estimate::Communication;
using estimate::PlanCost;
using graph::CollectiveKind;

std::string plan_name(const ParallelStudy& study, const PlanCost& cost) {
  std::string text = graph::to_text(cost.candidate.plan);
  if (!study.space.training) return text;
  const graph::TrainingOptions& o = cost.candidate.options;
  if (o.zero > 0) text += fmt::format(", zero {}", o.zero);
  if (o.chunks > 1) text += fmt::format(", interleave {}", o.chunks);
  if (o.recompute != graph::Recompute::none) text += fmt::format(", recompute {}", graph::name(o.recompute));
  return text;
}

// What each axis divides, inside attention / outside it.
std::string split_text(const graph::Plan& p) {
  std::vector<std::string> parts;
  if (p.tensor > 1) parts.emplace_back(p.tensor_rows > 0 ? "a/h^2" : p.sequence_parallel ? "a/h,s" : "a/h");
  if (p.ulysses > 1) parts.emplace_back("a/s");
  if (p.ring > 1) parts.emplace_back("s/s");
  if (p.expert > 1) parts.emplace_back("E");
  if (p.data > 1) parts.emplace_back("b/b");
  if (p.pipeline > 1) parts.emplace_back("L");
  return parts.empty() ? "-" : join(parts, " ");
}

// How far each axis of the plan could be taken on its own, and by what.
std::string limit_text(const ParallelStudy& study, const graph::Plan& p) {
  const model::Decoder& m = *study.setup->execution.model;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t experts = 0;
  for (const model::Layer& layer : m.kinds) {
    heads = std::gcd(heads, layer.attention.heads);
    kv_heads = std::gcd(kv_heads, layer.attention.kv_heads);
    if (layer.feed_forward.experts) experts = std::gcd(experts, layer.feed_forward.experts->count);
  }
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t degree, std::string_view symbol, std::int64_t most) {
    if (degree > 1) parts.push_back(fmt::format("{}={}", symbol, most));
  };
  add(p.tensor, "a", heads);
  add(p.ulysses, "kv", kv_heads);
  add(p.ring, "s/2", study.space.sequence / 2);
  add(p.expert, "E", experts);
  add(p.data, "b", study.space.batch);
  add(p.pipeline, "L", m.num_layers());
  return parts.empty() ? "-" : join(parts, " ");
}

Bytes gathered(const Communication& c) {
  return c.sent[static_cast<std::size_t>(CollectiveKind::all_gather)] +
         c.sent[static_cast<std::size_t>(CollectiveKind::reduce_scatter)];
}
Bytes passed(const Communication& c) {
  return c.sent[static_cast<std::size_t>(CollectiveKind::send)] +
         c.sent[static_cast<std::size_t>(CollectiveKind::ring_pass)];
}
Bytes sent(const Communication& c, CollectiveKind kind) { return c.sent[static_cast<std::size_t>(kind)]; }

Table cost_table(const ParallelStudy& study) {
  const char* order = study.fitting == 0     ? "the smallest first"
                      : study.space.training ? "the fastest training step first"
                                             : "the fastest prefill first";
  Table t{fmt::format("Plans, {} (memory of one device)", order), {{"#"}, {"plan", true}, {"weights"}}, {}};
  const bool training = study.space.training;
  if (training) {
    t.columns.insert(t.columns.end(), {{"grads"}, {"optim."}, {"activ."}});
  } else {
    t.columns.insert(t.columns.end(), {{"KV cache"}, {"activ."}});
  }
  t.columns.insert(t.columns.end(), {{"total"}, {"fits", true}, {"step"}});
  if (training) t.columns.push_back({"MFU"});
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PlanCost& c = study.plans[i];
    std::vector<std::string> row = {std::to_string(i + 1), plan_name(study, c), format_bytes_binary(c.weights)};
    if (training) {
      for (const Bytes b : {c.gradients, c.optimizer, c.activations}) row.push_back(format_bytes_binary(b));
    } else {
      for (const Bytes b : {c.kv_cache, c.activations}) row.push_back(format_bytes_binary(b));
    }
    row.push_back(format_bytes_binary(c.total));
    row.emplace_back(c.fits ? "yes" : "no");
    row.push_back(c.fits ? format_seconds(c.time) : "-");
    if (training) row.push_back(c.fits ? format_share(c.mfu) : "-");
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table communication_table(const ParallelStudy& study) {
  Table t{"Communication of one step (sent by one device), what is divided, and how far",
          {{"#"},
           {"all-reduce"},
           {"gather+scat."},
           {"all-to-all"},
           {"p2p"},
           {"time"},
           {"hidden"},
           {"divided", true},
           {"up to", true}},
          {}};
  const auto cell = [](Bytes b) { return b.value > 0 ? format_bytes(b) : std::string("-"); };
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const Communication& c = study.communications[i];
    const graph::Plan& plan = study.plans[i].candidate.plan;
    t.rows.push_back({std::to_string(i + 1), cell(sent(c, CollectiveKind::all_reduce)), cell(gathered(c)),
                      cell(sent(c, CollectiveKind::all_to_all)), cell(passed(c)), format_seconds(c.time),
                      format_share(c.time.value > 0 ? c.overlapped / c.time : 0), split_text(plan),
                      limit_text(study, plan)});
  }
  return t;
}

std::string request_text(const estimate::SearchSpace& space) {
  return fmt::format("batch {}, {} tokens each{}", space.batch, space.sequence,
                     space.training ? fmt::format(", micro-batches of {}", space.micro_batch) : "");
}

Json plan_row(const ParallelStudy& study, std::size_t index) {
  const PlanCost& c = study.plans[index];
  const Communication& sums = study.communications[index];
  Json collectives = Json::array();
  for (std::size_t kind = 0; kind < estimate::kCollectiveKinds; ++kind) {
    if (sums.count[kind] == 0) continue;
    collectives.push_back({{"kind", std::string(graph::name(static_cast<CollectiveKind>(kind)))},
                           {"count", sums.count[kind]},
                           {"sent_bytes", number(sums.sent[kind])}});
  }
  Json json = {{"rank", index + 1},
               {"plan", plan_json(c.candidate.plan)},
               {"zero", study.space.training ? Json(c.candidate.options.zero) : Json(nullptr)},
               {"interleave", study.space.training ? Json(c.candidate.options.chunks) : Json(nullptr)},
               {"recompute",
                study.space.training ? Json(std::string(graph::name(c.candidate.options.recompute))) : Json(nullptr)}};
  json["memory"] = {{"weight_bytes", number(c.weights)},         {"gradient_bytes", number(c.gradients)},
                    {"optimizer_bytes", number(c.optimizer)},    {"kv_cache_bytes", number(c.kv_cache)},
                    {"activation_bytes", number(c.activations)}, {"total_bytes", number(c.total)}};
  json["fits"] = c.fits;
  json["step_s"] = c.fits ? number(c.time) : Json(nullptr);
  json["mfu"] = c.fits && study.space.training ? number(c.mfu) : Json(nullptr);
  json["sent_bytes"] = number(sums.sent_bytes());
  json["communication_s"] = number(sums.time);
  json["overlapped_s"] = number(sums.overlapped);
  json["collectives"] = collectives;
  json["divided"] = split_text(c.candidate.plan);
  json["up_to"] = limit_text(study, c.candidate.plan);
  return json;
}

std::string parallel_json(const ParallelStudy& study) {
  const estimate::Setup& setup = *study.setup;
  Json json = json_header("llmperf.parallel");
  json["label"] = kUncalibrated;
  json["inputs"] = {{"model", setup.execution.model->name},
                    {"hardware", setup.device->name},
                    {"devices", study.space.devices},
                    {"devices_per_node", setup.cluster.devices_per_node},
                    {"batch", study.space.batch},
                    {"sequence_tokens", study.space.sequence},
                    {"training", study.space.training},
                    {"micro_batch", study.space.training ? Json(study.space.micro_batch) : Json(nullptr)},
                    {"weights", setup.execution.weights.name},
                    {"kv", setup.execution.kv.name()},
                    {"activations", std::string(name(setup.execution.activations))},
                    {"options", hardware::format_runtime_options(setup.execution.runtime)}};
  json["tried"] = study.tried;
  json["legal"] = study.legal;
  json["fitting"] = study.fitting;
  json["capacity_bytes"] = number(*setup.device->dram().capacity);
  json["plans"] = Json::array();
  for (std::size_t i = 0; i < study.plans.size(); ++i) json["plans"].push_back(plan_row(study, i));
  json["notes"] = setup.notes;
  return dump(json);
}

Table parallel_csv(const ParallelStudy& study) {
  Table t{"",
          {{"rank"},
           {"plan"},
           {"weight_bytes"},
           {"gradient_bytes"},
           {"optimizer_bytes"},
           {"kv_cache_bytes"},
           {"activation_bytes"},
           {"total_bytes"},
           {"fits"},
           {"step_s"},
           {"mfu"},
           {"all_reduce_bytes"},
           {"all_gather_bytes"},
           {"reduce_scatter_bytes"},
           {"all_to_all_bytes"},
           {"send_bytes"},
           {"ring_pass_bytes"},
           {"broadcast_bytes"},
           {"communication_s"},
           {"overlapped_s"},
           {"divided"},
           {"up_to"}},
          {}};
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PlanCost& c = study.plans[i];
    const Communication& sums = study.communications[i];
    std::vector<std::string> row = {std::to_string(i + 1), plan_name(study, c)};
    for (const Bytes b : {c.weights, c.gradients, c.optimizer, c.kv_cache, c.activations, c.total}) {
      row.push_back(plain(b.value));
    }
    row.emplace_back(c.fits ? "true" : "false");
    row.push_back(c.fits ? plain(c.time.value) : "");
    row.push_back(c.fits && study.space.training ? plain(c.mfu) : "");
    for (const Bytes b : sums.sent) row.push_back(plain(b.value));
    row.push_back(plain(sums.time.value));
    row.push_back(plain(sums.overlapped.value));
    row.push_back(split_text(c.candidate.plan));
    row.push_back(limit_text(study, c.candidate.plan));
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace

Report parallel_report(const ParallelStudy& study) {
  const estimate::Setup& setup = *study.setup;
  Document doc{
      Heading{fmt::format("{} on {} x {}", setup.execution.model->name, study.space.devices, setup.device->title),
              kUncalibrated},
      Paragraph{fmt::format("{}: {}; weights {}, activations {}; nodes of {}",
                            study.space.training ? "training step" : "prefill", request_text(study.space),
                            setup.execution.weights.name, name(setup.execution.activations),
                            setup.cluster.devices_per_node)},
      Paragraph{fmt::format("{} plans tried, {} divide model and batch, {} of them fit in {}; {} shown", study.tried,
                            study.legal, study.fitting, format_bytes_binary(*setup.device->dram().capacity),
                            study.plans.size())}};
  doc.emplace_back(cost_table(study));
  doc.emplace_back(communication_table(study));
  doc.emplace_back(
      Paragraph{"divided: in attention / outside it: a heads, h hidden, s tokens, b sequences, E experts, L layers. up "
                "to: what bounds each axis on its own (kv: KV heads). hidden: beside other work."});
  return {std::move(doc), parallel_csv(study), parallel_json(study)};
}

}  // namespace llmperf::report
