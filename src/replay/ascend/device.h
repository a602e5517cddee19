// One NPU, current on the thread that made this object: its streams, the memory of workspaces, copies to and from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/ascend/elements.h"
#include "replay/ascend/handles.h"

namespace llmperf::replay::ascend {

class Device {
 public:
  Device(const cann::Functions& cann, int id);

  const cann::Functions& cann() const { return cann_; }
  int id() const { return current_.id(); }
  cann::Stream stream() const { return stream_.get(); }    // what is timed runs here
  cann::Stream control() const { return control_.get(); }  // what starts it is recorded here

  Memory allocate(std::size_t bytes) const { return make_memory(cann_, bytes); }
  void write(void* to, std::span<const std::byte> from) const;
  std::vector<float> read(const void* from, std::size_t count, cann::DataType type) const;

  // Ops of one stream run one after the other, so one workspace, as large as the largest asked for, does for all. Only
  // while nothing runs.
  void reserve_workspace(std::size_t bytes);
  void* workspace() const { return workspace_.get(); }

  // Until everything on stream() is done. Throws when it failed, or is not done after ten minutes.
  void synchronize() const;
  // After an error: what is still queued is dropped where CANN can do that, else awaited for a while.
  void abandon() const noexcept;

 private:
  const cann::Functions& cann_;
  CurrentDevice current_;
  Stream stream_;
  Stream control_;
  Memory workspace_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace llmperf::replay::ascend
