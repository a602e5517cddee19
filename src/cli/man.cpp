#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/man_page.h"
#include "cli/written_file.h"

namespace llmperf::cli {
namespace {

struct Flags {
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

int man_action(const Flags& flags) {
  CLI::App root;
  Action none;
  add_commands(root, none);
  const std::vector<ManPage> pages = man_pages(root);
  if (!flags.out.empty()) {
    if (!flags.name.empty()) throw Error::bad_input("--out writes all pages", "leave out " + quote(flags.name));
    write_pages(pages, flags.out);
    return kExitDone;
  }
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    names.push_back(page.name == root.get_name() ? page.name : page.name.substr(root.get_name().size() + 1));
    if (names.back() != (flags.name.empty() ? root.get_name() : flags.name)) continue;
    write_stdout(page.text);
    return kExitDone;
  }
  throw Error::bad_input("there is no manual page of " + quote(flags.name), name_hint(flags.name, names));
}

}  // namespace

void add_man(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("man", "manual page of the program or of a subcommand, as man -l - reads it");
  auto flags = std::make_shared<Flags>();
  command->add_option("SUBCOMMAND", flags->name, "whose page [the program's]");
  command->add_option("-o,--out", flags->out, "write all pages into this folder instead")->type_name("DIR");
  command->callback([flags, &action] { action = [flags] { return man_action(*flags); }; });
}

}  // namespace llmperf::cli
