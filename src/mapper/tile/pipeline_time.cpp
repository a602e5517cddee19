// Two clocks run through the blocks: that of the tiles and that of the DRAM channel.
//
// A block takes the tiles W, the sum over its steps (CostModel), then what happens to its results before the next
// block can go on, F; and the channel D, everything that it moves for the block: slices, and results of the block
// before. So
//
//   channel' = max(channel, tiles - what the slots let it run ahead) + D
//   tiles'   = max(tiles + W + F, channel' + the last step)
//
// Panel slices may be loaded one block early, in the time that the channel was idle then. Before the first block comes
// the load of the first step, after the last block come its results.
#include <algorithm>
#include <array>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {
namespace {

constexpr double kFarApart = 1e30;

double chain_of(const Step& s) { return s.before + s.vector + s.after; }  // while which a slot is in use

double passed_on(double bytes, const Stream& stream, const Paths& paths) {
  if (!stream.used || stream.feed == Feed::direct) return 0;
  return stream.feed == Feed::ring ? bytes * (paths.length - 1) : bytes;
}

// Of a block that opens a row, or of one that finds slices that stay.
struct Cost {
  double work = 0;      // of the tiles, s
  double units = 0;     // the same when the slices of the first step are there
  double asked = 0;     // of that, what steps wait for slices that are asked for at the very start
  double streamed = 0;  // by the channel, s
  double panel = 0;
  double store = 0;
  double noc = 0;
  double next = 0;  // by the channel for one step
};

struct BlockCost {
  std::array<Cost, 2> of = {};  // [opens the row]
  double first = 0;             // the first step
  double last = 0;              // the last step
  double lead = 0;              // from the operands of the last step to the block's end
  // What the units lose where a block's first step does not begin in the last of the block before; the same where only
  // the first block of a row does not.
  double apart_units = 0;
  double row_units = 0;
  double hidden = 0;  // of the vector unit, beside the matrix unit
  double reduce = 0;  // of partial sums; of that the busiest link
  double summing = 0;
  double join = 0;    // load of an operand for the results
  double start = 0;   // own load of an operand with one buffer
  bool tied = false;  // tiles wait for each other
  double apart = 0;   // that these can be
};

// A step takes the tiles the longest of: its units (their sum where they do not overlap), its hand-overs on the busiest
// link, and the wait for its slots. With s slots a slice is asked for s steps ahead, so that s steps take at least
// the units' time, the load and the latency; with one slot every step takes that. Tiles that share an operand wait for
// each other: "the load" is that of all tiles of such a set. Sets do not wait for each other and get out of step, so
// that one loads or stores while another computes.
class CostModel {
 public:
  static constexpr int kManySlots = 8;

  CostModel(const Machine& machine, const Schedule& schedule) : m_(machine), s_(schedule), g_(*schedule.grid) {
    a_requests_ = requests_of(m_, s_.a, g_.a);
    b_requests_ = requests_of(m_, s_.b, g_.b);
    const int a_sharers = s_.a.used && s_.a.feed != Feed::direct ? g_.a.length : 1;
    const int b_sharers = s_.b.used && s_.b.feed != Feed::direct ? g_.b.length : 1;
    sharing_ = sharing(a_sharers, b_sharers);
    // Slices that stay tie no tiles together, unless they go round.
    staying_ = sharing(s_.a.feed == Feed::ring ? a_sharers : 1, b_sharers);
    a_latency_ = latency(s_.a, g_.a);
    b_latency_ = latency(s_.b, g_.b);
    const bool a_streams =
        s_.a.used && std::ranges::any_of(s_.blocks, [&](const Block& b) { return s_.panel < b.steps; });
    slots_ = std::min(a_streams ? s_.a.slots : kManySlots, s_.b.used ? s_.b.slots : kManySlots);
  }

  // `opens`, `follows`: whether the block is ever the first of a row; whether it is another.
  BlockCost cost(const Block& b, bool opens, bool follows) const {
    BlockCost result;
    if (follows) result.of[0] = cost_of(b, false);
    if (opens) result.of[1] = cost_of(b, true);
    const auto steps = static_cast<double>(b.steps);
    const Step& step = b.first();
    result.first = compute_of(step);
    result.last = compute_of(b.last);
    result.lead = result.last;
    if (b.last.before > 0) {
      result.lead = chain_of(b.last);
      if (s_.overlapped && ahead()) {
        const double lost = chain_of(step) - compute_of(step);
        if (s_.start_slots == 1) {
          result.apart_units = lost;
        } else if (s_.panel > 0 && b.steps == 1) {
          result.row_units = lost;
        }
        result.hidden = (steps - 1) * (compute_of(b.full) - b.full.vector) + result.last - b.last.vector;
      }
    }
    if (b.reduce > 0) {
      result.summing = g_.c_load * b.reduce / m_.link;
      result.reduce = result.summing + (g_.c.length - 1) * m_.hop_latency;
    }
    result.join = m_.tiles * b.end / m_.dram;
    result.apart = kFarApart;
    const Sharing& together = s_.panel < b.steps ? sharing_ : staying_;
    result.tied = together.sets < m_.tiles;
    if (result.tied) {
      // Tiles that share an operand are at most its slots apart, in steps, or in blocks where these have fewer steps.
      const Cost& c = result.of[follows ? 0 : 1];
      const double apart = s_.panel < b.steps ? steps / (steps - static_cast<double>(s_.panel)) : 0;
      const double own = c.work + result.reduce + b.finish + c.store / m_.tiles;
      const double each = b.steps > together.slots ? period(step, apart, noc_of(step, true), together) : own / steps;
      result.apart = (together.slots - (b.steps == 1 ? 0 : 1)) * each;
    }
    if (s_.start_slots == 1 && b.start > 0) {
      result.start = m_.tiles * b.start / m_.dram / sharing_.sets + m_.dram_latency;
    }
    return result;
  }

  // Loads of one step by the channel, s.
  double a_load(const Step& step) const { return a_requests_ * step.a / m_.dram; }
  double b_load(const Step& step) const { return b_requests_ * step.b / m_.dram; }
  int a_requests() const { return a_requests_; }
  int b_requests() const { return b_requests_; }
  double a_latency() const { return a_latency_; }
  double b_latency() const { return b_latency_; }
  double sets() const { return sharing_.sets; }  // of tiles with an operand in common
  int slots() const { return slots_; }           // of the streams that run through slots, the fewest
  // Whether the first product of a step begins before the second of the one before it, in the same block.
  bool ahead() const { return !(s_.a.used && s_.a.slots == 1) && !(s_.b.used && s_.b.slots == 1); }

 private:
  // Tiles that wait for each other.
  struct Sharing {
    double sets = 1;         // of tiles with an operand in common
    double loose = 1;        // the same of operands with one slot: within such a set tiles are never a step apart
    int slots = kManySlots;  // of operands in common
  };
  Sharing sharing(int a, int b) const {
    Sharing result;
    result.sets = static_cast<double>(m_.tiles) / (a * b);
    result.loose = static_cast<double>(m_.tiles) / ((s_.a.slots == 1 ? a : 1) * (s_.b.slots == 1 ? b : 1));
    result.slots = std::min(a > 1 ? s_.a.slots : kManySlots, b > 1 ? s_.b.slots : kManySlots);
    return result;
  }

  double latency(const Stream& stream, const Paths& paths) const {
    if (!stream.used) return 0;
    const int hops = stream.feed == Feed::multicast ? paths.hops : 0;
    return (stream.local ? 0 : m_.dram_latency) + hops * m_.hop_latency;
  }

  double compute_of(const Step& s) const {
    const double matrix = s.before + s.after;
    return s_.overlapped ? std::max(matrix, s.vector) : matrix + s.vector;
  }

  // Vector work between two products, beside the products of other steps.
  bool chained(const Step& s) const { return s_.overlapped && s.before > 0; }

  double noc_of(const Step& s, bool loads_a) const {
    const double a = loads_a || s_.a.feed == Feed::ring ? link_bytes(m_, s_.a, passed_on(s.a, s_.a, g_.a)) : 0;
    const double b = link_bytes(m_, s_.b, passed_on(s.b, s_.b, g_.b));
    if (a + b <= 0) return 0;
    double most = 0;
    for (const LinkLoad& load : g_.loads) most = std::max(most, load.a * a + load.b * b);
    return most / m_.link;
  }

  // Of the tiles, without waiting for the channel's other business. Of every `apart` slices of A one goes through the
  // slots, 0: none.
  double period(const Step& s, double apart, double noc, const Sharing& sharing) const {
    const double chain = chain_of(s);
    double single = 0;  // what cannot be loaded while the units work
    double latency = 0;
    double most = std::max(compute_of(s), noc);
    // A slice is handed on as it comes, but takes a link `link`.
    const auto wait = [&](double slots, double load, double link, double wait_latency) {
      if (load <= 0 && link <= 0) return;
      if (slots == 1) {
        single += std::max(load / sharing.loose, link);
        latency = std::max(latency, wait_latency);
        return;
      }
      most = std::max(most, (chain + std::max(load / sharing.sets, link) + wait_latency) / slots);
      if (!chained(s)) return;
      // The first product of a step comes before the second of the one before.
      const double own = std::max(load / std::max(sharing.sets, sharing_.sets), link);
      most = std::max(most, (s.before + s.after + own + wait_latency) / (slots - 1));
    };
    // Through a tile's own port, and on to the others of its group.
    const auto handed_on = [&](double bytes, const Stream& stream) {
      if (!stream.used) return 0.0;
      const bool multicast = stream.feed == Feed::multicast;
      const double own = stream.local ? 0 : m_.port_seconds(bytes, multicast);
      return multicast ? std::max(own, bytes / m_.multicast_rate()) : own;
    };
    if (m_.port > 0) {
      const auto through = [&](double bytes, const Stream& stream) {
        return stream.used && !stream.local ? m_.port_seconds(bytes, stream.feed == Feed::multicast) : 0;
      };
      most = std::max(most, through(s.b, s_.b) + (apart > 0 ? through(s.a, s_.a) / std::max(1.0, apart) : 0));
    }
    // With one slot each, a slice of A behind another that goes through the slot does not come beside the load of B.
    if (apart > 1 && s_.a.slots == 1 && s_.b.slots == 1 && b_load(s) > 0) {
      single += std::max(0.0, 2 / apart - 1) * a_load(s) / sharing.loose;
    }
    if (apart > 0) wait(s_.a.slots * apart, a_load(s), handed_on(s.a, s_.a), a_latency_);
    wait(s_.b.slots, b_load(s), handed_on(s.b, s_.b), b_latency_);
    return single > 0 ? std::max(most, chain + single + latency) : most;
  }

  // The vector unit works on a step while the matrix unit ends the step before and begins the next one: what a block
  // takes longer, as its last step is another, than if these were the products of the same step.
  double uneven(const Block& b) const {
    if (b.steps == 1 || !chained(b.last) || !ahead()) return 0;
    const Step& f = b.full;
    const Step& l = b.last;
    const double ends = std::max(l.vector, f.after + f.before);
    if (b.steps == 2) return ends + std::max(f.vector, l.after + l.before) - compute_of(l) - compute_of(f);
    return ends + std::max(f.vector, f.after + l.before) + std::max(f.vector, l.after + f.before) - compute_of(l) -
           2 * compute_of(f);
  }

  Cost cost_of(const Block& b, bool opens) const {
    Cost c;
    const auto steps = static_cast<double>(b.steps);
    const double a_slices = (steps - 1) * b.full.a + b.last.a;
    const auto panel = static_cast<double>(std::min(s_.panel, b.steps));
    const double a_staying = panel > 0 ? (panel - 1) * b.full.a + b.last.a : 0;
    const double apart = panel < steps ? steps / (steps - panel) : 0;
    const double found = opens ? 0 : static_cast<double>(std::min({b.found, s_.panel, b.steps}));
    const bool finds_last = found >= panel;
    const double staying = std::max(0.0, found - (finds_last ? 1 : 0));  // of the full steps
    const double loading = steps - 1 - staying;
    const double noc_last = noc_of(b.last, !finds_last || panel == 0);
    const double noc_loading = loading > 0 ? noc_of(b.full, true) : 0;
    const double noc_staying = staying > 0 ? noc_of(b.full, false) : 0;
    Sharing together = !finds_last || apart > 0 ? sharing_ : staying_;
    // Tiles that add up wait for each other's slices once per block.
    if (b.reduce > 0 && b.steps <= slots_) together.sets /= g_.c.length;
    const double last = period(b.last, apart, noc_last, together);
    const double full = steps > 1 ? period(b.full, apart, std::max(noc_loading, noc_staying), together) : 0;
    const double lone = staying > 0 ? period(b.full, apart, noc_staying, together) : 0;
    c.noc = noc_last + loading * noc_loading + staying * noc_staying;
    c.work = last + loading * full + staying * lone + uneven(b);
    c.units = c.work - (steps > 1 ? full - compute_of(b.full) : last - compute_of(b.last));
    // With s slots only every s-th step waits for a slice that was asked for when another had been used.
    const std::int64_t unasked = (b.steps - 1) % slots_;
    const double waits =
        std::min(full - std::max(compute_of(b.full), noc_loading), last - std::max(compute_of(b.last), noc_last));
    c.asked = static_cast<double>(unasked) * std::max(0.0, waits);
    c.streamed = (a_requests_ * (a_slices - a_staying) + b_requests_ * ((steps - 1) * b.full.b + b.last.b) +
                  m_.tiles * (b.start + b.end)) /
                 m_.dram;
    c.panel = finds_last ? 0 : a_requests_ * (a_staying - found * b.full.a) / m_.dram;
    c.store = m_.tiles * b.result / m_.dram;
    const Step& step = b.first();
    c.next = (opens ? 1 : 1 - panel / steps) * a_load(step) + b_load(step);
    return c;
  }

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  int a_requests_ = 0;
  int b_requests_ = 0;
  Sharing sharing_;
  Sharing staying_;  // where slices of A stay
  double a_latency_ = 0;
  double b_latency_ = 0;
  int slots_ = 1;
};

class Clocks {
 public:
  Clocks(const Machine& machine, const Schedule& schedule)
      : m_(machine), s_(schedule), g_(*schedule.grid), model_(machine, schedule) {}

  PipelineTime run() {
    find_costs();
    const Block& first = s_.blocks.front();
    const Step& step = first.first();
    const double b_load = model_.b_load(step);
    const double load = model_.a_load(step) + b_load + m_.tiles * first.start / m_.dram;
    now_.tiles = std::max({model_.a_latency() + model_.a_load(step), model_.b_latency() + load,  // A goes first
                           load > 0 ? m_.dram_latency + load : 0});
    const double fill = now_.tiles;
    // Requests for the last operand start the tiles one after the other.
    if (b_load > 0) {
      now_.spread = b_load * (1 - 1.0 / model_.b_requests());
    } else if (model_.a_requests() > 0) {
      now_.spread = load * (1 - 1.0 / model_.a_requests());
    }
    now_.spread = std::min(now_.spread, costs_.front().apart);
    repeat(s_.repeats, [&] {
      for (const Row& rows : s_.rows) repeat(rows.count, [&] { row(rows); });
    });
    stores_ = std::ranges::any_of(s_.blocks, [](const Block& b) { return b.result > 0; });
    PipelineTime result;
    result.fill = fill;
    result.drain = drain(finish_spread_);
    result.dram = now_.dram;
    result.compute = std::max(now_.matrix, now_.vector);
    result.noc = now_.noc;
    result.seconds = std::max({now_.tiles + result.drain, result.dram + m_.dram_latency, result.compute, result.noc});
    return result;
  }

 private:
  struct Now {
    double tiles = 0;
    double channel = 0;
    double finished = 0;         // results of the last block
    double finished_before = 0;  // of the block before that
    double spread = 0;           // from the first tile to the last
    double dram = 0;
    double matrix = 0;
    double vector = 0;
    double noc = 0;
  };

  void find_costs() {
    costs_.clear();
    for (const Row& row : s_.rows) {
      for (std::size_t b = row.begin; b < row.end; ++b) {
        costs_.push_back(model_.cost(s_.blocks[b], b == row.begin, b > row.begin || s_.blocks[b].count > 1));
      }
    }
  }

  // Does `body` count times; from the third time on by what it added to every clock the time before.
  template <typename Body>
  void repeat(std::int64_t count, const Body& body) {
    constexpr std::int64_t kDone = 3;
    Now before;
    for (std::int64_t i = 0; i < std::min(count, kDone); ++i) {
      before = now_;
      body();
    }
    if (count <= kDone) return;
    const auto times = static_cast<double>(count - kDone);
    // What is slower in the long run: the tiles, or the channel once it has fallen behind.
    const double moved = (now_.dram - before.dram) * times;
    const double behind = m_.dram_latency + (s_.results == Results::in_place ? 0 : last_cost_->last);
    const double passed = std::max((now_.tiles - before.tiles) * times, now_.channel + moved + behind - now_.tiles);
    now_.tiles += passed;
    now_.channel += std::max(passed, moved);
    now_.finished += passed;
    now_.finished_before += passed;
    now_.dram += (now_.dram - before.dram) * times;
    now_.matrix += (now_.matrix - before.matrix) * times;
    now_.vector += (now_.vector - before.vector) * times;
    now_.noc += (now_.noc - before.noc) * times;
  }

  void row(const Row& row) {
    for (std::size_t i = row.begin; i < row.end; ++i) {
      const Block& b = s_.blocks[i];
      const bool opens = i == row.begin;
      if (opens) block(b, costs_[i], true);
      repeat(opens ? b.count - 1 : b.count, [&] { block(b, costs_[i], false); });
    }
  }

  void block(const Block& b, const BlockCost& cost, bool opens) {
    last_cost_ = &cost;
    const Cost& c = cost.of[opens ? 1 : 0];
    const auto steps = static_cast<double>(b.steps);
    now_.dram += c.streamed + c.panel + c.store;
    now_.noc += c.noc;
    now_.matrix += (steps - 1) * (b.full.before + b.full.after) + b.last.before + b.last.after;
    now_.vector += (steps - 1) * b.full.vector + b.last.vector + b.finish;

    const bool chained_block = b.last.before > 0 && model_.ahead();
    const bool in_place = s_.results == Results::in_place && !chained_block;
    const bool staged = s_.results == Results::staged;
    // Tiles that add up are never apart, those that share an operand by the steps that their slots allow.
    const double sets = static_cast<double>(m_.tiles) / (b.reduce > 0 ? g_.c.length : 1);
    const bool tied = in_place && b.steps > 1 && cost.tied;
    const auto waits = [&](double store) { return std::max(store / sets, store - (tied ? 0 : now_.spread)); };
    // Slices that stay come early, as soon as the same of the row before have been used for the last time.
    const double lag = opens && s_.panel > 0 ? last_first_ : 0;
    const double early = std::min(c.panel, std::max(0.0, idle_ - lag));
    const double busy = c.streamed + c.panel - early + (in_place ? c.store : pending_);
    // Behind the last step, until the next block can begin.
    double finish = 0;
    if (in_place) finish = cost.reduce + b.finish + waits(c.store);
    if (staged) {
      finish = b.reduce > 0 ? cost.reduce + b.finish : std::max(0.0, b.finish - (s_.overlapped ? cost.last : 0));
    }
    if (b.last.before > 0) {
      // Until the next block's second product, which needs the room. The vector unit is what has no time left, if any.
      const double busy_matrix = cost.last - b.last.before - b.last.after;
      finish = std::max({0.0, b.finish - cost.hidden,
                         finish_of(b, cost, s_.results == Results::in_place ? waits(c.store) : 0) -
                             (model_.ahead() ? busy_matrix : 0)});
      finish += cost.apart_units + (opens ? cost.row_units : 0);
    }
    double begin = now_.tiles + (fresh_ ? 0 : cost.start);
    if (s_.results == Results::doubled) begin = std::max(begin, now_.finished_before + waits(pending_));
    double end = begin + std::max(begun_ < model_.slots() ? 0 : c.work,
                                  c.units + finish - (fresh_ ? c.asked : 0));  // slots are filled while results leave
    // Results of the block before have left when the last step writes new ones.
    if (staged) end = std::max(end, begin + waits(pending_) + cost.last + finish);
    if (cost.join > 0) {
      const double latency = fresh_ ? 0 : m_.dram_latency;  // that of the first block is asked for at once
      end = std::max(end, begin + latency + waits(cost.join) + cost.last + finish);
    }
    // A slice makes room when the last tile that shares it is done.
    double channel = now_.channel;
    if (c.panel > early && opens && !fresh_)
      channel = std::max(channel, now_.tiles - now_.spread * (1 - 1 / model_.sets()));
    channel += busy;
    // Nothing to load or store meanwhile.
    const double alone = std::max(0.0, (in_place ? cost.reduce + b.finish : finish) - (sets > 1 ? now_.spread : 0));
    end = std::max(end, channel + m_.dram_latency + (in_place ? 0 : cost.lead) + alone);

    const double after_step = in_place ? cost.reduce + b.finish : finish;
    // How far the channel is ahead of the last tile: by the slots, or as the tiles are apart.
    const double start_time = m_.tiles * b.start / m_.dram;
    const double run_ahead = model_.slots() == CostModel::kManySlots && b.start > 0 ? (s_.start_slots - 1) * start_time
                                                                                    : (model_.slots() - 1) * c.next;
    double idle_until = end - std::max(after_step, m_.dram_latency) - std::max(run_ahead, now_.spread);
    // With a slot to spare, operands of a block of one step are asked for when the block before the last ends.
    if (b.steps == 1 && model_.slots() > 1) idle_until = std::min(idle_until, now_.tiles);
    if (begun_ + b.steps < model_.slots()) idle_until = 0;  // slots are left that nothing has used
    now_.channel = std::max(channel, idle_until);
    const bool grows = s_.panel > 0 && b.found < b.steps;
    idle_ = (grows ? idle_ - early : 0) + now_.channel - channel;
    last_first_ = cost.first;
    now_.tiles = end;
    now_.finished_before = now_.finished;
    if (s_.results == Results::doubled) {
      now_.finished = std::max(end + cost.reduce + b.finish, now_.finished + std::max(cost.summing, b.finish));
    } else {
      now_.finished = end;
    }
    pending_ = in_place ? 0 : c.store;
    // One after the other, stores spread the tiles.
    const double store = c.store + cost.join;
    finish_spread_ = now_.spread;
    now_.spread = std::min(cost.apart, std::max(now_.spread, store * (1 - 1 / sets)));
    begun_ += b.steps;
    fresh_ = false;
  }

  // What happens to the results of an attention before their room is free.
  double finish_of(const Block& b, const BlockCost& cost, double store) const {
    switch (s_.results) {
      case Results::in_place: return cost.reduce + b.finish + store;
      case Results::staged: return cost.reduce + b.finish;
      case Results::doubled: return 0;
    }
    return 0;
  }

  // From the last step to the end of the last store.
  double drain(double stagger) const {
    const double latency = stores_ ? m_.dram_latency : 0;
    if (s_.results == Results::in_place && pending_ == 0) return latency;
    const double finish = now_.finished - now_.tiles;
    const double own = pending_ / m_.tiles;
    const double queued = pending_ - std::min(stagger, last_cost_->last);
    return finish + (stores_ ? std::max({own, queued, now_.channel + pending_ - now_.finished}) : 0) + latency;
  }

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  CostModel model_;
  Now now_;
  bool fresh_ = true;
  std::int64_t begun_ = 0;    // steps; the first find their slots filled
  double pending_ = 0;        // results that have not left, in s of the channel
  double finish_spread_ = 0;  // of the tiles at the end of the last block
  double idle_ = 0;           // of the channel during the last block
  double last_first_ = 0;     // the first step of the last block
  bool stores_ = false;       // results leave the tiles
  const BlockCost* last_cost_ = nullptr;
  // Of the blocks; kept from one schedule to the next, as a search times many.
  static std::vector<BlockCost>& workspace() {
    thread_local std::vector<BlockCost> costs;
    return costs;
  }
  std::vector<BlockCost>& costs_ = workspace();
};

}  // namespace

PipelineTime pipeline_time(const Machine& machine, const Schedule& schedule) { return Clocks(machine, schedule).run(); }

}  // namespace llmperf::mapper::tile
