#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

constexpr int kHelpWidth = 110;
constexpr std::size_t kNamesWidth = 28;

template <class Named>
std::vector<std::string> shown_names(const Named& all) {
  std::vector<std::string> names;
  for (const auto& one : all) {
    if (!one.hidden) names.push_back(one.name);
  }
  return names;
}

// Those that are typed in full: of single letters each is near to any other.
std::vector<std::string> flag_names(const Command& command) {
  constexpr auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    if (!flag.is_argument() && !flag.hidden) names.push_back(flag.name);
    std::copy_if(flag.old_names.begin(), flag.old_names.end(), std::back_inserter(names), is_long);
  }
  names.emplace_back("--help");
  return names;
}

Flag new_flag(const std::string& names, std::string type, std::string about) {
  Flag flag{.name = names, .letter = {}, .type = std::move(type), .about = std::move(about)};
  if (const std::size_t comma = names.find(','); comma != std::string::npos) {
    flag.letter = names.substr(0, comma);
    flag.name = names.substr(comma + 1);
  }
  if (flag.is_argument() && flag.type.empty()) flag.type = flag.name;
  constexpr std::string_view kFiles[] = {"FILE", "CSV", "YAML", "JSON", "HTML", "PATH"};
  if (contains(kFiles, flag.type)) {
    flag.values.sort = Values::Sort::files;
  } else if (flag.type == "DIR") {
    flag.values.sort = Values::Sort::folders;
  }
  return flag;
}

}  // namespace

const Given* find(std::span<const Given> given, std::string_view flag) {
  for (const Given& g : given) {
    if (g.flag == flag) return &g;
  }
  return nullptr;
}

bool is_output_flag(std::string_view flag) {
  return flag == "--format" || flag == "--json" || flag == "--export" || flag == "--lang";
}

void Context::refuse(std::initializer_list<std::string_view> flags, std::string_view why,
                     const std::string& hint) const {
  for (const std::string_view flag : flags) {
    const Given* g = find(given, flag);
    if (g != nullptr && !g->restates) throw Error::bad_input(fmt::format("{}: {}", flag, why), hint);
  }
}

void Context::only(std::initializer_list<std::string_view> flags, std::string_view beside) const {
  for (const Given& g : given) {
    const bool allowed = contains(flags, g.flag) || g.flag == beside || is_output_flag(g.flag);
    if (!allowed) throw Error::bad_input(fmt::format("{} has no effect beside {}", g.flag, beside), "leave it out");
  }
}

bool Flag::is(std::string_view word) const {
  return word == name || (!letter.empty() && word == letter) || contains(old_names, word);
}

Flag& Command::add_valued(const std::string& names, std::string type, std::string what) {
  return flags.emplace_back(new_flag(names, std::move(type), std::move(what)));
}

Flag& Command::add(const std::string& names, std::string& target, std::string type, std::string what) {
  Flag& flag = add_valued(names, std::move(type), std::move(what));
  flag.otherwise = target;
  flag.set = [&target](const std::string& value) { target = value; };
  return flag;
}

Flag& Command::add(const std::string& names, std::vector<std::string>& target, std::string type, std::string what) {
  Flag& flag = add_valued(names, std::move(type), std::move(what));
  flag.repeats = true;
  flag.set = [&target](const std::string& value) { target.push_back(value); };
  return flag;
}

Flag& Command::add(const std::string& names, bool& target, std::string what) {
  Flag& flag = add_valued(names, {}, std::move(what));
  flag.set = [&target](const std::string&) { target = true; };
  return flag;
}

Meanings<Dtype> dtypes() {
  Meanings<Dtype> all;
  for (const std::string_view word : dtype_names()) all.emplace_back(std::string(word), *parse_dtype(word));
  return all;
}

namespace {

Flag flag_of_field(const request::Field& field) {
  Flag flag{.name = fmt::format("--{}", field.name),
            .letter = field.name == "model" ? "-m" : "",
            .type = std::string(field.type),
            .about = worded(std::string(field.about)),
            .group = std::string(field.group),
            .otherwise = std::string(field.otherwise),
            .values = field.values};
  for (const std::string_view alias : words(field.aliases)) {
    flag.old_names.push_back(fmt::format("{}{}", alias.starts_with('-') ? "" : "--", alias));
  }
  return flag;
}

}  // namespace

Flag& Command::add(std::string_view of_request, request::Request& target) {
  const request::Field& field = request::field(of_request);
  Flag flag = flag_of_field(field);
  flag.set = [&target, &field](const std::string& value) { set(target, field, field.is_switch() ? "true" : value); };
  return flags.emplace_back(std::move(flag));
}

Flag& Command::add_field(std::string_view of_request, std::string& target) {
  Flag flag = flag_of_field(request::field(of_request));
  flag.otherwise = target;
  flag.set = [&target](const std::string& value) { target = value; };
  return flags.emplace_back(std::move(flag));
}

void Command::add_fields(request::Request& target, std::string_view workloads) {
  for (const request::Field& field : request::fields()) {
    if (field.workloads.find_first_of(workloads) != std::string_view::npos) add(field.name, target);
  }
}

std::string worded(const std::string& message) {
  std::string out;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t open = message.find('`', at);
    const std::size_t close = open == std::string::npos ? open : message.find('`', open + 1);
    if (close == std::string::npos) return out + message.substr(at);
    const std::string name = message.substr(open + 1, close - open - 1);
    const bool known = request::find_field(name) != nullptr;
    out += message.substr(at, open - at) + (known ? "--" + name : "`");
    at = known ? close + 1 : open + 1;
  }
  return out;
}

Error worded(const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    d.message = worded(d.message);
    d.hint = worded(d.hint);
  }
  return Error(error.kind(), std::move(diagnostics));
}

Command& Command::add_command(std::string command, std::string what) {
  return commands.emplace_back(Command{.name = std::move(command), .about = std::move(what)});
}

const Flag* Command::find(std::string_view flag) const {
  auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == flag; });
  if (found == flags.end()) found = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.is(flag); });
  return found == flags.end() ? nullptr : &*found;
}

const Command* Command::find_command(std::string_view command) const {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.name == command; });
  return found == commands.end() ? nullptr : &*found;
}

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0);
}

std::string flag_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

std::string known_flag(const Command& command, const std::string& word) {
  std::string whole = word.substr(0, word.find('='));
  std::replace(whole.begin(), whole.end(), '_', '-');
  return command.find(whole) == nullptr ? flag_of(word) : whole;
}

namespace {

// Flags that engines have and that are something else here, or nothing.
constexpr std::pair<std::string_view, std::string_view> kOfEngines[] = {
    {"--max-model-len --ctx-size -c --context-length --max-seq-len --n-ctx",
     "lengths are those of a request, --prompt and --gen; what fits is said as the longest context"},
    {"--enable-expert-parallel --enable-ep", "--ep N says over how many devices"},
    {"--enforce-eager", "--execution eager"},
    {"--speculative-config --num-speculative-tokens --speculative-model", "--draft MODEL:N"},
    {"--enable-prefix-caching", "--prefix-caching on"},
    {"--enable-chunked-prefill", "--chunked-prefill on"}};

std::string flag_hint(const Command& command, const std::string& word) {
  for (const auto& [flags, hint] : kOfEngines) {
    if (contains(llmperf::words(flags), word)) return std::string(hint);
  }
  std::vector<std::string> names = flag_names(command);
  if (command.name == "llmperf") names.emplace_back("--version");
  return name_hint(word, names);
}

// The value of the flag words[i]; moves i to its last word.
std::string read_value(const Command& command, const Flag& flag, const std::string& name,
                       std::span<const std::string> words, std::size_t& i) {
  const std::string& word = words[i];
  const bool attached = word.size() > name.size();
  std::string value;
  if (attached) {
    value = word.substr(name.size() + (word[name.size()] == '=' ? 1 : 0));
  } else if (i + 1 < words.size()) {
    value = words[++i];
  }
  const bool holds_flags = flag.type == "FLAGS";  // its value starts like one
  const bool next_flag =
      !attached && !holds_flags && is_flag(value) && command.find(known_flag(command, value)) != nullptr;
  if (value.empty() || next_flag) {
    throw Error::bad_input(fmt::format("{} needs a value: {} {}", name, name, flag.type));
  }
  return value;
}

// The argument that comes after `given`; null when there is none left.
const Flag* next_argument(const Command& command, const std::vector<Given>& given) {
  for (const Flag& flag : command.flags) {
    if (!flag.is_argument()) continue;
    if (flag.repeats || find(given, flag.name) == nullptr) return &flag;
  }
  return nullptr;
}

}  // namespace

Words read_words(const Command& root, std::span<const std::string> words) {
  Words read{.command = &root, .path = root.name, .given = {}};
  bool only_arguments = false;
  const auto add_argument = [&](const std::string& word) {
    const Flag* argument = next_argument(*read.command, read.given);
    read.given.push_back({argument == nullptr ? std::string() : argument->name, word});
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_arguments) {
      add_argument(word);
    } else if (word == "--") {
      only_arguments = true;
    } else if (word.empty()) {
      throw Error::bad_input("an argument is empty");
    } else if (!is_flag(word)) {
      if (read.command->commands.empty()) {
        add_argument(word);
        continue;
      }
      const Command* inner = read.command->find_command(word);
      if (inner == nullptr) {
        throw Error::bad_input("unknown subcommand " + quote(word),
                               name_hint(word, shown_names(read.command->commands)));
      }
      read.command = inner;
      read.path += " " + inner->name;
    } else if (const std::string name = known_flag(*read.command, word); name == "--help" || name == "-h") {
      read.help = true;
    } else if (name == "--version" && read.command == &root) {
      read.version = true;
    } else if (name == "--json" && read.command == &root && read.version) {
      read.version_json = true;
    } else {
      const Flag* flag = read.command->find(name);
      if (flag == nullptr || flag->is_argument()) {
        const std::string whole = word.substr(0, word.find('='));
        throw Error::bad_input("unknown flag " + quote(whole), flag_hint(*read.command, whole));
      }
      if (!flag->takes_value()) {
        if (name.size() < word.size()) throw Error::bad_input(name + " takes no value", "leave it out");
        read.given.push_back({flag->name, {}});
        continue;
      }
      std::string value = read_value(*read.command, *flag, name, words, i);
      if (!flag->repeats && find(read.given, flag->name) != nullptr)
        throw Error::bad_input(name + " is given more than once");
      const bool restates = value == flag->otherwise;
      read.given.push_back({flag->name, std::move(value), restates});
    }
  }
  return read;
}

void check(const Words& words) {
  const Command& command = *words.command;
  const auto has = [&](const std::string& flag) { return find(words.given, flag) != nullptr; };
  const auto fail = [&](const std::string& what) {
    throw Error::bad_input(what, words.path + " --help says what it takes");
  };
  if (!command.commands.empty()) fail("a subcommand is required");
  for (const Given& given : words.given) {
    if (given.flag.empty()) throw Error::bad_input("unexpected argument " + quote(given.value));
    const Flag& flag = *command.find(given.flag);
    if (flag.words.empty() || contains(flag.words, given.value)) continue;
    throw Error::bad_input(fmt::format("{}: there is no {}", flag.name, quote(given.value)),
                           name_hint(given.value, flag.offered()));
  }
  for (const Flag& flag : command.flags) {
    if (!has(flag.name)) {
      if (flag.must && (flag.unless.empty() || !has(flag.unless))) fail(flag.name + " is required");
      continue;
    }
    for (const std::string& other : flag.needs) {
      if (!has(other)) fail(fmt::format("{} requires {}", flag.name, other));
    }
    for (const std::string& other : flag.excludes) {
      if (has(other)) fail(fmt::format("{} excludes {}", flag.name, other));
    }
  }
}

void apply(const Words& words) {
  check(words);
  for (const Given& given : words.given) words.command->find(given.flag)->set(given.value);
}

namespace {

std::string entry(const std::string& names, const std::string& text) {
  std::string line = "  " + names;
  std::string out;
  const auto indent = [&] { line.append(line.size() < kNamesWidth ? kNamesWidth - line.size() : 1, ' '); };
  const auto end_line = [&] {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    line.clear();
  };
  if (line.size() + 1 > kNamesWidth) end_line();
  indent();
  for (const std::string_view word : split(text, ' ')) {
    if (display_width(line) + display_width(word) > kHelpWidth && line.size() > kNamesWidth) {
      end_line();
      indent();
    }
    line += std::string(word) + " ";
  }
  end_line();
  return out;
}

std::string names_of(const Flag& flag) {
  return (flag.letter.empty() ? "" : flag.letter + ",") + flag.name +
         (flag.takes_value() && flag.type != flag.name ? " " + flag.type : "") +
         (flag.is_argument() && flag.repeats ? " ..." : "");
}

std::string meaning_of(const Flag& flag) {
  return flag.about + (flag.otherwise.empty() ? "" : " [" + flag.otherwise + "]") + (flag.must ? " (required)" : "");
}

}  // namespace

std::string help_text(const Command& command, const std::string& path) {
  std::string text = command.about + "\nUsage: " + path + " [OPTIONS]";
  for (const Flag& flag : command.flags) {
    if (!flag.is_argument()) continue;
    const std::string name = flag.name + (flag.repeats ? "..." : "");
    text += flag.must ? " " + name : " [" + name + "]";
  }
  if (!command.commands.empty()) text += " SUBCOMMAND";
  text += "\n";
  std::vector<std::string> groups;
  for (const Flag& flag : command.flags) {
    const std::string group = flag.is_argument() ? "Arguments" : flag.group;
    if (!flag.hidden && !contains(groups, group)) groups.push_back(group);
  }
  if (!contains(groups, "")) groups.emplace_back();
  std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group == "Arguments"; });
  for (const std::string& group : groups) {
    text += "\n" + (group.empty() ? "Options" : group) + ":\n";
    for (const Flag& flag : command.flags) {
      const bool here = flag.is_argument() ? group == "Arguments" : flag.group == group;
      if (here && !flag.hidden) text += entry(names_of(flag), meaning_of(flag));
    }
    if (group.empty()) {
      text += entry("-h,--help", "print this help");
      if (!command.commands.empty() && path == command.name)
        text += entry("--version", "print the version; with --json what was built, too");
    }
  }
  if (command.commands.empty()) return text;
  text += "\nSubcommands:\n";
  for (const Command& inner : command.commands) {
    if (!inner.hidden) text += entry(inner.name, inner.about);
  }
  return text;
}

}  // namespace llmperf::cli
