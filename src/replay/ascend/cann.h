// CANN's functions, looked up in its shared libraries when the backend is made.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "replay/ascend/cann_functions.h"

namespace llmperf::replay::ascend::cann {

// A function by its name, which errors tell; false where CANN does not have it.
template <class Signature>
struct Function;
template <class Result, class... Arguments>
struct Function<Result(Arguments...)> {
  const char* name = nullptr;
  Result (*pointer)(Arguments...) = nullptr;
  Result operator()(Arguments... arguments) const { return pointer(arguments...); }
  explicit operator bool() const { return pointer != nullptr; }
};

// The two phases of an op. `plan` validates the arguments and says how large a workspace the launch needs.
template <class... Arguments>
struct Op {
  using Plan = Status(Arguments..., std::uint64_t*, aclOpExecutor**);
  const char* name = nullptr;
  Plan* plan = nullptr;
  Launch* launch = nullptr;
  explicit operator bool() const { return plan != nullptr && launch != nullptr; }
};

struct Functions {
#define LLMPERF_CANN_MEMBER(name, ...) Function<__VA_ARGS__> name = {#name};
  LLMPERF_CANN_REQUIRED(LLMPERF_CANN_MEMBER)
  LLMPERF_CANN_OPTIONAL(LLMPERF_CANN_MEMBER)
  LLMPERF_CANN_COLLECTIVES(LLMPERF_CANN_MEMBER)
#undef LLMPERF_CANN_MEMBER
#define LLMPERF_CANN_MEMBER(name, ...) Op<__VA_ARGS__> name = {#name};
  LLMPERF_CANN_OPS(LLMPERF_CANN_MEMBER)
#undef LLMPERF_CANN_MEMBER

  std::vector<std::string> libraries;  // as opened
  std::vector<std::string> missing;    // functions that are in none of them

  bool repeatable_executors() const { return aclSetAclOpExecutorRepeatable && aclDestroyAclOpExecutor; }
  bool graphs() const { return aclmdlRICaptureBegin && aclmdlRICaptureEnd && aclmdlRIExecuteAsync && aclmdlRIDestroy; }
};

// Folders that CANN's libraries are looked for in, before the loader's own: of $ASCEND_HOME_PATH, of
// $ASCEND_TOOLKIT_HOME, and where its installers put it.
std::vector<std::string> library_folders();

// Every function is looked for in every library. Throws Error(failed) that names the library that was not found, with
// all folders, or the function without which nothing runs. The libraries stay loaded until the process ends: threads
// that CANN starts outlive aclFinalize.
std::shared_ptr<const Functions> load(std::span<const std::string> folders);

// The function's name, the code that it returned and its meaning, and what CANN says of it.
std::string describe_failure(const Functions& cann, Status status, std::string_view function);
// Nothing when the call succeeded; else throws Error(failed) with that.
void check(const Functions& cann, Status status, std::string_view function);
// Calls and checks.
template <class... Parameters, class... Arguments>
void call(const Functions& cann, const Function<Status(Parameters...)>& function, Arguments... arguments) {
  check(cann, function(arguments...), function.name);
}

// The first phase of an op did not take its arguments, or the op's kernels are not installed: nothing is broken, the op
// cannot be run here.
bool is_refusal(Status status);
bool is_out_of_memory(Status status);

}  // namespace llmperf::replay::ascend::cann
