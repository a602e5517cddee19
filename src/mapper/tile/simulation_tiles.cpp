#include "mapper/tile/simulation_tiles.h"

#include <algorithm>

namespace llmperf::mapper::tile {

Tiles::Tiles(const Machine& machine, const Schedule& schedule, const Program& program, Timeline* timeline)
    : m_(machine), s_(schedule), g_(*schedule.grid), program_(program), timeline_(timeline) {
  while (window_ < 2 * program.longest() + 8) window_ *= 2;
  tiles_.resize(at(m_.tiles));
  for (Tile& tile : tiles_) {
    tile.a.assign(at(window_), 0);
    tile.b.assign(at(window_), 0);
    tile.ends.assign(at(window_), 0);
  }
  links_.assign(4 * at(m_.mesh_x) * at(m_.mesh_y), 0);
  link_busy_.assign(links_.size(), 0);
  sums_.resize(at(g_.c.groups * kKept));
}

void Tiles::pass(int link, double bytes, double& first, double& last) {
  double& free = links_[at(link)];
  first = std::max(first + m_.hop_latency, free);
  last = std::max(last + m_.hop_latency, first + bytes / m_.link);
  free = first + bytes / m_.link;
  link_busy_[at(link)] += bytes / m_.link;
}

double Tiles::busiest_link() const { return *std::max_element(link_busy_.begin(), link_busy_.end()); }

void Tiles::left(int tile, double time) {
  Tile& t = tiles_[at(tile)];
  t.stored_at[kept(t.stored)] = time;
  ++t.stored;
  touched_.push_back(tile);
}

void Tiles::advance(int tile) {
  if (!advance_one(tile)) return;
  touched_.push_back(tile);
}

// When the operands of the next step are there; never: not known yet.
double Tiles::operands(const Tile& t, int i) const {
  const std::int64_t n = t.next.number;
  if (n >= t.a_known || n >= t.b_known) return kNever;
  double data = std::max(t.a[slot(n)], t.b[slot(n)]);
  if (s_.a.feed == Feed::ring && s_.a.used) data = std::max(data, round_about(g_.a, i, n, true));
  if (s_.b.feed == Feed::ring && s_.b.used) data = std::max(data, round_about(g_.b, i, n, false));
  return data;
}

bool Tiles::advance_one(int i) {
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

// Parts of a slice go round: a step begins when all tiles of the path have theirs.
double Tiles::round_about(const Paths& paths, int i, std::int64_t step, bool is_a) const {
  double data = 0;
  const int group = paths.group[at(i)];
  for (int j = group * paths.length; j < (group + 1) * paths.length; ++j) {
    const Tile& other = tiles_[at(paths.tiles[at(j)])];
    if ((is_a ? other.a_known : other.b_known) <= step) return kNever;
    data = std::max(data, (is_a ? other.a : other.b)[slot(step)]);
  }
  return data;
}

// Whether the matrix unit works before and after the vector unit, beside it. Then scores wait for no room, only the
// second product does.
bool Tiles::chained(const Step& s) const { return s_.overlapped && s.before > 0; }

// Whether the program runs the first product of the next step ahead of the second of this one: where that cannot lock
// up, as the operands of the next do not need the room of this one's.
bool Tiles::goes_ahead(const At& here) const {
  const std::int64_t next = here.block + 1;
  if (s_.a.used && s_.a.slots == 1) return false;
  if (s_.b.used && s_.b.slots == 1) return false;
  const std::int64_t steps = program_.block(here.block).steps;
  if (here.step + 1 < steps) return true;
  if (next >= program_.blocks() || s_.start_slots == 1) return false;
  return s_.panel == 0 || steps > 1 || !program_.opens_row(next);
}

// Whether the results of earlier blocks leave room for those of a step; raises `data` to when they do.
bool Tiles::room(const Tile& t, const At& here, double& data) const {
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
void Tiles::run(int i, double data, double room_at) {
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

// Parts of slices go round beside the work on them.
void Tiles::draw_round(int i, const Step& s, double begin, std::int64_t number) {
  const auto passed = [](const Stream& stream, const Paths& paths, double part) {
    return stream.used && stream.feed == Feed::ring ? part * (paths.length - 1) : 0;
  };
  const double seconds = (passed(s_.a, g_.a, s.a) + passed(s_.b, g_.b, s.b)) / m_.link;
  draw(i, Lane::noc, begin + seconds, seconds, number);
}

void Tiles::flush(int i, double room_at) {
  Tile& t = tiles_[at(i)];
  const At here = t.pending_at;
  t.pending = false;
  t.matrix = std::max({t.matrix, t.pending_ready, room_at}) + program_.step(here).after;
  draw(i, Lane::matrix, t.matrix, program_.step(here).after, here.number);
  end_step(i, here, t.matrix);
}

void Tiles::end_step(int i, const At& here, double end) {
  tiles_[at(i)].ends[slot(here.number)] = end;
  if (timeline_ != nullptr && i == 0) timeline_->ends.push_back(end);
  const Block& block = program_.block(here.block);
  if (here.step + 1 < block.steps) return;
  if (g_.c.length == 1 || block.reduce == 0) {
    finish(i, here.block, end);
    return;
  }
  // Partial sums: when the last tile of the group has its own.
  const int group = g_.c.group[at(i)];
  Sum& sum = sums_[at(group * kKept) + kept(here.block)];
  sum.start = std::max(sum.start, end);
  if (++sum.tiles < g_.c.length) return;
  const double done = reduce(group, sum.start, block.reduce, here.number);
  sum = {};
  for (int j = group * g_.c.length; j < (group + 1) * g_.c.length; ++j) {
    const int tile = g_.c.tiles[at(j)];
    finish(tile, here.block, done);
    if (tile != i) later_.push_back(tile);
  }
  while (!later_.empty()) {
    const int tile = later_.back();
    later_.pop_back();
    touched_.push_back(tile);
    advance(tile);
  }
}

// Every tile passes `bytes` on along the path of its group.
double Tiles::reduce(int group, double start, double bytes, std::int64_t step) {
  const std::size_t first = at(group) * at(g_.c.length);
  double done = start;
  for (int link = g_.c.reached[first]; link < g_.c.reached[first + at(g_.c.length) - 1]; ++link) {
    const auto id = at(g_.c.links[at(link)]);
    const double begin = std::max(start, links_[id]);
    links_[id] = begin + bytes / m_.link;
    link_busy_[id] += bytes / m_.link;
    done = std::max(done, links_[id]);
    const bool drawn = group == g_.c.group[0] && link == g_.c.reached[first];
    if (drawn) draw(0, Lane::noc, links_[id], bytes / m_.link, step);
  }
  return done + (g_.c.length - 1) * m_.hop_latency;
}

void Tiles::finish(int i, std::int64_t b, double end) {
  Tile& t = tiles_[at(i)];
  const Block& of = program_.block(b);
  double ready = end;
  if (of.finish > 0) {
    // Where results leave through the vector unit during the last step, it works beside the matrix unit.
    const bool beside = s_.results == Results::staged && of.reduce == 0;
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

}  // namespace llmperf::mapper::tile
