// Which values are the same storage, and who reads them: what a fusing compiler and the liveness of buffers go by.
#pragma once

#include <vector>

#include "graph/hlo/copies.h"
#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

class Uses {
 public:
  explicit Uses(const Program& program);

  // The value that holds the storage: through reshapes, annotations, calls; what an update in place changes.
  TensorId storage(TensorId tensor) const { return storage_[static_cast<std::size_t>(tensor)]; }
  // Nodes that do work and read the storage.
  const std::vector<NodeId>& readers(TensorId storage) const { return readers_[static_cast<std::size_t>(storage)]; }
  // Whether it has to be in memory whoever reads it: results of the program, values that a loop begins or goes on with.
  bool kept(TensorId storage) const { return kept_[static_cast<std::size_t>(storage)]; }
  // Results of the program.
  bool returned(TensorId storage) const { return returned_[static_cast<std::size_t>(storage)]; }

  // Those that come before an update or a loop, which then has a storage of its own.
  const std::vector<Copy>& copies() const { return copies_; }

 private:
  std::vector<Copy> copies_;
  std::vector<TensorId> storage_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> kept_;
  std::vector<bool> returned_;
};

}  // namespace llmperf::graph::hlo
