// What an HTML report carries besides its data: built from reports/web by cmake/web.cmake.
#pragma once

#include <string_view>

namespace llmperf::report {

struct HtmlAssets {
  std::string_view style;    // CSS
  std::string_view script;   // draws the charts, sorts and filters; empty where the build had no npm
  std::string_view missing;  // why `script` is empty
};
const HtmlAssets& html_assets();

// The explorer: a page that computes, with the engine in WebAssembly.
struct ExplorerAssets {
  std::string_view style;    // on top of the reports' own
  std::string_view engine;   // emscripten's loader and ours; a worker is made of the same text
  std::string_view packed;   // the engine itself: gzip, in base64
  std::string_view catalog;  // the models, devices, runtimes and fields that it has, as JSON
  std::string_view script;   // the page
  std::string_view missing;  // why there is none of all this, and what to install
};
const ExplorerAssets& explorer_assets();

}  // namespace llmperf::report
