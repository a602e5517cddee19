// Ops that move rows and hardly compute: rows of a table picked by index, keys and values written to a cache, and
// collectives among threads. Of these thread r is rank r with buffers of its own, and the shared memory is the network.
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "replay/cpu/operation.h"
#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

using graph::CollectiveKind;

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// What a rank holds before and after: where in memory.
struct Rank {
  std::byte* input;
  std::byte* output;
};

}  // namespace

Operated make_gather(const Workshop& shop, Dtype dtype, const measure::GatherShape& shape, std::int64_t asked) {
  const Element type = element_of(dtype, "gather");
  require(shape.table != 0, "the number of rows of the table (column k) is not known");
  const auto bytes = bytes_of_tensor({shape.table, shape.width}, type);
  const auto result = bytes_of_tensor({shape.rows, shape.width}, type);
  auto op = std::make_unique<Operation>(shop, shop.copies(asked, bytes, result));
  const std::int64_t row = shape.width * bytes_of(type);
  const Rotated table = op->rotated(type, shape.table * shape.width, {.operand = 0});
  std::byte* y = op->output(type, shape.rows * shape.width);
  // Once every copy had its turn, other rows are picked: of a large table there is one copy, and the rows picked before
  // are in the cache.
  op->execute = [=](const Team& team, std::int64_t turn) {
    const Range share = part_of(shape.rows, 1, team.thread, team.threads);
    for (std::int64_t r = share.first; r < share.last; ++r) {
      const std::int64_t picked = gathered_row(turn / table.copies * shape.rows + r, shape.table);
      copy_bytes(y + r * row, table.at(turn) + picked * row, row);
    }
  };
  return op;
}

// Each execution writes to the cache of the next layer: the copies are of what is written, keys and then values.
Operated make_kv_write(const Workshop& shop, Dtype dtype, const measure::CacheShape& shape, std::int64_t asked) {
  const Element type = element_of(dtype, "kv_write");
  const auto bytes = bytes_of_tensor({shape.tokens, shape.kv_heads, shape.head_dim}, type);
  const std::int64_t count = bytes / bytes_of(type);
  auto op = std::make_unique<Operation>(shop, shop.copies(asked, 2 * bytes, 2 * bytes));
  const std::byte* keys = op->input(type, count, {.operand = 0});
  const std::byte* values = op->input(type, count, {.operand = 1});
  const std::int64_t stride = whole_lines(bytes);
  const Rotated cache = op->rotated(zeroed(*shop.pool, 2 * stride * op->copies()));
  op->execute = [=](const Team& team, std::int64_t turn) {
    const Range share = part_of(bytes, 64, team.thread, team.threads);
    copy_bytes(cache.at(turn) + share.first, keys + share.first, share.size());
    copy_bytes(cache.at(turn) + stride + share.first, values + share.first, share.size());
  };
  std::byte* written[] = {op->output(type, count), op->output(type, count)};
  op->collect = [=](std::int64_t turn) {
    copy_bytes(written[0], cache.at(turn), bytes);
    copy_bytes(written[1], cache.at(turn) + stride, bytes);
  };
  return op;
}

Operated make_collective(const Workshop& shop, Dtype dtype, const measure::CollectiveShape& shape) {
  const CollectiveKind kind = shape.kind;
  const Element type = element_of(dtype, graph::name(kind));
  require(kind != CollectiveKind::send && kind != CollectiveKind::ring_pass && kind != CollectiveKind::broadcast,
          fmt::format("no {} among threads", graph::name(kind)));
  require(shape.ranks >= 1 && shape.ranks <= shop.pool->threads(),
          fmt::format("{} ranks need as many threads, and there are {}", shape.ranks, shop.pool->threads()));
  const double bytes = shape.bytes.value;
  const std::int64_t size = bytes_of(type);
  require(bytes >= static_cast<double>(size), "less than one element");
  require(2 * bytes * static_cast<double>(shape.ranks) <= static_cast<double>(free_memory()),
          fmt::format("{} ranks with two tensors of {:.0f} bytes each do not fit in memory", shape.ranks, bytes));
  const std::int64_t elements = static_cast<std::int64_t>(bytes) / size;
  require(kind == CollectiveKind::all_reduce || elements % shape.ranks == 0,
          fmt::format("{} elements are not divided evenly among {} ranks", elements, shape.ranks));
  const int ranks = static_cast<int>(shape.ranks);
  const std::int64_t each = elements / ranks;
  const std::int64_t held = kind == CollectiveKind::all_gather ? each : elements;
  const std::int64_t left = kind == CollectiveKind::reduce_scatter ? each : elements;

  auto op = std::make_unique<Operation>(shop, 1);
  std::vector<Rank> all;
  std::vector<const void*> inputs;
  for (int r = 0; r < ranks; ++r) {
    all.push_back({op->keep(Buffer(whole_lines(held * size))), op->keep(Buffer(whole_lines(left * size)))});
    inputs.push_back(all.back().input);
  }
  op->add_output(all.front().output, type, left);
  shop.pool->run([&](const Team& team) {
    if (team.thread >= ranks) return;
    const Rank& rank = all[static_cast<std::size_t>(team.thread)];
    fill_elements(rank.input, type, 0, held, {.operand = static_cast<std::uint32_t>(team.thread)});
    std::memset(rank.output, 0, static_cast<std::size_t>(left * size));
  });
  op->execute = [=, sum = shop.kernels->of(type).sum](const Team& team, std::int64_t) {
    constexpr std::int64_t kGrain = 32;  // elements: ranks write whole cache lines
    const auto share = [&](int rank) { return part_of(elements, kGrain, rank, ranks); };
    const int own = team.thread;
    const bool member = own < ranks;
    std::byte* const output = member ? all[static_cast<std::size_t>(own)].output : nullptr;
    const auto copy = [&](std::int64_t to, const std::byte* from, std::int64_t at, std::int64_t count) {
      copy_bytes(output + to * size, from + at * size, count * size);
    };
    // An all-reduce is a reduce-scatter and an all-gather: a rank sums its part of what all have, and copies the other
    // parts from those who summed them.
    if (kind == CollectiveKind::all_reduce) {
      if (member) sum(inputs.data(), ranks, output, share(own).first, share(own).last);
      team.wait();
    }
    if (!member) return;
    if (kind == CollectiveKind::reduce_scatter) {
      return sum(inputs.data(), ranks, output - own * each * size, own * each, (own + 1) * each);
    }
    for (int other = 0; other < ranks; ++other) {
      const Rank& rank = all[static_cast<std::size_t>(other)];
      if (kind == CollectiveKind::all_reduce) {
        if (other != own) copy(share(other).first, rank.output, share(other).first, share(other).size());
      } else {
        copy(other * each, rank.input, kind == CollectiveKind::all_gather ? 0 : own * each, each);
      }
    }
  };
  return op;
}

}  // namespace llmperf::replay::cpu
