// Stand-in of libascendcl.so: devices, streams, events and memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "state.h"

using namespace standin;

namespace {

std::atomic<int> set_devices[64];  // threads that have set each

int synchronize(void* handle, const char* function, int milliseconds) {
  if (const int code = check_call(function, true)) return code;
  Stream* stream = stream_of(handle, function);
  if (stream == nullptr) return kInvalid;
  std::unique_lock lock(state().mutex);
  const auto done = [&] { return stream->tasks.empty() && !stream->busy; };
  if (milliseconds < 0) {
    state().changed.wait(lock, done);
  } else if (!state().changed.wait_for(lock, std::chrono::milliseconds(milliseconds), done)) {
    return kTimeout;
  }
  stream->queued_launches = 0;
  return std::exchange(stream->error, 0);
}

}  // namespace

extern "C" {

aclError aclInit(const char*) {
  STANDIN_ENTER(aclInit);
  const std::lock_guard lock(state().mutex);
  if (std::exchange(state().initialised, true)) return 100002;
  return 0;
}
aclError aclFinalize() {
  const int injected = enter("aclFinalize");
  const std::lock_guard lock(state().mutex);
  if (!std::exchange(state().initialised, false)) state().violations.emplace_back("aclFinalize without aclInit");
  for (const auto& [object, kind] : state().objects) {
    if (kind != kForgotten) state().violations.push_back("still there at aclFinalize: " + kind);
  }
  return injected;
}
aclError aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
  STANDIN_ENTER(aclrtGetVersion);
  *major = 1;
  *minor = 14;
  *patch = 0;
  return 0;
}
const char* aclrtGetSocName() { return enter("aclrtGetSocName") != 0 ? nullptr : state().soc.c_str(); }
aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo info, int64_t* value) {
  STANDIN_ENTER(aclGetDeviceCapability);
  *value = info == ACL_DEVICE_INFO_L2_SIZE ? 65536 : info == ACL_DEVICE_INFO_AI_CORE_NUM ? 20 : 40;
  return 0;
}
aclError aclrtGetDeviceCount(uint32_t* count) {
  STANDIN_ENTER(aclrtGetDeviceCount);
  *count = static_cast<uint32_t>(state().devices);
  return 0;
}
aclError aclrtSetDevice(int32_t id) {
  STANDIN_ENTER(aclrtSetDevice);
  if (id < 0 || id >= std::min(state().devices, 64)) return 107001;
  device = id;
  if (set_devices[id]++ == 0) born(&set_devices[id], "device");
  return 0;
}
aclError aclrtResetDevice(int32_t id) {
  const int injected = enter("aclrtResetDevice");
  if (device != id) violation("aclrtResetDevice of a device that is not the thread's");
  device = -1;
  if (--set_devices[id] <= 0) dies(&set_devices[id], "device", "aclrtResetDevice");
  return injected;
}
aclError aclrtCreateStream(aclrtStream* stream) {
  STANDIN_ENTER(aclrtCreateStream);
  if (const int code = check_call("aclrtCreateStream", false)) return code;
  auto* made = new Stream;
  made->device = device;
  made->thread = std::thread([made] { work(*made); });
  born(made, "stream");
  *stream = made;
  return 0;
}
aclError aclrtDestroyStream(aclrtStream handle) {
  const int injected = enter("aclrtDestroyStream");
  if (!dies(handle, "stream", "aclrtDestroyStream")) return kInvalid;
  auto* stream = static_cast<Stream*>(handle);
  {
    const std::lock_guard lock(state().mutex);
    if (stream->capture != nullptr) state().violations.emplace_back("aclrtDestroyStream while it is captured");
    stream->stop = true;
  }
  changed();
  stream->thread.join();
  delete stream;
  return injected;
}
aclError aclrtSynchronizeStream(aclrtStream stream) {
  STANDIN_ENTER(aclrtSynchronizeStream);
  return synchronize(stream, "aclrtSynchronizeStream", -1);
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  STANDIN_ENTER(aclrtSynchronizeStreamWithTimeout);
  return synchronize(stream, "aclrtSynchronizeStreamWithTimeout", timeout);
}
aclError aclrtStreamAbort(aclrtStream handle) {
  const int injected = enter("aclrtStreamAbort");
  Stream* stream = stream_of(handle, "aclrtStreamAbort");
  if (stream == nullptr) return kInvalid;
  std::deque<Task> dropped;
  std::unique_lock lock(state().mutex);
  dropped.swap(stream->tasks);
  stream->dropping = true;
  state().changed.notify_all();
  state().changed.wait(lock, [&] { return !stream->busy; });
  stream->dropping = false;
  stream->waiting = false;
  stream->error = 0;
  lock.unlock();
  return injected;
}
aclError aclrtStreamWaitEvent(aclrtStream handle, aclrtEvent event) {
  STANDIN_ENTER(aclrtStreamWaitEvent);
  if (!live(event, "event")) {
    violation("aclrtStreamWaitEvent for an event that is not there");
    return kInvalid;
  }
  auto* object = static_cast<EventObject*>(event);
  if ((object->flags & ACL_EVENT_SYNC) == 0) {
    violation("aclrtStreamWaitEvent for an event without ACL_EVENT_SYNC");
    return kInvalid;
  }
  if (Stream* stream = stream_of(handle, "aclrtStreamWaitEvent")) {
    const std::lock_guard lock(state().mutex);
    stream->waiting = true;
    stream->queued_launches = 0;
  }
  constexpr int kLongMs = 5000;
  return enqueue(
      handle, "aclrtStreamWaitEvent",
      [object, pending = Pending(object->pending)](Stream& stream) {
        if (!wait(
                stream, [&] { return object->complete; }, kLongMs)) {
          if (!stream.dropping) violation("a stream waited for an event that nobody recorded");
          return kFailure;
        }
        const std::lock_guard lock(state().mutex);
        stream.waiting = false;
        return 0;
      },
      false);
}
aclError aclrtMalloc(void** data, size_t size, aclrtMemMallocPolicy) {
  STANDIN_ENTER(aclrtMalloc);
  if (const int code = check_call("aclrtMalloc", true)) return code;
  if (size == 0) {
    violation("aclrtMalloc of nothing");
    return kInvalid;
  }
  {
    const std::lock_guard lock(state().mutex);
    if (static_cast<long long>(size) > state().free_memory) return 207001;
  }
  auto* memory = new char[size];
  std::memset(memory, 0x7f, size);  // no zeros by chance
  born(memory, "memory");
  const std::lock_guard lock(state().mutex);
  state().memory[memory] = size;
  *data = memory;
  return 0;
}
aclError aclrtFree(void* data) {
  const int injected = enter("aclrtFree");
  if (!dies(data, "memory", "aclrtFree")) return kInvalid;
  {
    const std::lock_guard lock(state().mutex);
    state().memory.erase(static_cast<const char*>(data));
  }
  delete[] static_cast<char*>(data);
  return injected;
}
aclError aclrtMemset(void* data, size_t most, int32_t value, size_t count) {
  STANDIN_ENTER(aclrtMemset);
  if (const int code = check_call("aclrtMemset", true)) return code;
  if (count > most || !is_device_memory(data, count)) return kInvalid;
  std::memset(data, value, count);
  return 0;
}
aclError aclrtMemcpy(void* to, size_t most, const void* from, size_t count, aclrtMemcpyKind kind) {
  STANDIN_ENTER(aclrtMemcpy);
  if (const int code = check_call("aclrtMemcpy", true)) return code;
  const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  if (count > most || is_device_memory(to, count) != to_device || is_device_memory(from, count) != from_device) {
    violation("aclrtMemcpy between other places than it says");
    return kInvalid;
  }
  std::memcpy(to, from, count);
  return 0;
}
aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  STANDIN_ENTER(aclrtGetMemInfo);
  *free = *total = static_cast<size_t>(state().hbm);
  return 0;
}
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  STANDIN_ENTER(aclrtCreateEventWithFlag);
  if (const int code = check_call("aclrtCreateEventWithFlag", false)) return code;
  auto* made = new EventObject;
  made->flags = flag;
  born(made, "event");
  *event = made;
  return 0;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  STANDIN_ENTER(aclrtRecordEvent);
  if (!live(event, "event")) {
    violation("aclrtRecordEvent of an event that is not there");
    return kInvalid;
  }
  if (const int code = check_call("aclrtRecordEvent", true)) return code;
  auto* object = static_cast<EventObject*>(event);
  return enqueue(
      stream, "aclrtRecordEvent",
      [object, pending = Pending(object->pending)](Stream&) {
        const std::lock_guard lock(state().mutex);
        object->complete = true;
        object->time = std::chrono::steady_clock::now();
        changed();
        return 0;
      },
      false);
}
aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
  STANDIN_ENTER(aclrtEventElapsedTime);
  if (!live(start, "event") || !live(end, "event")) {
    violation("aclrtEventElapsedTime of events that are not there");
    return kInvalid;
  }
  const auto* from = static_cast<EventObject*>(start);
  const auto* to = static_cast<EventObject*>(end);
  std::unique_lock lock(state().mutex);
  const bool ready = from->complete && to->complete && ((from->flags & to->flags) & ACL_EVENT_TIME_LINE) != 0;
  if (!ready) {
    lock.unlock();
    violation("aclrtEventElapsedTime of events that are not complete, or without ACL_EVENT_TIME_LINE");
    return kInvalid;
  }
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return 0;
}
aclError aclrtDestroyEvent(aclrtEvent event) {
  const int injected = enter("aclrtDestroyEvent");
  if (!dies(event, "event", "aclrtDestroyEvent")) return kInvalid;
  auto* object = static_cast<EventObject*>(event);
  // The task that completes it is released a moment after the one that waited for it went on.
  for (int i = 0; i < 1000 && *object->pending > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (*object->pending > 0) violation("aclrtDestroyEvent while a stream has work with it");
  delete object;
  return injected;
}

}  // extern "C"
