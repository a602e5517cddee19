// What every function of the C interface is made of: a session, a result, and the way from JSON to what is asked.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bindings/c/columns.h"
#include "bindings/c/llmperf.h"
#include "descriptor/node.h"
#include "request/request.h"
#include "request/sources.h"
#include "service/sweep.h"

struct llmperf_session {
  llmperf::request::Sources sources;  // of what is named; files may change, and are read by each call anew
  std::mutex mutex;
  std::set<std::atomic<bool>*> running;  // what ends each of the calls that run
};

struct llmperf_result {
  int status = 0;
  std::function<std::string()> document;  // made when it is asked for, and holds what it is made from
  std::optional<std::string> json;
  std::string error;
  std::string text;
  llmperf::c::Columns columns;
};

namespace llmperf::c {

inline constexpr int kInfeasible = 3;
inline constexpr int kMissed = 4;
inline constexpr int kInterrupted = 130;

// A request as it is written, and the keys that a function has beside the fields.
class Asked {
 public:
  // `beside`: keys that are no fields. Throws Error(bad_input) with the position of what is no JSON.
  Asked(std::string_view json, std::span<const std::string_view> beside);

  // `joined`: fields whose arrays are lists with commas. Throws Error(bad_input), all that is wrong at once.
  request::Request request(std::span<const std::string_view> joined = {}) const;
  // Throws Error(bad_input) where there is a field: nothing but the other keys has a meaning.
  void refuse_fields() const;
  // Every field with its values: those of an array, or what the text of a flag of a sweep stands for ("1-128*2").
  std::vector<service::Swept> swept() const;

  // What stands at one of the other keys; nothing, or empty, where there is none. Throw Error(bad_input).
  std::string text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::optional<std::int64_t> count(std::string_view key, std::int64_t least, std::int64_t most) const;
  bool is(std::string_view key) const;

  // Those of the session, or the call's own where the request has files or descriptions: they may change.
  request::Sources& sources(llmperf_session& session);

 private:
  const descriptor::Node* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, const descriptor::Node& value, const std::string& wanted) const;
  descriptor::Document fields_;
  std::vector<descriptor::Node::Entry> beside_;
  request::Sources own_;
};

// While one lives the call can be interrupted.
class Interruptible {
 public:
  explicit Interruptible(llmperf_session& session);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  const std::atomic<bool>& stopped() const { return stopped_; }

 private:
  llmperf_session& session_;
  std::atomic<bool> stopped_ = false;
};

void tell(llmperf_result& result, const Error& error);
// The result of `ask`, which fills it; what it throws is the result's error.
llmperf_result* answered(const std::function<void(llmperf_result&)>& ask) noexcept;
inline std::string_view view(const char* text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

}  // namespace llmperf::c
