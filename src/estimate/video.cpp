#include "estimate/video.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "estimate/schedule.h"

namespace llmperf::estimate {

// ---- Setup

namespace {

// A scheme's matrices where it stores everything alike.
model::StoredFormat format_of(const std::string& scheme, Dtype wide) {
  return model::parse_weight_scheme(scheme, wide).linear;
}

void choose_text_encoder(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& choices,
                         VideoSetup& setup) {
  graph::VideoExecution& e = setup.execution;
  Dtype type = choices.text_weights ? model::parse_activation_dtype(*choices.text_weights) : model.text_encoder.stored;
  if (type == Dtype::fp32) {
    const auto* fast = device.find_peak(hardware::Engine::matrix, Dtype::tf32);
    if (fast == nullptr && !multiplies(device, Dtype::fp32) && !choices.text_weights) {
      setup.notes.push_back(fmt::format("{} multiplies neither tf32 nor fp32: the text encoder is held and run in {}",
                                        device.name, name(e.activations)));
      type = e.activations;
    }
  }
  const bool wide = type == Dtype::fp32;
  const bool tf32 = wide && multiplies(device, Dtype::tf32);
  e.text_activations = tf32 ? Dtype::tf32 : type;
  e.text_weights = {.bits = bits(type), .compute = e.text_activations};
}

// Runs of the depth, in order, without gaps.
void check_stages(const model::VideoDit& model, const std::vector<VideoStage>& stages) {
  std::vector<Diagnostic> broken;
  const auto add = [&](std::string message, std::string hint) {
    broken.push_back({.where = {}, .message = std::move(message), .hint = std::move(hint)});
  };
  std::int64_t next = 0;
  for (const VideoStage& stage : stages) {
    if (stage.first != next || stage.last < stage.first) {
      add(fmt::format("`stages`: {}-{} does not go on from {}", stage.first, stage.last, next),
          fmt::format("units of {} are 0-{}, each in one stage and in order", model.name, model.depth - 1));
      break;
    }
    next = stage.last + 1;
  }
  if (broken.empty() && next != model.depth) {
    add(fmt::format("`stages`: they end at {}, and the last unit of {} is {}", next - 1, model.name, model.depth - 1),
        "a unit of the depth is a spatial and a temporal attention");
  }
  for (const VideoStage& stage : stages) {
    graph::Plan plan = stage.plan;
    plan.pipeline = 1;
    for (const graph::Problem& problem : graph::problems(model, plan)) {
      add(fmt::format("stage {}-{}: {}", stage.first, stage.last, problem.message), problem.hint);
    }
  }
  if (!broken.empty()) throw Error(ErrorKind::bad_input, std::move(broken));
}

void choose_stages(const model::VideoDit& model, const VideoChoices& choices, VideoSetup& setup) {
  setup.stages = choices.stages;
  if (setup.stages.empty()) {
    const std::int64_t units = model.depth / choices.plan.pipeline;
    for (std::int64_t i = 0; i < choices.plan.pipeline; ++i) {
      setup.stages.push_back({i * units, (i + 1) * units - 1, choices.plan});
    }
  }
  check_stages(model, setup.stages);
  const auto count = static_cast<std::int64_t>(setup.stages.size());
  for (VideoStage& stage : setup.stages) stage.plan.pipeline = count;
  setup.execution.plan = setup.stages.front().plan;
  setup.execution.patches = choices.patches;
  const std::int64_t rows = setup.execution.shape.patch_rows;
  for (const VideoStage& stage : setup.stages) {
    const std::int64_t pieces = choices.patches * stage.plan.ulysses;
    if (rows % pieces == 0 || pieces > rows) continue;
    setup.notes.push_back(fmt::format("{} rows of patches are dealt out whole: {} pieces of {}", rows, pieces,
                                      (rows + pieces - 1) / pieces));
    break;
  }
  if (choices.patches == 1) return;
  if (count == 1) {
    throw Error::bad_input("`patches`: one stage has nothing to do side by side", "give `pp` or `stages` as well");
  }
  for (const VideoStage& stage : setup.stages) {
    if (choices.patches * stage.plan.ulysses <= rows) continue;
    throw Error::bad_input(
        fmt::format("`patches`: {} rows of the latent do not make {} pieces{}", rows, choices.patches,
                    stage.plan.ulysses > 1 ? fmt::format(" for {} devices each", stage.plan.ulysses) : std::string()),
        fmt::format("at most {}", rows / stage.plan.ulysses));
  }
}

// Dies with links to their neighbours are a ring, whatever the file says of servers.
void choose_links(const VideoChoices& choices, VideoSetup& setup) {
  if (!choices.die_link) return;
  setup.cluster.devices_per_node = choices.devices_per_node.value_or(setup.devices());
  cost::Links& links = setup.cluster.inside;
  links.name = "die to die";
  links.topology = hardware::Topology::ring;
  links.per_link = *choices.die_link;
  links.per_device = 2 * *choices.die_link;
  links.provenance = hardware::Provenance::assumed;
}

}  // namespace

std::int64_t VideoSetup::devices() const {
  std::int64_t total = 0;
  for (const VideoStage& stage : stages) total += stage.plan.stage();
  return total;
}

VideoSetup make_video_setup(const model::VideoDit& model, const hardware::Device& device, const VideoChoices& choices) {
  VideoSetup setup;
  choose_platform(device, choices, setup);
  graph::VideoExecution& e = setup.execution;
  e.model = &model;
  setup.scenario = choices.scenario;
  e.shape = choices.scenario.shape;
  e.videos = choices.scenario.videos;
  e.guidance = choices.scenario.guidance;
  e.runtime = choices.runtime;
  e.text_tokens = choices.scenario.text_tokens.value_or(model.text_tokens);
  if (e.text_tokens > model.text_tokens) {
    throw Error::bad_input(
        fmt::format("`text-tokens`: {} takes {} tokens, not {}", model.name, model.text_tokens, e.text_tokens),
        fmt::format("1 to {}", model.text_tokens));
  }
  e.activations = choices.activations ? model::parse_activation_dtype(*choices.activations) : activation_dtype(device);
  setup.weights_name = choices.weights.value_or(std::string(name(e.activations)));
  e.weights = format_of(setup.weights_name, e.activations);
  std::string note;
  substitute(e.weights, device, e.activations, note);
  if (!note.empty()) setup.notes.push_back(note);
  e.decoder_weights = format_of(std::string(name(e.activations)), e.activations);
  choose_text_encoder(model, device, choices, setup);
  note_rate(setup, e.activations);
  choose_stages(model, choices, setup);
  choose_links(choices, setup);
  return setup;
}

// ---- Estimate

namespace {

constexpr std::size_t kLayerKinds = 2;  // spatial and temporal

bool is_send(const graph::Op& op) {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  return c && c->kind == graph::CollectiveKind::send;
}

Bytes sent(const graph::Op& op) { return std::get<graph::Collective>(op.body).bytes(); }

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
  return std::ranges::all_of(setup_.stages,
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
    const auto own = std::ranges::find_if(part_, is_send);
    const auto before = std::ranges::find_if(graph_, [&](const graph::Op& op) {
      return is_send(op) && op.layer_kind == kind - static_cast<int>(kLayerKinds);
    });
    if (sent(*own) > sent(*before)) before->body = own->body;
  }
}

// Of the ops in graph_, `pieces` times each.
void VideoEstimator::phase(std::string_view name, double blocks, std::int64_t pieces, std::span<const Stage> stages,
                           Phase& result) {
  result.name = name;
  result.micro_batches = pieces;
  result.steady = Steady::yes;
  result.launches = {
      .dispatch = setup_.dispatch, .layers = blocks * d(pieces), .sequences = d(setup_.execution.batch()) * d(pieces)};
  const bool prefetches = setup_.execution.runtime.prefetch_weights && stages_.size() == 1;
  time_phase(setup_, machine_, graph_, stages, prefetches ? Prefetch::yes : Prefetch::no, result, seconds_);
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
  phase(kVideoPhases[0], 0, 1, whole, result.phases[0]);
  Phase& step = result.phases[1];
  build_step();
  phase(kVideoPhases[1], d(setup_.execution.model->blocks()), setup_.execution.patches, stages_, step);
  step.steps = setup_.scenario.steps;
  result.step = step.time;
  result.products = step.work.matrix;
  result.classes =
      grouped(step.ops, [&](std::size_t i) { return std::string(name(graph::purpose_of(step.ops[i].op))); });
  graph::build_video_decoding(setup_.execution, graph_);
  phase(kVideoPhases[2], 0, 1, whole, result.phases[2]);
  other(result);
  for (const Phase& p : result.phases) result.generation += p.total();

  result.peak = machine_.roofline().matrix_rate(setup_.execution.activations);
  const double stages = d(static_cast<std::int64_t>(stages_.size()));
  const Seconds least = result.products / result.peak / stages;
  result.step_utilisation = least / result.step;
  result.generation_utilisation = least * d(setup_.scenario.steps) / result.generation;
  return result;
}

}  // namespace llmperf::estimate
