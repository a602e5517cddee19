#include "report/html_assets.h"

namespace llmperf::report {

const HtmlAssets& html_assets() {
  static constexpr HtmlAssets kAssets{"", "", "this llmperf was built without npm"};
  return kAssets;
}

}  // namespace llmperf::report
