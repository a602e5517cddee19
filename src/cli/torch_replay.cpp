#include "cli/torch_replay.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "cli/progress.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "report/reports.h"

namespace llmperf::cli {
namespace {

// A folder of this process.
std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "llmperf-replay-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error::failed("cannot make a folder " + quote(name), "set TMPDIR");
  return name;
}

// Runs a program, whose output goes to stderr, and hands on what ends this one: Ctrl-C, of which a terminal tells both,
// when it goes on all the same. Returns its exit status, as a shell shows it.
int run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::signal(SIGCHLD, SIG_DFL);  // ignored, a child has no status
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw Error::failed(fmt::format("cannot run {}: {}", quote(words.front()), std::strerror(error)),
                        "--python names a Python that has PyTorch");
  }
  constexpr int kLook = 20;     // ms
  constexpr int kGrace = 2000;  // for what a terminal has told
  int status = 0;
  pid_t ended = 0;
  for (int waited = 0; (ended = waitpid(child, &status, WNOHANG)) == 0;) {
    const int signal = interrupting_signal();
    const int after = signal == SIGINT ? kGrace : 0;
    if (signal != 0 && waited >= after && waited < after + kLook) kill(child, signal);  // once
    if (signal != 0) waited += kLook;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook));
  }
  if (ended < 0) throw Error::failed(fmt::format("{} was lost: {}", quote(words.front()), std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Answer torch_answer(const replay::Emission& emission, const TorchReplay& torch, const hardware::Device& device) {
  const std::filesystem::path folder = make_folder();
  const std::shared_ptr<void> removed(nullptr, [&](void*) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  const std::string program = folder / "replay.py";
  WrittenFile(program).commit(replay::emitted_program(emission));
  const std::string out = std::filesystem::absolute(torch.out);
  std::vector<std::string> words = {torch.python, program, "--seconds", fmt::format("{}", torch.seconds), "-o", out};
  if (!torch.device.empty()) words.insert(words.end(), {"--device", torch.device});
  if (torch.page) words.insert(words.end(), {"--page", fmt::format("{}", *torch.page)});
  Answer answer;
  const int status = interrupted() ? 0 : run_program(words);
  if (interrupted()) {
    answer.status = kExitInterrupted;
  } else if (status != 0) {
    answer.error = Error::failed(fmt::format("{} ended with status {}", torch.python, status),
                                 "what it said last says why; --python names the Python; the same command goes on");
  }
  // What was measured is kept, whatever comes now: the files are the program's own.
  const bool whole = !answer.error && !interrupted();
  try {
    std::vector<std::string> files = {out};
    if (!torch.steps.empty() && std::filesystem::exists(torch.steps)) {
      files.push_back(std::filesystem::absolute(torch.steps));
    }
    measure::Measurements all = measure::read_measurements(files);
    std::erase_if(all.rows, [&](const measure::Row& row) { return row.hardware != device.name; });
    if (all.rows.empty()) throw Error::failed("no op could be replayed");
    std::string runtime = torch.runtime;
    if (torch.profile && whole) {
      measure::Measurements ops = all;
      std::erase_if(ops.rows, [](const auto& row) { return !std::holds_alternative<measure::OpRow>(row.of); });
      ops.timed_here = true;
      const auto start = hardware::load_runtime_profile(device, runtime, hardware::UnknownRuntime::error);
      const measure::CalibrateResult fitted = measure::calibrate(std::move(ops), device, start);
      const std::string profile = hardware::format_runtime_profile(fitted.profile);
      torch.profile->commit(profile);
      runtime = folder / "profile.yaml";  // whatever the other is called
      WrittenFile(runtime).commit(profile);
      answer.report = report::calibrate_report(fitted.calibration);
    }
    report::Report errors = report::validate_report(measure::validate(std::move(all), runtime, &device));
    if (!answer.report) {
      answer.report = std::move(errors);
    } else {
      for (report::Block& block : errors.document) answer.report->document.push_back(std::move(block));
    }
  } catch (const Error& error) {
    if (whole) answer.error = Error(ErrorKind::failed, error.diagnostics());
  }
  return answer;
}

}  // namespace llmperf::cli
