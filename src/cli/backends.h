// The devices that ops can be replayed on, by the names that --backend takes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/backend.h"

namespace llmperf::cli {

struct BackendFlags {
  std::string backend = "cpu";
  std::string device = "0";   // of several: which
  std::string threads;        // cpu: empty: one per processor
  std::string gemm = "best";  // cpu: who multiplies
};

const std::vector<std::string>& backend_names();
// Throws Error: bad_input for a name, a number or a flag that the backend has no use for; failed for a device that is
// not there.
std::unique_ptr<replay::Backend> open_backend(const BackendFlags& flags);
// This machine as a hardware file (--describe-device). Throws Error(bad_input) for backends that cannot say.
std::string describe_device(const BackendFlags& flags);

}  // namespace llmperf::cli
