#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "cli/output.h"

namespace llmperf::cli {
namespace {

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

std::string worded(const std::string& message, bool (*is_known)(std::string_view)) {
  std::string out;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t open = message.find('`', at);
    const std::size_t close = open == std::string::npos ? open : message.find('`', open + 1);
    if (close == std::string::npos) return out + message.substr(at);
    const std::string name = message.substr(open + 1, close - open - 1);
    const bool known = is_known(name);
    out += message.substr(at, open - at) + (known ? "--" + name : "`");
    at = known ? close + 1 : open + 1;
  }
  return out;
}

void add_flags(Command& command, std::set<std::string, std::less<>>& names) {
  for (const Flag& flag : command.described().flags) names.insert(flag.name);
  for (Command& inner : command.commands) add_flags(inner, names);
}

bool is_field(std::string_view name) { return request::find_field(name) != nullptr; }
// … or a flag of any command.
bool is_name(std::string_view name) {
  if (is_field(name)) return true;
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all;
    Command root = all_commands();
    add_flags(root, all);
    return all;
  }();
  return names.contains(fmt::format("--{}", name));
}

Flag flag_of_field(const request::Field& field) {
  Flag flag{.name = fmt::format("--{}", field.name),
            .letter = field.name == "model" ? "-m" : "",
            .type = std::string(field.type),
            .about = worded(std::string(field.about), is_field),
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
    const bool applies = field.workloads.find_first_of(workloads) != std::string_view::npos;
    if (applies && find(fmt::format("--{}", field.name)) == nullptr) add(field.name, target);
  }
}

std::string worded(const std::string& message) { return worded(message, is_name); }

Error worded(const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    d.message = worded(d.message);
    d.hint = worded(d.hint);
  }
  return Error(error.kind(), std::move(diagnostics));
}

Command& Command::add_command(std::string command, std::string what, void (*describes)(Command& command)) {
  return commands.emplace_back(Command{.name = std::move(command), .about = std::move(what), .describe = describes});
}

const Flag* Command::find(std::string_view flag) const {
  auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == flag; });
  if (found == flags.end()) found = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.is(flag); });
  return found == flags.end() ? nullptr : &*found;
}

Command& Command::described() {
  if (const auto describes = std::exchange(describe, nullptr)) describes(*this);
  if (const auto flags_of_output = std::exchange(output, nullptr)) add_output_flags(*this, *flags_of_output);
  return *this;
}

Command* Command::find_command(std::string_view command) {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.name == command; });
  return found == commands.end() ? nullptr : &found->described();
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
    {"--ctx-size -c --n-ctx",
     "lengths are those of a request, --prompt and --gen; what fits is said as the longest context"},
    {"--enable-expert-parallel --enable-ep", "--ep N says over how many devices"},
    {"--enforce-eager", "--execution eager"},
    {"--speculative-config --num-speculative-tokens --speculative-model", "--draft MODEL:N"},
    {"--enable-prefix-caching", "--prefix-caching on"},
    {"--enable-chunked-prefill", "--chunked-prefill on"}};

Error unknown_flag(const Command& command, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  for (const auto& [flags, hint] : kOfEngines) {
    if (contains(llmperf::words(flags), flag))
      return Error::bad_input("unknown flag " + quote(flag), std::string(hint));
  }
  // Those that are typed in full: of single letters each is near to any other.
  std::vector<std::string> names;
  for (const Flag& known : command.flags) {
    if (!known.is_argument()) names.push_back(known.name);
    std::copy_if(known.old_names.begin(), known.old_names.end(), std::back_inserter(names),
                 [](const std::string& name) { return name.starts_with("--"); });
  }
  names.emplace_back("--help");
  return Error::bad_input("unknown flag " + quote(flag), name_hint(flag, names));
}

Error without_value(const Flag& flag) {
  return Error::bad_input(fmt::format("{} needs a value: {} {}", flag.name, flag.name, flag.type));
}

// ---- CLI11: reads the words, says what is missing or does not go together, and writes the help.

// With flags by their own names: CLI11 knows no names of several letters behind one dash, and takes the next word for
// the value of "--batch=".
std::vector<std::string> renamed(const Command& command, const std::vector<std::string>& words) {
  std::vector<std::string> out;
  bool flags = true;
  for (const std::string& word : words) {
    flags = flags && word != "--";
    const std::string name = known_flag(command, word);
    const Flag* before = out.empty() ? nullptr : command.find(out.back());
    const bool is_value = before != nullptr && before->holds_flags();
    const Flag* flag = flags && is_flag(word) && !is_value ? command.find(name) : nullptr;
    std::string value = flag == nullptr ? "" : word.substr(name.size());
    // Where no flags are asked for, what is one is the next one.
    const bool wants_value = before != nullptr && before->takes_value() && !before->is_argument() && !is_value;
    if (flag != nullptr && wants_value) throw without_value(*before);
    if (!value.empty() && !flag->takes_value()) throw Error::bad_input(flag->name + " takes no value", "leave it out");
    if (value == "=") throw without_value(*flag);
    if (!value.empty() && !value.starts_with('=')) value.insert(0, "=");
    out.push_back(flag == nullptr ? word : flag->name + value);
  }
  return out;
}

// What CLI11 has read for a flag.
void take(const Command& command, const Flag& flag, const std::vector<std::string>& values, Apply apply) {
  for (const std::string& value : values) {
    if (command.hidden) continue;  // words of another command line, as far as they are typed
    if (flag.is_argument() && value.empty()) throw Error::bad_input("an argument is empty");
    if (value.empty()) throw without_value(flag);
    if (flag.words.empty() || contains(flag.words, value)) continue;
    throw Error::bad_input(fmt::format("{}: there is no {}", flag.name, quote(value)),
                           name_hint(value, flag.offered()));
  }
  if (values.size() > 1 && flag.takes_value() && !flag.repeats) {
    throw Error::bad_input(flag.name + " is given more than once");
  }
  if (apply == Apply::no) return;
  for (const std::string& value : values) flag.set(value);
}

// CLI11's page, with texts that do not leave the screen.
class Help : public CLI::Formatter {
 public:
  Help() { label("Positionals", "Arguments"); }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string page = CLI::Formatter::make_help(app, std::move(name), mode);
    page = CLI::detail::find_and_replace(page, "\n\n\n", "\n\n");
    return CLI::detail::rtrim(page) + "\n";
  }
  std::string make_option_desc(const CLI::Option* option) const override { return wrapped(option->get_description()); }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), wrapped(command->get_description()), get_column_width());
    return out.str();
  }

 private:
  std::string wrapped(const std::string& text) const {
    const int most = 100 - static_cast<int>(get_column_width());
    std::string out;
    int width = 0;
    for (const std::string_view word : split(text, ' ')) {
      const bool ends = width + display_width(word) > most;
      if (width > 0) out += ends ? '\n' : ' ';
      width = (ends ? 0 : width) + display_width(word) + 1;
      out += word;
    }
    return out;
  }
};

void build(CLI::App& app, const Command& command, Apply apply) {
  app.formatter(std::make_shared<Help>());
  for (const Flag& flag : command.flags) {
    CLI::Option& option = *app.add_option(
        flag.letter.empty() ? flag.name : flag.letter + "," + flag.name,
        [&app, &command, &flag, apply](const CLI::results_t& values) {
          if (app.get_help_ptr()->count() > 0) return true;  // the page is asked for, whatever the values are
          take(command, flag, values, apply);
          for (const Flag& other : command.flags) {
            if (contains(words(other.unless), flag.name)) app.get_option(other.name)->required(false);
          }
          return true;
        },
        flag.about + (flag.otherwise.empty() ? "" : " [" + flag.otherwise + "]"));
    option.multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->required(flag.must);
    if (!flag.group.empty()) option.group(flag.group);
    if (!flag.takes_value()) option.expected(0);
    if (flag.takes_value() && flag.type != flag.name) option.type_name(flag.type);
    if (flag.is_argument() && flag.repeats) option.expected(CLI::detail::expected_max_vector_size);
  }
  for (const Flag& flag : command.flags) {
    for (const std::string& other : flag.needs) app.get_option(flag.name)->needs(app.get_option(other));
    for (const std::string& other : flag.excludes) app.get_option(flag.name)->excludes(app.get_option(other));
  }
  app.set_help_flag("-h,--help", "print this help");  // behind the others
  for (const Command& inner : command.commands) {
    app.add_subcommand(inner.name, inner.about)->group(inner.hidden ? "" : "Subcommands");
  }
  if (!command.commands.empty() && !command.action) app.require_subcommand(1);
}

// In the order of the words.
std::vector<Given> given_to(const CLI::App& app, const Command& command) {
  std::vector<Given> given;
  std::map<const CLI::Option*, std::size_t> counts;
  for (const CLI::Option* option : app.parse_order()) {
    const Flag* flag = command.find(option->get_name());
    if (flag == nullptr) continue;
    const std::size_t at = counts[option]++;
    if (flag->takes_value() && at >= option->results().size()) continue;  // CLI11 reads "[]" as no value
    const std::string value = flag->takes_value() ? option->results()[at] : "";
    given.push_back({flag->name, value, flag->takes_value() && value == flag->otherwise});
  }
  return given;
}

}  // namespace

Words read_words(Command& root, std::vector<std::string> words, Apply apply) {
  std::string path = root.name;
  Command* command = &root.described();
  // CLI11 hides an unknown command behind "a subcommand is required".
  while (!command->commands.empty()) {
    auto name = words.begin();
    for (; name != words.end() && is_flag(*name) && *name != "--"; ++name) {
      const bool known = *name == "--help" || *name == "-h" || command->find(known_flag(*command, *name)) != nullptr;
      if (!known) throw unknown_flag(*command, *name);
    }
    if (name == words.end() || *name == "--") break;
    Command* inner = command->find_command(*name);
    if (inner == nullptr) {
      std::vector<std::string> names;
      for (const Command& known : command->commands) {
        if (!known.hidden) names.push_back(known.name);
      }
      throw Error::bad_input("unknown subcommand " + quote(*name), name_hint(*name, names));
    }
    command = inner;
    path += " " + *name;
    words.erase(name);
  }
  words = renamed(*command, words);
  CLI::App app(command->about, path);
  build(app, *command, apply);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    std::vector<std::string> left = app.remaining();
    const auto only_arguments = std::find(left.begin(), left.end(), "--");
    const auto flag = std::find_if(left.begin(), only_arguments, is_flag);
    if (flag != only_arguments) throw unknown_flag(*command, *flag);
    switch (static_cast<CLI::ExitCodes>(e.get_exit_code())) {
      case CLI::ExitCodes::Success: return {.command = command, .page = app.help()};
      case CLI::ExitCodes::ArgumentMismatch: throw without_value(*command->find(words.back()));
      case CLI::ExitCodes::ExtrasError:
        std::erase(left, "--");
        throw Error::bad_input("unexpected argument " + quote(left.front()));
      default: throw Error::bad_input(e.what(), path + " --help says what it takes");
    }
  }
  return {.command = command, .given = given_to(app, *command)};
}

}  // namespace llmperf::cli
