// The DRAM channel and what goes through it. Every queue, of tiles that get slices together, and every tile has one
// next request of a kind at most. Those that wait for the channel are kept in the order in which it serves them, those
// that will go out later in the order of their times; what a served request has changed is worked out anew.
#include "mapper/tile/simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <stdexcept>
#include <vector>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {
namespace {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The order in which every tile goes through the blocks and steps of a schedule.
class Program {
 public:
  struct At {
    std::int64_t block = 0;
    std::int64_t step = 0;    // of the block
    std::int64_t number = 0;  // of the step, over all blocks
  };

  explicit Program(const Schedule& s) {
    bool grows = false;  // slices of a row still come when those of the row before are long over
    for (std::int64_t repeat = 0; repeat < s.repeats; ++repeat) {
      for (const RowRun& rows : s.sequence) {
        for (std::int64_t i = 0; i < rows.count; ++i) {
          const std::int64_t first = blocks();
          for (std::size_t run = s.rows[rows.row].begin; run < s.rows[rows.row].end; ++run) {
            for (std::int64_t j = 0; j < s.runs[run].count; ++j) {
              const Block& block = s.blocks[s.runs[run].block];
              blocks_.push_back({&block, steps_, first});
              ++count_;
              steps_ += block.steps;
              longest_ = std::max(longest_, block.steps);
              grows = grows || (s.panel > 0 && block.found < block.steps);
            }
          }
          if (grows) longest_ = std::max(longest_, steps_ - first_step(first));
        }
      }
    }
  }

  std::int64_t blocks() const { return count_; }
  std::int64_t steps() const { return steps_; }
  // Steps from one use of a slice's slot to the next, at most.
  std::int64_t longest() const { return longest_; }

  const Block& block(std::int64_t i) const { return *blocks_[at(i)].block; }
  bool opens_row(std::int64_t i) const { return blocks_[at(i)].row == i; }
  std::int64_t row(std::int64_t i) const { return blocks_[at(i)].row; }  // its first block
  std::int64_t first_step(std::int64_t i) const { return blocks_[at(i)].first_step; }
  std::int64_t last_step(std::int64_t i) const { return first_step(i) + block(i).steps - 1; }

  bool over(const At& a) const { return a.block >= blocks(); }
  const Step& step(const At& a) const {
    const Block& b = block(a.block);
    return a.step + 1 == b.steps ? b.last : b.full;
  }
  void move(At& a) const {
    ++a.number;
    if (++a.step < block(a.block).steps) return;
    a.step = 0;
    ++a.block;
  }

 private:
  struct Placed {
    const Block* block;
    std::int64_t first_step;
    std::int64_t row;
  };
  std::vector<Placed> blocks_;
  std::int64_t count_ = 0;  // of these
  std::int64_t steps_ = 0;
  std::int64_t longest_ = 1;
};

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kKept = 4;  // blocks whose times are remembered
inline std::size_t kept(std::int64_t block) { return at(block & (kKept - 1)); }

struct Tile {
  Program::At next;          // step to run
  std::int64_t a_known = 0;  // steps whose slices have been sent for and have a time
  std::int64_t b_known = 0;
  double* a = nullptr;  // when slices are there
  double* b = nullptr;
  double* ends = nullptr;   // of steps
  std::int64_t starts = 0;  // blocks whose operands have been sent for
  std::int64_t joins = 0;
  double start_at[kKept] = {};
  double join_at[kKept] = {};
  double matrix = 0;  // when the unit is free
  double vector = 0;
  bool touched = false;
  bool pending = false;  // the second product of the step before has not run
  Program::At pending_at;
  double pending_ready = 0;
  std::int64_t results = 0;     // blocks with results
  double finished[kKept] = {};  // when they are ready
  double to_store[kKept] = {};  // bytes
  std::int64_t stored = 0;      // blocks whose results have left
  double stored_at[kKept] = {};
  double matrix_busy = 0;
  double vector_busy = 0;

  std::int64_t ended() const { return pending ? pending_at.number : next.number; }  // steps
};

// The tiles of a simulation: their units, and when the operands and results of each are where.
//
// The units of a tile work in program order, each as soon as it is free and has what it needs. Where the matrix unit
// multiplies before and after the vector unit, the first product of a step goes ahead of the second of the step before,
// so that the units work at once.
class Tiles {
 public:
  Tiles(const Machine& machine, const Schedule& schedule, const Program& program, Timeline* timeline)
      : m_(machine), s_(schedule), g_(*schedule.grid), program_(program), timeline_(timeline) {
    while (window_ < 2 * program.longest() + 8) window_ *= 2;
    tiles_.resize(at(m_.tiles));
    times_.assign(3 * tiles_.size() * at(window_), 0);
    double* next = times_.data();
    for (Tile& tile : tiles_) {
      for (double** times : {&tile.a, &tile.b, &tile.ends}) {
        *times = next;
        next += window_;
      }
    }
    links_.assign(4 * at(m_.mesh_x) * at(m_.mesh_y), 0);
    link_busy_.assign(links_.size(), 0);
    sums_.resize(at(g_.c.groups * kKept));
  }

  Tile& operator[](int i) { return tiles_[at(i)]; }
  const Tile& operator[](int i) const { return tiles_[at(i)]; }
  const std::vector<Tile>& all() const { return tiles_; }
  std::size_t slot(std::int64_t step) const { return at(step & (window_ - 1)); }

  // Runs all steps of a tile whose operands have a time, and of tiles that it adds up partial sums with.
  void advance(int tile) {
    if (advance_one(tile)) touch(tile);
  }

  // What a tile asks for next may have changed.
  void touch(int tile) {
    if (tiles_[at(tile)].touched) return;
    tiles_[at(tile)].touched = true;
    touched_.push_back(tile);
  }
  // Calls `work` of every tile touched since the last time.
  template <typename Work>
  void each_touched(const Work& work) {
    for (const int tile : touched_) {
      tiles_[at(tile)].touched = false;
      work(tile);
    }
    touched_.clear();
  }

  // Results of the next block have left.
  void left(int tile, double time) {
    Tile& t = tiles_[at(tile)];
    t.stored_at[kept(t.stored)] = time;
    ++t.stored;
    touch(tile);
  }

  double end() const { return end_; }  // of the last unit's work
  // Passes `bytes` that go to several tiles and come from `first` to `last` over a link.
  void pass(int link, double bytes, double& first, double& last) {
    double& free = links_[at(link)];
    const double seconds = bytes / m_.multicast_rate();
    first = std::max(first + m_.hop_latency, free);
    last = std::max(last + m_.hop_latency, first + seconds);
    free = first + seconds;
    link_busy_[at(link)] += seconds;
  }

  double busiest_link() const { return *std::ranges::max_element(link_busy_); }

 private:
  using At = Program::At;
  struct Sum {
    int tiles = 0;
    double start = 0;
  };

  // Of the first tile, where a drawing is asked for.
  void draw(int tile, Lane lane, double end, double seconds, std::int64_t step) {
    if (timeline_ != nullptr && tile == 0) timeline_->add(lane, end - seconds, end, step);
  }
  // Parts of slices go round beside the work on them.
  void draw_round(int i, const Step& s, double begin, std::int64_t number) {
    if (timeline_ == nullptr) return;
    const auto passed = [](const Stream& stream, const Paths& paths, double part) {
      return stream.used && stream.feed == Feed::ring ? part * (paths.length - 1) : 0;
    };
    const double seconds = (passed(s_.a, g_.a, s.a) + passed(s_.b, g_.b, s.b)) / m_.link;
    draw(i, Lane::noc, begin + seconds, seconds, number);
  }

  bool advance_one(int i) {
    Tile& t = tiles_[at(i)];
    bool ran = false;
    while (true) {
      double room_at = 0;
      if (t.pending && !room(t, t.pending_at, room_at)) return ran;
      if (t.pending && !goes_ahead(t.pending_at)) {
        flush(i, room_at);
        ran = true;
        continue;
      }
      if (program_.over(t.next)) return ran;
      double data = operands(t, i);
      if (data == kNever) return ran;
      const std::int64_t b = t.next.block;
      const Block& block = program_.block(b);
      if (t.next.step == 0) {
        if (block.start <= 0) t.starts = std::max(t.starts, b + 1);
        if (t.starts <= b) return ran;
        data = std::max(data, t.start_at[kept(b)]);
      }
      if (t.next.step + 1 == block.steps) {
        if (block.end <= 0) t.joins = std::max(t.joins, b + 1);
        if (t.joins <= b) return ran;
        data = std::max(data, t.join_at[kept(b)]);
      }
      if (!chained(program_.step(t.next)) && !room(t, t.next, data)) return ran;
      run(i, data, room_at);
      ran = true;
    }
  }

  // When the operands of the next step are there; never: not known yet.
  double operands(const Tile& t, int i) const {
    const std::int64_t n = t.next.number;
    if (n >= t.a_known || n >= t.b_known) return kNever;
    double data = std::max(t.a[slot(n)], t.b[slot(n)]);
    if (s_.a.feed == Feed::ring && s_.a.used) data = std::max(data, round_about(g_.a, i, n, true));
    if (s_.b.feed == Feed::ring && s_.b.used) data = std::max(data, round_about(g_.b, i, n, false));
    return data;
  }

  // Parts of a slice go round: a step begins when all tiles of the path have theirs.
  double round_about(const Paths& paths, int i, std::int64_t step, bool is_a) const {
    double data = 0;
    const Paths::Way& way = paths.way();
    const int group = way.group[at(i)];
    for (int j = group * paths.length; j < (group + 1) * paths.length; ++j) {
      const Tile& other = tiles_[at(way.tiles[at(j)])];
      if ((is_a ? other.a_known : other.b_known) <= step) return kNever;
      data = std::max(data, (is_a ? other.a : other.b)[slot(step)]);
    }
    return data;
  }

  // Whether the matrix unit works before and after the vector unit, beside it. Then scores wait for no room, only the
  // second product does.
  bool chained(const Step& s) const { return s_.overlapped && s.before > 0; }

  // Whether the program runs the first product of the next step ahead of the second of this one: where that cannot lock
  // up, as the operands of the next do not need the room of this one's.
  bool goes_ahead(const At& here) const {
    const std::int64_t next = here.block + 1;
    if (s_.a.used && s_.a.slots == 1) return false;
    if (s_.b.used && s_.b.slots == 1) return false;
    const std::int64_t steps = program_.block(here.block).steps;
    if (here.step + 1 < steps) return true;
    if (next >= program_.blocks() || s_.start_slots == 1) return false;
    return s_.panel == 0 || steps > 1 || !program_.opens_row(next);
  }

  // Whether the results of earlier blocks leave room for those of a step; raises `data` to when they do.
  bool room(const Tile& t, const At& here, double& data) const {
    const std::int64_t b = here.block;
    const bool first = here.step == 0;
    const bool last = here.step + 1 == program_.block(b).steps;
    const auto needs = [&](std::int64_t earlier) {
      if (earlier < 0) return true;
      if (t.stored <= earlier) return false;
      data = std::max(data, t.stored_at[kept(earlier)]);
      return true;
    };
    switch (s_.results) {
      case Results::in_place: return !first || needs(b - 1);
      case Results::doubled: return !first || needs(b - 2);
      case Results::staged:
        if (first && b > 0) {
          if (t.results < b) return false;
          data = std::max(data, t.finished[kept(b - 1)]);
        }
        return !last || needs(b - 1);
    }
    return true;
  }

  // `room_at`: when the results of the step before have room.
  void run(int i, double data, double room_at) {
    Tile& t = tiles_[at(i)];
    const At here = t.next;
    const Step& s = program_.step(here);
    t.matrix_busy += s.before + s.after;
    draw_round(i, s, std::max(data, t.matrix), here.number);
    t.vector_busy += s.vector;
    program_.move(t.next);
    if (!s_.overlapped) {
      const double end = std::max({data, t.matrix, t.vector}) + s.before + s.vector + s.after;
      t.matrix = t.vector = end;
      draw(i, Lane::matrix, end - s.after - s.vector, s.before, here.number);
      draw(i, Lane::vector, end - s.after, s.vector, here.number);
      draw(i, Lane::matrix, end, s.after, here.number);
      end_step(i, here, end);
      return;
    }
    if (s.before == 0) {
      if (s.vector > 0) data = t.vector = std::max(data, t.vector) + s.vector;
      t.matrix = std::max(data, t.matrix) + s.after;
      draw(i, Lane::vector, t.vector, s.vector, here.number);
      draw(i, Lane::matrix, t.matrix, s.after, here.number);
      end_step(i, here, t.matrix);
      return;
    }
    t.matrix = std::max(data, t.matrix) + s.before;
    t.vector = std::max(t.matrix, t.vector) + s.vector;
    draw(i, Lane::matrix, t.matrix, s.before, here.number);
    draw(i, Lane::vector, t.vector, s.vector, here.number);
    const double ready = t.vector;
    if (t.pending) flush(i, room_at);
    t.pending = true;
    t.pending_at = here;
    t.pending_ready = ready;
  }

  void flush(int i, double room_at) {
    Tile& t = tiles_[at(i)];
    const At here = t.pending_at;
    t.pending = false;
    t.matrix = std::max({t.matrix, t.pending_ready, room_at}) + program_.step(here).after;
    draw(i, Lane::matrix, t.matrix, program_.step(here).after, here.number);
    end_step(i, here, t.matrix);
  }

  void end_step(int i, const At& here, double end) {
    tiles_[at(i)].ends[slot(here.number)] = end;
    if (timeline_ != nullptr && i == 0) timeline_->ends.push_back(end);
    const Block& block = program_.block(here.block);
    if (here.step + 1 < block.steps) return;
    if (g_.c.length == 1 || block.reduce == 0) {
      finish(i, here.block, end);
      return;
    }
    // Partial sums: when the last tile of the group has its own.
    const int group = g_.c.way().group[at(i)];
    Sum& sum = sums_[at(group * kKept) + kept(here.block)];
    sum.start = std::max(sum.start, end);
    if (++sum.tiles < g_.c.length) return;
    const double done = reduce(group, sum.start, block.reduce, here.number);
    sum = {};
    for (int j = group * g_.c.length; j < (group + 1) * g_.c.length; ++j) {
      const int tile = g_.c.way().tiles[at(j)];
      finish(tile, here.block, done);
      if (tile != i) later_.push_back(tile);
    }
    while (!later_.empty()) {
      const int tile = later_.back();
      later_.pop_back();
      touch(tile);
      advance(tile);
    }
  }

  // Every tile passes `bytes` on along the path of its group.
  double reduce(int group, double start, double bytes, std::int64_t step) {
    const Paths::Way& way = g_.c.way();
    const std::size_t first = at(group) * at(g_.c.length);
    double done = start;
    for (int link = way.reached[first]; link < way.reached[first + at(g_.c.length) - 1]; ++link) {
      const auto id = at(way.links[at(link)]);
      const double begin = std::max(start, links_[id]);
      links_[id] = begin + bytes / m_.link;
      link_busy_[id] += bytes / m_.link;
      done = std::max(done, links_[id]);
      const bool drawn = group == way.group[0] && link == way.reached[first];
      if (drawn) draw(0, Lane::noc, links_[id], bytes / m_.link, step);
    }
    return done + (g_.c.length - 1) * m_.hop_latency;
  }

  void finish(int i, std::int64_t b, double end) {
    Tile& t = tiles_[at(i)];
    const Block& of = program_.block(b);
    double ready = end;
    if (of.finish > 0) {
      // Where results leave through the vector unit during the last step, it works beside the matrix unit.
      const bool beside = s_.results == Results::staged && of.reduce == 0 && s_.overlapped;
      const double from = beside ? end - (of.last.before + of.last.after) : end;
      ready = std::max(end, std::max(t.vector, from) + of.finish);
      t.vector = ready;
      t.vector_busy += of.finish;
      draw(i, Lane::vector, t.vector, of.finish, program_.last_step(b));
    }
    t.finished[kept(b)] = ready;
    t.to_store[kept(b)] = of.result;
    ++t.results;
    end_ = std::max(end_, ready);
    if (of.result <= 0) left(i, ready);
  }

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  const Program& program_;
  Timeline* timeline_;
  std::int64_t window_ = 1;
  std::vector<Tile> tiles_;
  std::vector<double> times_;  // of all tiles
  std::vector<Sum> sums_;
  std::vector<double> links_;  // when they are free
  std::vector<double> link_busy_;
  std::vector<int> later_;  // tiles that may go on, as their partial sums are complete
  std::vector<int> touched_;
  double end_ = 0;
};

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
    alone_.resize(at(m_.tiles));
    std::iota(alone_.begin(), alone_.end(), 0);
    open(s_.a, g_.a, kA);
    open(s_.b, g_.b, kB);
    const auto any = [&](double Block::*bytes) {
      return std::ranges::any_of(s_.blocks, [&](const Block& b) { return b.*bytes > 0; });
    };
    if (any(&Block::start)) kinds_.push_back(kStart);
    if (any(&Block::end)) kinds_.push_back(kJoin);
    kinds_.push_back(kStore);
    ports_.assign(at(m_.tiles), 0);
    own_ = queues_.size();
    out_.assign(queues_.size() + at(m_.tiles) * kinds_.size(), 0);
  }

  Simulated run() {
    for (Queue& q : queues_) settle(q);
    for (int i = 0; i < m_.tiles; ++i) {
      tiles_.touch(i);
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
  static constexpr std::size_t kMostSlots = 4;
  // Of requests that wait, that of the earliest step goes first, of those that of the lowest index.
  using Key = std::uint64_t;
  static constexpr int kIndexBits = 16;
  static std::size_t index_of(Key key) { return key & ((Key{1} << kIndexBits) - 1); }
  struct Request {
    double ready;
    Key key;
    // Without branches, which no processor predicts in a heap.
    bool operator>(const Request& x) const {
      const unsigned later = ready > x.ready ? 1 : 0;
      const unsigned same = ready == x.ready ? 1 : 0;
      return (later | (same & (index_of(key) > index_of(x.key) ? 1U : 0U))) != 0;
    }
  };
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;

  // That of `index` goes out at `ready`, for a step. One that is out stays as it is until it is served.
  void request(std::size_t index, double ready, std::int64_t step) {
    if (out_[index] != 0 || ready == kNever) return;
    out_[index] = 1;
    const bool waits = index >= own_ || !local(queues_[index]);  // for the channel
    const Key order = waits ? static_cast<Key>(step) + 1 : 0;
    const Key key = order << kIndexBits | index;
    if (ready <= now_) {
      waiting_.push(key);
    } else {
      coming_.push({ready, key});
    }
  }
  // Requests of tiles that share an operand (of one tile, where none do).
  struct Queue {
    Operand operand = kA;
    std::span<const int> tiles;
    const Paths* paths = nullptr;  // multicast
    int group = 0;
    Program::At next;
    bool stays = false;  // the slice of that
    std::size_t slots = 1;
    std::array<std::int64_t, kMostSlots> in_slot = {-1, -1, -1, -1};  // the step that last used a slot; -1: none
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
      q.tiles = std::span(alone_).subspan(at(i), 1);
      if (shared) {
        q.paths = &paths;
        q.tiles = std::span(paths.way().tiles).subspan(at(i) * at(paths.length), at(paths.length));
      }
      q.slots = at(stream.slots);
      for (const int tile : q.tiles) queue_of_[operand][at(tile)] = static_cast<int>(queues_.size());
      queues_.push_back(q);
    }
  }

  bool local(const Queue& q) const { return (q.operand == kA ? s_.a : s_.b).local; }
  std::int64_t& known(int tile, Operand operand) { return operand == kA ? tiles_[tile].a_known : tiles_[tile].b_known; }
  double* slices(int tile, Operand operand) { return operand == kA ? tiles_[tile].a : tiles_[tile].b; }
  bool in_panel(const Queue& q) const {
    return q.operand == kA && stays(q.next.step, program_.block(q.next.block).steps, s_.panel);
  }

  // Goes past slices that stay from the block before, and tells the tiles how far they can go.
  void settle(Queue& q) {
    while (!program_.over(q.next) && in_panel(q) && !program_.opens_row(q.next.block) &&
           q.next.step < program_.block(q.next.block).found) {
      for (const int i : q.tiles) tiles_[i].a[tiles_.slot(q.next.number)] = 0;
      program_.move(q.next);
    }
    q.stays = !program_.over(q.next) && in_panel(q);
    for (const int i : q.tiles) known(i, q.operand) = q.next.number;
  }

  // When the next request of a queue can go out; never: the steps that it waits for have not run.
  double ready(const Queue& q) const {
    if (program_.over(q.next)) return kNever;
    std::int64_t waits_for = q.in_slot[q.slot];
    if (q.stays) {  // the slot of the same slice of the row before
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
    tiles_.each_touched([&](int i) {
      for (const Operand operand : {kA, kB}) {
        const int index = queue_of_[operand][at(i)];
        if (index < 0 || out_[at(index)] != 0) continue;
        const Queue& q = queues_[at(index)];
        request(at(index), ready(q), q.next.number);
      }
      std::size_t own = own_ + at(i) * kinds_.size();
      for (const Kind kind : kinds_) refresh(tiles_[i], kind, own++);
    });
  }

  void refresh(const Tile& t, Kind kind, std::size_t index) {
    if (out_[index] != 0) return;
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
    for (; !coming_.empty() && coming_.top().ready <= now_; coming_.pop()) waiting_.push(coming_.top().key);
    Request next{now_, 0};
    if (!waiting_.empty()) {
      next.key = waiting_.top();
      waiting_.pop();
    } else if (!coming_.empty()) {
      next = coming_.top();
      coming_.pop();
    } else {
      return false;
    }
    while (!serve(index_of(next.key), next.ready)) {
      // The next piece of it, unless another request goes before.
      if ((!waiting_.empty() && waiting_.top() < next.key) || (!coming_.empty() && coming_.top().ready <= now_)) {
        waiting_.push(next.key);
        break;
      }
    }
    return true;
  }

  // False: some of the request is left.
  bool serve(std::size_t index, double ready) {
    ++served_;
    if (index < own_) return load(index, ready);
    const std::size_t own = index - own_;
    return serve(static_cast<int>(own / kinds_.size()), kinds_[own % kinds_.size()], index, ready);
  }

  // False: some of the request is left.
  bool serve(int tile, Kind kind, std::size_t index, double ready) {
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
      if (left > 0) return false;
      tiles_.left(tile, done);
      end_ = std::max(end_, done + m_.dram_latency);
    }
    out_[index] = 0;
    tiles_.touch(tile);
    tiles_.advance(tile);
    return true;
  }

  // The step that waits for the buffer of a block's results.
  std::int64_t needed(std::int64_t i) const {
    const std::int64_t next = i + (s_.results == Results::doubled ? 2 : 1);
    if (next >= program_.blocks()) return program_.steps();
    return s_.results == Results::staged ? program_.last_step(next) : program_.first_step(next);
  }

  // The channel moves bytes that are asked for at `ready`, for a step. Returns when it is done.
  double move_bytes(double ready, double bytes, Lane lane, std::int64_t step) {
    const double seconds = bytes == kPiece ? piece_ : bytes / m_.dram;
    now_ = std::max(now_, ready) + seconds;
    if (timeline_ != nullptr) timeline_->add(lane, now_ - seconds, now_, step);
    dram_busy_ += seconds;
    return now_;
  }

  // False: some of the request is left.
  bool load(std::size_t index, double ready) {
    Queue& q = queues_[index];
    const Step& step = program_.step(q.next);
    const double bytes = q.operand == kA ? step.a : step.b;
    double last = ready;
    if (local(q)) {
      q.first = ready;
    } else if (!load_from_channel(q, ready, bytes, last)) {
      return false;
    }
    out_[index] = 0;
    hand_on(q, q.first, last, bytes);
    if (!q.stays) {
      q.in_slot[q.slot] = q.next.number;
      q.slot = (q.slot + 1) % q.slots;
    }
    const std::int64_t number = q.next.number;
    program_.move(q.next);
    settle(q);
    tiles_.touch(q.tiles.front());
    if ((q.operand == kA ? s_.a : s_.b).feed == Feed::ring) {
      advance_round(q, number);
    } else {
      for (const int i : q.tiles) tiles_.advance(i);
    }
    return true;
  }

  // The next piece of a slice; false as long as more of it is to come. It goes through the port of the tile that asked.
  bool load_from_channel(Queue& q, double ready, double bytes, double& last) {
    if (q.left == 0) {
      q.left = bytes;
      q.first = std::max(now_, ready) + m_.dram_latency;
    }
    const double piece = q.left < 2 * kPiece ? q.left : kPiece;
    last = move_bytes(ready, piece, q.operand == kA ? Lane::load_a : Lane::load_b, q.next.number) + m_.dram_latency;
    q.left -= piece;
    if (q.left > 0) return false;
    if (m_.port > 0) {
      double& free = ports_[at(q.tiles.front())];
      last = std::max(last, std::max(q.first, free) + bytes / m_.port);
      free = last;
      if (m_.multicast_senders && q.paths != nullptr) free += bytes / m_.multicast_rate();
    }
    return true;
  }

  // Parts go round once the last tile of the path has sent for its own.
  void advance_round(const Queue& q, std::int64_t step) {
    const Paths& paths = q.operand == kA ? g_.a : g_.b;
    const auto path =
        std::span(paths.way().tiles).subspan(at(paths.way().group[at(q.group)]) * at(paths.length), at(paths.length));
    if (std::ranges::any_of(path, [&](int i) { return known(i, q.operand) <= step; })) return;
    for (const int i : path) tiles_.advance(i);
  }

  // The first tile of a group passes a slice on along the path while it comes in.
  void hand_on(const Queue& q, double first, double last, double bytes) {
    const std::size_t slot = tiles_.slot(q.next.number);
    slices(q.tiles.front(), q.operand)[slot] = last;
    if (q.tiles.size() == 1) return;
    const Paths::Way& way = q.paths->way();
    const int* reached = &way.reached[at(q.group) * at(q.paths->length)];
    for (std::size_t i = 1; i < q.tiles.size(); ++i) {
      for (int link = reached[i - 1]; link < reached[i]; ++link) {
        tiles_.pass(way.links[at(link)], bytes, first, last);
        const bool drawn = timeline_ != nullptr && q.group == 0 && link == 0;
        if (drawn) timeline_->add(Lane::noc, first, first + bytes / m_.link, q.next.number);
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
  std::vector<int> alone_;        // every tile
  std::vector<int> queue_of_[2];  // of a tile; -1: none
  std::vector<Kind> kinds_;       // that there are
  std::size_t own_ = 0;           // of requests: the first of a tile alone
  // Of queues, then of tiles.
  std::vector<char> out_;  // whether the next one is known, and not yet served
  Earliest<Request> coming_;
  Earliest<Key> waiting_;
  double now_ = 0;                         // when the channel is free
  const double piece_ = kPiece / m_.dram;  // s
  double end_ = 0;                         // of the last store
  std::vector<double> ports_;              // of tiles: when they are free
  double dram_busy_ = 0;
  std::int64_t served_ = 0;
};

// What there may be many of, in the order in which what was left out is added again: the whole sequence; different
// rows, and rows alike; different blocks of a row, and blocks alike; steps of a block.
enum Kind : unsigned char { kRepeats, kRows, kRowsAlike, kRuns, kBlocksAlike, kSteps };
constexpr std::size_t kKinds = 6;
using Caps = std::array<std::int64_t, kKinds>;  // 0: all; of what differs, one of so many
constexpr Caps kLeast = {2, 3, 2, 3, 4, 8};     // of each that are kept
constexpr Caps kFewest = {2, 2, 2, 2, 3, 4};    // the same where as many tiles as there are make that long
constexpr double kLong = 125;                   // requests for every tile

std::int64_t capped(std::int64_t count, std::int64_t cap) { return cap > 0 ? std::min(count, cap) : count; }
bool differ(std::size_t kind) { return kind == kRows || kind == kRuns; }

std::int64_t most_of(const Schedule& s, std::size_t kind) {
  std::int64_t most = 0;
  switch (kind) {
    case kRepeats: return s.repeats;
    case kRows: return static_cast<std::int64_t>(s.sequence.size());
    case kRowsAlike:
      for (const RowRun& r : s.sequence) most = std::max(most, r.count);
      return most;
    case kRuns:
      for (const Row& r : s.rows) most = std::max(most, static_cast<std::int64_t>(r.end - r.begin));
      return most;
    case kBlocksAlike:
      for (const Run& r : s.runs) most = std::max(most, r.count);
      return most;
    default:
      for (const Block& b : s.blocks) most = std::max(most, b.steps);
      return most;
  }
}

// Whether of what differs the i-th is kept: two by two, as every second may be the first of its kind.
bool keeps(std::size_t i, std::int64_t stride) { return stride <= 1 || i / 2 % static_cast<std::size_t>(stride) == 0; }

// Slices that stay keep their share of the steps.
std::int64_t cut_panel(const Schedule& s, std::int64_t cap) {
  const std::int64_t steps = most_of(s, kSteps);
  if (s.panel == 0 || s.panel >= steps || capped(steps, cap) == steps) return s.panel;
  const double share = d(s.panel) / d(steps);
  return std::clamp<std::int64_t>(std::llround(share * d(cap)), 1, cap - 1);
}

// What a block takes besides its steps shrinks as they do, so that the same resource is the bottleneck.
Block cut_steps(Block b, std::int64_t cap) {
  const std::int64_t steps = capped(b.steps, cap);
  const double share = d(steps) / d(b.steps);
  if (b.found < b.steps) b.found = std::llround(d(b.found) * share);
  b.steps = steps;
  for (double Block::*part : {&Block::start, &Block::end, &Block::result, &Block::reduce, &Block::finish}) {
    b.*part *= share;
  }
  return b;
}

Schedule cut(const Schedule& s, const Caps& caps) {
  Schedule result = s;
  result.clear();
  result.repeats = capped(s.repeats, caps[kRepeats]);
  result.panel = cut_panel(s, caps[kSteps]);
  for (std::size_t i = 0; i < s.sequence.size(); ++i) {
    if (!keeps(i, caps[kRows])) continue;
    const Row& row = s.rows[s.sequence[i].row];
    const std::size_t begin = result.runs.size();
    for (std::size_t r = row.begin; r < row.end; ++r) {
      if (!keeps(r - row.begin, caps[kRuns])) continue;
      result.runs.push_back({result.blocks.size(), capped(s.runs[r].count, caps[kBlocksAlike])});
      result.blocks.push_back(cut_steps(s.blocks[s.runs[r].block], caps[kSteps]));
    }
    result.rows.push_back({begin, result.runs.size()});
    result.sequence.push_back({result.rows.size() - 1, capped(s.sequence[i].count, caps[kRowsAlike])});
  }
  return result;
}

// Pieces that the channel moves.
double requests_of(const Machine& machine, const Schedule& s) {
  const auto pieces = [](double bytes) { return bytes > 0 ? std::max(1.0, std::floor(bytes / kPiece)) : 0; };
  const auto of_stream = [&](const Stream& stream, const Paths& paths, double bytes) {
    return requests_of(machine, stream, paths) * pieces(bytes);
  };
  double total = 0;
  s.each_run([&](const Block& b, double blocks, double opening) {
    const double steps = d(b.steps);
    const double found = d(std::min({s.panel, b.found, b.steps}));
    const double a = of_stream(s.a, s.grid->a, b.full.a);
    const double each = (steps - found) * a + steps * of_stream(s.b, s.grid->b, b.full.b) +
                        (pieces(b.start) + pieces(b.end) + pieces(b.result)) * machine.tiles;
    total += each * blocks + found * a * opening;
  });
  return total;
}

// About `cap` steps of which a share can stay that is close to that of the schedule.
std::int64_t fitting_steps(const Schedule& s, std::int64_t steps, std::int64_t cap) {
  if (s.panel == 0 || s.panel >= steps) return cap;
  const double share = d(s.panel) / d(steps);
  const auto off = [&](std::int64_t kept) {
    const double stay = share * d(kept);
    return std::abs(std::clamp(std::round(stay), 1.0, static_cast<double>(kept - 1)) - stay) / d(kept);
  };
  std::int64_t best = cap;
  for (std::int64_t kept = cap - cap / 4; kept <= cap; ++kept) {
    if (off(kept) < off(best)) best = kept;
  }
  return best;
}

// `kept` of a kind, or all where that makes little difference.
void keep(const Schedule& s, std::size_t kind, std::int64_t kept, Caps& caps) {
  const std::int64_t most = most_of(s, kind);
  caps[kind] = most <= kept * 3 / 2 ? 0 : differ(kind) ? (most + kept - 1) / kept : kept;
  if (kind == kSteps && caps[kind] > 0) caps[kind] = fitting_steps(s, most, kept);
}

struct Times {
  double simulated;
  double formula;
};

constexpr std::int64_t kWhole = 5000;  // steps that are drawn from the first to the last

std::int64_t steps_of(const Schedule& s) {
  double steps = 0;
  s.each_run([&](const Block& b, double blocks, double) { steps += blocks * d(b.steps); });
  return steps < 1e15 ? static_cast<std::int64_t>(steps) : std::numeric_limits<std::int64_t>::max();
}

// With few of every kind of step, block and row. Which slices stay depends on how many there are, unless all or none
// do.
Schedule shortened(Schedule s) {
  constexpr std::int64_t kSteps = 24;
  constexpr std::int64_t kAlike = 3;
  const bool cuts_steps =
      s.panel == 0 || std::ranges::all_of(s.blocks, [&](const Block& b) { return s.panel >= b.steps; });
  for (Block& b : s.blocks) b.steps = cuts_steps ? std::min(b.steps, kSteps) : b.steps;
  for (Run& r : s.runs) r.count = std::min(r.count, kAlike);
  for (RowRun& r : s.sequence) r.count = std::min(r.count, kAlike);
  s.repeats = std::min<std::int64_t>(s.repeats, 2);
  return s;
}

}  // namespace

Simulated simulate(const Machine& machine, const Schedule& schedule, Timeline* timeline) {
  return Simulation(machine, schedule, timeline).run();
}

double simulated_seconds(const Machine& machine, const Schedule& s, std::int64_t requests, std::int64_t* served) {
  const auto simulated = [&](const Schedule& some) {
    const Simulated result = simulate(machine, some);
    if (served != nullptr) *served += result.requests;
    return result.seconds;
  };
  const auto times_of = [&](const Schedule& some) {
    return Times{simulated(some), pipeline_time(machine, some).seconds};
  };
  const double most = d(requests);
  const double whole = requests_of(machine, s);
  if (whole <= most) return simulated(s);
  Caps least = {};
  const auto keep_all = [&](const Caps& kept) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) keep(s, kind, kept[kind], least);
    return requests_of(machine, cut(s, least));
  };
  const Caps& fewest = keep_all(kLeast) > kLong * machine.tiles ? kFewest : kLeast;
  // As many of a kind as come to a third of the requests, and half of them.
  struct Grown {
    std::size_t kind;
    Caps few;
    Caps more;
  };
  std::vector<Grown> growths;
  double needed = keep_all(fewest);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (least[kind] == 0) continue;
    Grown g{kind, least, least};
    for (const std::int64_t times : {16, 12, 8, 6, 4, 3, 2}) {
      keep(s, kind, fewest[kind] * times, g.more);
      keep(s, kind, fewest[kind] * times / 2, g.few);
      if (g.more[kind] != g.few[kind] && requests_of(machine, cut(s, g.more)) <= most / 3) break;
    }
    needed += requests_of(machine, cut(s, g.more));
    if (g.few != least) needed += requests_of(machine, cut(s, g.few));
    growths.push_back(g);
  }
  if (whole <= needed) return simulated(s);

  const Times base = times_of(cut(s, least));
  Times total = base;
  Caps open = least;
  for (const Grown& g : growths) {
    const Times longer = times_of(cut(s, g.more));
    const Times shorter = g.few == least ? base : times_of(cut(s, g.few));
    const double grown = longer.formula - shorter.formula;
    const double correction = grown > 0 ? (longer.simulated - shorter.simulated) / grown : 1;
    open[g.kind] = 0;
    const double formula = pipeline_time(machine, cut(s, open)).seconds;
    total.simulated += (formula - total.formula) * correction;
    total.formula = formula;
  }
  // However much was left out, units and channel have all of it to do.
  const PipelineTime parts = pipeline_time(machine, s);
  return std::max({total.simulated, parts.compute, parts.dram});
}

void Timeline::add(Lane lane, double begin, double end, std::int64_t step) {
  if (end <= begin) return;
  std::vector<Bar>& bars = lanes[static_cast<std::size_t>(lane)];
  if (!bars.empty() && bars.back().step == step && bars.back().end >= begin * (1 - 1e-12)) {
    bars.back().end = end;  // the same for the next tile
  } else {
    bars.push_back({begin, end, step});
  }
}

Timeline timeline_of(const Machine& machine, const Schedule& schedule) {
  Timeline result;
  result.steps = steps_of(schedule);
  result.cut = result.steps > kWhole;
  result.seconds = simulate(machine, result.cut ? shortened(schedule) : schedule, &result).seconds;
  for (std::vector<Bar>& lane : result.lanes) {
    std::ranges::stable_sort(lane, [](const Bar& x, const Bar& y) { return x.begin < y.begin; });
  }
  return result;
}

}  // namespace llmperf::mapper::tile
