// Stand-in of libascendcl.so: the record of calls, objects and violations, and what streams do.
#include <algorithm>
#include <utility>

#include "control.h"
#include "state.h"

namespace standin {

State& state() {
  static auto& only = *new State;
  return only;
}
thread_local int device = -1;

namespace {

thread_local std::string words;

int default_code(const std::string& function) {
  if (function.starts_with("Hccl")) return 4;
  if (function.starts_with("aclnn") || function.starts_with("aclSet") || function.starts_with("aclDestroy"))
    return 361001;
  return kFailure;
}

}  // namespace

void work(Stream& stream) {
  std::unique_lock lock(state().mutex);
  while (true) {
    state().changed.wait(lock, [&] { return stream.stop || !stream.tasks.empty(); });
    if (stream.tasks.empty()) return;
    {
      Task task = std::move(stream.tasks.front());
      stream.tasks.pop_front();
      stream.busy = true;
      const bool skip = stream.error != 0 || stream.dropping;
      lock.unlock();
      const int code = skip ? 0 : task(stream);
      task = nullptr;  // what it holds is released before it counts as done
      lock.lock();
      if (code != 0 && !stream.dropping) stream.error = code;
    }
    stream.busy = false;
    state().changed.notify_all();
  }
}

Stream* stream_of(void* handle, const char* function) {
  if (handle == nullptr) {
    violation(std::string(function) + " on the default stream");
    return nullptr;
  }
  if (!live(handle, "stream")) {
    violation(std::string(function) + " on a stream that is not there");
    return nullptr;
  }
  auto* stream = static_cast<Stream*>(handle);
  if (stream->device != device) {
    violation(std::string(function) + " on a stream of another device than the thread's");
    return nullptr;
  }
  return stream;
}

int check_call(const char* function, bool forbidden_in_capture) {
  if (device < 0) {
    violation(std::string(function) + " on a thread without a device");
    return kNoDevice;
  }
  if (!forbidden_in_capture) return 0;
  const std::lock_guard lock(state().mutex);
  if (state().capturing == 0) return 0;
  state().violations.push_back(std::string(function) + " while a stream is captured");
  return kNotWhileCapturing;
}

int enter(const char* function) {
  const std::lock_guard lock(state().mutex);
  state().calls.emplace_back(function);
  if (static_cast<int>(state().calls.size()) != state().fail_call) return 0;
  words = std::string("made to fail: ") + function;
  return state().fail_code != 0 ? state().fail_code : default_code(function);
}
void violation(const std::string& what) {
  words = what;
  const std::lock_guard lock(state().mutex);
  state().violations.push_back(what);
}
void message(const std::string& text) { words = text; }
void born(const void* object, const char* kind) {
  const std::lock_guard lock(state().mutex);
  if (!state().initialised) state().violations.push_back(std::string(kind) + " made before aclInit");
  state().objects[object] = kind;
}
bool live(const void* object, const char* kind) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().objects.find(object);
  return found != state().objects.end() && found->second == kind;
}
bool dies(const void* object, const char* kind, const char* function) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().objects.find(object);
  if (found == state().objects.end() || found->second != kind) {
    state().violations.push_back(std::string(function) + ": no such " + kind + ", or destroyed before");
    return false;
  }
  state().objects.erase(found);
  return true;
}
bool is_device_memory(const void* data, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto* start = static_cast<const char*>(data);
  auto after = state().memory.upper_bound(start);
  if (after == state().memory.begin()) return false;
  --after;
  return start + bytes <= after->first + after->second;
}
int current_device() { return device; }
std::mutex& state_mutex() { return state().mutex; }
void changed() { state().changed.notify_all(); }
int patience_ms() {
  const std::lock_guard lock(state().mutex);
  return state().patience;
}
bool repeatable_allowed() {
  const std::lock_guard lock(state().mutex);
  return state().repeatable;
}

int enqueue(void* handle, const char* function, Task task, bool launch) {
  if (const int code = check_call(function, false)) return code;
  Stream* stream = stream_of(handle, function);
  if (stream == nullptr) return kInvalid;
  const std::lock_guard lock(state().mutex);
  if (stream->capture != nullptr) {
    stream->capture->push_back(std::move(task));
    return 0;
  }
  if (launch && stream->waiting) state().most_queued = std::max(state().most_queued, ++stream->queued_launches);
  stream->tasks.push_back(std::move(task));
  state().changed.notify_all();
  return 0;
}

bool wait(Stream& stream, const std::function<bool()>& ready, int milliseconds) {
  std::unique_lock lock(state().mutex);
  state().changed.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return stream.dropping || ready(); });
  return !stream.dropping && ready();
}

}  // namespace standin

using namespace standin;

extern "C" {

const char* aclGetRecentErrMsg() {
  static thread_local std::string given;
  given = std::exchange(words, {});
  return given.empty() ? nullptr : given.c_str();
}

void standin_reset() {
  const std::lock_guard lock(state().mutex);
  State& s = state();
  s.calls.clear();
  s.violations.clear();
  s.fail_call = 0;
  s.devices = 4;
  s.soc = "Ascend910B4";
  s.hbm = 32LL << 30;
  s.free_memory = 1LL << 40;
  s.repeatable = true;
  s.most_queued = 0;
  s.patience = 300;
}
int standin_violations() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().violations.size());
}
const char* standin_violation(int number) {
  const std::lock_guard lock(state().mutex);
  return state().violations.at(static_cast<std::size_t>(number)).c_str();
}
int standin_live_objects() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(std::count_if(state().objects.begin(), state().objects.end(),
                                        [](const auto& object) { return object.second != kForgotten; }));
}
void standin_forget_objects() {
  const std::lock_guard lock(state().mutex);
  for (auto& [object, kind] : state().objects) kind = kForgotten;
}
const char* standin_live_list() {
  static std::string list;
  const std::lock_guard lock(state().mutex);
  list.clear();
  for (const auto& [object, kind] : state().objects) {
    if (kind != kForgotten) list += kind + " ";
  }
  return list.c_str();
}
int standin_calls() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().calls.size());
}
const char* standin_call(int number) {
  const std::lock_guard lock(state().mutex);
  return state().calls.at(static_cast<std::size_t>(number - 1)).c_str();
}
int standin_count(const char* function) {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(std::count(state().calls.begin(), state().calls.end(), function));
}
void standin_fail_call(int number, int code) {
  const std::lock_guard lock(state().mutex);
  state().fail_call = number;
  state().fail_code = code;
}
int standin_most_queued() {
  const std::lock_guard lock(state().mutex);
  return state().most_queued;
}
void standin_set_devices(int count) { state().devices = count; }
void standin_set_soc(const char* soc, long long hbm) {
  state().soc = soc;
  state().hbm = hbm;
}
void standin_set_patience(int milliseconds) {
  const std::lock_guard lock(state().mutex);
  state().patience = milliseconds;
}
void standin_set_repeatable(int allowed) {
  const std::lock_guard lock(state().mutex);
  state().repeatable = allowed != 0;
}
void standin_set_free_memory(long long bytes) {
  const std::lock_guard lock(state().mutex);
  state().free_memory = bytes;
}
long long standin_allocated() {
  const std::lock_guard lock(state().mutex);
  long long sum = 0;
  for (const auto& [start, size] : state().memory) sum += static_cast<long long>(size);
  return sum;
}

}  // extern "C"
