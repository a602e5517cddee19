// The DRAM channel and what goes through it. Every queue, of tiles that get slices together, and every tile has one
// next request of a kind at most; the channel looks at all of them, and those that what it served has changed are
// worked out anew.
#include "mapper/tile/simulation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>

#include "mapper/tile/simulation_tiles.h"
#include "mapper/tile/timeline.h"

namespace llmperf::mapper::tile {
namespace {

class Simulation {
 public:
  Simulation(const Machine& machine, const Schedule& schedule, Timeline* timeline)
      : m_(machine),
        s_(schedule),
        g_(*schedule.grid),
        timeline_(timeline),
        program_(schedule),
        tiles_(machine, schedule, program_, timeline) {
    queue_of_[kA].assign(at(m_.tiles), -1);
    queue_of_[kB] = queue_of_[kA];
    open(s_.a, g_.a, kA);
    open(s_.b, g_.b, kB);
    const auto any = [&](double Block::*bytes) {
      return std::any_of(s_.blocks.begin(), s_.blocks.end(), [&](const Block& b) { return b.*bytes > 0; });
    };
    if (any(&Block::start)) kinds_.push_back(kStart);
    if (any(&Block::end)) kinds_.push_back(kJoin);
    kinds_.push_back(kStore);
    const std::size_t requests = queues_.size() + at(m_.tiles) * kinds_.size();
    ready_.assign((requests + kLanes - 1) / kLanes * kLanes, kNever);
    order_.assign(ready_.size(), kNever);
  }

  Simulated run() {
    for (std::size_t q = 0; q < queues_.size(); ++q) settle(q);
    for (int i = 0; i < m_.tiles; ++i) {
      tiles_.touched().push_back(i);
      tiles_.advance(i);
    }
    refresh();
    while (serve()) refresh();
    Simulated result;
    result.seconds = std::max(end_, tiles_.end());
    result.dram_busy = dram_busy_;
    result.requests = served_;
    for (const Tile& tile : tiles_.all()) {
      if (tile.stored != program_.blocks()) throw std::logic_error("simulate: tiles wait for each other");
      result.matrix_busy = std::max(result.matrix_busy, tile.matrix_busy);
      result.vector_busy = std::max(result.vector_busy, tile.vector_busy);
    }
    result.link_busy = tiles_.busiest_link();
    return result;
  }

 private:
  enum Operand : unsigned char { kA, kB };
  enum Kind : unsigned char { kStart, kJoin, kStore };  // of a tile's own requests
  static constexpr double kMostRequests = 1 << 14;
  static constexpr std::size_t kLanes = 4;  // minima that are found side by side

  void request(std::size_t index, double ready, std::int64_t step) {
    ready_[index] = ready;
    order_[index] = static_cast<double>(step) * kMostRequests + static_cast<double>(index);
  }
  // The least of what `value` is of every request.
  template <typename Value>
  double least(Value&& value) const {
    double found[kLanes] = {kNever, kNever, kNever, kNever};
    for (std::size_t i = 0; i < ready_.size(); i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double v = value(i + lane);
        found[lane] = v < found[lane] ? v : found[lane];
      }
    }
    return *std::min_element(std::begin(found), std::end(found));
  }
  // Requests of tiles that share an operand (of one tile, where none do).
  struct Queue {
    Operand operand = kA;
    std::vector<int> tiles;
    const Paths* paths = nullptr;  // multicast
    int group = 0;
    Program::At next;
    std::vector<std::int64_t> in_slot;  // the step that last used a slot; -1: none
    std::size_t slot = 0;
    double left = 0;   // bytes of a request that has begun
    double first = 0;  // when its first byte came
  };

  void open(const Stream& stream, const Paths& paths, Operand operand) {
    if (!stream.used) {
      for (int i = 0; i < m_.tiles; ++i) known(i, operand) = program_.steps();
      return;
    }
    const bool shared = stream.feed == Feed::multicast;
    const int count = shared ? paths.groups : m_.tiles;
    for (int i = 0; i < count; ++i) {
      Queue q;
      q.operand = operand;
      q.group = i;
      q.tiles = {i};
      if (shared) {
        q.paths = &paths;
        const auto first = paths.tiles.begin() + static_cast<std::ptrdiff_t>(i) * paths.length;
        q.tiles.assign(first, first + paths.length);
      }
      q.in_slot.assign(at(stream.slots), -1);
      for (const int tile : q.tiles) queue_of_[operand][at(tile)] = static_cast<int>(queues_.size());
      queues_.push_back(std::move(q));
    }
  }

  std::int64_t& known(int tile, Operand operand) { return operand == kA ? tiles_[tile].a_known : tiles_[tile].b_known; }
  std::vector<double>& slices(int tile, Operand operand) { return operand == kA ? tiles_[tile].a : tiles_[tile].b; }
  bool in_panel(const Queue& q) const {
    return q.operand == kA && stays(q.next.step, program_.block(q.next.block).steps, s_.panel);
  }

  // Goes past slices that stay from the block before, and tells the tiles how far they can go.
  void settle(std::size_t index) {
    Queue& q = queues_[index];
    while (!program_.over(q.next) && in_panel(q) && !program_.opens_row(q.next.block) &&
           q.next.step < program_.block(q.next.block).found) {
      for (const int i : q.tiles) tiles_[i].a[tiles_.slot(q.next.number)] = 0;
      program_.move(q.next);
    }
    for (const int i : q.tiles) known(i, q.operand) = q.next.number;
    request(index, kNever, q.next.number);
  }

  // When the next request of a queue can go out; never: the steps that it waits for have not run.
  double ready(const Queue& q) const {
    if (program_.over(q.next)) return kNever;
    std::int64_t waits_for = q.in_slot[q.slot];
    if (in_panel(q)) {  // the slot of the same slice of the row before
      const std::int64_t before = program_.row(q.next.block) - 1;
      waits_for =
          before < 0 ? -1 : program_.first_step(before) + std::min(q.next.step, program_.block(before).steps - 1);
    }
    if (waits_for < 0) return 0;
    double ready = 0;
    for (const int i : q.tiles) {
      const Tile& tile = tiles_[i];
      if (tile.ended() <= waits_for) return kNever;
      ready = std::max(ready, tile.ends[tiles_.slot(waits_for)]);
    }
    return ready;
  }

  // Works out the requests of tiles that have run, and of their queues.
  void refresh() {
    for (const int i : tiles_.touched()) {
      for (const Operand operand : {kA, kB}) {
        const int index = queue_of_[operand][at(i)];
        if (index >= 0 && ready_[at(index)] == kNever) ready_[at(index)] = ready(queues_[at(index)]);
      }
      std::size_t own = queues_.size() + at(i) * kinds_.size();
      for (const Kind kind : kinds_) refresh(tiles_[i], kind, own++);
    }
    tiles_.touched().clear();
  }

  void refresh(const Tile& t, Kind kind, std::size_t index) {
    ready_[index] = kNever;
    if (kind == kStart && t.starts < program_.blocks() && program_.block(t.starts).start > 0) {
      const std::int64_t before = t.starts - s_.start_slots;  // the block whose operand makes room
      double ready = 0;
      if (before >= 0 && t.ended() <= program_.last_step(before)) {
        ready = kNever;
      } else if (before >= 0) {
        ready = t.ends[tiles_.slot(program_.last_step(before))];
      }
      request(index, ready, program_.first_step(t.starts));
    }
    if (kind == kJoin && t.joins < program_.blocks() && program_.block(t.joins).end > 0 && t.results >= t.joins) {
      request(index, t.joins == 0 ? 0.0 : t.finished[kept(t.joins - 1)], program_.last_step(t.joins));
    }
    if (kind == kStore && t.stored < t.results) request(index, t.finished[kept(t.stored)], needed(t.stored));
  }

  // One decision of the channel: of requests that wait that of the earliest step, else the first to come. False when
  // nothing is left to do.
  bool serve() {
    const double now = now_;
    const double never = kNever;
    const double earliest = least([&](std::size_t i) { return ready_[i] <= now ? order_[i] : never; });
    std::size_t index = 0;
    if (earliest != kNever) {
      index = static_cast<std::size_t>(earliest - std::floor(earliest / kMostRequests) * kMostRequests);
    } else {
      const double first = least([&](std::size_t i) { return ready_[i]; });
      if (first == kNever) return false;
      index = static_cast<std::size_t>(std::find(ready_.begin(), ready_.end(), first) - ready_.begin());
    }
    ++served_;
    if (index < queues_.size()) {
      load(index);
    } else {
      const std::size_t own = index - queues_.size();
      serve(static_cast<int>(own / kinds_.size()), kinds_[own % kinds_.size()], ready_[index]);
    }
    return true;
  }

  void serve(int tile, Kind kind, double ready) {
    Tile& t = tiles_[tile];
    if (kind == kStart) {
      t.start_at[kept(t.starts)] =
          move_bytes(ready, program_.block(t.starts).start, Lane::load_b, program_.first_step(t.starts)) +
          m_.dram_latency;
      ++t.starts;
    } else if (kind == kJoin) {
      t.join_at[kept(t.joins)] =
          move_bytes(ready, program_.block(t.joins).end, Lane::joined, program_.last_step(t.joins)) + m_.dram_latency;
      ++t.joins;
    } else {
      double& left = t.to_store[kept(t.stored)];
      const double bytes = left < 2 * kPiece ? left : kPiece;
      const double done = move_bytes(ready, bytes, Lane::store, program_.last_step(t.stored));
      left -= bytes;
      if (left > 0) return;
      tiles_.left(tile, done);
      end_ = std::max(end_, done + m_.dram_latency);
    }
    tiles_.touched().push_back(tile);
    tiles_.advance(tile);
  }

  // The step that waits for the buffer of a block's results.
  std::int64_t needed(std::int64_t i) const {
    const std::int64_t next = i + (s_.results == Results::doubled ? 2 : 1);
    if (next >= program_.blocks()) return program_.steps();
    return s_.results == Results::staged ? program_.last_step(next) : program_.first_step(next);
  }

  // The channel moves bytes that are asked for at `ready`, for a step. Returns when it is done.
  double move_bytes(double ready, double bytes, Lane lane, std::int64_t step) {
    const double seconds = bytes / m_.dram;
    now_ = std::max(now_, ready) + seconds;
    if (timeline_ != nullptr) timeline_->add(lane, now_ - seconds, now_, step);
    dram_busy_ += seconds;
    return now_;
  }

  void load(std::size_t index) {
    Queue& q = queues_[index];
    const double ready = ready_[index];
    const Step& step = program_.step(q.next);
    const double bytes = q.operand == kA ? step.a : step.b;
    if (q.left == 0) {
      q.left = bytes;
      q.first = std::max(now_, ready) + m_.dram_latency;
    }
    const double piece = q.left < 2 * kPiece ? q.left : kPiece;
    const double last =
        move_bytes(ready, piece, q.operand == kA ? Lane::load_a : Lane::load_b, q.next.number) + m_.dram_latency;
    q.left -= piece;
    if (q.left > 0) return;
    hand_on(q, q.first, last, bytes);
    if (!in_panel(q)) {
      q.in_slot[q.slot] = q.next.number;
      q.slot = (q.slot + 1) % q.in_slot.size();
    }
    const std::int64_t number = q.next.number;
    program_.move(q.next);
    settle(index);
    tiles_.touched().push_back(q.tiles.front());
    if ((q.operand == kA ? s_.a : s_.b).feed == Feed::ring) {
      advance_round(q, number);
    } else {
      for (const int i : q.tiles) tiles_.advance(i);
    }
  }

  // Parts go round once the last tile of the path has sent for its own.
  void advance_round(const Queue& q, std::int64_t step) {
    const Paths& paths = q.operand == kA ? g_.a : g_.b;
    const auto path = std::span(paths.tiles).subspan(at(paths.group[at(q.group)]) * at(paths.length), at(paths.length));
    if (std::any_of(path.begin(), path.end(), [&](int i) { return known(i, q.operand) <= step; })) return;
    for (const int i : path) tiles_.advance(i);
  }

  // The first tile of a group passes a slice on along the path while it comes in.
  void hand_on(const Queue& q, double first, double last, double bytes) {
    const std::size_t slot = tiles_.slot(q.next.number);
    for (std::size_t i = 0; i < q.tiles.size(); ++i) {
      if (i > 0) {
        const std::size_t here = at(q.group) * at(q.paths->length) + i;
        for (int link = q.paths->reached[here - 1]; link < q.paths->reached[here]; ++link) {
          tiles_.pass(q.paths->links[at(link)], bytes, first, last);
          const bool drawn = timeline_ != nullptr && q.group == 0 && link == 0;
          if (drawn) timeline_->add(Lane::noc, first, first + bytes / m_.link, q.next.number);
        }
      }
      slices(q.tiles[i], q.operand)[slot] = last;
    }
  }

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  Timeline* timeline_;
  Program program_;
  Tiles tiles_;
  std::vector<Queue> queues_;
  std::vector<int> queue_of_[2];  // of a tile; -1: none
  std::vector<Kind> kinds_;       // that there are
  // Requests of queues, then of tiles: when each goes out, and in which order they are served: by the step that needs
  // them, or their buffer, then by their index.
  std::vector<double> ready_;
  std::vector<double> order_;
  double now_ = 0;  // when the channel is free
  double end_ = 0;  // of the last store
  double dram_busy_ = 0;
  std::int64_t served_ = 0;
};

}  // namespace

Simulated simulate(const Machine& machine, const Schedule& schedule, Timeline* timeline) {
  return Simulation(machine, schedule, timeline).run();
}

}  // namespace llmperf::mapper::tile
