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

}  // namespace llmperf::report
