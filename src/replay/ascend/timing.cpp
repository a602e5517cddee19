#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {
namespace {

constexpr std::size_t kQueued = 100;          // launches while the stream waits
constexpr std::size_t kGraphLaunches = 1000;  // captured at once

// From the moment the stream waits until everything is done. On an error what is queued is dropped, so that nothing is
// running when operands are released.
class Window {
 public:
  explicit Window(Device& device)
      : device_(device),
        gate_(make_event(device.cann(), cann::kEventSync)),
        start_(make_event(device.cann(), cann::kEventTimeLine)),
        end_(make_event(device.cann(), cann::kEventTimeLine)) {
    const cann::Functions& cann = device.cann();
    try {
      cann::call(cann, cann.aclrtStreamWaitEvent, device.stream(), gate_.get());
      cann::call(cann, cann.aclrtRecordEvent, start_.get(), device.stream());
    } catch (...) {
      give_up();
      throw;
    }
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (!done_) give_up();
  }

  void launched(std::size_t launches) {
    launches_ += launches;
    if (launches_ >= kQueued) open();
  }
  void close() { cann::call(device_.cann(), device_.cann().aclrtRecordEvent, end_.get(), device_.stream()); }
  void open() {
    if (open_) return;
    cann::call(device_.cann(), device_.cann().aclrtRecordEvent, gate_.get(), device_.control());
    open_ = true;
  }
  Seconds wait() {
    device_.synchronize();
    done_ = true;
    float milliseconds = 0;
    cann::call(device_.cann(), device_.cann().aclrtEventElapsedTime, &milliseconds, start_.get(), end_.get());
    return Seconds{static_cast<double>(milliseconds) * 1e-3};
  }

 private:
  void give_up() noexcept {
    const cann::Functions& cann = device_.cann();
    if (!open_ && !cann.aclrtStreamAbort) cann.aclrtRecordEvent(gate_.get(), device_.control());
    device_.abandon();
  }

  Device& device_;
  Event gate_;
  Event start_;
  Event end_;
  std::size_t launches_ = 0;
  bool open_ = false;
  bool done_ = false;
};

std::size_t launches_of(std::span<Op* const> sequence, std::size_t rank) {
  std::size_t launches = 0;
  for (const Op* op : sequence) launches += rank < op->parts.size() ? op->parts[rank]->launches() : 0;
  return launches;
}

// First phases that each launch needs anew, before the clock runs.
void stock(std::span<Op* const> sequence, std::size_t rank, std::size_t passes) {
  for (Op* op : sequence) {
    if (rank >= op->parts.size()) continue;
    const auto times = static_cast<std::size_t>(std::count(sequence.begin(), sequence.end(), op));
    op->parts[rank]->stock(times * passes);
  }
}

template <class Launched>
void enqueue(std::span<Op* const> sequence, std::size_t rank, const Launched& launched) {
  for (Op* op : sequence) {
    if (rank >= op->parts.size()) continue;
    op->parts[rank]->enqueue();
    launched(op->parts[rank]->launches());
  }
}

// A capture that ends when this does, whatever happened.
class Capture {
 public:
  explicit Capture(Device& device) : device_(device) {
    cann::call(device.cann(), device.cann().aclmdlRICaptureBegin, device.stream(), cann::CaptureMode::global);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (ended_) return;
    cann::GraphHandle handle = nullptr;
    const cann::Functions& cann = device_.cann();
    if (cann.aclmdlRICaptureEnd(device_.stream(), &handle) == cann::kSuccess && handle != nullptr) {
      cann.aclmdlRIDestroy(handle);
    }
  }
  Graph end() {
    cann::GraphHandle handle = nullptr;
    ended_ = true;
    cann::call(device_.cann(), device_.cann().aclmdlRICaptureEnd, device_.stream(), &handle);
    return own<Graph>(device_.cann(), handle);
  }

 private:
  Device& device_;
  bool ended_ = false;
};

// Nothing where the ops cannot be captured: they are launched one by one then.
std::optional<Graph> captured(Device& device, std::span<Op* const> sequence, std::size_t passes) {
  stock(sequence, 0, passes);
  try {
    Capture capture(device);
    for (std::size_t pass = 0; pass < passes; ++pass) enqueue(sequence, 0, [](std::size_t) {});
    return capture.end();
  } catch (const Error&) {
    return std::nullopt;
  }
}

Seconds time_graph(Device& device, const Graph& graph, std::size_t launches) {
  Seconds total{};
  while (launches > 0) {
    const std::size_t part = std::min(launches, kQueued);
    Window window(device);
    for (std::size_t i = 0; i < part; ++i) {
      cann::call(device.cann(), device.cann().aclmdlRIExecuteAsync, graph.get(), device.stream());
    }
    window.close();
    window.open();
    total += window.wait();
    launches -= part;
  }
  return total;
}

Seconds time_eager(Device& device, std::span<Op* const> sequence, std::size_t passes) {
  const std::size_t at_once = std::max<std::size_t>(1, kQueued / std::max<std::size_t>(1, launches_of(sequence, 0)));
  Seconds total{};
  while (passes > 0) {
    const std::size_t part = std::min(passes, at_once);
    stock(sequence, 0, part);
    Window window(device);
    for (std::size_t pass = 0; pass < part; ++pass)
      enqueue(sequence, 0, [&](std::size_t launches) { window.launched(launches); });
    window.close();
    window.open();
    total += window.wait();
    passes -= part;
  }
  return total;
}

}  // namespace

Timing time_on_device(Device& device, std::span<Op* const> sequence, std::int64_t passes, bool graphs) {
  auto left = static_cast<std::size_t>(std::max<std::int64_t>(passes, 0));
  const std::size_t launches = launches_of(sequence, 0);
  if (launches < 2 || left == 0 || !graphs || !device.cann().graphs()) {
    return {time_eager(device, sequence, left), false};
  }
  // Several passes to a graph, so that the copies of weights take turns in it.
  const std::size_t per_graph = std::clamp<std::size_t>(kGraphLaunches / launches, 1, left);
  auto graph = captured(device, sequence, per_graph);
  if (!graph) return {time_eager(device, sequence, left), false};
  Timing timing = {time_graph(device, *graph, left / per_graph), true};
  left %= per_graph;
  if (left == 0) return timing;
  graph.reset();
  graph = captured(device, sequence, left);
  timing.seconds += graph ? time_graph(device, *graph, 1) : time_eager(device, sequence, left);
  return timing;
}

Timing time_on_ranks(RankGroup& group, std::span<Op* const> sequence, std::int64_t passes) {
  std::size_t most = 1;
  const auto ranks = static_cast<std::size_t>(group.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) most = std::max(most, launches_of(sequence, rank));
  const std::size_t at_once = std::max<std::size_t>(1, kQueued / most);
  auto left = static_cast<std::size_t>(std::max<std::int64_t>(passes, 0));
  Seconds total{};
  while (left > 0) {
    const std::size_t part = std::min(left, at_once);
    std::vector<std::unique_ptr<Window>> windows(ranks);
    std::vector<Seconds> times(ranks);
    // Every rank has enqueued its part before any of them starts: one that fails leaves none waiting in a collective.
    try {
      group.on_each([&](int r, Device& device) {
        const auto rank = static_cast<std::size_t>(r);
        stock(sequence, rank, part);
        windows[rank] = std::make_unique<Window>(device);
        Window& window = *windows[rank];
        for (std::size_t pass = 0; pass < part; ++pass) {
          enqueue(sequence, rank, [&](std::size_t launches) { window.launched(launches); });
        }
        window.close();
      });
      group.on_each([&](int rank, Device&) { windows[static_cast<std::size_t>(rank)]->open(); });
      group.on_each([&](int rank, Device&) {
        times[static_cast<std::size_t>(rank)] = windows[static_cast<std::size_t>(rank)]->wait();
      });
    } catch (...) {
      group.on_each_quietly([&](int rank, Device&) { windows[static_cast<std::size_t>(rank)].reset(); });
      throw;
    }
    group.on_each_quietly([&](int rank, Device&) { windows[static_cast<std::size_t>(rank)].reset(); });
    total += *std::max_element(times.begin(), times.end());
    left -= part;
  }
  return {total, false};
}

}  // namespace llmperf::replay::ascend
