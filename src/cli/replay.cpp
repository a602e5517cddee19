// `llmperf replay`: the ops of a step executed on a real device, and what they took.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "calibrate/validate.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/progress.h"
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

// ---- What to replay.

// The device that graphs are built for and predictions are made of: --hw, else the one that runs the ops.
hardware::Device device_of(const Flags& f, const replay::Backend& backend) {
  const bool cpu = f.backend.backend == "cpu";
  if (!f.request.hardware.empty()) {
    hardware::Device device = hardware::load_device(f.request.hardware);
    const bool is_cpu = device.kind == hardware::DeviceKind::cpu || device.kind == hardware::DeviceKind::soc;
    if (is_cpu != cpu) {
      throw Error::bad_input(fmt::format("--hw: {} is a {}, which the {} backend does not measure", device.name,
                                         hardware::name(device.kind), f.backend.backend),
                             "leave it out, or name what the ops run on");
    }
    return device;
  }
  if (cpu) {
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
  const estimate::Estimator& estimator = *request.estimator;
  const estimate::Scenario& s = request.scenario;
  std::vector<Job> jobs;
  const auto add = [&](const char* phase, const graph::SequenceGroup& group) {
    if (f.phase != "all" && f.phase != phase) return;
    graph::Graph graph;
    graph::build_step(estimator.setup().execution, {&group, 1}, graph::Part::all, graph);
    const auto sums = f.backend.backend == "cpu" ? replay::Sums::apart : replay::Sums::joint;
    jobs.push_back({phase, replay::step_of(graph, request.model().vocab, sums), group});
  };
  add("prefill", estimator.prefill_of(s));
  add("decode", estimator.decode_at(s, s.prompt));
  return jobs;
}

Job job_of_list(const Flags& f, const hardware::Device& device) {
  std::vector<calibrate::OpRow> rows;
  if (!f.sweep.empty()) {
    rows =
        replay::sweep(f.sweep, f.dtype.empty() ? estimate::activation_dtype(device) : dtype_value("--dtype", f.dtype));
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

// Why a measured step is not the one that its row in a file names; empty: it is.
std::string untrusted(const Request& request, const replay::StepTime& whole) {
  if (!whole.left_out.empty()) return "without " + join(whole.left_out, ", ");
  const estimate::Setup& setup = request.estimator->setup();
  if (setup.execution.plan.devices() != setup.execution.plan.tensor) return "a plan that has no column";
  estimate::Choices named;  // by the columns alone
  named.weights = setup.execution.weights.name;
  const estimate::Setup other = estimate::make_setup(request.model(), request.device, named);
  if (other.execution.activations != setup.execution.activations) return "activations of another type";
  return other.execution.kv == setup.execution.kv ? "" : "a KV cache of another type";
}

// The measured steps as measurements of whole models. `ops`: those of the same study.
calibrate::Measurements step_measurements(const replay::Study& study, const calibrate::Measurements& ops,
                                          const Flags& f, const Request& request, const std::vector<Job>& jobs) {
  calibrate::Measurements m;
  m.files = ops.files;
  m.files.front().notes.erase(m.files.front().notes.begin() + 1);  // what the columns of ops mean
  m.extra_columns = {"spread_ms", "repetitions", std::string(calibrate::kUntrustedColumn)};
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
                           .kv = request.estimator->setup().execution.kv.name(),
                           .batch = group.count,
                           .phase = jobs[i].phase == "decode" ? calibrate::Phase::decode : calibrate::Phase::prefill,
                           .new_tokens = group.new_tokens,
                           .context = group.context};
    row.latency = whole->timing.median;
    row.extra = {fmt::format("{:.3g}", whole->timing.spread.value * 1e3), fmt::format("{}", whole->timing.passes),
                 untrusted(request, *whole)};
  }
  return m;
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

// Throws Error(bad_input) for flags given beside `mode` that are not among `allowed` or those of every command's
// output.
void refuse_flags_beside(const std::string& mode, const Flags& f, std::vector<std::string> allowed) {
  allowed.insert(allowed.end(), {mode, "--format", "--json", "--export"});
  for (const CLI::Option* option : f.request.command->get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      throw Error::bad_input(fmt::format("{} has no use beside {}", name, mode), "leave it out");
    }
  }
}

int self_test_action(const Flags& f) {
  refuse_flags_beside("--self-test", f, {"--backend", "--device", "--threads", "--gemm"});
  const auto tested = open_backend(f.backend);
  const auto reference = open_backend({});
  const std::vector<replay::SelfTestResult> results = replay::self_test(*tested, *reference);
  Output output(f.output);
  output.write(report::self_test_report(tested->describe(), results));
  return replay::failed(results) ? kExitFailed : kExitDone;
}

int describe_action(const Flags& f) {
  refuse_flags_beside("--describe-device", f, {"--backend", "--threads", "--out"});
  const InterruptGuard guard;
  std::optional<WrittenFile> out;
  if (!f.out.empty()) out.emplace(f.out);
  if (!out) check_stdout();
  const std::string text = describe_device(f.backend);
  if (interrupted()) return kExitInterrupted;
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
  const std::vector<std::string> phases = {"all", "prefill", "decode"};
  if (std::find(phases.begin(), phases.end(), f.phase) == phases.end()) {
    throw Error::bad_input("--phase: there is no " + quote(f.phase), name_hint(f.phase, phases));
  }
  if (!f.sweep.empty()) replay::sweep(f.sweep, Dtype::fp32);
  if (f.request.model.empty()) {
    refuse_flags_beside(
        f.ops.empty() ? "--sweep" : "--ops", f,
        {"--backend", "--device", "--threads", "--gemm", "--hw", "--runtime", "--dtype", "--out", "--calibrate"});
  }
  std::set<std::filesystem::path> paths;
  for (const std::string& path :
       {f.out, f.out.empty() || !f.whole_step ? std::string() : steps_path(f.out), f.profile}) {
    if (!path.empty() && !paths.insert(std::filesystem::path(path).lexically_normal()).second) {
      throw Error::bad_input("two results are to be written to " + quote(path), "give each a file of its own");
    }
  }
}

// A fit that the measurements do not allow is no fault of the command's.
std::optional<Error> fit(const calibrate::Measurements& measured, const hardware::Device& device, WrittenFile& out,
                         replay::Study& study, hardware::RuntimeProfile& profile) {
  try {
    calibrate::CalibrateResult fitted = calibrate::calibrate(measured, device, profile);
    out.commit(hardware::format_runtime_profile(fitted.profile));
    study.calibration = std::move(fitted.calibration);
    profile = std::move(fitted.profile);
    return std::nullopt;
  } catch (const Error& error) {
    return Error(ErrorKind::failed, error.diagnostics());
  }
}

int replay_action(const Flags& flags) {
  if (flags.describe_device) return describe_action(flags);
  if (flags.self_test) return self_test_action(flags);
  Flags f = flags;
  check_flags(f);
  const InterruptGuard guard;
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
  std::optional<hardware::RuntimeProfile> profile = load_profile(f.request, device, false);
  if (!f.profile.empty() && !profile) {
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

  replay::TimingOptions timing;
  timing.go_on = [] { return !interrupted(); };
  replay::Replayer replayer(*backend, {.whole_step = f.whole_step, .timing = timing, .progress = Progress()});
  study.device = backend->describe();
  std::optional<Error> failure;
  for (const Job& job : jobs) {
    study.phases.push_back({job.phase, replayer.run(job.step), {}, {}});
    failure = study.phases.back().replay.failure;
    if (!study.phases.back().replay.complete) break;
  }
  jobs.resize(study.phases.size());

  // What was measured is kept, whatever comes now.
  const calibrate::Measurements measured = replay::measurements_of(study);
  if (out && !measured.rows.empty()) out->commit(calibrate::format_measurements(measured));
  if (steps_out) {
    const calibrate::Measurements steps = step_measurements(study, measured, f, *request, jobs);
    if (!steps.rows.empty()) steps_out->commit(calibrate::format_measurements(steps));
  }
  const bool whole = !failure && !interrupted() && !measured.rows.empty();
  if (whole && profile_out) failure = fit(measured, device, *profile_out, study, *profile);
  if (whole && profile && !failure) {
    replay::predict_ops(study, measured, device, *profile);
    if (request) predict_steps(f, *request, *profile, jobs, study);
  }
  output.write(report::replay_report(study));
  if (failure) throw Error(*failure);
  if (interrupted()) return kExitInterrupted;
  if (measured.rows.empty()) throw Error::failed("no op could be replayed", "the table says why, op by op");
  return kExitDone;
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
