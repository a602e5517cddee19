// roff of the man macros. In text a backslash, a hyphen that is to stay one and everything beyond ASCII are escaped,
// and a line must not start with a dot or an apostrophe, which would make it a request.
#include "cli/man_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/man_text.h"

namespace llmperf::cli {
namespace {

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

std::vector<const CLI::App*> visible_subcommands(const CLI::App& command) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* sub : command.get_subcommands({})) {
    if (!sub->get_group().empty()) all.push_back(sub);
  }
  return all;
}

std::string page_name(const CLI::App& root, const CLI::App& command) {
  return root.get_name() + "-" + command.get_name();
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

// "-m, --model MODEL"; of an argument its name.
std::string term(const CLI::Option& option) {
  if (option.get_positional()) return italic(option.get_name(true));
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(bold("-" + name));
  for (const std::string& name : option.get_lnames()) names.push_back(bold("--" + name));
  return join(names, ", ") + (takes_value(option) ? " " + italic(option.get_type_name()) : "");
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(bold(option->get_name()));
  std::sort(names.begin(), names.end());
  return join(names, ", ");
}

std::string meaning(const CLI::Option& option) {
  const std::string& about = option.get_description();
  std::string text = escaped(about);
  if (!about.empty() && !about.ends_with('.') && !about.ends_with("…")) text += ".";
  if (!option.get_default_str().empty()) text += " Default: " + escaped(option.get_default_str()) + ".";
  if (option.get_required() && !option.get_positional()) text += " Required.";
  if (!option.get_needs().empty()) text += " Only with " + names_of(option.get_needs()) + ".";
  if (!option.get_excludes().empty()) text += " Not with " + names_of(option.get_excludes()) + ".";
  return text;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command, bool positional) {
  std::vector<const CLI::Option*> all;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() == positional && !option->get_group().empty()) all.push_back(option);
  }
  return all;
}

std::string synopsis(const std::string& words, const CLI::App& command) {
  std::string text = bold(words);
  for (const CLI::Option* option : options_of(command, true)) {
    const std::string name = italic(option->get_name(true)) + (option->get_items_expected_max() > 1 ? " ..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  for (const CLI::Option* option : options_of(command, false)) {
    if (!option->get_required()) continue;
    const std::string name = option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames().front();
    text += " " + bold(name) + " " + italic(option->get_type_name());
  }
  if (!visible_subcommands(command).empty()) text += " " + italic("SUBCOMMAND");
  return text + " [" + italic("OPTION") + " ...]";
}

void write_options(Page& page, const CLI::App& command) {
  for (const CLI::Option* option : options_of(command, true)) page.entry(term(*option), meaning(*option));
  for (const CLI::Option* option : options_of(command, false)) page.entry(term(*option), meaning(*option));
}

// Of one subcommand, or of all.
void write_examples(Page& page, std::span<const CLI::App* const> commands) {
  bool any = false;
  for (const ManExample& example : man_examples()) {
    const bool wanted = std::any_of(commands.begin(), commands.end(),
                                    [&](const CLI::App* command) { return command->get_name() == example.command; });
    if (!wanted) continue;
    if (!any) page.section("EXAMPLES");
    page.line((any ? ".PP\n" : "") + escaped(example.about));
    any = true;
    page.line(".PP\n.in +4n\n.nf\n" + bold(example.words) + "\n.fi\n.in");
  }
}

// Exit status, environment and examples, in the usual order.
void write_end(Page& page, std::span<const CLI::App* const> commands) {
  page.entries("EXIT STATUS", man_exit_statuses());
  page.entries("ENVIRONMENT", man_environment());
  page.entries("FILES", man_files());
  write_examples(page, commands);
}

ManPage program_page(const CLI::App& root) {
  Page page(root.get_name());
  const std::vector<const CLI::App*> commands = visible_subcommands(root);
  page.section("NAME");
  page.line(root.get_name() + " \\- performance model of language models on accelerators");
  page.section("SYNOPSIS");
  page.line(synopsis(root.get_name(), root));
  page.section("DESCRIPTION");
  page.line(escaped(kManDescription));
  page.section("SUBCOMMANDS");
  for (const CLI::App* command : commands) {
    page.entry(bold(command->get_name()), escaped(command->get_description()) + ".");
  }
  page.section("OPTIONS");
  write_options(page, root);
  write_end(page, commands);
  page.section("SEE ALSO");
  std::vector<std::string> others;
  for (const CLI::App* command : commands) others.push_back(bold(page_name(root, *command)) + "(1)");
  page.line(join(others, ",\n"));
  return {root.get_name(), page.text()};
}

ManPage command_page(const CLI::App& root, const CLI::App& command) {
  const std::string name = page_name(root, command);
  const std::string words = root.get_name() + " " + command.get_name();
  const std::vector<const CLI::App*> commands = visible_subcommands(command);
  Page page(name);
  page.section("NAME");
  page.line(escaped(name) + " \\- " + escaped(command.get_description()));
  page.section("SYNOPSIS");
  if (commands.empty()) page.line(synopsis(words, command));
  for (const CLI::App* sub : commands) {
    page.line((sub == commands.front() ? "" : ".PP\n") + synopsis(words + " " + sub->get_name(), *sub));
  }
  page.section("DESCRIPTION");
  std::string what = command.get_description();
  what[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(what[0])));
  page.line(escaped(what) + ".");
  page.section("OPTIONS");
  write_options(page, command);
  for (const CLI::App* sub : commands) {
    page.subsection(words + " " + sub->get_name());
    page.line(escaped(sub->get_description()) + ".");
    write_options(page, *sub);
  }
  const CLI::App* self = &command;
  write_end(page, {&self, 1});
  page.section("SEE ALSO");
  page.line(bold(root.get_name()) + "(1)");
  return {name, page.text()};
}

}  // namespace

std::vector<ManPage> man_pages(const CLI::App& root) {
  std::vector<ManPage> pages = {program_page(root)};
  for (const CLI::App* command : visible_subcommands(root)) pages.push_back(command_page(root, *command));
  return pages;
}

}  // namespace llmperf::cli
