// `llmperf man`: manual pages, written from the same description of the command line as --help.
//
// roff of the man macros. In text a backslash, a hyphen that is to stay one and everything beyond ASCII are escaped,
// and a line must not start with a dot or an apostrophe, which would make it a request.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/man_text.h"
#include "cli/output.h"
#include "cli/written_file.h"

namespace llmperf::cli {
namespace {

struct ManPage {
  std::string name;  // "llmperf-estimate"
  std::string text;  // roff, for section 1
};

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = decode_utf8(text, offset).value_or(U'?');
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c > 0x7e) {
      out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(c));
    } else {
      if (start == 0 && c == '.') out += "\\&";
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

class Page {
 public:
  explicit Page(const std::string& name) {
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    // Without a date: the same sources make the same page.
    line(fmt::format(R"(.TH {} 1 "" "llmperf {}" "llmperf manual")", escaped(title), LLMPERF_VERSION));
  }
  void section(std::string_view title) { line(fmt::format(".SH {}", title)); }
  void subsection(std::string_view title) { line(fmt::format(R"(.SS "{}")", escaped(title))); }
  void line(const std::string& roff) { text_ += roff + "\n"; }
  void entry(const std::string& term, const std::string& roff) { line(".TP\n" + term + "\n" + roff); }
  void entries(std::string_view title, std::span<const ManEntry> all) {
    section(title);
    for (const ManEntry& e : all) entry(bold(e.term), escaped(e.text) + ".");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::vector<const Command*> visible(const Command& command) {
  std::vector<const Command*> all;
  for (const Command& inner : command.commands) {
    if (!inner.hidden) all.push_back(&inner);
  }
  return all;
}

// "-m, --model MODEL"; of an argument its name.
std::string term(const Flag& flag) {
  if (flag.is_argument()) return italic(flag.name);
  return (flag.letter.empty() ? "" : bold(flag.letter) + ", ") + bold(flag.name) +
         (flag.takes_value() ? " " + italic(flag.type) : "");
}

std::string names_of(std::vector<std::string> flags) {
  std::sort(flags.begin(), flags.end());
  for (std::string& flag : flags) flag = bold(flag);
  return join(flags, ", ");
}

std::string meaning(const Flag& flag) {
  std::string text = escaped(flag.about);
  if (!flag.about.empty() && !flag.about.ends_with('.') && !flag.about.ends_with("…")) text += ".";
  if (!flag.otherwise.empty()) text += " Default: " + escaped(flag.otherwise) + ".";
  if (flag.must && !flag.is_argument()) text += " Required.";
  if (!flag.needs.empty()) text += " Only with " + names_of(flag.needs) + ".";
  if (!flag.excludes.empty()) text += " Not with " + names_of(flag.excludes) + ".";
  return text;
}

std::string synopsis(const std::string& words, const Command& command) {
  std::string text = bold(words);
  for (const Flag& flag : command.flags) {
    if (!flag.is_argument()) continue;
    const std::string name = italic(flag.name) + (flag.repeats ? " ..." : "");
    text += flag.must ? " " + name : " [" + name + "]";
  }
  for (const Flag& flag : command.flags) {
    if (flag.must && !flag.is_argument()) text += " " + bold(flag.name) + " " + italic(flag.type);
  }
  if (!visible(command).empty()) text += " " + italic("SUBCOMMAND");
  return text + " [" + italic("OPTION") + " ...]";
}

void write_options(Page& page, const Command& command, bool of_program = false) {
  for (const bool arguments : {true, false}) {
    for (const Flag& flag : command.flags) {
      if (flag.is_argument() == arguments && !flag.hidden) page.entry(term(flag), meaning(flag));
    }
  }
  page.entry(bold("-h") + ", " + bold("--help"), "Print this help message and exit.");
  if (of_program) page.entry(bold("--version"), "Display program version information and exit.");
}

// Exit status, environment, files and the examples of one subcommand or of all, in the usual order.
void write_end(Page& page, std::span<const Command* const> commands) {
  page.entries("EXIT STATUS", man_exit_statuses());
  page.entries("ENVIRONMENT", man_environment());
  page.entries("FILES", man_files());
  bool any = false;
  for (const ManExample& example : man_examples()) {
    const bool wanted = std::any_of(commands.begin(), commands.end(),
                                    [&](const Command* command) { return command->name == example.command; });
    if (!wanted) continue;
    if (!any) page.section("EXAMPLES");
    page.line((any ? ".PP\n" : "") + escaped(example.about));
    any = true;
    page.line(".PP\n.in +4n\n.nf\n" + bold(example.words) + "\n.fi\n.in");
  }
}

ManPage program_page(const Command& root) {
  Page page(root.name);
  const std::vector<const Command*> commands = visible(root);
  page.section("NAME");
  page.line(root.name + " \\- performance model of language models on accelerators");
  page.section("SYNOPSIS");
  page.line(synopsis(root.name, root));
  page.section("DESCRIPTION");
  page.line(escaped(kManDescription));
  page.section("SUBCOMMANDS");
  for (const Command* command : commands) page.entry(bold(command->name), escaped(command->about) + ".");
  page.section("OPTIONS");
  write_options(page, root, true);
  write_end(page, commands);
  page.section("SEE ALSO");
  std::vector<std::string> others;
  for (const Command* command : commands) others.push_back(bold(root.name + "-" + command->name) + "(1)");
  page.line(join(others, ",\n"));
  return {root.name, page.text()};
}

ManPage command_page(const Command& root, const Command& command) {
  const std::string name = root.name + "-" + command.name;
  const std::string words = root.name + " " + command.name;
  const std::vector<const Command*> commands = visible(command);
  Page page(name);
  page.section("NAME");
  page.line(escaped(name) + " \\- " + escaped(command.about));
  page.section("SYNOPSIS");
  if (commands.empty()) page.line(synopsis(words, command));
  for (const Command* inner : commands) {
    page.line((inner == commands.front() ? "" : ".PP\n") + synopsis(words + " " + inner->name, *inner));
  }
  page.section("DESCRIPTION");
  std::string what = command.about;
  what[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(what[0])));
  page.line(escaped(what) + ".");
  page.section("OPTIONS");
  write_options(page, command);
  for (const Command* inner : commands) {
    page.subsection(words + " " + inner->name);
    page.line(escaped(inner->about) + ".");
    write_options(page, *inner);
  }
  const Command* self = &command;
  write_end(page, {&self, 1});
  page.section("SEE ALSO");
  page.line(bold(root.name) + "(1)");
  return {name, page.text()};
}

struct ManFlags {
  std::string name;
  std::string out;
};

void write_pages(const std::vector<ManPage>& pages, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error::failed(fmt::format("cannot write {}: {}", folder, error.message()));
  for (const ManPage& page : pages) {
    WrittenFile((std::filesystem::path(folder) / (page.name + ".1")).string()).commit(page.text);
  }
}

int man_action(const ManFlags& flags, const Context&) {
  const Command root = all_commands();
  std::vector<ManPage> pages = {program_page(root)};
  for (const Command* command : visible(root)) pages.push_back(command_page(root, *command));
  if (!flags.out.empty()) {
    if (!flags.name.empty()) throw Error::bad_input("--out writes all pages", "leave out " + quote(flags.name));
    write_pages(pages, flags.out);
    return kExitDone;
  }
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    names.push_back(page.name == root.name ? page.name : page.name.substr(root.name.size() + 1));
    if (names.back() != (flags.name.empty() ? root.name : flags.name)) continue;
    write_stdout(page.text);
    return kExitDone;
  }
  throw Error::bad_input("there is no manual page of " + quote(flags.name), name_hint(flags.name, names));
}

}  // namespace

void add_man(Command& root) {
  Command& command = root.add_command("man", "manual page of the program or of a subcommand, as man -l - reads it");
  auto flags = std::make_shared<ManFlags>();
  command.add("SUBCOMMAND", flags->name, "", "whose page [the program's]");
  command.add("-o,--out", flags->out, "DIR", "write all pages into this folder instead");
  command.action = [flags](const Context& context) { return man_action(*flags, context); };
}

}  // namespace llmperf::cli
