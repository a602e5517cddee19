#include "estimate/video.h"

#include <algorithm>
#include <utility>

#include "estimate/prefetch.h"
#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

constexpr std::size_t kLayerKinds = 2;  // spatial and temporal

bool is_send(const graph::Op& op) {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  return c && c->kind == graph::CollectiveKind::send;
}

Bytes sent(const graph::Op& op) { return std::get<graph::Collective>(op.body).bytes(); }

// Kernels by what they are for.
std::vector<VideoClass> classes_of(const Phase& step) {
  std::vector<VideoClass> classes;
  for (const OpEstimate& op : step.ops) {
    const graph::VideoPurpose purpose = graph::purpose_of(op.op);
    auto found =
        std::find_if(classes.begin(), classes.end(), [&](const VideoClass& c) { return c.purpose == purpose; });
    if (found == classes.end()) {
      found = classes.insert(classes.end(), VideoClass{});
      found->purpose = purpose;
    }
    found->work += op.work * d(op.op.count);
    found->time += op.step_time();
    found->bound_time[static_cast<std::size_t>(op.time.bound)] += op.step_time();
    if (!std::holds_alternative<graph::Overhead>(op.op.body)) found->launches += op.op.count * op.op.launches;
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const VideoClass& a, const VideoClass& b) { return a.time > b.time; });
  return classes;
}

// Time that no kernel takes.
OpEstimate waiting(std::string_view name, Seconds time) {
  OpEstimate op;
  op.op = {.name = name, .launches = 0, .body = graph::Overhead{}};
  op.time.bound = mapper::Bound::launch;
  op.time.total = time;
  return op;
}

}  // namespace

VideoEstimator::VideoEstimator(VideoSetup setup)
    : setup_(std::move(setup)), machine_(*setup_.device, setup_.cluster, nullptr, {}, setup_.profile, setup_.tiles) {
  for (const VideoStage& stage : setup_.stages) {
    executions_.push_back(setup_.execution);
    executions_.back().plan = stage.plan;
  }
  const std::size_t kinds = alike() ? kLayerKinds : kLayerKinds * setup_.stages.size();
  for (std::size_t i = 0; i < setup_.stages.size(); ++i) {
    Stage stage;
    stage.layers.assign(kinds, 0);
    const std::size_t first = alike() ? 0 : kLayerKinds * i;
    std::fill_n(stage.layers.begin() + static_cast<std::ptrdiff_t>(first), kLayerKinds, setup_.stages[i].units());
    stage.weights = stage_memory(i).weights();
    stages_.push_back(std::move(stage));
  }
}

bool VideoEstimator::alike() const {
  return std::all_of(setup_.stages.begin(), setup_.stages.end(),
                     [&](const VideoStage& stage) { return stage.plan == setup_.stages.front().plan; });
}

cost::VideoMemory VideoEstimator::stage_memory(std::size_t stage) const {
  return cost::video_memory(executions_[stage], d(setup_.stages[stage].units()));
}

std::size_t VideoEstimator::fullest_stage() const {
  std::size_t fullest = 0;
  Bytes most;
  for (std::size_t i = 0; i < setup_.stages.size(); ++i) {
    const cost::VideoMemory m = stage_memory(i);
    const Bytes needs = m.weights() + m.kept + m.activation();
    if (needs <= most) continue;
    most = needs;
    fullest = i;
  }
  return fullest;
}

cost::Memory VideoEstimator::memory() const {
  const cost::VideoMemory m = stage_memory(fullest_stage());
  return {.weights = m.weights(), .kv_cache = m.kept, .activation = m.activation(), .reserve = setup_.reserve};
}

// Stages with one plan share one list of ops. Else every stage has its own, told apart by layer_kind (which is what
// StageShare goes by); a device between unlike stages sends what the smaller of the two would hold.
void VideoEstimator::build_step() {
  if (alike()) {
    graph::build_denoising_step(setup_.execution, graph_);
    return;
  }
  graph_.clear();
  const std::size_t last = setup_.stages.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    graph::build_denoising_step(executions_[i], part_);
    const auto kind = static_cast<int>(kLayerKinds * i);
    bool blocks = false;
    for (graph::Op op : part_) {
      if (is_send(op)) {
        if (i == last) continue;
        op.count = 1;
        op.layer_kind = kind;
      } else if (op.layer_kind >= 0) {
        blocks = true;
        op.count = setup_.stages[i].units();
        op.layer_kind += kind;
      } else if (i != (blocks ? last : 0)) {
        continue;
      }
      graph_.push_back(op);
    }
    if (i == 0) continue;
    // What this stage would send is what it is sent.
    const auto own = std::find_if(part_.begin(), part_.end(), is_send);
    const auto before = std::find_if(graph_.begin(), graph_.end(), [&](const graph::Op& op) {
      return is_send(op) && op.layer_kind == kind - static_cast<int>(kLayerKinds);
    });
    if (sent(*own) > sent(*before)) before->body = own->body;
  }
}

// Of the ops in graph_, `pieces` times each.
void VideoEstimator::phase(std::string_view name, std::int64_t pieces, std::span<const Stage> stages, Phase& result) {
  result.name = name;
  result.micro_batches = pieces;
  result.steady = Steady::yes;
  result.ops.clear();
  for (const graph::Op& op : graph_) {
    OpEstimate& e = result.ops.emplace_back();
    e.op = op;
    e.op.count *= pieces;
    e.work = machine_.work(e.op);
    e.time = machine_.time(e.op, e.work);
  }
  if (setup_.profile) {
    mapper::StepOverhead host(setup_.profile->values, setup_.dispatch, true);
    Seconds device;
    for (const OpEstimate& op : result.ops) {
      host.add(op.op);
      device += op.step_time();
    }
    const double times = d(pieces);
    const bool step = name == kVideoPhases[1];
    const Seconds all =
        host.time(device, step ? d(setup_.execution.model->blocks()) * times : 0, d(setup_.execution.batch()) * times);
    result.ops.push_back(waiting("runtime_overhead", all / times));
    result.ops.back().op.count = pieces;
  }
  if (setup_.execution.runtime.prefetch_weights && stages_.size() == 1) prefetch_weights(machine_, result.ops);
  sum_up(result, stages, seconds_);
}

void VideoEstimator::step(VideoEstimate& result) {
  build_step();
  Phase& step = result.phases[1];
  phase(kVideoPhases[1], setup_.execution.patches, stages_, step);
  step.steps = setup_.scenario.steps;
  result.step = step.time;
  result.classes = classes_of(step);
  result.products = step.work.matrix;
}

// Filling the pipeline, and what the runtime adds to a generation.
void VideoEstimator::other(VideoEstimate& result) {
  Phase other;
  other.name = kVideoPhases[3];
  const Phase& step = result.phases[1];
  const graph::VideoExecution& e = setup_.execution;
  if (e.patches > 1) {
    const Seconds chain = step.ops_time - step.overlapped;
    Seconds more = chain - step.time;
    if (step.steps > 1) {
      const double m = d(e.patches);
      const Seconds busiest = step.time - step.bubble;
      more += chain / m + busiest * ((m - 1) / m) - step.time;
    }
    other.ops.push_back(waiting("pipeline_fill", more));
  }
  if (setup_.profile) {
    using enum hardware::Parameter;
    const auto& values = setup_.profile->values;
    const double videos = d(e.replica_videos());
    const double pixels = d(e.shape.frames) * d(e.shape.size.height) * d(e.shape.size.width);
    other.ops.push_back(waiting("generation_fixed", Seconds{get(values, generation_fixed)}));
    if (!e.shape.is_image()) {
      other.ops.push_back(waiting("generation_video", Seconds{get(values, generation_video)}));
    }
    other.ops.push_back(waiting("write_file", Seconds{get(values, generation_pixel) * pixels * videos}));
  }
  if (other.ops.empty()) return;
  sum_up(other, std::span(stages_).first(1), seconds_);
  result.phases.push_back(std::move(other));
}

VideoEstimate VideoEstimator::run() {
  VideoEstimate result;
  result.parts = stage_memory(fullest_stage());
  result.memory = memory();
  result.capacity = capacity();
  result.fits = fits();
  if (!result.fits) return result;

  const std::span<const Stage> whole = std::span(stages_).first(1);
  result.phases.resize(3);
  graph::build_text_encoding(setup_.execution, graph_);
  phase(kVideoPhases[0], 1, whole, result.phases[0]);
  step(result);
  graph::build_video_decoding(setup_.execution, graph_);
  phase(kVideoPhases[2], 1, whole, result.phases[2]);
  other(result);
  for (const Phase& p : result.phases) result.generation += p.time * d(p.steps);

  result.peak = machine_.roofline().matrix_rate(setup_.execution.activations);
  const double stages = d(static_cast<std::int64_t>(stages_.size()));
  const Seconds least = result.products / result.peak / stages;
  result.step_utilisation = least / result.step;
  result.generation_utilisation = least * d(setup_.scenario.steps) / result.generation;
  return result;
}

}  // namespace llmperf::estimate
