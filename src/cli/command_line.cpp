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

#include "base/text.h"
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

// As a shell reads it.
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

int execute(const std::vector<std::string>& words) {
  const Command root = all_commands();
  if (words.empty()) {
    write_stderr(help_text(root, root.name));
    return kExitUsage;
  }
  const Words read = read_words(root, words);
  if (read.help || read.version) {
    write_stdout(read.help           ? help_text(*read.command, read.path)
                 : read.version_json ? result::version_document(this_build())
                                     : fmt::format("llmperf {}\n", this_build().version));
    return kExitDone;
  }
  apply(read);
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

void add_help(Command& root) {
  Command& command = root.add_command("help", "the help of the program or of a subcommand: llmperf help map gemm");
  auto& words = command.runs(+[](const std::vector<std::string>& of, const Context&) {
    const Command all = all_commands();
    const Words read = read_words(all, of);
    for (const Given& given : read.given) {
      throw Error::bad_input("unexpected " + quote(given.flag.empty() ? given.value : given.flag),
                             "llmperf help map gemm");
    }
    write_stdout(help_text(*read.command, read.path));
    return kExitDone;
  });
  command.add("COMMAND", words, "COMMAND", "whose help [the program's]").offers(Values::Sort::words, [] {
    std::vector<std::string> names;
    for (const Command& one : all_commands().commands) names.push_back(one.name);
    return names;
  });
}

void add_outputs(Command& command) {
  if (command.output) add_output_flags(command, *command.output);
  for (Command& inner : command.commands) add_outputs(inner);
}

}  // namespace

Command all_commands() {
  Command root{.name = "llmperf",
               .about = "Performance model of language models on accelerators: how fast, what binds it, does it fit."};
  for (const auto add : {add_estimate, add_serve,     add_capacity, add_compare,        add_explain,  add_explore,
                         add_graph,    add_limits,    add_map,      add_map_collective, add_parallel, add_sweep,
                         add_merge,    add_calibrate, add_validate, add_replay,         add_run,      add_import,
                         add_report,   add_list,      add_show,     add_completion,     add_man,      add_help}) {
    add(root);
  }
  add_outputs(root);
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
