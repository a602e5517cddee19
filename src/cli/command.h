// The command line as data: commands with their flags, what every action is given, and how words become them. From it
// the parser's App is built (command.cpp, the only file that knows CLI11), of the command asked for alone; completion,
// manual pages and studies read the same description.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/list.h"
#include "points/values.h"
#include "report/document.h"
#include "report/reports.h"
#include "request/request.h"
#include "result/generation.h"

namespace llmperf::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInfeasible = 3;
inline constexpr int kExitThreshold = 4;
inline constexpr int kExitInterrupted = 130;  // of an action; the program's is 128 and the signal's number

int exit_status(ErrorKind kind);

// A flag and its value as they were given; a switch has no value, an argument goes by its name in the help.
struct Given {
  std::string flag;
  std::string value;
  bool restates = false;  // the value that the flag has anyway
};

// Null where it was not given.
const Given* find(std::span<const Given> given, std::string_view flag);
// Of those that say where output goes and how.
bool is_output_flag(std::string_view flag);

struct OutputFlags;
class Output;

// What an action is run in.
struct Context {
  std::string command;                            // as a shell reads it, without what says where output goes
  std::vector<Given> given = {};                  // in order
  std::vector<report::Report>* caught = nullptr;  // where reports go instead of stdout: those of a study's sections
  const Output* output = nullptr;                 // of a command that answers (output.h)
  bool has(std::string_view flag) const { return find(given, flag) != nullptr; }
  // Throws Error(bad_input) where one of the flags was given, but for a value that it has anyway: "--kv: there is one
  // device".
  void refuse(std::initializer_list<std::string_view> flags, std::string_view why,
              const std::string& hint = "leave it out") const;
  // … where any other was, but for those of output: "--kv has no effect beside --symbolic".
  void only(std::initializer_list<std::string_view> flags, std::string_view beside) const;
};
using Action = std::function<int(const Context&)>;

using request::Values;
// Values of flags: all take the flag's name for their messages and throw Error(bad_input).
using points::list_value;
using request::amount_value;
using request::count_value;
using request::number_value;
struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
  request::Kilo kilo = request::Kilo::none;  // what a suffix k means
};

// A flag, or an argument: what stands on its own.
struct Flag {
  std::string name = {};    // "--batch"; of an argument "KIND"
  std::string letter = {};  // "-m"; mostly empty
  std::string type = {};    // of the value, as help shows it; empty: a switch
  std::string about = {};
  std::string group = {};      // heading in the help; empty: the command's own
  std::string otherwise = {};  // the value when it is not given
  Values values = {};
  std::vector<std::string> words = {};      // all that the value may be; empty: more than words
  std::vector<std::string> needs = {};      // flags that must be given as well
  std::vector<std::string> excludes = {};   // … that must not
  std::vector<std::string> old_names = {};  // taken as well, never shown: of engines, of earlier versions
  bool must = false;
  std::string unless = {};  // flags that a required one is not required beside, separated by blanks
  bool repeats = false;
  std::function<void(const std::string&)> set = {};

  bool is_argument() const { return !name.starts_with('-'); }
  bool takes_value() const { return !type.empty(); }
  bool holds_flags() const { return type == "FLAGS"; }  // its value starts like one
  bool is(std::string_view word) const;

  Flag& required() { return must = true, otherwise.clear(), *this; }
  Flag& with(const std::string& flag) { return needs.push_back(flag), *this; }
  Flag& without(const std::string& flag) { return excludes.push_back(flag), *this; }
  Flag& offers(Values::Sort sort, std::string_view list) { return values = {sort, nullptr, list}, *this; }
  Flag& offers(Values::Sort sort, std::vector<std::string> (*names)() = nullptr) {
    return values = {sort, names, {}}, *this;
  }
  // Any other word is refused.
  Flag& one_of(std::vector<std::string> all) {
    return values.sort = Values::Sort::words, words = std::move(all), *this;
  }
  std::vector<std::string> offered() const {
    std::vector<std::string> some = values.all();
    return some.empty() ? words : some;
  }
};

// The words of a flag and what they mean.
template <class T>
using Meanings = std::vector<std::pair<std::string, T>>;
// "a, b or c".
template <class T>
std::string words_of(const Meanings<T>& meanings, std::string_view last = " or ") {
  std::string text;
  for (const auto& [word, meaning] : meanings) {
    if (!text.empty()) text += word == meanings.back().first ? last : ", ";
    text += word;
  }
  return text;
}
Meanings<Dtype> dtypes();
template <class T>
struct Meant {
  using Type = T;
};
template <class T>
struct Meant<std::optional<T>> : Meant<T> {};

struct Command {
  std::string name;
  std::string about;
  void (*describe)(Command& command) = nullptr;  // adds what follows when it is first asked for
  std::vector<Flag> flags = {};
  std::list<Command> commands = {};
  Action action = {};
  std::shared_ptr<OutputFlags> output = {};  // of a command that answers with a result; its flags stand last
  bool hidden = false;

  Command& described();

  // Sets the action, which is given the flags that are returned.
  template <class Flags, class Result>
  Flags& runs(Result (*run)(const Flags&, const Context&)) {
    auto bound = std::make_shared<Flags>();
    action = [bound, run](const Context& context) { return run(*bound, context); };
    return *bound;
  }

  // `names`: "-m,--model", "--batch", "KIND". What `target` holds is the value when the flag is not given. A target of
  // several values takes as many as there are: of a flag, each time it is given.
  Flag& add(const std::string& names, std::string& target, std::string type, std::string about);
  Flag& add(const std::string& names, std::vector<std::string>& target, std::string type, std::string about);
  Flag& add(const std::string& names, bool& target, std::string about);
  // A number within bounds: an integer, a double, or one of them that may be missing.
  template <class T>
  Flag& add(const std::string& names, T& target, Bounds bounds, std::string type, std::string what) {
    Flag& flag = add_valued(names, std::move(type), std::move(what));
    if constexpr (std::is_integral_v<T>) flag.otherwise = std::to_string(target);
    flag.set = [&target, bounds, flag_name = flag.name](const std::string& text) {
      if constexpr (std::is_integral_v<typename Meant<T>::Type>) {
        target =
            static_cast<typename Meant<T>::Type>(count_value(flag_name, text, bounds.least, bounds.most, bounds.kilo));
      } else {
        target = number_value(flag_name, text, static_cast<double>(bounds.least), static_cast<double>(bounds.most));
      }
    };
    return flag;
  }
  // One of some words.
  template <class T>
  Flag& add(const std::string& names, T& target, const Meanings<typename Meant<T>::Type>& meanings, std::string type,
            std::string what) {
    Flag& flag = add_valued(names, std::move(type), std::move(what));
    std::vector<std::string> all;
    for (const auto& [word, meaning] : meanings) {
      if (target == meaning && flag.otherwise.empty()) flag.otherwise = word;
      all.push_back(word);
    }
    flag.set = [&target, meanings](const std::string& text) {
      for (const auto& [word, meaning] : meanings) {
        if (word == text) target = meaning;
      }
    };
    return flag.one_of(std::move(all));
  }
  // A field of requests: as part of one, or alone where a command has a use for it only. Both say what the table says.
  Flag& add(std::string_view field, request::Request& target);
  Flag& add_field(std::string_view field, std::string& target);
  // All of those that mean something to any of the workloads, but for names that the command has for something else.
  void add_fields(request::Request& target, std::string_view workloads);
  Command& add_command(std::string command, std::string what, void (*describes)(Command& command) = nullptr);

  Flag& add_valued(const std::string& names, std::string type, std::string about);
  // Null for what does not exist.
  const Flag* find(std::string_view flag) const;
  Flag* find(std::string_view flag) { return const_cast<Flag*>(std::as_const(*this).find(flag)); }
  // … described.
  Command* find_command(std::string_view command);
};

// "-m", "--batch=4"; "-1" and "-" are values.
bool is_flag(std::string_view word);
// "--batch" of "--batch=4", "-m" of "-mqwen-7b".
std::string flag_of(const std::string& word);
// The same with the flags of a command known: whole before "=" where it is one of them ("-ngl", and "--tp_size" as
// engines take it), of the word's spelling otherwise.
std::string known_flag(const Command& command, const std::string& word);

// What words ask for: a command, and its flags as they were given; or a page to print instead.
struct Words {
  const Command* command = nullptr;
  std::vector<Given> given = {};
  std::optional<std::string> page = {};  // of --help
};
// Whether the values are set that flags are bound to, or only what says something of itself is checked.
enum class Apply : bool { no, yes };
// Throws Error(bad_input) for commands and flags that do not exist, flags without their value or given twice, empty
// words, what is missing, too much or does not go together, and words that a flag does not know.
Words read_words(Command& root, std::vector<std::string> words, Apply apply);

// The message with fields, and what commands are asked beside them, called what they are called on a command line:
// `batch` becomes --batch.
std::string worded(const std::string& message);
Error worded(const Error& error);

// ---- The command line as a whole: all subcommands, and how words become one that runs.

// The root with every subcommand.
Command all_commands();

// What they are, each in a file.
using Describe = void(Command& command);
Describe describe_calibrate, describe_capacity, describe_compare, describe_completion, describe_estimate,
    describe_explain, describe_explore, describe_graph, describe_import, describe_limits, describe_list, describe_man,
    describe_map, describe_map_collective, describe_map_model, describe_merge, describe_parallel, describe_replay,
    describe_report, describe_run, describe_serve, describe_show, describe_sweep, describe_validate;

// The word as a shell reads it, in quotes where it needs them.
std::string shell_word(const std::string& word);
// Adds to `word` what stands in the quotes that open at `at`; returns where they close, npos where they do not. Between
// double ones a backslash takes what is special there for itself and joins lines, between single ones it does nothing.
std::size_t read_quoted(std::string_view line, std::size_t at, std::string& word);
// The words as a shell reads them, without what says where output goes.
std::string command_text(std::span<const std::string> words);

// Parses the command line, runs the subcommand and maps errors to messages and exit status.
int run(int argc, const char* const* argv);

}  // namespace llmperf::cli
