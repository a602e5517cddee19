// How the values of a program lie on devices at a point of a pass over it, and the program that such a pass writes.
// Used by partition.cpp only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/hlo/program.h"
#include "graph/hlo/sharding.h"

namespace llmperf::graph::hlo {

class Layout {
 public:
  Layout(Program& program, std::int64_t devices) : program_(program), devices_(devices) {}

  // Starts over. A pass that does not write is a rehearsal: shardings are followed, nothing is exchanged.
  void begin(bool writing);
  bool writing() const { return writing_; }

  // Of a value that nothing was said of: that of the value it was before (Tensor::same), else whole on every device.
  const Sharding& of(TensorId t);
  void set(TensorId t, Sharding sharding);
  // Its extents in the text are those of one device.
  bool local(TensorId t) const { return local_[static_cast<std::size_t>(t)]; }
  void set_local(TensorId t, bool local) { local_[static_cast<std::size_t>(t)] = local; }

  // A value that was exchanged for all who use it from here on.
  TensorId now(TensorId t) const;
  void move(TensorId from, TensorId to) {
    if (from != to) moved_[from] = to;
  }

  // An annotation of `t`, with what it leaves open as it is.
  Sharding wanted(const Sharding& annotation, TensorId t) { return wanted(annotation, of(t), t); }
  // The same where it would lie like `here` if nothing were said.
  Sharding wanted(const Sharding& annotation, const Sharding& here, TensorId t) const;
  bool fits(TensorId t, const Sharding& target);

  // The value in another sharding; the exchanges are written, at the place of `cause`.
  TensorId convert(TensorId t, const Sharding& target, const Node& cause);
  void write(Node node);
  // The program becomes what was written, with the extents of one device. Returns the number of exchanges.
  std::int64_t finish();

 private:
  std::size_t rank(TensorId t) const { return program_.type(t).dims.size(); }
  TensorId copy_of(TensorId t, Sharding sharding);

  Program& program_;
  std::int64_t devices_;
  bool writing_ = false;
  std::vector<Sharding> states_;
  std::vector<bool> known_;
  std::vector<bool> local_;
  std::unordered_map<TensorId, TensorId> moved_;
  std::unordered_map<TensorId, std::vector<std::pair<Sharding, TensorId>>> converted_;
  std::vector<Node> written_;
  std::int64_t collectives_ = 0;
};

}  // namespace llmperf::graph::hlo
