// The command line as a whole. CLI11 hides an unknown subcommand behind "a subcommand is required", names no neighbours
// of a misspelt flag and takes an empty value for none, so the words are looked at before it parses.
#include "cli/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <set>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/words.h"
#include "report/single_line.h"

namespace llmperf::cli {
namespace {

constexpr int kSignalled = 128;  // a shell shows this and the number of the signal that ended a program

std::vector<std::string> subcommand_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* sub : root.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Throws when the flag words[i] has no value; moves i to its last word.
void check_value(const CLI::App& command, const CLI::Option& option, const std::string& flag,
                 const std::vector<std::string>& words, std::size_t& i) {
  const std::string& word = words[i];
  const bool attached = word.size() > flag.size();
  std::string value;
  if (attached) {
    value = word.substr(flag.size() + (word[flag.size()] == '=' ? 1 : 0));
  } else if (i + 1 < words.size()) {
    value = words[++i];
  }
  const bool holds_flags = option.get_type_name() == "FLAGS";  // its value starts like one
  const bool next_flag =
      !attached && !holds_flags && is_flag(value) && command.get_option_no_throw(flag_of(value)) != nullptr;
  if (value.empty() || next_flag) {
    throw Error::bad_input(fmt::format("{} needs a value: {} {}", flag, flag, option.get_type_name()));
  }
}

// Throws for a subcommand or flag that does not exist, a flag without its value or given twice, and an empty word (an
// unset variable of a script, mostly).
void check_words(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  std::set<const CLI::Option*> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return;
    if (word.empty()) throw Error::bad_input("an argument is empty");
    if (!is_flag(word)) {
      const std::vector<std::string> names = subcommand_names(*command);
      if (names.empty()) continue;
      command = find_subcommand(*command, word);
      if (command == nullptr) throw Error::bad_input("unknown subcommand " + quote(word), name_hint(word, names));
      continue;
    }
    const std::string flag = flag_of(word);
    const CLI::Option* option = command->get_option_no_throw(flag);
    if (option == nullptr) throw Error::bad_input("unknown flag " + quote(flag), name_hint(flag, flag_names(*command)));
    if (option->get_items_expected_min() == 0) continue;
    check_value(*command, *option, flag, words, i);
    if (!seen.insert(option).second && option->get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
      throw Error::bad_input(flag + " is given more than once");
    }
  }
}

// Where a message cannot be written (the reader of a pipe is gone) there is no one to tell; the exit status still says
// it.
void write_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

int report_error(const Error& error) {
  for (Diagnostic d : error.diagnostics()) {
    d.where.file = report::single_line(d.where.file);
    d.message = report::single_line(d.message);
    d.hint = report::single_line(d.hint);
    write_stderr(fmt::format("llmperf: error: {}\n", format_diagnostic(d)));
  }
  switch (error.kind()) {
    case ErrorKind::failed: return kExitFailed;
    case ErrorKind::bad_input: return kExitUsage;
    case ErrorKind::infeasible: return kExitInfeasible;
  }
  return kExitFailed;
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

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  constexpr std::string_view kOutput[] = {"--format", "--export", "--json", "--lang"};
  std::string text = "llmperf";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string flag = flag_of(words[i]);
    if (std::find(std::begin(kOutput), std::end(kOutput), flag) == std::end(kOutput)) {
      text += " " + shell_word(words[i]);
    } else if (flag != "--json" && flag.size() == words[i].size()) {
      ++i;  // its value
    }
  }
  return text;
}

namespace {

std::string running;  // see running_command()

// Sets it for as long as the command runs.
class RunningCommand {
 public:
  explicit RunningCommand(std::string text) : before_(std::exchange(running, std::move(text))) {}
  ~RunningCommand() { running = before_; }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

 private:
  std::string before_;
};

// CLI::Success (--help, --version) passes through.
void parse(CLI::App& root, std::vector<std::string> words) {
  check_words(root, words);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    root.parse(words);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ExtrasError&) {
    throw Error::bad_input("unexpected argument " + quote(root.remaining(true).front()));
  } catch (const CLI::ParseError& e) {
    std::string command = "llmperf";
    for (const CLI::App* app = &root; !app->get_subcommands().empty();) {
      app = app->get_subcommands().front();
      command += " " + app->get_name();
    }
    throw Error::bad_input(e.what(), command + " --help says what it takes");
  }
}

}  // namespace

std::string running_command() { return running; }

void add_commands(CLI::App& root, Action& action) {
  root.name("llmperf");
  root.set_version_flag("--version", "llmperf " LLMPERF_VERSION);
  root.require_subcommand(1);
  add_estimate(root, action);
  add_compare(root, action);
  add_explain(root, action);
  add_graph(root, action);
  add_limits(root, action);
  add_map(root, action);
  add_map_collective(root, action);
  add_parallel(root, action);
  add_sweep(root, action);
  add_merge(root, action);
  add_calibrate(root, action);
  add_validate(root, action);
  add_replay(root, action);
  add_run(root, action);
  add_import(root, action);
  add_report(root, action);
  add_list(root, action);
  add_show(root, action);
  add_completion(root, action);
  add_man(root, action);
}

int execute(const std::vector<std::string>& words) {
  CLI::App root{kProgramDescription};
  Action action;
  add_commands(root, action);
  if (words.empty()) {
    write_stderr(root.help());
    return kExitUsage;
  }
  const RunningCommand scope(command_text(words));
  try {
    parse(root, words);
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    root.exit(e, text, text);
    write_stdout(text.str());
    return kExitDone;
  }
  return action ? action() : kExitUsage;
}

void check_command(const std::vector<std::string>& words) {
  CLI::App root{kProgramDescription};
  Action action;
  add_commands(root, action);
  try {
    parse(root, words);
  } catch (const CLI::Success&) {
    throw Error::bad_input("--help and --version are no work to do");
  }
}

namespace {

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
// of JSON) would end the program while it is thrown.
[[noreturn]] void end_without_memory() {
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

int run(int argc, const char* const* argv) {
  prepare_streams();
  std::set_new_handler(end_without_memory);
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
