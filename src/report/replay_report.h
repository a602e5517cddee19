// What `llmperf replay` prints.
#pragma once

#include <vector>

#include "replay/self_test.h"
#include "replay/study.h"
#include "report/document.h"

namespace llmperf::report {

Report replay_report(const replay::Study& study);
Report self_test_report(const replay::Description& device, const std::vector<replay::SelfTestResult>& results);

}  // namespace llmperf::report
