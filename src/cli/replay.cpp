// `llmperf replay`: the ops of a step executed on a real device, and what they took.
#include "replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/torch_replay.h"
#include "descriptor/node.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "replay/ascend/ascend_backend.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/machine.h"
#include "replay/emit.h"
#include "replay/replay.h"
#include "report/reports.h"
#include "request/resolve.h"
#include "result/measured.h"

namespace llmperf::cli {
namespace {

// ---- The devices that ops can be replayed on, by the names that --backend takes.

struct BackendFlags;
struct Known {
  std::string name;
  std::unique_ptr<replay::Backend> (*open)(const BackendFlags& flags);
};
std::unique_ptr<replay::Backend> open_cpu(const BackendFlags& flags);
std::unique_ptr<replay::Backend> open_ascend(const BackendFlags& flags);
// PyTorch is no part of this process (torch_replay.h): there is none to open.
const Known kBackends[] = {{"cpu", open_cpu}, {"ascend", open_ascend}, {"torch", nullptr}};

struct BackendFlags {
  const Known* backend = &kBackends[0];
  std::int64_t device = 0;  // of several: which
  std::optional<std::int64_t> page;
  replay::cpu::CpuOptions cpu;  // threads, who multiplies
  bool is_cpu() const { return backend == &kBackends[0]; }
  bool is_torch() const { return backend->open == nullptr; }
};

std::unique_ptr<replay::Backend> open_cpu(const BackendFlags& flags) {
  if (flags.device != 0) throw Error::bad_input("--device: there is one CPU, number 0", "leave it out");
  if (flags.page)
    throw Error::bad_input("--page is for --backend ascend and torch: caches of the CPU lie whole", "leave it out");
  return replay::cpu::make_cpu_backend(flags.cpu);
}

std::unique_ptr<replay::Backend> open_ascend(const BackendFlags& flags) {
  return replay::ascend::make_ascend_backend(static_cast<int>(flags.device), flags.page.value_or(0));
}

// ----

constexpr const char* kReplayRuntime = "replay";

enum class Emitted : std::uint8_t { nothing, rows, torch };

struct ReplayFlags {
  request::Request request;
  BackendFlags backend;
  TorchReplay torch;
  Emitted emit = Emitted::nothing;
  std::string phase = "all";
  std::string ops;
  std::string sweep;
  std::optional<Dtype> dtype;
  std::string out;
  std::string profile;
  bool whole_step = false;
  bool describe_device = false;
  bool self_test = false;
};

const request::Generation& text_of(const request::Resolved& resolved) {
  return std::get<request::Generation>(resolved.work);
}

// ---- What to replay.

bool is_processor(const hardware::Device& device) {
  return device.kind == hardware::DeviceKind::cpu || device.kind == hardware::DeviceKind::soc;
}

// The device that graphs are built for and predictions are made of: --hw, else the one that runs the ops. `backend`:
// null where none of this process does.
hardware::Device device_of(const ReplayFlags& f, const replay::Backend* backend) {
  const bool cpu = f.backend.is_cpu();
  if (!f.request.hw && backend == nullptr) {
    throw Error::bad_input("--hw is required with --emit and --backend torch",
                           "--hw h100-sxm; llmperf list hardware names what there is");
  }
  if (f.request.hw) {
    hardware::Device device = hardware::load_device(*f.request.hw);
    if (backend != nullptr && is_processor(device) != cpu) {
      throw Error::bad_input(fmt::format("--hw: {} is a {}, which the {} backend does not measure", device.name,
                                         hardware::name(device.kind), f.backend.backend->name),
                             "leave it out, or name what the ops run on");
    }
    return device;
  }
  if (cpu) {
    fmt::print(stderr, "llmperf: note: no --hw, so this machine is measured first (--describe-device writes a file)\n");
    return hardware::parse_device(descriptor::parse_yaml(replay::cpu::describe_device(f.backend.cpu), "this machine"));
  }
  const std::string name = backend->describe().device;
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

std::vector<Job> jobs_of_model(const ReplayFlags& f, const request::Resolved& resolved) {
  const estimate::Estimator& estimator = *text_of(resolved).estimator;
  const estimate::Scenario& s = text_of(resolved).scenario;
  std::vector<Job> jobs;
  const auto add = [&](const char* phase, const graph::SequenceGroup& group) {
    if (f.phase != "all" && f.phase != phase) return;
    graph::Graph graph;
    graph::build_step(estimator.setup().execution, {&group, 1}, graph::Part::all, graph);
    const auto sums = is_processor(resolved.device) ? replay::Sums::apart : replay::Sums::joint;
    jobs.push_back({phase, replay::step_of(graph, sums), group});
  };
  add("prefill", estimator.prefill_of(s));
  if (!estimator.setup().encodes()) add("decode", estimator.decode_at(s, s.decode_context()));
  return jobs;
}

Job job_of_list(const ReplayFlags& f, const hardware::Device& device) {
  std::vector<measure::OpRow> rows;
  if (!f.sweep.empty()) {
    rows = replay::sweep(f.sweep, f.dtype ? *f.dtype : estimate::activation_dtype(device));
  } else {
    const std::vector<std::string> files = {f.ops};
    const measure::Measurements read = measure::read_measurements(files);
    measure::refuse_none(read.refused);
    for (const measure::Row& row : read.rows) {
      const auto* op = std::get_if<measure::OpRow>(&row.of);
      if (op == nullptr) throw Error::bad_input(fmt::format("--ops: {} has steps of models, not ops", f.ops));
      measure::OpRow& bare = rows.emplace_back(*op);  // whoever ran it before
      bare.kernel = bare.mode = bare.runtime = bare.engine_version = "";
    }
  }
  return {"ops", replay::list_of(rows), {}};
}

void check_fits(const request::Resolved& resolved) {
  const estimate::Estimator& e = *text_of(resolved).estimator;
  if (e.fits(text_of(resolved).scenario)) return;
  throw Error::infeasible(
      fmt::format("a whole step of {} does not fit on {}: needs {}, has {}", resolved.model().name,
                  resolved.device.name, format_bytes_binary(e.memory(text_of(resolved).scenario).total()),
                  format_bytes_binary(e.capacity())),
      "without --whole-step its ops are replayed one by one");
}

// ---- What is made of it.

// Why a measured step is not the one that its row in a file names; empty: it is.
std::string untrusted(const request::Resolved& resolved, const replay::StepTime& whole) {
  if (!whole.left_out.empty()) return "without " + join(whole.left_out, ", ");
  const estimate::Setup& setup = text_of(resolved).estimator->setup();
  if (setup.execution.plan.devices() != setup.execution.plan.tensor) return "a plan that has no column";
  estimate::Choices named;  // by the columns alone
  named.weights = setup.execution.weights.name;
  const estimate::Setup other = estimate::make_setup(resolved.model(), resolved.device, named);
  if (other.execution.activations != setup.execution.activations) return "activations of another type";
  return other.execution.kv == setup.execution.kv ? "" : "a KV cache of another type";
}

// What its columns say of a model's step.
measure::StepRow step_row(const ReplayFlags& f, const request::Resolved& resolved, const Job& job) {
  const graph::Execution& execution = text_of(resolved).estimator->setup().execution;
  measure::StepRow step;
  step.tp = execution.plan.tensor;
  step.runtime = resolved.profile ? resolved.profile->name : kReplayRuntime;
  step.execution = f.request.execution.value_or("");
  step.options = f.request.options.value_or("");
  step.model = f.request.model.value_or("");
  step.weights = execution.weights.name;
  step.kv = execution.kv.name();
  step.batch = job.group.count;
  step.phase = job.phase == "decode" ? measure::Phase::decode : measure::Phase::prefill;
  step.new_tokens = job.group.new_tokens;
  step.context = job.group.context;
  return step;
}

// The measured steps as measurements of whole models. `ops`: those of the same study.
measure::Measurements step_measurements(const replay::Study& study, const measure::Measurements& ops,
                                        const ReplayFlags& f, const request::Resolved& resolved,
                                        const std::vector<Job>& jobs) {
  measure::Measurements m;
  m.files = ops.files;
  m.files.front().notes.erase(m.files.front().notes.begin() + 1);  // what the columns of ops mean
  m.extra_columns = {"spread_ms", "repetitions", std::string(measure::kUntrustedColumn)};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& whole = study.phases[i].replay.whole;
    if (!whole) continue;
    measure::Row& row = m.rows.emplace_back();
    row.hardware = study.hardware;
    row.of = step_row(f, resolved, jobs[i]);
    row.latency = whole->timing.median;
    row.extra = {fmt::format("{:.3g}", whole->timing.spread.value * 1e3), fmt::format("{}", whole->timing.passes),
                 untrusted(resolved, *whole)};
  }
  return m;
}

// "timings.csv" -> "timings.steps.csv".
std::string steps_path(const std::string& path) {
  const std::filesystem::path p(path);
  return (p.parent_path() / (p.stem().string() + ".steps" + p.extension().string())).string();
}

// Times every step under `profile`, with everything else as the request has it.
void predict_steps(const request::Resolved& resolved, const hardware::RuntimeProfile& profile,
                   const std::vector<Job>& jobs, replay::Study& study) {
  estimate::Choices choices = choose(resolved);
  choices.profile = &profile;
  estimate::Estimator estimator(estimate::make_setup(resolved.model(), resolved.device, choices));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    study.phases[i].predicted_step = estimator.step_time({&jobs[i].group, 1});
  }
}

// What is replayed, for people.
std::string what_of(const ReplayFlags& f, const request::Resolved* resolved) {
  if (resolved == nullptr) return f.ops.empty() ? fmt::format("{} sweep", f.sweep) : f.ops;
  return fmt::format("{}, {} weights, batch {}, prompt {}", resolved->model().name,
                     text_of(*resolved).estimator->setup().execution.weights.name, text_of(*resolved).scenario.batch,
                     text_of(*resolved).scenario.prompt);
}

// Everything that PyTorch is to time, and what tells most about the profile first.
replay::Emission emission_of(const ReplayFlags& f, const hardware::Device& device,
                             const std::optional<hardware::RuntimeProfile>& profile, const request::Resolved* resolved,
                             const std::vector<Job>& jobs) {
  const bool whole = resolved && (f.whole_step || f.emit != Emitted::nothing);
  std::vector<replay::EmittedStep> emitted;
  for (const Job& job : jobs) {
    emitted.push_back({&job.step, whole ? std::optional(step_row(f, *resolved, job)) : std::nullopt});
  }
  return replay::emission(what_of(f, resolved), emitted, device, profile ? &*profile : nullptr);
}

TorchReplay torch_of(const ReplayFlags& f, WrittenFile& profile) {
  TorchReplay torch = f.torch;
  if (f.backend.device > 0) torch.device = fmt::format(":{}", f.backend.device);
  torch.page = f.backend.page;
  torch.out = f.out;
  torch.runtime = *f.request.runtime;
  torch.profile = profile ? &profile : nullptr;
  torch.steps = f.whole_step ? steps_path(f.out) : "";
  return torch;
}

Answer emit_answer(const ReplayFlags& f, const replay::Emission& emission, WrittenFile& out) {
  if (emission.rows.rows.empty()) {
    throw Error::failed("no op can be replayed", emission.left_out.empty() ? "" : emission.left_out.front());
  }
  for (const std::string& op : emission.left_out) {
    fmt::print(stderr, "llmperf: note: left out: {}\n", op);
  }
  const std::string text = f.emit == Emitted::rows ? emitted_rows(emission) : emitted_program(emission);
  out ? out.commit(text) : write_stdout(text);
  return {};
}

Answer self_test_answer(const ReplayFlags& f, const Context& context) {
  context.only({"--backend", "--device", "--page", "--threads", "--gemm"}, "--self-test");
  if (f.backend.is_torch()) {
    throw Error::bad_input("--self-test: the program for PyTorch checks every kernel before it times it",
                           "leave one of the two out");
  }
  const auto tested = f.backend.backend->open(f.backend);
  const auto reference = open_cpu({});
  const std::vector<replay::SelfTestResult> results = replay::self_test(*tested, *reference);
  return {.report = report::self_test_report({tested->describe(), results}),
          .status = replay::failed(results) ? kExitFailed : kExitDone};
}

Answer describe_answer(const ReplayFlags& f, const Context& context) {
  context.only({"--backend", "--threads", "--out"}, "--describe-device");
  if (!f.backend.is_cpu()) {
    throw Error::bad_input("--describe-device measures the CPU",
                           "llmperf list hardware names the NPUs there are files of");
  }
  const InterruptGuard guard;
  WrittenFile out(f.out);
  const std::string text = replay::cpu::describe_device(f.backend.cpu);
  if (interrupted()) return {.status = kExitInterrupted};
  out ? out.commit(text) : write_stdout(text);
  return {};
}

void check_flags(const ReplayFlags& f, const Context& context) {
  const int sources = (f.request.model ? 1 : 0) + (f.ops.empty() ? 0 : 1) + (f.sweep.empty() ? 0 : 1);
  if (sources != 1) {
    throw Error::bad_input(
        "give one of --model, --ops and --sweep",
        "-m qwen1.5-0.5b for the ops of a model; --ops FILE for those of measurements; --sweep gemm");
  }
  if (f.backend.is_torch() && f.emit == Emitted::nothing && f.out.empty()) {
    throw Error::bad_input("--backend torch writes every row as it comes", "-o rows.csv says where");
  }
  if (!f.request.model && f.whole_step) {
    throw Error::bad_input("--whole-step: a list of ops is no step", "give --model");
  }
  if (f.sweep.empty()) context.refuse({"--dtype"}, "for --sweep");
  if (!f.request.model) {
    context.only({"--backend", "--device", "--page", "--threads", "--gemm", "--hw", "--runtime", "--dtype", "--out",
                  "--calibrate", "--emit", "--python", "--seconds"},
                 f.ops.empty() ? "--sweep" : "--ops");
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
std::optional<Error> fit(const measure::Measurements& measured, const hardware::Device& device, WrittenFile& out,
                         replay::Study& study, hardware::RuntimeProfile& profile) {
  try {
    measure::CalibrateResult fitted = measure::calibrate(measured, device, profile);
    out.commit(hardware::format_runtime_profile(fitted.profile));
    study.calibration = std::move(fitted.calibration);
    profile = std::move(fitted.profile);
    return std::nullopt;
  } catch (const Error& error) {
    return Error(ErrorKind::failed, error.diagnostics());
  }
}

Answer replay_answer(const ReplayFlags& flags, const Context& context) {
  if (!flags.backend.is_cpu()) context.refuse({"--threads", "--gemm"}, "for --backend cpu");
  if (!flags.backend.is_torch()) context.refuse({"--python", "--seconds"}, "for --backend torch");
  if (flags.describe_device) return describe_answer(flags, context);
  if (flags.self_test) return self_test_answer(flags, context);
  const bool emits = flags.emit != Emitted::nothing;
  const bool elsewhere = emits || flags.backend.is_torch();
  if (emits) {
    context.refuse({"--backend", "--device", "--page", "--threads", "--gemm", "--whole-step", "--calibrate"},
                   "nothing is run here where ops are emitted");
    context.refuse({"--json", "--format", "--export"}, "a program or rows are printed in place of a result");
  }
  ReplayFlags f = flags;
  check_flags(f, context);
  const InterruptGuard guard;
  WrittenFile out(flags.backend.is_torch() ? "" : f.out);  // there the program writes it, row by row
  WrittenFile steps_out(f.out.empty() || !f.whole_step || elsewhere ? "" : steps_path(f.out));
  WrittenFile profile_out(f.profile);

  const std::unique_ptr<replay::Backend> backend = elsewhere ? nullptr : f.backend.backend->open(f.backend);
  const hardware::Device device = device_of(f, backend.get());
  if (!f.request.runtime) f.request.runtime = kReplayRuntime;
  request::Sources sources;
  sources.put(f.request.hw.value_or(""), device);
  std::optional<hardware::RuntimeProfile> profile =
      choose_profile(f.request, f.request.hw.value_or(""), device, false, hardware::Workload::language, sources);
  if (!f.profile.empty() && !profile) {
    throw Error::bad_input("--calibrate starts from a runtime profile", "leave out --runtime none");
  }
  std::unique_ptr<request::Resolved> resolved;
  std::vector<Job> jobs;
  replay::Study study{.hardware = device.name};
  if (!f.request.model) {
    jobs.push_back(job_of_list(f, device));
  } else {
    f.request.hw = f.request.hw.value_or("");
    resolved = resolve(f.request, sources, request::Unused::taken);
    if (f.whole_step) check_fits(*resolved);
    jobs = jobs_of_model(f, *resolved);
  }
  study.what = what_of(f, resolved.get());
  if (elsewhere) {
    const replay::Emission all = emission_of(f, device, profile, resolved.get(), jobs);
    return emits ? emit_answer(f, all, out) : torch_answer(all, torch_of(f, profile_out), device);
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
  const measure::Measurements measured = replay::measurements_of(study);
  if (out && !measured.rows.empty()) out.commit(measure::format_measurements(measured));
  if (steps_out) {
    const measure::Measurements steps = step_measurements(study, measured, f, *resolved, jobs);
    if (!steps.rows.empty()) steps_out.commit(measure::format_measurements(steps));
  }
  const bool whole = !failure && !interrupted() && !measured.rows.empty();
  if (whole && profile_out) failure = fit(measured, device, profile_out, study, *profile);
  if (whole && profile && !failure) {
    replay::predict_ops(study, measured, device, *profile);
    if (resolved) predict_steps(*resolved, *profile, jobs, study);
  }
  Answer answer{.report = report::replay_report(study), .error = std::move(failure)};
  if (answer.error) return answer;
  if (interrupted()) {
    answer.status = kExitInterrupted;
  } else if (measured.rows.empty()) {
    answer.error = Error::failed("no op could be replayed", "the table says why, op by op");
  }
  return answer;
}

}  // namespace

void describe_replay(Command& command) {
  using replay::cpu::Gemm;
  constexpr Bounds kDeviceNumbers{0, 1023};
  constexpr Bounds kThreads{1, 4096};
  ReplayFlags& f = answers(command, replay_answer);
  command.add("model", f.request);
  command.add("hw", f.request).about =
      "built-in name or YAML file that says what the device is [the device itself; with --emit and torch there is "
      "none]";
  for (const char* field : {"batch", "prompt"}) command.add(field, f.request);
  command.add("--phase", f.phase, "PHASE", "prefill, decode or all").one_of({"all", "prefill", "decode"});
  Meanings<const Known*> backends;
  for (const Known& known : kBackends) backends.emplace_back(known.name, &known);
  command.add("--backend", f.backend.backend, backends, "NAME", "what runs the ops: " + words_of(backends));
  command.add("--device", f.backend.device, kDeviceNumbers, "N", "of several, which");
  constexpr std::int64_t kLargestPage = 512;
  command.add("--page", f.backend.page, {1, kLargestPage}, "N",
              "ascend, torch: attention's caches are in pages of as many tokens [each sequence's lies whole]");
  command.add("--emit", f.emit, {{"torch", Emitted::torch}, {"rows", Emitted::rows}}, "WHAT",
              "print, in place of running the ops, a Python program that times them through PyTorch (torch), or the "
              "rows alone (rows)");
  command.add("--python", f.torch.python, "PATH", "torch: the Python that has it");
  constexpr std::int64_t kLongest = 86'400;
  command.add("--seconds", f.torch.seconds, {1, kLongest}, "N", "torch: no op starts later");
  command.add("--threads", f.backend.cpu.threads, kThreads, "N", "cpu: threads [one per processor]").otherwise.clear();
  command.add("--gemm", f.backend.cpu.gemm, {{"best", Gemm::best}, {"eigen", Gemm::eigen}, {"onednn", Gemm::onednn}},
              "NAME", "cpu: who multiplies: best, eigen or onednn");
  command.add("--ops", f.ops, "CSV", "replay the ops of a file of measurements");
  const auto& sweeps = replay::sweep_names();
  command.add("--sweep", f.sweep, "NAME", "replay ops that identify a profile's parameters: gemm")
      .one_of({sweeps.begin(), sweeps.end()});
  command.add("--dtype", f.dtype, dtypes(), "DTYPE", "--sweep: type of the operands [the device's own]");
  command.add("--whole-step", f.whole_step, "also run the ops in the order of the step, gaps and all");
  command.add("-o,--out", f.out, "CSV", "write the measurements; those of whole steps to FILE.steps.csv");
  command.add("--calibrate", f.profile, "YAML", "fit a runtime profile to the ops, and predict them with it");
  command.add("--describe-device", f.describe_device, "measure this machine and write it as a hardware file");
  command.add("--self-test", f.self_test, "compare results with the cpu backend's, op by op");
  for (const request::Field& field : request::fields()) {
    const bool named = command.find("--" + std::string(field.name)) != nullptr || field.name == "gen";
    // The ops of a vision tower are not replayed.
    const bool images = field.name == "images" || field.name == "image-size";
    // Nor is what an estimate says beside its own numbers; and one step of a prompt is all of it.
    constexpr std::string_view kBeside[] = {"step",     "kv-utilisation", "block-size", "max-batched-tokens",
                                            "max-seqs", "prefill-chunk"};
    const bool beside = std::ranges::find(kBeside, field.name) != std::end(kBeside);
    if (!named && !images && !beside && field.applies_to(request::Workload::text)) command.add(field.name, f.request);
  }
}

}  // namespace llmperf::cli
