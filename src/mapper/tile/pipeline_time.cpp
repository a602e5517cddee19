// Two clocks run through the blocks: that of the tiles and that of the DRAM channel.
//
// A block takes the tiles W, the sum over its steps (pipeline_cost.h), then what happens to its results before the next
// block can go on, F; and the channel D, everything that it moves for the block: slices, and results of the block
// before. So
//
//   channel' = max(channel, tiles - what the slots let it run ahead) + D
//   tiles'   = max(tiles + W + F, channel' + the last step)
//
// Panel slices may be loaded one block early, in the time that the channel was idle then. Before the first block comes
// the load of the first step, after the last block come its results.
#include "mapper/tile/pipeline_time.h"

#include <algorithm>

#include "mapper/tile/pipeline_cost.h"

namespace llmperf::mapper::tile {
namespace {

class Clocks {
 public:
  Clocks(const Machine& machine, const Schedule& schedule)
      : m_(machine), s_(schedule), g_(*schedule.grid), model_(machine, schedule) {}

  PipelineTime run() {
    find_costs();
    const std::size_t opening = s_.runs[s_.rows[s_.sequence.front().row].begin].block;
    const Block& first = s_.blocks[opening];
    const Step& step = first.steps > 1 ? first.full : first.last;
    const double b_load = model_.b_load(step);
    const double load = model_.a_load(step) + b_load + m_.tiles * first.start / m_.dram;
    now_.tiles = std::max({model_.a_latency() + model_.a_load(step), model_.b_latency() + load,  // A goes first
                           m_.dram_latency + load});
    const double fill = now_.tiles;
    // Requests for the last operand start the tiles one after the other.
    if (b_load > 0) {
      now_.spread = b_load * (1 - 1.0 / model_.b_requests());
    } else if (model_.a_requests() > 0) {
      now_.spread = load * (1 - 1.0 / model_.a_requests());
    }
    now_.spread = std::min(now_.spread, costs_[opening].apart);
    repeat(s_.repeats, [&] {
      for (const RowRun& rows : s_.sequence) {
        repeat(rows.count, [&] { row(s_.rows[rows.row]); });
      }
    });
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
    enum Place : unsigned char { kOpens = 1, kFollows = 2 };
    places_.assign(s_.blocks.size(), 0);
    for (const Row& row : s_.rows) {
      for (std::size_t r = row.begin; r < row.end; ++r) {
        unsigned char& place = places_[s_.runs[r].block];
        if (r == row.begin) place |= kOpens;
        if (r > row.begin || s_.runs[r].count > 1) place |= kFollows;
      }
    }
    costs_.clear();
    for (std::size_t i = 0; i < s_.blocks.size(); ++i) {
      costs_.push_back(model_.cost(s_.blocks[i], (places_[i] & kOpens) != 0, (places_[i] & kFollows) != 0));
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
    bool opens = true;
    for (std::size_t r = row.begin; r < row.end; ++r) {
      const Block& b = s_.blocks[s_.runs[r].block];
      const BlockCost& cost = costs_[s_.runs[r].block];
      std::int64_t count = s_.runs[r].count;
      if (opens) {
        block(b, cost, true);
        --count;
      }
      opens = false;
      repeat(count, [&] { block(b, cost, false); });
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
    if (staged) finish = b.reduce > 0 ? cost.reduce + b.finish : std::max(0.0, b.finish - cost.last);
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
                                  c.units + finish);  // slots are filled while results leave
    // Results of the block before have left when the last step writes new ones.
    if (staged) end = std::max(end, begin + waits(pending_) + cost.last + finish);
    if (cost.join > 0) end = std::max(end, begin + m_.dram_latency + waits(cost.join) + cost.last + finish);
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
    if (s_.results == Results::in_place && pending_ == 0) return m_.dram_latency;
    const double finish = now_.finished - now_.tiles;
    const double own = pending_ / m_.tiles;
    const double queued = pending_ - std::min(stagger, last_cost_->last);
    return finish + std::max({own, queued, now_.channel + pending_ - now_.finished}) + m_.dram_latency;
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
  const BlockCost* last_cost_ = nullptr;
  // Kept from one schedule to the next, as a search times many.
  struct Workspace {
    std::vector<BlockCost> costs;
    std::vector<unsigned char> places;
  };
  static Workspace& workspace() {
    thread_local Workspace workspace;
    return workspace;
  }
  std::vector<BlockCost>& costs_ = workspace().costs;
  std::vector<unsigned char>& places_ = workspace().places;
};

}  // namespace

PipelineTime pipeline_time(const Machine& machine, const Schedule& schedule) { return Clocks(machine, schedule).run(); }

}  // namespace llmperf::mapper::tile
