// What the stand-in libraries of CANN share: the record of calls and objects, streams and failures on demand. It lives
// in the stand-in of libascendcl.so; the others link that one.
//
// Device memory is host memory and kernels are loops, but the calling convention is CANN's: work is queued and done
// later on the stream's own thread, executors are used up, every object is wanted back exactly once. What breaks a rule
// is recorded as a violation; tests read it with the functions of control.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace standin {

struct Stream;
// Returns 0 or the code that the stream fails with.
using Task = std::function<int(Stream&)>;

// Counts the call; the code that it is to fail with, or 0.
int enter(const char* function);
// `function` broke a rule: recorded, and the words CANN would give.
void violation(const std::string& what);
void message(const std::string& words);

void born(const void* object, const char* kind);
bool live(const void* object, const char* kind);
// The object is destroyed: false, and a violation, when there is no such object.
bool dies(const void* object, const char* kind, const char* function);
// Whether all of it is allocated device memory.
bool is_device_memory(const void* data, std::size_t bytes);

int current_device();  // of this thread; -1: none
// Queues the work, or captures it. `launch`: counts as a kernel. Returns a code.
int enqueue(void* stream, const char* function, Task task, bool launch);
// In a task: false when the stream is dropped or the time is over.
bool wait(Stream& stream, const std::function<bool()>& ready, int milliseconds);
void changed();  // something that a task waits for
std::mutex& state_mutex();
int patience_ms();  // for ranks that do not come
bool repeatable_allowed();

// Counts work that has not been done yet, whether it is done or dropped.
class Pending {
 public:
  explicit Pending(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) { ++*count_; }
  Pending(const Pending& other) : count_(other.count_) { ++*count_; }
  Pending& operator=(const Pending&) = delete;
  ~Pending() { --*count_; }

 private:
  std::shared_ptr<std::atomic<int>> count_;
};

}  // namespace standin
