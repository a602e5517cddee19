// `llmperf replay`: the ops of a step executed on a real device, and what they took.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/request.h"
#include "cli/values.h"
#include "cli/written_file.h"
#include "descriptor/node.h"
#include "replay/self_test.h"
#include "replay/study.h"
#include "replay/sweep.h"
#include "report/replay_report.h"

namespace llmperf::cli {
namespace {

constexpr const char* kReplayRuntime = "replay";

struct Flags {
  RequestFlags request;
  BackendFlags backend;
  std::string phase = "all";
  std::string ops;
  std::string sweep;
  std::string dtype;
  std::string out;
  std::string profile;
  bool whole_step = false;
  bool describe_device = false;
  bool self_test = false;
  OutputFlags output;
};

// ---- Interrupts: the op that runs is finished, what was measured is kept.
volatile std::sig_atomic_t interrupted = 0;

class InterruptGuard {
 public:
  InterruptGuard() : before_(std::signal(SIGINT, [](int) { interrupted = 1; })) {}
  ~InterruptGuard() { std::signal(SIGINT, before_); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*before_)(int);
};

// A line on a terminal's stderr: how far, and how long it will still take at this pace.
class Progress {
 public:
  bool operator()(std::size_t done, std::size_t all, const std::string& what) {
    if (done == 0) start_ = std::chrono::steady_clock::now();
    if (isatty(STDERR_FILENO) == 1) {
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      const double left = done > 0 ? spent / static_cast<double>(done) * static_cast<double>(all - done) : 0;
      fmt::print(stderr, "\r\x1b[K{}/{} {}{}", done + 1, all, what,
                 done > 0 ? fmt::format(", {} left", format_seconds(Seconds{left})) : std::string());
      if (done + 1 == all) fmt::print(stderr, "\r\x1b[K");
      std::fflush(stderr);
    }
    return interrupted == 0;
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

// ---- What to replay.

// The device that graphs are built for and predictions are made of: --hw, else the one that runs the ops.
hardware::Device device_of(const Flags& f, const replay::Backend& backend) {
  if (!f.request.hardware.empty()) return hardware::load_device(f.request.hardware);
  if (f.backend.backend == "cpu") {
    fmt::print(stderr, "llmperf: note: no --hw, so this machine is measured first (--describe-device writes a file)\n");
    return hardware::parse_device(descriptor::parse_yaml(describe_device(f.backend), "this machine"));
  }
  const std::string name = backend.describe().device;
  try {
    return hardware::load_device(name);
  } catch (const Error&) {
    throw Error::bad_input(fmt::format("there is no hardware file of {}", name), "give --hw NAME or a file");
  }
}

struct Job {
  std::string phase;
  replay::Step step;
  graph::SequenceGroup group;  // of a model's step
};

std::vector<Job> jobs_of_model(const Flags& f, Request& request) {
  const std::vector<std::string> phases = {"all", "prefill", "decode"};
  if (std::find(phases.begin(), phases.end(), f.phase) == phases.end()) {
    throw Error::bad_input("--phase: there is no " + quote(f.phase), name_hint(f.phase, phases));
  }
  const estimate::Estimator& estimator = *request.estimator;
  const estimate::Scenario& s = request.scenario;
  std::vector<Job> jobs;
  const auto add = [&](const char* phase, const graph::SequenceGroup& group) {
    if (f.phase != "all" && f.phase != phase) return;
    graph::Graph graph;
    graph::build_step(estimator.setup().execution, {&group, 1}, graph::Part::all, graph);
    jobs.push_back({phase, replay::step_of(graph, request.model().vocab), group});
  };
  add("prefill", estimator.prefill_of(s));
  add("decode", estimator.decode_at(s, s.prompt));
  return jobs;
}

Job job_of_list(const Flags& f, const hardware::Device& device) {
  std::vector<calibrate::OpRow> rows;
  if (!f.sweep.empty()) {
    Dtype dtype = estimate::activation_dtype(device);
    if (!f.dtype.empty()) {
      const std::optional<Dtype> known = parse_dtype(f.dtype);
      const std::vector<std::string> names(dtype_names().begin(), dtype_names().end());
      if (!known) throw Error::bad_input("--dtype: unknown type " + quote(f.dtype), name_hint(f.dtype, names));
      dtype = *known;
    }
    rows = replay::sweep(f.sweep, dtype);
  } else {
    const std::vector<std::string> files = {f.ops};
    for (const calibrate::Row& row : calibrate::read_measurements(files).rows) {
      const auto* op = std::get_if<calibrate::OpRow>(&row.of);
      if (op == nullptr) throw Error::bad_input(fmt::format("--ops: {} has steps of models, not ops", f.ops));
      rows.push_back(*op);
    }
  }
  return {"ops", replay::list_of(rows), {}};
}

void check_fits(const Request& request) {
  const estimate::Estimator& e = *request.estimator;
  if (e.fits(request.scenario)) return;
  throw Error(ErrorKind::infeasible,
              {{.where = {},
                .message = fmt::format("a whole step of {} does not fit on {}: needs {}, has {}", request.model().name,
                                       request.device.name, format_bytes_binary(e.memory(request.scenario).total()),
                                       format_bytes_binary(e.capacity())),
                .hint = "without --whole-step its ops are replayed one by one"}});
}

// ---- What is made of it.

// The measured steps as measurements of whole models.
std::string step_measurements(const replay::Study& study, const Flags& f, const Request& request,
                              const std::vector<Job>& jobs) {
  calibrate::Measurements m;
  const calibrate::Measurements ops = replay::measurements_of(study);
  m.files = ops.files;
  m.files.front().notes.erase(m.files.front().notes.begin() + 1);
  m.extra_columns = {"spread_ms", "repetitions", "left_out"};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& whole = study.phases[i].replay.whole;
    if (!whole) continue;
    const graph::SequenceGroup& group = jobs[i].group;
    calibrate::Row& row = m.rows.emplace_back();
    row.hardware = study.hardware;
    row.of =
        calibrate::StepRow{.tp = request.estimator->setup().execution.plan.tensor,
                           .runtime = request.profile ? request.profile->name : kReplayRuntime,
                           .execution = f.request.execution,
                           .options = f.request.options,
                           .model = f.request.model,
                           .weights = request.estimator->setup().execution.weights.name,
                           .batch = group.count,
                           .phase = jobs[i].phase == "decode" ? calibrate::Phase::decode : calibrate::Phase::prefill,
                           .new_tokens = group.new_tokens,
                           .context = group.context};
    row.latency = whole->timing.median;
    row.extra = {fmt::format("{:.3g}", whole->timing.spread.value * 1e3), fmt::format("{}", whole->timing.passes),
                 join(whole->left_out, "+")};
  }
  return calibrate::format_measurements(m);
}

// "timings.csv" -> "timings.steps.csv".
std::string steps_path(const std::string& path) {
  const std::filesystem::path p(path);
  return (p.parent_path() / (p.stem().string() + ".steps" + p.extension().string())).string();
}

// Times every step under `profile`, with everything else as the request has it.
void predict_steps(const Flags& f, const Request& request, const hardware::RuntimeProfile& profile,
                   const std::vector<Job>& jobs, replay::Study& study) {
  estimate::Choices choices = choices_of(f.request, request);
  choices.profile = &profile;
  estimate::Estimator estimator(estimate::make_setup(request.model(), request.device, choices));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    study.phases[i].predicted_step = estimator.step_time({&jobs[i].group, 1});
  }
}

int self_test_action(const Flags& f) {
  const auto tested = open_backend(f.backend);
  const auto reference = open_backend({});
  const std::vector<replay::SelfTestResult> results = replay::self_test(*tested, *reference);
  Output output(f.output);
  output.write(report::self_test_report(tested->describe(), results));
  return replay::failed(results) ? kExitFailed : kExitDone;
}

int describe_action(const Flags& f) {
  std::optional<WrittenFile> out;
  if (!f.out.empty()) out.emplace(f.out);
  const std::string text = describe_device(f.backend);
  if (out) {
    out->commit(text);
  } else {
    write_stdout(text);
  }
  return kExitDone;
}

void check_flags(const Flags& f) {
  const int sources = (f.request.model.empty() ? 0 : 1) + (f.ops.empty() ? 0 : 1) + (f.sweep.empty() ? 0 : 1);
  if (sources != 1) {
    throw Error::bad_input(
        "give one of --model, --ops and --sweep",
        "-m qwen1.5-0.5b for the ops of a model; --ops FILE for those of measurements; --sweep gemm");
  }
  if (f.request.model.empty() && f.whole_step) {
    throw Error::bad_input("--whole-step: a list of ops is no step", "give --model");
  }
  if (!f.dtype.empty() && f.sweep.empty()) throw Error::bad_input("--dtype is for --sweep", "leave it out");
}

int replay_action(const Flags& flags) {
  if (flags.describe_device) return describe_action(flags);
  if (flags.self_test) return self_test_action(flags);
  Flags f = flags;
  check_flags(f);
  Output output(f.output);
  std::optional<WrittenFile> out;
  std::optional<WrittenFile> steps_out;
  std::optional<WrittenFile> profile_out;
  if (!f.out.empty()) out.emplace(f.out);
  if (!f.out.empty() && f.whole_step) steps_out.emplace(steps_path(f.out));
  if (!f.profile.empty()) profile_out.emplace(f.profile);

  const std::unique_ptr<replay::Backend> backend = open_backend(f.backend);
  const hardware::Device device = device_of(f, *backend);
  if (f.request.runtime.empty()) f.request.runtime = kReplayRuntime;
  const std::optional<hardware::RuntimeProfile> start = load_profile(f.request, device, false);
  if (!f.profile.empty() && !start) {
    throw Error::bad_input("--calibrate starts from a runtime profile", "leave out --runtime none");
  }
  std::unique_ptr<Request> request;
  std::vector<Job> jobs;
  replay::Study study{.hardware = device.name};
  if (f.request.model.empty()) {
    jobs.push_back(job_of_list(f, device));
    study.what = f.ops.empty() ? fmt::format("{} sweep", f.sweep) : f.ops;
  } else {
    request = load_request(f.request, device);
    if (f.whole_step) check_fits(*request);
    jobs = jobs_of_model(f, *request);
    study.what = fmt::format("{}, {} weights, batch {}, prompt {}", request->model().name,
                             request->estimator->setup().execution.weights.name, request->scenario.batch,
                             request->scenario.prompt);
  }

  const InterruptGuard guard;
  replay::Replayer replayer(*backend, {.whole_step = f.whole_step, .timing = {}, .progress = Progress()});
  study.device = backend->describe();
  for (const Job& job : jobs) {
    study.phases.push_back({job.phase, replayer.run(job.step), {}, {}});
    if (!study.phases.back().replay.complete) break;
  }
  jobs.resize(study.phases.size());

  const calibrate::Measurements measured = replay::measurements_of(study);
  if (out) out->commit(calibrate::format_measurements(measured));
  if (steps_out) steps_out->commit(step_measurements(study, f, *request, jobs));
  if (measured.rows.empty() && interrupted == 0) {
    output.write(report::replay_report(study));
    throw Error::failed("no op could be replayed", "the table says why, op by op");
  }
  std::optional<hardware::RuntimeProfile> profile = start;
  if (profile_out && interrupted == 0) {
    calibrate::CalibrateResult fitted = calibrate::calibrate(measured, device, *start);
    profile_out->commit(hardware::format_runtime_profile(fitted.profile));
    study.calibration = std::move(fitted.calibration);
    profile = std::move(fitted.profile);
  }
  if (profile && interrupted == 0) {
    replay::predict_ops(study, device, *profile);
    if (request) predict_steps(f, *request, *profile, jobs, study);
  }
  output.write(report::replay_report(study));
  return interrupted != 0 ? kExitInterrupted : kExitDone;
}

}  // namespace

void add_replay(CLI::App& root, Action& action) {
  CLI::App* command =
      root.add_subcommand("replay", "runs the ops of a model on a real device and measures what they take");
  auto f = std::make_shared<Flags>();
  add_model_flag(*command, f->request.model);
  command->get_option("--model")->required(false);
  command
      ->add_option("--hw", f->request.hardware,
                   "built-in name or YAML file that says what the device is [the device itself]")
      ->type_name("DEVICE");
  add_batch_flags(*command, f->request);
  command->add_option("--phase", f->phase, "prefill, decode or all")->type_name("PHASE")->capture_default_str();
  command->add_option("--backend", f->backend.backend, "what runs the ops: cpu or ascend")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--device", f->backend.device, "of several, which")->type_name("N")->capture_default_str();
  command->add_option("--threads", f->backend.threads, "cpu: threads [one per processor]")->type_name("N");
  command->add_option("--gemm", f->backend.gemm, "cpu: who multiplies: best, eigen, openblas or onednn")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--ops", f->ops, "replay the ops of a file of measurements")->type_name("CSV");
  command->add_option("--sweep", f->sweep, "replay ops that identify a profile's parameters: gemm")->type_name("NAME");
  command->add_option("--dtype", f->dtype, "--sweep: type of the operands [the device's own]")->type_name("DTYPE");
  command->add_flag("--whole-step", f->whole_step, "also run the ops in the order of the step, gaps and all");
  command->add_option("-o,--out", f->out, "write the measurements; those of whole steps to FILE.steps.csv")
      ->type_name("CSV");
  command->add_option("--calibrate", f->profile, "fit a runtime profile to the ops, and predict them with it")
      ->type_name("YAML");
  command->add_flag("--describe-device", f->describe_device, "measure this machine and write it as a hardware file");
  command->add_flag("--self-test", f->self_test, "compare results with the cpu backend's, op by op");
  add_execution_flags(*command, f->request);
  add_output_flags(*command, f->output);
  command->callback([f, &action] { action = [f] { return replay_action(*f); }; });
}

}  // namespace llmperf::cli
