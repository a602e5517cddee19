#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "estimate/video.h"

namespace llmperf::estimate {
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
      add(fmt::format("--stages: {}-{} does not go on from {}", stage.first, stage.last, next),
          fmt::format("units of {} are 0-{}, each in one stage and in order", model.name, model.depth - 1));
      break;
    }
    next = stage.last + 1;
  }
  if (broken.empty() && next != model.depth) {
    add(fmt::format("--stages: they end at {}, and the last unit of {} is {}", next - 1, model.name, model.depth - 1),
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
    throw Error::bad_input("--patches: one stage has nothing to do side by side", "give --pp or --stages as well");
  }
  for (const VideoStage& stage : setup.stages) {
    if (choices.patches * stage.plan.ulysses <= rows) continue;
    throw Error::bad_input(
        fmt::format("--patches: {} rows of the latent do not make {} pieces{}", rows, choices.patches,
                    stage.plan.ulysses > 1 ? fmt::format(" for {} devices each", stage.plan.ulysses) : std::string()),
        fmt::format("at most {}", rows / stage.plan.ulysses));
  }
}

// Dies with links to their neighbours are a ring, whatever the file says of servers.
void choose_links(const hardware::Device& device, const VideoChoices& choices, VideoSetup& setup) {
  setup.cluster = cost::make_cluster(device, choices.devices_per_node);
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
  setup.device = &device;
  setup.profile = choices.profile;
  setup.tiles = choices.tiles;
  setup.dispatch = choices.dispatch;
  if (choices.reserve) setup.reserve = *choices.reserve;
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
        fmt::format("--text-tokens: {} takes {} tokens, not {}", model.name, model.text_tokens, e.text_tokens),
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
  if (!multiplies(device, e.activations)) {
    setup.notes.push_back(fmt::format("{} has no {} matrix rate: matrix products are held against its vector rate",
                                      device.name, name(e.activations)));
  }
  choose_stages(model, choices, setup);
  choose_links(device, choices, setup);
  return setup;
}

}  // namespace llmperf::estimate
