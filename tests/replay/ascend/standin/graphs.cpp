// Stand-in of libascendcl.so: graphs that are captured.
#include <utility>

#include "state.h"

using namespace standin;

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode) {
  STANDIN_ENTER(aclmdlRICaptureBegin);
  Stream* stream = stream_of(handle, "aclmdlRICaptureBegin");
  if (stream == nullptr) return kInvalid;
  const std::lock_guard lock(state().mutex);
  if (stream->capture != nullptr) {
    state().violations.emplace_back("aclmdlRICaptureBegin of a stream that is captured");
    return kInvalid;
  }
  stream->capture = new std::vector<Task>;
  ++state().capturing;
  return 0;
}
aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* graph) {
  const int injected = enter("aclmdlRICaptureEnd");
  Stream* stream = stream_of(handle, "aclmdlRICaptureEnd");
  if (stream == nullptr) return kInvalid;
  auto made = std::make_unique<GraphObject>();
  {
    const std::lock_guard lock(state().mutex);
    if (stream->capture == nullptr) {
      state().violations.emplace_back("aclmdlRICaptureEnd of a stream that is not captured");
      return kInvalid;
    }
    made->tasks = std::move(*stream->capture);
    delete std::exchange(stream->capture, nullptr);
    --state().capturing;
  }
  if (injected != 0) return injected;
  born(made.get(), "graph");
  *graph = made.release();
  return 0;
}
aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream) {
  STANDIN_ENTER(aclmdlRIExecuteAsync);
  if (!live(handle, "graph")) {
    violation("aclmdlRIExecuteAsync of a graph that is not there");
    return kInvalid;
  }
  auto* graph = static_cast<GraphObject*>(handle);
  return enqueue(
      stream, "aclmdlRIExecuteAsync",
      [graph, pending = Pending(graph->pending)](Stream& on) {
        for (const Task& task : graph->tasks) {
          if (const int code = task(on)) return code;
        }
        return 0;
      },
      true);
}
aclError aclmdlRIDestroy(aclmdlRI handle) {
  const int injected = enter("aclmdlRIDestroy");
  if (!dies(handle, "graph", "aclmdlRIDestroy")) return kInvalid;
  auto* graph = static_cast<GraphObject*>(handle);
  if (*graph->pending > 0) violation("aclmdlRIDestroy of a graph that is queued");
  delete graph;
  return injected;
}

}  // extern "C"
