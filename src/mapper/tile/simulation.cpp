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
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>
#include <vector>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {
namespace {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The order in which every tile goes through the blocks and steps of a schedule. Blocks are written down a few ahead of
// the tiles, so that of what comes alike some can still be left out.
class Program {
 public:
  struct At {
    std::int64_t block = 0;
    std::int64_t step = 0;    // of the block
    std::int64_t number = 0;  // of the step, over all blocks
  };
  struct Placed {
    const Block* block = nullptr;
    std::int64_t first_step = 0;
    std::int64_t row = 0;      // its first block
    std::int64_t run = 0;      // the first block of those alike in the row
    std::int64_t rows = 0;     // the first block of rows alike
    std::size_t kind = 0;      // index into the schedule's blocks
    std::size_t row_kind = 0;  // index into its rows
    bool ends_row = false;
    bool ends_repeat = false;
  };

  explicit Program(const Schedule& s) : s_(s) {
    bool grows = false;  // slices of a row still come when those of the row before are long over
    std::int64_t longest_row = 0;
    for (const Row& rows : s.rows) {
      const Length row = length_of(rows);
      longest_row = std::max(longest_row, row.steps);
      sequence_.blocks += rows.count * row.blocks;
      sequence_.steps += rows.count * row.steps;
    }
    for (const Block& block : s.blocks) {
      longest_ = std::max(longest_, block.steps);
      grows = grows || (s.panel > 0 && block.found < block.steps);
    }
    if (grows) longest_ = std::max(longest_, longest_row);
    all_ = {sequence_.blocks * s.repeats, sequence_.steps * s.repeats};
    reach(0);
  }

  std::int64_t blocks() const { return all_.blocks; }
  std::int64_t steps() const { return all_.steps; }
  // Steps from one use of a slice's slot to the next, at most.
  std::int64_t longest() const { return longest_; }

  const Placed& placed(std::int64_t i) const { return placed_[at(i)]; }
  const Block& block(std::int64_t i) const { return *placed_[at(i)].block; }
  bool opens_row(std::int64_t i) const { return placed_[at(i)].row == i; }
  std::int64_t row(std::int64_t i) const { return placed_[at(i)].row; }  // its first block
  std::int64_t first_step(std::int64_t i) const { return placed_[at(i)].first_step; }
  std::int64_t last_step(std::int64_t i) const { return first_step(i) + block(i).steps - 1; }

  std::int64_t written() const { return static_cast<std::int64_t>(placed_.size()); }  // blocks
  bool over(const At& a) const { return a.block >= blocks(); }
  const Step& step(const At& a) const {
    const Block& b = block(a.block);
    return a.step + 1 == b.steps ? b.last : b.full;
  }
  // Whether the slice of a step is there from an earlier block of the row.
  bool stayed(const At& a) const {
    return s_.panel > 0 && !opens_row(a.block) && a.step < block(a.block).found &&
           stays(a.step, block(a.block).steps, s_.panel);
  }
  void move(At& a) const {
    ++a.number;
    if (++a.step < block(a.block).steps) return;
    a.step = 0;
    ++a.block;
  }

  // Something has got to a block: those are written down that others may ask for meanwhile.
  void reach(std::int64_t block) {
    constexpr std::int64_t kAhead = 3;
    while (written() < std::min(blocks(), block + kAhead)) write();
  }

  // Of the blocks alike that follow one, of the rows alike that follow its row, and of whole sequences, the last one is
  // kept, and what is written down already. Returns how many are left out.
  std::int64_t leave_blocks(const Placed& after) {
    const Block& block = s_.blocks[run_];
    return after.run == run_begin_ ? leave(in_run_, block.count - 1, {1, block.steps}) : 0;
  }
  std::int64_t leave_rows(const Placed& after) {
    const Row& rows = s_.rows[rows_];
    return after.rows == rows_begin_ ? leave(in_rows_, rows.count - 2, length_of(rows)) : 0;
  }
  std::int64_t leave_repeats() { return leave(repeat_, s_.repeats - 2, sequence_); }

 private:
  struct Length {
    std::int64_t blocks = 0;
    std::int64_t steps = 0;
  };

  Length length_of(const Row& row) const {
    Length length;
    for (const Block& block : s_.blocks_of(row)) {
      length.blocks += block.count;
      length.steps += block.count * block.steps;
    }
    return length;
  }

  std::int64_t leave(std::int64_t& here, std::int64_t there, const Length& each) {
    const std::int64_t left = std::max<std::int64_t>(0, there - here);
    here += left;
    all_.blocks -= left * each.blocks;
    all_.steps -= left * each.steps;
    return left;
  }

  void write() {
    if (in_run_ == s_.blocks[run_].count) next_run();
    const Block& block = s_.blocks[run_];
    ++in_run_;
    const bool ends_row = in_run_ == block.count && run_ + 1 == s_.rows[rows_].end;
    const bool ends_repeat = ends_row && in_rows_ + 1 == s_.rows[rows_].count && rows_ + 1 == s_.rows.size();
    placed_.push_back(
        {&block, steps_written_, row_begin_, run_begin_, rows_begin_, run_, rows_, ends_row, ends_repeat});
    steps_written_ += block.steps;
  }

  void next_run() {
    in_run_ = 0;
    run_begin_ = written();
    if (++run_ < s_.rows[rows_].end) return;
    row_begin_ = written();
    if (++in_rows_ == s_.rows[rows_].count) {
      in_rows_ = 0;
      rows_begin_ = written();
      if (++rows_ == s_.rows.size()) {
        rows_ = 0;
        ++repeat_;
      }
    }
    run_ = s_.rows[rows_].begin;
  }

  const Schedule& s_;
  std::vector<Placed> placed_;
  Length sequence_;
  Length all_;  // without what is left out
  std::int64_t longest_ = 1;
  // The block to write next, or the last one of a run.
  std::int64_t repeat_ = 0;
  std::size_t rows_ = 0;      // index into the schedule's rows
  std::int64_t in_rows_ = 0;  // rows alike before its own
  std::size_t run_ = 0;       // index into its blocks
  std::int64_t in_run_ = 0;   // of those alike so many are written
  std::int64_t rows_begin_ = 0;
  std::int64_t row_begin_ = 0;
  std::int64_t run_begin_ = 0;
  std::int64_t steps_written_ = 0;
};

// When alike things were over, one after the other: what each of them takes once that is always the same.
class Pace {
 public:
  // `settling`: s in which what happened before is forgotten.
  explicit Pace(double settling) : settling_(settling) {}

  void restart() { times_.clear(); }
  // `lead`: how far the DRAM channel was ahead then.
  void add(double time, double lead) {
    times_.push_back(time);
    lead_before_ = lead_;
    lead_ = lead;
  }
  // Nothing as long as it is not known. `usual`: what it was elsewhere. `steady`: each is so long that what happens
  // within it has become the same again and again.
  std::optional<double> each(double usual, bool steady) const {
    if (times_.size() < 2) return std::nullopt;
    const double last = since(1);
    if (near(last, usual)) return usual;
    if (steady) return last;
    const double passed = since(times_.size() - 1);
    if (times_.size() < 3 || passed < settling_) return std::nullopt;
    if (near(since(2), 2 * last) && near(last + lead_ - lead_before_, last, 3)) return last;
    // Alike on the mean, as where every second one is another, or as well as is worth while.
    const std::size_t third = times_.size() / 3;
    const double mean = since(2 * third) / d(2 * third);
    const bool settled = times_.size() >= kPatience && passed >= kLong * settling_;
    return third > 1 && (settled || near(since(third) / d(third), mean)) ? std::optional(mean) : std::nullopt;
  }

 private:
  static constexpr std::size_t kPatience = 12;
  static constexpr double kLong = 6;
  static constexpr double kNear = 1e-3;
  static bool near(double x, double y, double times = 1) { return std::abs(x - y) <= times * kNear * y; }
  static double d(std::size_t n) { return static_cast<double>(n); }
  double since(std::size_t before) const { return times_.back() - times_[times_.size() - 1 - before]; }

  double settling_;
  std::vector<double> times_;
  double lead_ = 0;
  double lead_before_ = 0;
};

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kKept = 4;  // blocks whose times are remembered
inline std::size_t kept(std::int64_t block) { return at(block & (kKept - 1)); }

enum Operand : unsigned char { kA, kB };
constexpr std::array kOperands = {kA, kB};
const Stream& stream_of(const Schedule& s, Operand of) { return of == kA ? s.a : s.b; }
const Paths& paths_of(const Grid& g, Operand of) { return of == kA ? g.a : g.b; }

// What a tile asks for by itself: the operands at a block's start and for its results, and that these leave.
enum Kind : unsigned char { kStart, kJoin, kStore };
constexpr double Block::*kBytes[] = {&Block::start, &Block::end, &Block::result};

struct Tile {
  Program::At next;                        // step to run
  std::array<std::int64_t, 2> known = {};  // of an operand the steps whose slices have been sent for and have a time
  std::array<double*, 2> slices = {};      // when these are there
  double* ends = nullptr;                  // of steps
  std::array<std::int64_t, 2> sent = {};   // of a kind the blocks whose operands have been sent for
  double there_at[2][kKept] = {};
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
  // That share an operand, or add up.
  struct Groups {
    explicit Groups(const Paths& paths) : length(paths.length), way(paths.length > 1 ? &paths.way() : nullptr) {}
    int of(int tile) const { return way->group[at(tile)]; }
    std::span<const int> tiles(int group) const {
      return std::span(way->tiles).subspan(at(group) * at(length), at(length));
    }
    int length;
    const Paths::Way* way;
  };

  Tiles(const Machine& machine, const Schedule& schedule, Program& program, Timeline* timeline)
      : m_(machine), s_(schedule), g_(*schedule.grid), program_(program), timeline_(timeline) {
    while (window_ < 2 * program.longest() + 8) window_ *= 2;
    tiles_.resize(at(m_.tiles));
    // Every time is set before it is read.
    if (times_.size() < 3 * tiles_.size() * at(window_)) times_.resize(3 * tiles_.size() * at(window_));
    double* next = times_.data();
    for (Tile& tile : tiles_) {
      for (double** times : {&tile.slices[kA], &tile.slices[kB], &tile.ends}) {
        *times = next;
        next += window_;
      }
    }
    links_.assign(4 * at(m_.mesh_x) * at(m_.mesh_y), 0);
    link_busy_.assign(links_.size(), 0);
    sums_.resize(at(g_.c.groups * kKept));
  }

  const Groups& groups(Operand of) const { return groups_[of]; }
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
  // When the results of a block were ready on all tiles; nothing as long as they are not.
  std::optional<double> done(std::int64_t block) const {
    if (at(block) >= done_.size() || done_[at(block)].tiles < m_.tiles) return std::nullopt;
    return done_[at(block)].end;
  }
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
  struct Done {
    int tiles = 0;
    double end = 0;
  };

  // Of the first tile, where a drawing is asked for.
  void draw(int tile, Lane lane, double end, double seconds, std::int64_t step) {
    if (timeline_ != nullptr && tile == 0) timeline_->add(lane, end - seconds, end, step);
  }
  // Parts of slices go round beside the work on them.
  void draw_round(int i, const Step& s, double begin, std::int64_t number) {
    if (timeline_ == nullptr) return;
    double passed = 0;
    for (const Operand of : kOperands) {
      const bool ring = stream_of(s_, of).used && stream_of(s_, of).feed == Feed::ring;
      if (ring) passed += (of == kA ? s.a : s.b) * (paths_of(g_, of).length - 1);
    }
    const double seconds = passed / m_.link;
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
      for (const Kind kind : {kStart, kJoin}) {
        if (kind == kStart ? t.next.step > 0 : t.next.step + 1 < block.steps) continue;
        if (block.*kBytes[kind] <= 0) t.sent[kind] = std::max(t.sent[kind], b + 1);
        if (t.sent[kind] <= b) return ran;
        data = std::max(data, t.there_at[kind][kept(b)]);
      }
      if (!chained(program_.step(t.next)) && !room(t, t.next, data)) return ran;
      run(i, data, room_at);
      ran = true;
    }
  }

  // When the operands of the next step are there; never: not known yet.
  double operands(const Tile& t, int i) const {
    const std::int64_t n = t.next.number;
    if (n >= t.known[kA] || n >= t.known[kB]) return kNever;
    double data = 0;
    for (const Operand of : kOperands) {
      const Stream& stream = stream_of(s_, of);
      if (!stream.used || (of == kA && program_.stayed(t.next))) continue;
      data = std::max(data, stream.feed == Feed::ring ? round_about(of, i, n) : t.slices[of][slot(n)]);
    }
    return data;
  }

  // Parts of a slice go round: a step begins when all tiles of the path have theirs.
  double round_about(Operand of, int i, std::int64_t step) const {
    double data = 0;
    for (const int tile : groups_[of].tiles(groups_[of].of(i))) {
      const Tile& other = tiles_[at(tile)];
      if (other.known[of] <= step) return kNever;
      data = std::max(data, other.slices[of][slot(step)]);
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
    program_.reach(t.next.block);
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
    const int group = sum_groups_.of(i);
    Sum& sum = sums_[at(group * kKept) + kept(here.block)];
    sum.start = std::max(sum.start, end);
    if (++sum.tiles < g_.c.length) return;
    const double done = reduce(group, sum.start, block.reduce, here.number);
    sum = {};
    for (const int tile : sum_groups_.tiles(group)) {
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
    const Paths::Way& way = *sum_groups_.way;
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
    if (at(b) >= done_.size()) done_.resize(at(b) + 1);
    Done& done = done_[at(b)];
    done.end = std::max(done.end, ready);
    ++done.tiles;
    if (of.result <= 0) left(i, ready);
  }

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  Program& program_;
  Timeline* timeline_;
  std::array<Groups, 2> groups_ = {Groups(g_.a), Groups(g_.b)};
  Groups sum_groups_{g_.c};
  std::int64_t window_ = 1;
  std::vector<Tile> tiles_;
  // Of all tiles; kept from one simulation to the next, as a search runs many.
  static std::vector<double>& workspace() {
    thread_local std::vector<double> times;
    return times;
  }
  std::vector<double>& times_ = workspace();
  std::vector<Done> done_;  // blocks
  std::vector<Sum> sums_;
  std::vector<double> links_;  // when they are free
  std::vector<double> link_busy_;
  std::vector<int> later_;  // tiles that may go on, as their partial sums are complete
  std::vector<int> touched_;
  double end_ = 0;
};

// Leaves out of a program what takes as long as what was executed before it.
class Skipping {
 public:
  Skipping(const Machine& machine, const Schedule& schedule, Program& program)
      : program_(program),
        blocks_(kSettling * machine.dram_latency),
        run_paces_(schedule.blocks.size()),
        row_paces_(schedule.rows.size()) {}

  double skipped() const { return skipped_; }  // s
  std::int64_t done() const { return done_; }  // blocks that are over on all tiles

  // The next one is over at `end`, when the channel was free at `now`.
  void follow(double end, double now) {
    const Program::Placed block = program_.placed(done_);
    const auto leave = [&](Pace& pace, double& usual, const auto& some) {
      pace.add(end + skipped_, now - end);
      const std::optional<double> each = pace.each(usual, within_);
      if (!each) return;
      usual = *each;
      const std::int64_t left = some();
      if (left == 0) return;
      skipped_ += static_cast<double>(left) * *each;
      within_ = true;
      pace.restart();
    };
    if (done_ == block.run) blocks_.restart();
    if (done_ == block.row) within_ = false;
    ++done_;
    leave(blocks_, run_paces_[block.kind], [&] { return program_.leave_blocks(block); });
    if (!block.ends_row) return;
    if (block.row == block.rows) rows_.restart();
    leave(rows_, row_paces_[block.row_kind], [&] { return program_.leave_rows(block); });
    if (block.ends_repeat) leave(repeats_, repeat_pace_, [&] { return program_.leave_repeats(); });
  }

 private:
  static constexpr double kSettling = 3;  // latencies
  Program& program_;
  double skipped_ = 0;
  bool within_ = false;  // the row something was left out
  std::int64_t done_ = 0;
  Pace blocks_;
  Pace rows_ = blocks_;
  Pace repeats_ = blocks_;
  std::vector<double> run_paces_;  // of the schedule's blocks, in an earlier row; 0: not known
  std::vector<double> row_paces_;  // of its rows
  double repeat_pace_ = 0;
};

class Simulation {
 public:
  // `skips`: of what comes alike only as much is executed as says how long it takes.
  Simulation(const Machine& machine, const Schedule& schedule, Timeline* timeline, bool skips = false)
      : m_(machine),
        s_(schedule),
        g_(*schedule.grid),
        timeline_(timeline),
        program_(schedule),
        tiles_(machine, schedule, program_, timeline) {
    if (skips) skipping_.emplace(machine, schedule, program_);
    queue_of_[kA].assign(at(m_.tiles), -1);
    queue_of_[kB] = queue_of_[kA];
    alone_.resize(at(m_.tiles));
    std::iota(alone_.begin(), alone_.end(), 0);
    for (const Operand of : kOperands) open(of);
    for (const Kind kind : {kStart, kJoin}) {
      const auto has = [&](const Block& b) { return b.*kBytes[kind] > 0; };
      if (std::ranges::any_of(s_.blocks, has)) kinds_.push_back(kind);
    }
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
    keep_up();
    refresh();
    while (serve()) {
      keep_up();
      refresh();
    }
    Simulated result;
    result.seconds = std::max(end_, tiles_.end()) + (skipping_ ? skipping_->skipped() : 0);
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
    const Paths::Way* way = nullptr;  // multicast
    int group = 0;
    Program::At next;
    bool stays = false;  // the slice of that
    std::size_t slots = 1;
    std::array<std::int64_t, kMostSlots> in_slot = {-1, -1, -1, -1};  // the step that last used a slot; -1: none
    std::size_t slot = 0;
    std::size_t slowest = 0;  // of the tiles: one that was waited for
    double left = 0;          // bytes of a request that has begun
    double first = 0;         // when its first byte came
  };

  void open(Operand operand) {
    const Stream& stream = stream_of(s_, operand);
    if (!stream.used) {
      for (int i = 0; i < m_.tiles; ++i) tiles_[i].known[operand] = program_.steps();
      return;
    }
    const bool shared = stream.feed == Feed::multicast;
    const int count = shared ? paths_of(g_, operand).groups : m_.tiles;
    for (int i = 0; i < count; ++i) {
      Queue q;
      q.operand = operand;
      q.group = i;
      q.tiles = std::span(alone_).subspan(at(i), 1);
      if (shared) {
        q.way = tiles_.groups(operand).way;
        q.tiles = tiles_.groups(operand).tiles(i);
      }
      q.slots = at(stream.slots);
      for (const int tile : q.tiles) queue_of_[operand][at(tile)] = static_cast<int>(queues_.size());
      queues_.push_back(q);
    }
  }

  bool written(const Program::At& a) const { return a.block < program_.written(); }
  bool local(const Queue& q) const { return stream_of(s_, q.operand).local; }
  bool in_panel(const Queue& q) const {
    return q.operand == kA && stays(q.next.step, program_.block(q.next.block).steps, s_.panel);
  }

  // Goes past slices that stay from the block before, as far as blocks are written, and tells the tiles how far they
  // can go.
  void settle(Queue& q) {
    while (written(q.next) && q.operand == kA && program_.stayed(q.next)) program_.move(q.next);
    q.stays = written(q.next) && in_panel(q);
    for (const int i : q.tiles) tiles_[i].known[q.operand] = q.next.number;
  }

  // Follows the program: what has come to its end finds more of it, and of what comes alike some is left out.
  void keep_up() {
    while (settled_ < program_.written()) {
      settled_ = program_.written();
      for (Queue& q : queues_) {
        const std::int64_t before = q.next.number;
        settle(q);
        if (q.next.number == before) continue;
        for (const int i : q.tiles) {
          tiles_.touch(i);
          tiles_.advance(i);
        }
      }
    }
    if (!skipping_) return;
    while (const auto end = skipping_->done() < program_.written() ? tiles_.done(skipping_->done()) : std::nullopt) {
      skipping_->follow(*end, now_);
    }
  }

  // When the next request of a queue can go out; never: the steps that it waits for have not run.
  double ready(Queue& q) const {
    if (!written(q.next)) return kNever;
    std::int64_t waits_for = q.in_slot[q.slot];
    if (q.stays) {  // the slot of the same slice of the row before
      const std::int64_t before = program_.row(q.next.block) - 1;
      waits_for =
          before < 0 ? -1 : program_.first_step(before) + std::min(q.next.step, program_.block(before).steps - 1);
    }
    if (waits_for < 0) return 0;
    if (tiles_[q.tiles[q.slowest]].ended() <= waits_for) return kNever;
    double ready = 0;
    for (std::size_t i = 0; i < q.tiles.size(); ++i) {
      const Tile& tile = tiles_[q.tiles[i]];
      if (tile.ended() <= waits_for) {
        q.slowest = i;
        return kNever;
      }
      ready = std::max(ready, tile.ends[tiles_.slot(waits_for)]);
    }
    return ready;
  }

  // Works out the requests of tiles that have run, and of their queues.
  void refresh() {
    tiles_.each_touched([&](int i) {
      for (const Operand operand : kOperands) {
        const int index = queue_of_[operand][at(i)];
        if (index < 0 || out_[at(index)] != 0) continue;
        Queue& q = queues_[at(index)];
        request(at(index), ready(q), q.next.number);
      }
      std::size_t own = own_ + at(i) * kinds_.size();
      for (const Kind kind : kinds_) refresh(tiles_[i], kind, own++);
    });
  }

  void refresh(const Tile& t, Kind kind, std::size_t index) {
    if (out_[index] != 0) return;
    if (kind != kStore) {
      const std::int64_t b = t.sent[kind];
      if (b >= program_.blocks() || program_.block(b).*kBytes[kind] <= 0 || (kind == kJoin && t.results < b)) return;
      request(index, kind == kStart ? room_for_start(t) : b == 0 ? 0 : t.finished[kept(b - 1)], needed_at(kind, b));
      return;
    }
    if (t.stored < t.results) request(index, t.finished[kept(t.stored)], needed(t.stored));
  }

  // When the operand of an earlier block's start has made room for the next one.
  double room_for_start(const Tile& t) const {
    const std::int64_t before = t.sent[kStart] - s_.start_slots;
    if (before < 0) return 0;
    const std::int64_t last = program_.last_step(before);
    if (t.ended() <= last) return kNever;
    return t.ends[tiles_.slot(last)];
  }
  // The step that needs an operand of a block.
  std::int64_t needed_at(Kind kind, std::int64_t block) const {
    return kind == kStart ? program_.first_step(block) : program_.last_step(block);
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
    if (kind != kStore) {
      const std::int64_t b = t.sent[kind]++;
      const Lane lane = kind == kStart ? Lane::load_b : Lane::joined;
      t.there_at[kind][kept(b)] =
          move_bytes(ready, program_.block(b).*kBytes[kind], lane, needed_at(kind, b)) + m_.dram_latency;
    } else {
      double& left = t.to_store[kept(t.stored)];
      const double bytes = undisturbed(ready, left);
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

  // Bytes of what is left of a request that begins at `ready`, which move before another one can go first: in pieces,
  // of which the last one is not the least.
  double undisturbed(double ready, double left) const {
    const double full = std::floor(left / kPiece) - 1;
    if (full < 1 || coming_.empty()) return left;
    const double begun = std::max(1.0, std::ceil((coming_.top().ready - std::max(now_, ready)) / piece_));
    return begun > full ? left : begun * kPiece;
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
    program_.reach(q.next.block);
    settle(q);
    tiles_.touch(q.tiles.front());
    if (stream_of(s_, q.operand).feed == Feed::ring) {
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
    const double piece = undisturbed(ready, q.left);
    last = move_bytes(ready, piece, q.operand == kA ? Lane::load_a : Lane::load_b, q.next.number) + m_.dram_latency;
    q.left -= piece;
    if (q.left > 0) return false;
    if (m_.port > 0) {
      double& free = ports_[at(q.tiles.front())];
      last = std::max(last, std::max(q.first, free) + bytes / m_.port);
      free = last;
      if (m_.multicast_senders && q.way != nullptr) free += bytes / m_.multicast_rate();
    }
    return true;
  }

  // Parts go round once the last tile of the path has sent for its own.
  void advance_round(const Queue& q, std::int64_t step) {
    const Tiles::Groups& groups = tiles_.groups(q.operand);
    const std::span<const int> path = groups.tiles(groups.of(q.group));
    if (std::ranges::any_of(path, [&](int i) { return tiles_[i].known[q.operand] <= step; })) return;
    for (const int i : path) tiles_.advance(i);
  }

  // The first tile of a group passes a slice on along the path while it comes in.
  void hand_on(const Queue& q, double first, double last, double bytes) {
    const std::size_t slot = tiles_.slot(q.next.number);
    tiles_[q.tiles.front()].slices[q.operand][slot] = last;
    if (q.tiles.size() == 1) return;
    const Paths::Way& way = *q.way;
    const int* reached = &way.reached[at(q.group) * q.tiles.size()];
    for (std::size_t i = 1; i < q.tiles.size(); ++i) {
      for (int link = reached[i - 1]; link < reached[i]; ++link) {
        tiles_.pass(way.links[at(link)], bytes, first, last);
        const bool drawn = timeline_ != nullptr && q.group == 0 && link == 0;
        if (drawn) timeline_->add(Lane::noc, first, first + bytes / m_.link, q.next.number);
      }
      tiles_[q.tiles[i]].slices[q.operand][slot] = last;
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
  std::int64_t settled_ = 0;          // blocks that were written when queues were last told
  std::optional<Skipping> skipping_;  // nothing: every step is executed
};

// What is different all along, and steps, of which a block may have many: only some of them are executed.
struct Part {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // of a block, at most
  std::int64_t rows = 1;                                          // of so many different ones one
  std::int64_t runs = 1;                                          // the same in a row
  bool operator==(const Part&) const = default;
};

std::int64_t most_steps(const Schedule& s) {
  std::int64_t most = 0;
  for (const Block& b : s.blocks) most = std::max(most, b.steps);
  return most;
}

// Whether of what differs the i-th is kept: two by two, as every second may be the first of its kind.
bool keeps(std::size_t i, std::int64_t stride) { return i / 2 % static_cast<std::size_t>(stride) == 0; }

// Slices that stay keep their share of the steps.
std::int64_t cut_panel(const Schedule& s, std::int64_t steps) {
  const std::int64_t most = most_steps(s);
  if (s.panel == 0 || s.panel >= most || most <= steps) return s.panel;
  return std::clamp<std::int64_t>(std::llround(d(s.panel) / d(most) * d(steps)), 1, steps - 1);
}

// What a block takes besides its steps shrinks as they do, so that the same resource is the bottleneck.
Block cut_steps(Block b, std::int64_t most) {
  const std::int64_t steps = std::min(b.steps, most);
  const double share = d(steps) / d(b.steps);
  if (b.found < b.steps) b.found = std::llround(d(b.found) * share);
  b.steps = steps;
  for (double Block::*part : {&Block::start, &Block::end, &Block::result, &Block::reduce, &Block::finish}) {
    b.*part *= share;
  }
  return b;
}

Schedule cut(const Schedule& s, const Part& part) {
  Schedule result = s;
  result.clear();
  result.repeats = s.repeats;
  result.panel = cut_panel(s, part.steps);
  for (std::size_t i = 0; i < s.rows.size(); ++i) {
    if (!keeps(i, part.rows)) continue;
    const Row& row = s.rows[i];
    for (std::size_t b = row.begin; b < row.end; ++b) {
      if (keeps(b - row.begin, part.runs)) result.blocks.push_back(cut_steps(s.blocks[b], part.steps));
    }
    result.end_row(row.count);
  }
  return result;
}

// Pieces that the channel moves until it is known how long the rest takes.
double requests_of(const Machine& machine, const Schedule& s) {
  constexpr std::int64_t kBlocksAlike = 7;
  constexpr std::int64_t kRowsAlike = 4;
  const auto pieces = [](double bytes) { return bytes > 0 ? std::max(1.0, std::floor(bytes / kPiece)) : 0; };
  const auto of_stream = [&](const Stream& stream, const Paths& paths, double bytes) {
    return requests_of(machine, stream, paths) * pieces(bytes);
  };
  double total = 0;
  for (const Row& rows : s.rows) {
    double row = 0;
    for (const Block& b : s.blocks_of(rows)) {
      const double steps = d(b.steps);
      const double a = of_stream(s.a, s.grid->a, b.full.a);
      const double found = d(std::min({s.panel, b.found, b.steps}));
      const double each = (steps - found) * a + steps * of_stream(s.b, s.grid->b, b.full.b) +
                          (pieces(b.start) + pieces(b.end) + pieces(b.result)) * machine.tiles;
      row += each * d(std::min(b.count, kBlocksAlike)) + (&b == &s.blocks[rows.begin] ? found * a : 0);
    }
    total += row * d(std::min(rows.count, kRowsAlike));
  }
  return total * d(std::min(s.repeats, kRowsAlike));
}

// What is executed of a schedule so that it takes about so many requests.
Part part_of(const Machine& machine, const Schedule& s, double requests) {
  constexpr std::int64_t kFewSteps = 12;
  constexpr std::int64_t kFewRows = 8;
  Part part;
  std::int64_t steps = most_steps(s);
  auto rows = static_cast<std::int64_t>(s.rows.size());
  std::int64_t runs = 0;
  for (const Row& r : s.rows) runs = std::max(runs, static_cast<std::int64_t>(r.end - r.begin));
  double needed = requests_of(machine, s);
  while (needed > requests) {
    if (steps > kFewSteps) {
      part.steps = steps = std::max(kFewSteps, steps / 2);
    } else if (std::max(rows, runs) > kFewRows) {
      std::int64_t& most = rows > kFewRows ? rows : runs;
      (rows > kFewRows ? part.rows : part.runs) *= 2;
      most = (most + 1) / 2;
    } else {
      break;
    }
    needed = requests_of(machine, cut(s, part));
  }
  return part;
}

constexpr std::int64_t kWhole = 5000;  // steps that are drawn from the first to the last

std::int64_t steps_of(const Schedule& s) {
  double steps = 0;
  s.each_block([&](const Block& b, double blocks, double) { steps += blocks * d(b.steps); });
  return steps < 1e15 ? static_cast<std::int64_t>(steps) : std::numeric_limits<std::int64_t>::max();
}

// With few of every kind of step, block and row. Which slices stay depends on how many there are, unless all or none
// do.
Schedule shortened(Schedule s) {
  constexpr std::int64_t kSteps = 24;
  constexpr std::int64_t kAlike = 3;
  const bool cuts_steps =
      s.panel == 0 || std::ranges::all_of(s.blocks, [&](const Block& b) { return s.panel >= b.steps; });
  for (Block& b : s.blocks) {
    if (cuts_steps) b.steps = std::min(b.steps, kSteps);
    b.count = std::min(b.count, kAlike);
  }
  for (Row& row : s.rows) row.count = std::min(row.count, kAlike);
  s.repeats = std::min<std::int64_t>(s.repeats, 2);
  return s;
}

}  // namespace

Simulated simulate(const Machine& machine, const Schedule& schedule, Timeline* timeline) {
  return Simulation(machine, schedule, timeline).run();
}

double simulated_seconds(const Machine& machine, const Schedule& s, std::int64_t requests, std::int64_t* served) {
  const auto executed = [&](const Schedule& some, bool skips) {
    const Simulated result = Simulation(machine, some, nullptr, skips).run();
    if (served != nullptr) *served += result.requests;
    return result.seconds;
  };
  if (traffic_of(machine, s).requests <= d(requests)) return executed(s, false);
  const Part part = part_of(machine, s, d(requests));
  const PipelineTime whole = pipeline_time(machine, s);
  double seconds = 0;
  if (part == Part{}) {
    seconds = executed(s, true);
  } else {
    // Rows that are left out are no beginning and no end, where the closed form is off; steps that are left out are as
    // others of their block.
    const Schedule some = cut(s, part);
    const double few_steps = pipeline_time(machine, cut(s, {.steps = part.steps})).seconds;
    const double few = pipeline_time(machine, some).seconds;
    seconds = (executed(some, true) + few_steps - few) * (whole.seconds / few_steps);
  }
  // However much was left out, units and channel have all of it to do.
  return std::max({seconds, whole.compute, whole.dram});
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
