#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "base/version.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/document.h"
#include "result/document.h"

namespace llmperf::cli {
namespace {

constexpr int kSignalled = 128;  // a shell shows this and the number of the signal that ended a program

// Where a message cannot be written (the reader of a pipe is gone) there is no one to tell; the exit status still says
// it.
void write_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

int report_error(const Error& error) {
  const Error shown = worded(error);
  for (Diagnostic d : shown.diagnostics()) {
    d.where.file = report::single_line(d.where.file);
    d.message = report::single_line(d.message);
    d.hint = report::single_line(d.hint);
    write_stderr(fmt::format("llmperf: error: {}\n", format_diagnostic(d)));
  }
  return exit_status(error.kind());
}

int execute(const std::vector<std::string>& words) {
  Command root = all_commands();
  const Words read = read_words(root, words.empty() ? std::vector<std::string>{"--help"} : words, Apply::yes);
  if (words.empty()) {
    write_stderr(*read.page);
    return kExitUsage;
  }
  if (read.page) {
    write_stdout(*read.page);
    return kExitDone;
  }
  return read.command->action({.command = command_text(words), .given = read.given});
}

// What would end the program without a word is a write error with its message: an export's pipe that nobody reads, a
// file larger than the limit. (Of stdout see ClosedPipe.) And a standard stream that is closed stays unwritable: else
// the next file opened would take its number, and get what is meant for the stream.
void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Not left to std::bad_alloc: a point of a sweep would take it for its own error, and destructors that allocate (those
// of JSON) would end the program while it is thrown. Other threads or processes may be about to give memory back, so
// that it is asked for again, in all for a fifth of a second.
void wait_or_end_without_memory() {
  static std::atomic<int> waits = 20;
  if (waits.fetch_sub(1) > 0) {
    usleep(10'000);
    return;
  }
  static std::atomic_flag ending = ATOMIC_FLAG_INIT;
  while (ending.test_and_set()) pause();  // another thread is at it
  remove_unfinished_files();
  constexpr std::string_view kMessage = "llmperf: error: out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitFailed);
}

// As if SIGPIPE had ended it, which its exit status says.
int end_of_closed_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  return kSignalled + SIGPIPE;  // where it is blocked
}

}  // namespace

int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::failed: return kExitFailed;
    case ErrorKind::bad_input: return kExitUsage;
    case ErrorKind::infeasible: return kExitInfeasible;
  }
  return kExitFailed;
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const bool plain = std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::size_t read_quoted(std::string_view line, std::size_t at, std::string& word) {
  constexpr std::string_view kSpecial = "\"\\$`";
  const char closing = line[at];
  while (++at < line.size() && line[at] != closing) {
    if (closing == '"' && line[at] == '\\' && at + 1 < line.size()) {
      ++at;
      if (line[at] == '\n') continue;
      if (kSpecial.find(line[at]) == std::string_view::npos) word += '\\';
    }
    word += line[at];
  }
  return at < line.size() ? at : std::string_view::npos;
}

std::string command_text(std::span<const std::string> words) {
  std::string text = "llmperf";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string flag = flag_of(words[i]);
    if (!is_output_flag(flag)) {
      text += " " + shell_word(words[i]);
    } else if (flag != "--json" && flag.size() == words[i].size()) {
      ++i;  // its value
    }
  }
  return text;
}

namespace {

void describe_help(Command& command) {
  auto& words = command.runs(+[](const std::vector<std::string>& of, const Context&) {
    Command root = all_commands();
    std::vector<std::string> asked = {"--help"};  // first: behind a flag it would be its value
    asked.insert(asked.end(), of.begin(), of.end());
    write_stdout(*read_words(root, asked, Apply::no).page);
    return kExitDone;
  });
  command.add("COMMAND", words, "COMMAND", "whose help [the program's]").offers(Values::Sort::words, [] {
    std::vector<std::string> names;
    for (const Command& one : all_commands().commands) names.push_back(one.name);
    return names;
  });
}

struct VersionFlags {
  bool version = false;
  bool json = false;
};

void describe_program(Command& command) {
  VersionFlags& flags = command.runs(+[](const VersionFlags& asked, const Context&) {
    if (!asked.version) throw Error::bad_input("a subcommand is required", "llmperf --help names them");
    write_stdout(asked.json ? result::version_document(this_build())
                            : fmt::format("llmperf {}\n", this_build().version));
    return kExitDone;
  });
  command.add("--version", flags.version, "print the version");
  command.add("--json", flags.json, "what was built, too, as JSON").with("--version");
}

}  // namespace

Command all_commands() {
  constexpr struct {
    const char* name;
    Describe* describe;
    const char* about;
  } kCommands[] = {
      {"estimate", describe_estimate, "latency, throughput and memory of a model; with --training, of a training step"},
      {"serve", describe_serve,
       "traffic on a serving engine, step by step: TTFT, TPOT, throughput and what keeps them from being better"},
      {"capacity", describe_capacity,
       "the cheapest devices, plan and weights that serve a rate of requests within bounds"},
      {"compare", describe_compare,
       "results, saved or of several sets of flags or devices: what changed, where and why; or what runtime options "
       "are worth"},
      {"explain", describe_explain, "the formula of any number of an estimate, with its values"},
      {"explore", describe_explore,
       "a page that computes by itself, offline: change anything, compare setups, pick a device"},
      {"graph", describe_graph, "ops, communication and time of a StableHLO or MHLO program"},
      {"limits", describe_limits, "closed-form limits of a single user: KV tokens, inflection points, decode line"},
      {"map", describe_map, "how one op runs best on an array of tiles, and why"},
      {"map-collective", describe_map_collective, "time of one collective by algorithm, with the fastest and why"},
      {"parallel", describe_parallel, "every plan over a number of devices: memory, communication, time"},
      {"sweep", describe_sweep,
       "estimates of every combination of lists of values, on all cores: --batch 1-128*2 --weights bf16,w4a16"},
      {"merge", describe_merge, "joins the rows of a sweep's shards, in the order of their points"},
      {"calibrate", describe_calibrate, "fits a runtime profile to measured latencies"},
      {"validate", describe_validate, "predictions beside measurements: the error of every row, and of simpler models"},
      {"replay", describe_replay, "runs the ops of a model on a real device and measures what they take"},
      {"run", describe_run, "a study from a scenario file: its sections as one page, or as files"},
      {"import", describe_import, "makes measurements of the files of profilers and test programs"},
      {"report", describe_report, "HTML report of a result that a command saved as JSON"},
      {"list", describe_list, "built-in models, hardware, runtimes, measurements or scenarios"},
      {"show", describe_show,
       "one model's exact parameter counts, one device's figures, a runtime profile or a scenario, with sources"},
      {"completion", describe_completion, "script that completes llmperf's command lines in a shell"},
      {"man", describe_man, "manual page of the program or of a subcommand, as man -l - reads it"},
      {"help", describe_help, "the help of the program or of a subcommand: llmperf help map gemm"},
  };
  Command root{.name = "llmperf",
               .about = "Performance model of language models on accelerators: how fast, what binds it, does it fit.",
               .describe = describe_program};
  for (const auto& [name, describe, about] : kCommands) {
    root.add_command(name, about, describe);
  }
  return root;
}

int run(int argc, const char* const* argv) {
  prepare_streams();
  std::set_new_handler(wait_or_end_without_memory);
  try {
    const int status = execute({argv + std::min(argc, 1), argv + argc});
    return status == kExitInterrupted ? kSignalled + interrupting_signal() : status;
  } catch (const ClosedPipe&) {
    return end_of_closed_pipe();
  } catch (const Error& error) {
    return report_error(error);
  } catch (const std::exception& error) {
    write_stderr(fmt::format("llmperf: error: {}\n", error.what()));
    return kExitFailed;
  }
}

}  // namespace llmperf::cli
