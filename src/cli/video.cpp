#include "cli/video.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/values.h"
#include "hardware/runtime_execution.h"
#include "model/weight_layout.h"
#include "report/video_report.h"

namespace llmperf::cli {
namespace {

using estimate::VideoChoices;
using estimate::VideoEstimator;
using estimate::VideoScenario;

constexpr std::int64_t kMaxDegree = 1 << 20;

bool guidance_value(const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  const std::vector<std::string> names = {"on", "off"};
  throw Error::bad_input(fmt::format("--cfg: unknown value {}", quote(text)), name_hint(text, names));
}

std::int64_t frames_of(const VideoFlags& f, const model::VideoDit& model) {
  if (!f.frames.empty() && !f.seconds.empty()) {
    throw Error::bad_input("--frames and --seconds both say how long the video is", "give one of them");
  }
  if (!f.frames.empty()) return int_value("--frames", f.frames, 0, estimate::kMaxTokens);
  if (f.seconds.empty()) return model::frames_of_seconds(model, kDefaultSeconds);
  return model::frames_of_seconds(model, double_value("--seconds", f.seconds, 0, 1e6));
}

VideoScenario scenario_of(const RequestFlags& f, const model::VideoDit& model) {
  const VideoFlags& v = f.video;
  VideoScenario s;
  s.shape = model::video_shape(model, model::parse_video_size(v.resolution, v.aspect), frames_of(v, model));
  s.videos = int_value("--batch", f.batch, 1, estimate::kMaxBatch);
  s.steps = v.steps.empty() ? model.sampler.steps : int_value("--steps", v.steps, 1, estimate::kMaxVideoSteps);
  s.guidance = guidance_value(v.guidance);
  if (!v.text_tokens.empty()) s.text_tokens = int_value("--text-tokens", v.text_tokens, 1, estimate::kMaxTokens);
  return s;
}

// "2x2/2d" of a stage.
void read_sub_mesh(std::string_view text, graph::Plan& plan) {
  const std::vector<std::string> strategies = {"ulysses", "tensor", "2d"};
  const std::size_t slash = text.find('/');
  const std::string strategy(slash == std::string_view::npos ? "ulysses" : text.substr(slash + 1));
  const std::vector<std::string_view> sides = split(text.substr(0, slash), 'x');
  if (sides.size() != 2) {
    throw Error::bad_input(fmt::format("--stages: cannot read the sub-mesh {}", quote(text)), "0-13@2x2/ulysses");
  }
  const std::int64_t rows = int_value("--stages", sides[0], 1, kMaxDegree);
  const std::int64_t columns = int_value("--stages", sides[1], 1, kMaxDegree);
  plan.tensor = plan.ulysses = 1;
  plan.tensor_rows = 0;
  if (strategy == "ulysses") {
    plan.ulysses = rows * columns;
  } else if (strategy == "tensor" || strategy == "2d") {
    plan.tensor = rows * columns;
    if (strategy == "2d" && plan.tensor > 1) plan.tensor_rows = rows;
  } else {
    throw Error::bad_input(fmt::format("--stages: unknown strategy {}", quote(strategy)),
                           name_hint(strategy, strategies));
  }
  if (plan.tensor == 1) plan.sequence_parallel = false;
}

// What would make the same request fit: a narrower text encoder, else a shorter video; fewer tokens on more devices.
std::string fitting_hint(const VideoRequest& request) {
  const auto needs = [&](const VideoChoices& choices) -> std::optional<Bytes> {
    const VideoEstimator other(estimate::make_video_setup(request.model, request.device, choices));
    return other.fits() ? std::optional(other.memory().total()) : std::nullopt;
  };
  std::vector<std::string> fitting;
  const auto add = [&](const std::string& what, const VideoChoices& choices) {
    if (const auto bytes = needs(choices)) {
      fitting.push_back(fmt::format("{} (needs {})", what, format_bytes_binary(*bytes)));
    }
    return !fitting.empty();
  };
  VideoChoices narrow = request.choices;
  narrow.text_weights = "bf16";
  if (!request.choices.text_weights) add("--text-weights bf16", narrow);
  VideoChoices shorter = request.choices;
  std::int64_t frames = request.choices.scenario.shape.frames;
  for (frames /= 2; fitting.empty() && frames >= 1; frames /= 2) {
    shorter.scenario.shape = model::video_shape(request.model, request.choices.scenario.shape.size, frames);
    add(fmt::format("--frames {}", frames), shorter);
  }
  if (request.choices.stages.empty()) {
    for (const std::int64_t ranks : {2, 4, 8}) {
      VideoChoices divided = request.choices;
      divided.plan.ulysses *= ranks;
      if (!graph::problems(request.model, divided.plan).empty()) continue;
      if (const auto bytes = needs(divided)) {
        fitting.push_back(fmt::format("on {} devices with --sp ulysses:{} (needs {} on each)", divided.plan.devices(),
                                      divided.plan.ulysses, format_bytes_binary(*bytes)));
        break;
      }
    }
  }
  if (!fitting.empty()) return "it fits with " + join(fitting, ", or ");
  return "neither a narrower text encoder, a shorter video nor eight devices make it fit: use a larger device or a "
         "lower "
         "--resolution";
}

[[noreturn]] void throw_infeasible(const VideoRequest& request, const estimate::VideoEstimate& e) {
  const model::VideoShape& s = request.choices.scenario.shape;
  const std::string what = s.is_image() ? "an image" : fmt::format("a video of {} frames", s.frames);
  throw Error(ErrorKind::infeasible,
              {{.where = {},
                .message = fmt::format("{} of {}x{} by {} does not fit on {}: needs {} ({} of it weights), has {}",
                                       what, s.size.height, s.size.width, request.model.name, request.device.name,
                                       format_bytes_binary(e.memory.total()), format_bytes_binary(e.memory.weights),
                                       format_bytes_binary(e.capacity)),
                .hint = fitting_hint(request)}});
}

}  // namespace

void add_video_flags(CLI::App& command, VideoFlags& f) {
  const auto add = [&](const char* flag, std::string& value, const char* meaning, const char* type) {
    command.add_option(flag, value, std::string("video: ") + meaning)->type_name(type);
  };
  add("--resolution", f.resolution, "144p to 1080p, or HEIGHTxWIDTH in pixels [720p]", "SIZE");
  add("--aspect", f.aspect, "height to width of a named resolution: 9:16, 16:9, 1:1, 3:4 … [9:16]", "H:W");
  add("--seconds", f.seconds, "length [4]", "S");
  add("--frames", f.frames, "length in frames; 1: an image", "N");
  add("--steps", f.steps, "denoising steps [the model's]", "N");
  add("--cfg", f.guidance, "classifier-free guidance, which doubles a step's batch: on, off [on]", "WHETHER");
  add("--text-tokens", f.text_tokens, "of the prompt [as many as the model takes]", "N");
  add("--text-weights", f.text_weights, "type the text encoder is held in: fp32, bf16, fp16 [the model's]", "DTYPE");
  add("--stages", f.stages, "pipeline stages by their units of the depth: 0-13,14-27; each on a sub-mesh: 0-13@2x2/2d",
      "RANGES");
  add("--patches", f.patches, "pieces of the latent that stages work on side by side [1]", "N");
  add("--die-link", f.die_link,
      "a ring of dies: bandwidth between neighbours, one direction [the hardware file's links]", "RATE");
}

std::vector<estimate::VideoStage> stages_value(const std::string& text, const graph::Plan& plan) {
  std::vector<estimate::VideoStage> stages;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t at = part.find('@');
    const std::vector<std::string_view> ends = split(part.substr(0, at), '-');
    if (ends.size() != 2) {
      throw Error::bad_input(fmt::format("--stages: cannot read {}", quote(part)), "0-13,14-27");
    }
    estimate::VideoStage stage{int_value("--stages", ends[0], 0, kMaxDegree),
                               int_value("--stages", ends[1], 0, kMaxDegree), plan};
    if (at != std::string_view::npos) read_sub_mesh(part.substr(at + 1), stage.plan);
    stages.push_back(stage);
  }
  return stages;
}

void choose_video_execution(const RequestFlags& f, const VideoRequest& request, VideoChoices& choices) {
  if (!request.profile) {
    if (!f.execution.empty()) {
      throw Error::bad_input("--execution says how a runtime runs, and there is none", "leave out --runtime none");
    }
    choices.runtime =
        hardware::parse_runtime_options(option_list(f, request.device, nullptr), hardware::Workload::video);
    return;
  }
  const hardware::RuntimeExecution execution =
      hardware::resolve_execution(*request.profile, option_list(f, request.device, &*request.profile), f.execution);
  choices.runtime = execution.options;
  choices.dispatch = execution.prefill;
  choices.profile = &*request.profile;
}

std::unique_ptr<VideoRequest> load_video_request(const RequestFlags& f) {
  Sources sources;
  return load_video_request(f, sources);
}

std::unique_ptr<VideoRequest> load_video_request(const RequestFlags& f, Sources& sources) {
  check_workload_flags(f, hardware::Workload::video);
  auto request = std::make_unique<VideoRequest>();
  request->model = sources.video(f.model);
  request->device = sources.device(f.hardware);
  request->profile = load_profile(f, request->device, false, hardware::Workload::video, &sources);
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  if (model::gguf_weights(f.weights) != nullptr) {
    throw Error::bad_input(fmt::format("--weights: GGUF formats ({}) hold language models", f.weights),
                           "bf16, fp8, int8 or w8a8");
  }
  VideoChoices& c = request->choices;
  c.scenario = scenario_of(f, request->model);
  c.weights = given(f.weights);
  c.activations = given(f.activations);
  c.text_weights = given(f.video.text_weights);
  c.tiles = tile_model(f, request->device, request->profile ? &*request->profile : nullptr);
  choose_video_execution(f, *request, c);
  if (!f.reserve.empty()) c.reserve = bytes_value("--reserve", f.reserve);
  c.plan = plan_of(f.plan, request->model);
  if (c.scenario.videos % c.plan.data != 0) {
    throw Error::bad_input(
        fmt::format("--batch: {} do not divide into {} replicas (--dp)", c.scenario.videos, c.plan.data),
        fmt::format("--batch {}", (c.scenario.videos / c.plan.data + 1) * c.plan.data));
  }
  if (!f.video.stages.empty()) {
    if (!f.plan.pipeline.empty()) {
      throw Error::bad_input("--stages and --pp both say which stages there are", "give one of them");
    }
    c.stages = stages_value(f.video.stages, c.plan);
  }
  c.patches = int_value("--patches", f.video.patches, 1, kMaxDegree);
  c.devices_per_node = devices_per_node_of(f.plan);
  if (!f.video.die_link.empty()) {
    c.die_link = parse_bytes_per_second(f.video.die_link);
    if (!c.die_link || !(c.die_link->value > 0)) {
      throw Error::bad_input(fmt::format("--die-link: cannot read {}", quote(f.video.die_link)), "--die-link 64GB/s");
    }
  }
  return request;
}

int video_action(const RequestFlags& flags, report::Detail detail, const OutputFlags& output_flags) {
  const auto request = load_video_request(flags);
  VideoEstimator estimator(estimate::make_video_setup(request->model, request->device, request->choices));
  Output output(output_flags);
  const estimate::VideoEstimate e = estimator.run();
  output.write(report::video_report(estimator, e, detail));
  if (!e.fits) throw_infeasible(*request, e);
  return kExitDone;
}

}  // namespace llmperf::cli
