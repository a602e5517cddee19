// Collectives among threads: thread r is rank r with buffers of its own, and the shared memory is the network. An
// all-reduce is a reduce-scatter and an all-gather: rank r sums part r of what all have, and copies the other parts
// from those who summed them.
#include <fmt/format.h>

#include <cstring>

#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

using graph::CollectiveKind;

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(const Workshop& shop, Element element, CollectiveKind kind, int ranks, std::int64_t elements)
      : Operation(1),
        kernels_(element == Element::f32 ? shop.kernels->f32 : shop.kernels->bf16),
        element_(element),
        kind_(kind),
        ranks_(ranks),
        input_(kind == CollectiveKind::all_gather ? elements / ranks : elements),
        output_(kind == CollectiveKind::reduce_scatter ? elements / ranks : elements),
        size_(bytes_of(element)) {
    for (int r = 0; r < ranks; ++r) {
      inputs_.emplace_back(whole_lines(input_ * size_));
      outputs_.emplace_back(whole_lines(output_ * size_));
      in_.push_back(inputs_.back().data());
    }
    shop.pool->run([&](const Team& team) {
      if (team.thread >= ranks_) return;
      const auto r = static_cast<std::size_t>(team.thread);
      fill_elements(inputs_[r].data(), element_, 0, input_, {.operand = static_cast<std::uint32_t>(r)});
      std::memset(outputs_[r].data(), 0, static_cast<std::size_t>(outputs_[r].bytes()));
    });
  }

  void execute(const Team& team, std::int64_t) override {
    const int rank = team.thread;
    const bool member = rank < ranks_;
    switch (kind_) {
      case CollectiveKind::all_reduce:
        if (member) sum(rank, 0);
        team.wait();
        for (int other = 0; member && other < ranks_; ++other) {
          const Range part = part_of(input_, kGrain, other, ranks_);
          if (other != rank) copy(rank, part.first, outputs_[index(other)], part.first, part.size());
        }
        break;
      case CollectiveKind::reduce_scatter:
        if (member) sum(rank, rank * output_);
        break;
      case CollectiveKind::all_gather:
        for (int other = 0; member && other < ranks_; ++other) {
          copy(rank, other * input_, inputs_[index(other)], 0, input_);
        }
        break;
      default: {  // all-to-all: part r of every rank goes to rank r
        const std::int64_t part = input_ / ranks_;
        for (int other = 0; member && other < ranks_; ++other) {
          copy(rank, other * part, inputs_[index(other)], rank * part, part);
        }
      }
    }
  }

  std::vector<float> read() const override { return to_floats(outputs_.front().data(), element_, output_); }

 private:
  static constexpr std::int64_t kGrain = 32;  // elements: ranks write whole cache lines

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  // This rank's part of the sum, to its output: at `shift` elements before where the part lies in the inputs.
  void sum(int rank, std::int64_t shift) {
    const Range part = kind_ == CollectiveKind::reduce_scatter ? Range{rank * output_, (rank + 1) * output_}
                                                               : part_of(input_, kGrain, rank, ranks_);
    kernels_.sum(in_.data(), ranks_, outputs_[index(rank)].data() - shift * size_, part.first, part.last);
  }
  void copy(int rank, std::int64_t to, const Buffer& from, std::int64_t at, std::int64_t count) {
    std::memcpy(outputs_[index(rank)].data() + to * size_, from.data() + at * size_,
                static_cast<std::size_t>(count * size_));
  }

  const RowKernels& kernels_;
  Element element_;
  CollectiveKind kind_;
  int ranks_;
  std::int64_t input_;  // elements of a rank
  std::int64_t output_;
  std::int64_t size_;
  std::vector<Buffer> inputs_, outputs_;  // per rank
  std::vector<const void*> in_;
};

}  // namespace

Operated make_collective(const Workshop& shop, Dtype dtype, const calibrate::CollectiveShape& shape) {
  const Element type = element_of(dtype, graph::name(shape.kind));
  require(shape.kind != CollectiveKind::send && shape.kind != CollectiveKind::ring_pass &&
              shape.kind != CollectiveKind::broadcast,
          fmt::format("no {} among threads", graph::name(shape.kind)));
  require(shape.ranks >= 1 && shape.ranks <= shop.pool->threads(),
          fmt::format("{} ranks need as many threads, and there are {}", shape.ranks, shop.pool->threads()));
  const double bytes = shape.bytes.value;
  require(bytes >= static_cast<double>(bytes_of(type)), "less than one element");
  require(2 * bytes * static_cast<double>(shape.ranks) <= static_cast<double>(free_memory()),
          fmt::format("{} ranks with two tensors of {:.0f} bytes each do not fit in memory", shape.ranks, bytes));
  const std::int64_t elements = static_cast<std::int64_t>(bytes) / bytes_of(type);
  require(shape.kind == CollectiveKind::all_reduce || elements % shape.ranks == 0,
          fmt::format("{} elements are not divided evenly among {} ranks", elements, shape.ranks));
  return std::make_unique<CollectiveOperation>(shop, type, shape.kind, static_cast<int>(shape.ranks), elements);
}

}  // namespace llmperf::replay::cpu
