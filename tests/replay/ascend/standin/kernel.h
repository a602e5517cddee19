// What the stand-ins of op libraries share: checks of the first phase, launching, reading and writing elements.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "nnopbase.h"

namespace standin {

double get(const aclTensor& tensor, std::initializer_list<std::int64_t> index);
void put(const aclTensor& tensor, std::initializer_list<std::int64_t> index, double value);
// Element i in row-major order of the view.
double get(const aclTensor& tensor, std::int64_t i);
void put(const aclTensor& tensor, std::int64_t i, double value);
std::int64_t elements(const aclTensor& tensor);
double from_fp16(std::uint16_t bits);
std::uint16_t to_fp16(double value);
double load(const char* data, aclDataType type);
void store(char* data, aclDataType type, double value);
std::size_t size_of(aclDataType type);

// The checks of one first phase: the first that does not hold is what it fails with.
class Checks {
 public:
  explicit Checks(const char* op) : op_(op) {}
  using Types = std::initializer_list<aclDataType>;
  // A tensor that is there, of one of the types and that shape; -1: any size.
  bool tensor(const char* name, const aclTensor* tensor, Types types, std::initializer_list<std::int64_t> shape);
  bool rank(const char* name, const aclTensor* tensor, Types types, std::size_t rank);
  void absent(const char* name, const void* argument);
  bool holds(bool condition, const std::string& what);
  bool good() const { return code_ == 0; }
  int code() const { return code_; }
  // Makes the executor, or says why not.
  int finish(const std::vector<const aclTensor*>& used, std::uint64_t* workspace, aclOpExecutor** executor,
             std::uint64_t workspace_bytes, Task run);

 private:
  std::string op_;
  int code_ = 0;
};

// A launch that fails takes its executor too.
int failed_launch(aclOpExecutor* executor, int code);
int launch(const char* op, void* workspace, std::uint64_t bytes, aclOpExecutor* executor, void* stream);

inline constexpr std::initializer_list<aclDataType> kHalf = {ACL_FLOAT16, ACL_BF16};
inline constexpr std::initializer_list<aclDataType> kFloat = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

}  // namespace standin

// The first phase, up to its checks; the second phase, which is the same for all.
#define STANDIN_PLAN(op)                                                            \
  if (const int injected = standin::enter(#op "GetWorkspaceSize")) return injected; \
  standin::Checks checks(#op)
#define STANDIN_LAUNCH(op)                                                                           \
  aclnnStatus op(void* workspace, uint64_t bytes, aclOpExecutor* executor, aclrtStream stream) {     \
    if (const int injected = standin::enter(#op)) return standin::failed_launch(executor, injected); \
    return standin::launch(#op, workspace, bytes, executor, stream);                                 \
  }
