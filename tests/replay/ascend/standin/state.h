// The inside of the stand-in of libascendcl.so.
#pragma once

#include <acl/acl.h>

#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "standin.h"

namespace standin {

struct Stream {
  int device = 0;
  std::thread thread;
  std::deque<Task> tasks;
  bool busy = false;
  bool dropping = false;
  bool stop = false;
  bool waiting = false;     // for an event
  int queued_launches = 0;  // since it began to wait
  int error = 0;
  std::vector<Task>* capture = nullptr;
};

inline constexpr const char* kForgotten = "forgotten";  // left behind on purpose
inline constexpr int kInvalid = 107000;
inline constexpr int kNoDevice = 107002;
inline constexpr int kTimeout = 107020;
inline constexpr int kNotWhileCapturing = 107030;
inline constexpr int kFailure = 507899;

struct EventObject {
  std::uint32_t flags = 0;
  bool complete = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
};

struct GraphObject {
  std::vector<Task> tasks;
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool initialised = false;
  std::vector<std::string> calls;
  std::vector<std::string> violations;
  std::map<const void*, std::string> objects;
  std::map<const char*, std::size_t> memory;
  int capturing = 0;
  int fail_call = 0;
  int fail_code = 0;
  int devices = 4;
  std::string soc = "Ascend910B4";
  long long hbm = 32LL << 30;
  long long free_memory = 1LL << 40;
  bool repeatable = true;
  int most_queued = 0;
  int patience = 300;
};
State& state();
extern thread_local int device;  // -1: none

// Does what is queued, on the stream's own thread.
void work(Stream& stream);
// Null, and a violation, unless it is a stream of the thread's device.
Stream* stream_of(void* handle, const char* function);
// Rules of calls that need a device and must not be made while something is captured.
int check_call(const char* function, bool forbidden_in_capture);

}  // namespace standin

#define STANDIN_ENTER(function) \
  if (const int injected = standin::enter(#function)) return injected
