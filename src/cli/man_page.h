// Manual pages, written from the same description of the command line as --help.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace llmperf::cli {

struct ManPage {
  std::string name;  // "llmperf-estimate"
  std::string text;  // roff, for section 1
};
// Of the program and of every subcommand that help shows.
std::vector<ManPage> man_pages(const CLI::App& root);

}  // namespace llmperf::cli
