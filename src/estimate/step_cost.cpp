// A step is timed as Estimator::mixed_step times it: the ops of its graph one after the other, less what collectives
// hide behind the op before them, plus what the runtime takes beside kernels (step_overhead.h). All of these are sums
// over ops, and an op's shape hangs on little of the step (graph::Scope), so that sums of ops are kept by that little:
//
//   rows        new tokens that products compute
//   sampled     sequences whose logits are made
//   sequences   both, of convolutions that keep the last tokens of each, and of adapters
//   decodes     how many, the mean of their contexts, and how much longer the longest is
//   chunk       new tokens and context of each
//
// beside how the step is dispatched. Contexts lie in cells of 16 (1 below 16, a 256th from 4,096 on), whose first and
// last token are computed and between which times lie on a straight line: kernels deal keys in blocks of 64 to 256, so
// that steps are where a cell begins, and are kept. How much longer the longest sequence is counts through the tail of
// a kernel alone, and is kept at powers of two.
//
// Where the times of ops hang on one another otherwise (weights that tiles load early, exchanges beside the ops of
// another micro-batch, unlike devices, llama.cpp's pipeline), whole steps are kept instead: without the longest
// sequence, and exact on the same grid.
#include "estimate/step_cost.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <mutex>
#include <vector>

#include "base/integer.h"
#include "estimate/estimate.h"
#include "estimate/schedule.h"
#include "mapper/roofline/step_overhead.h"

namespace llmperf::estimate {

using graph::Scope;
using graph::SequenceGroup;

struct StepCost::Tables {
  using Launched = mapper::StepOverhead::Launched;

  // What ops of a step take together, at up to four points between which a step lies.
  struct Sum {
    std::array<double, 4> seconds = {};
    Launched launched;
    const double* stages = nullptr;  // likewise of each pipeline stage: [point][stage]
  };

  // From keys (not 0) to sums. Any thread may look one up while another, of which there must be one at a time, adds
  // some: a slot's key is written after its sum, and a table that was outgrown stays until the end.
  class Memo {
   public:
    Memo() { grow(64); }
    const Sum* find(std::uint64_t key) const {
      const Table& table = *current_.load(std::memory_order_acquire);
      for (std::size_t i = table.start(key);; ++i) {
        const Slot& slot = table.slots[i & table.mask];
        const std::uint64_t there = slot.key.load(std::memory_order_acquire);
        if (there == key) return &slot.sum;
        if (there == 0) return nullptr;
      }
    }
    const Sum& add(std::uint64_t key, const Sum& sum) {
      if (2 * ++used_ > tables_.back().mask) grow(2 * (tables_.back().mask + 1));
      return put(tables_.back(), key, sum);
    }

   private:
    struct alignas(64) Slot {  // one line of the cache
      std::atomic<std::uint64_t> key = 0;
      Sum sum;
    };
    struct Table {
      explicit Table(std::size_t size) : mask(size - 1), shift(64 - std::countr_zero(size)), slots(size) {}
      std::size_t start(std::uint64_t key) const {
        return (key * 0x9E3779B97F4A7C15U) >> shift;
      }  // 2^64 / golden ratio
      std::size_t mask;
      int shift;
      std::vector<Slot> slots;
    };
    static const Sum& put(Table& table, std::uint64_t key, const Sum& sum) {
      std::size_t i = table.start(key);
      while (table.slots[i & table.mask].key.load(std::memory_order_relaxed) != 0) ++i;
      Slot& slot = table.slots[i & table.mask];
      slot.sum = sum;
      slot.key.store(key, std::memory_order_release);
      return slot.sum;
    }
    void grow(std::size_t size) {
      Table& table = tables_.emplace_back(size);
      if (tables_.size() > 1) {
        for (const Slot& slot : tables_[tables_.size() - 2].slots) {
          if (const std::uint64_t key = slot.key.load(std::memory_order_relaxed); key != 0) put(table, key, slot.sum);
        }
      }
      current_.store(&table, std::memory_order_release);
    }

    std::deque<Table> tables_;
    std::atomic<const Table*> current_ = nullptr;
    std::size_t used_ = 0;
  };

  // A part of a grid: its first and last point, and how far between them.
  struct Cell {
    std::int64_t low = 0;
    std::int64_t high = 0;
    double share = 0;
    std::int64_t width() const { return high - low + 1; }
  };
  static Cell context_cell(double context) {
    const auto whole = static_cast<std::int64_t>(context);
    constexpr std::int64_t kBlock = 16;
    constexpr std::int64_t kFine = 4096;  // up to which cells are of one block
    const std::int64_t width =
        whole < kBlock ? 1
        : whole < kFine
            ? kBlock
            : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(whole))) / (kFine / kBlock);
    const std::int64_t low = whole / width * width;
    return {low, low + width - 1, width > 1 ? std::min(1.0, (context - d(low)) / d(width - 1)) : 0};
  }
  // 0 to 16, and then from one power of two to the next.
  static Cell excess_cell(double excess) {
    constexpr std::int64_t kLeast = 16;
    const auto whole = static_cast<std::uint64_t>(std::max(0.0, excess));
    if (whole < kLeast) return {0, kLeast, std::max(0.0, excess) / kLeast};
    const auto low = static_cast<std::int64_t>(std::bit_floor(whole));
    return {low, 2 * low, (excess - d(low)) / d(low)};
  }

  enum Kind : std::uint64_t { kRows = 1, kSampled, kSequences, kDecodes, kChunk };

  // What of a step all of its sums hang on.
  struct Mode {
    hardware::Dispatch dispatch = hardware::Dispatch::graph;
    bool prompts = false;   // to the runtime
    bool builds = false;    // … to the graph: a prompt of one token has none to it
    bool split = false;     // over the sequence axes
    bool past = false;      // some context
    bool streamed = false;  // layers on the host are computed by the device
    std::uint64_t bits() const {
      return static_cast<std::uint64_t>(dispatch) | (prompts ? 8U : 0U) | (builds ? 16U : 0U) | (split ? 32U : 0U) |
             (past ? 64U : 0U) | (streamed ? 128U : 0U);
    }
  };
  static constexpr int kModeBits = 8;
  // Three bits of the kind, eight of the mode, and the rest: 27 of a number of tokens or sequences, 26 of another.
  static std::uint64_t key_of(Kind kind, const Mode& mode, std::int64_t a, std::uint64_t b = 0) {
    return kind | mode.bits() << 3 | static_cast<std::uint64_t>(a) << (3 + kModeBits) | b << (30 + kModeBits);
  }
  static std::uint64_t mixed(std::uint64_t hash, std::uint64_t next) {
    hash = (hash ^ next) * 0xFF51AFD7ED558CCDU;
    return hash ^ hash >> 32;
  }

  explicit Tables(Setup s)
      : estimator(std::move(s)),
        setup(estimator.setup()),
        stages(estimator.stages().size()),
        chained(setup.execution.runtime.chains != hardware::Chains::one_kernel),
        splits(setup.execution.plan.sequence() > 1),
        on_host(setup.host != nullptr) {
    const graph::Execution& e = setup.execution;
    whole_steps = (e.runtime.prefetch_weights && stages == 1 && estimator.machine().tiles() != nullptr) ||
                  setup.serving.overlap_batches > 1 || !setup.cards.empty() || (e.weights.gguf && stages > 1);
    for (const model::Layer& layer : e.model->kinds) {
      by_sequences |= layer.recurrent.has_value() || e.adapters.any();
      chooses |= layer.attention.indexer.has_value();
    }
    if (setup.draft) draft = std::make_unique<Tables>(*setup.draft->setup);
  }

  // The cell of a context. Where queries begin to see chosen keys alone in it, times jump: there cells are of one
  // token.
  Cell cell_of(double context, std::int64_t tokens) const {
    const Cell cell = context_cell(context);
    if (!chooses) return cell;
    const auto chosen = [&](const model::Layer& layer, std::int64_t cached) {
      return graph::chooses_keys(layer.attention, {1, tokens, cached});
    };
    const bool jumps = std::ranges::any_of(setup.execution.model->kinds, [&](const model::Layer& layer) {
      return chosen(layer, cell.low) != chosen(layer, cell.high);
    });
    const auto whole = static_cast<std::int64_t>(context);
    return jumps ? Cell{whole, whole, 0} : cell;
  }

  Mode mode_of(const StepShape& shape, std::int64_t rows, std::int64_t sequences) const {
    Mode mode;
    mode.past = chained && shape.decodes > 0;
    mode.split = splits && shape.decodes == 0;
    const std::int64_t pieces = splits ? graph::sequence_pieces(setup.execution.plan) : 1;
    for (const Chunk& chunk : shape.chunks) {
      mode.prompts |= chunk.tokens > 1 || chunk.context == 0;
      mode.builds |= chunk.tokens > 1;
      mode.past |= chained && chunk.context > 0;
      mode.split &= chunk.tokens % pieces == 0;
    }
    mode.streamed = on_host && setup.execution.streams(std::min(rows, setup.execution.micro_batch));
    mode.dispatch = setup.dispatch_of(mode.prompts, sequences, rows, shape.context_max);
    return mode;
  }

  SequenceGroup decodes_of(std::int64_t count, double context, double longest) const {
    const auto mean = std::max<std::int64_t>(1, std::llround(context));
    const auto most = static_cast<std::int64_t>(longest);
    const std::int64_t verify = setup.serving.verify;
    // As Estimator::decode_at has it: of several drafts in a row the middle one.
    const std::int64_t middle = (setup.serving.drafts - 1) / 2;
    return {.count = count,
            .new_tokens = verify,
            .context = mean + middle,
            .verifies = verify > 1,
            .longest = most > mean ? most + middle : 0};
  }

  // Of ops that `takes` agrees to, at one point.
  template <class Takes>
  void add_ops(const Mode& mode, Takes&& takes, std::size_t point, Sum& sum, std::vector<double>& shares) const {
    std::optional<mapper::StepOverhead> host;
    if (setup.profile) host.emplace(setup.profile->values, mode.dispatch, mode.prompts);
    std::vector<StageShare> share;
    for (std::size_t i = 0; stages > 1 && i < stages; ++i) share.emplace_back(estimator.stages(), i);
    const auto seconds = [&](const graph::Op& op) {
      return estimator.time(op, estimator.work(op)).total.value * d(op.count);
    };
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const graph::Op& op = graph[i];
      const bool taken = takes(op);
      double own = taken ? seconds(op) : 0;
      if (taken && op.overlaps && i > 0) {
        own -= estimator.machine().hidden_share(op) * std::min(own, seconds(graph[i - 1]));
      }
      for (std::size_t s = 0; s < share.size(); ++s) shares[point * stages + s] += share[s].of(op) * own;
      if (!taken) continue;
      sum.seconds[point] += own;
      if (host && point == 0) host->add(op);
    }
    if (host && point == 0) sum.launched = host->launched();
  }
  // The sum of a key, which `fill(sum, shares)` makes at `points` points the first time.
  template <class Fill>
  const Sum& known(std::uint64_t key, std::size_t points, Fill&& fill) const {
    if (const Sum* found = memo.find(key)) return *found;
    const std::scoped_lock lock(filling);
    if (const Sum* found = memo.find(key)) return *found;
    Sum sum;
    std::vector<double> shares(points * stages);
    fill(sum, shares);
    if (!shares.empty() && stages > 1) sum.stages = stage_seconds.emplace_back(std::move(shares)).data();
    return memo.add(key, sum);
  }
  void build(std::span<const SequenceGroup> step, graph::Part part) const {
    graph::build_step(setup.execution, step, part, graph);
    const std::int64_t drafts = setup.serving.drafts;
    if (drafts <= 1) return;
    for (graph::Op& op : graph) op.count *= op.tag == graph::Tag::join_states ? 1 : drafts;
  }

  // Sums of ops that hang on the whole step.
  const Sum& of_step(Kind kind, Scope scope, const Mode& mode, const StepShape& shape, std::int64_t a,
                     std::uint64_t b = 0) const {
    return known(key_of(kind, mode, a, b), 1, [&](Sum& sum, std::vector<double>& shares) {
      set_groups(shape, shape.decodes > 0 ? d(shape.context_sum) / d(shape.decodes) : 0);
      build(groups, graph::Part::all);
      add_ops(
          mode, [&](const graph::Op& op) { return op.scope == scope; }, 0, sum, shares);
    });
  }
  void set_groups(const StepShape& shape, double context) const {
    groups.clear();
    if (shape.decodes > 0) groups.push_back(decodes_of(shape.decodes, context, 0));
    for (const Chunk& chunk : shape.chunks) groups.push_back({1, chunk.tokens, chunk.context});
  }

  // The ops of one group alone, at a point; `joined`: its attention is part of a launch before it.
  void add_group(const Mode& mode, const SequenceGroup& group, bool joined, std::size_t point, Sum& sum,
                 std::vector<double>& shares) const {
    groups.assign(1, group);
    // Of the other groups it counts whether the step is divided, and whether the device computes the host's layers.
    if (splits && !mode.split) groups.push_back({1, 1, 1});
    if (mode.streamed) groups.push_back({graph::kStreamedRows, 1, 1});
    build(groups, graph::Part::groups);
    if (joined) {
      for (graph::Op& op : graph) {
        const auto* a = std::get_if<graph::Attention>(&op.body);
        if (a && op.tag == graph::Tag::attention && !a->shared_kv) op.launches = 0;
      }
    }
    add_ops(
        mode, [](const graph::Op& op) { return op.scope == Scope::group && op.group == 0; }, point, sum, shares);
  }

  const Sum& of_decodes(const Mode& mode, std::int64_t count, const Cell& context, const Cell& excess) const {
    const auto place = static_cast<std::uint64_t>(context.low / context.width()) << 10 |
                       static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(context.width()))) << 5 |
                       static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(excess.low)));
    return known(key_of(kDecodes, mode, count, place), 4, [&](Sum& sum, std::vector<double>& shares) {
      for (std::size_t point = 0; point < 4; ++point) {
        const double mean = d(point % 2 > 0 ? context.high : context.low);
        const double longest = mean + d(point / 2 > 0 ? excess.high : excess.low);
        add_group(mode, decodes_of(count, mean, longest), false, point, sum, shares);
      }
    });
  }

  const Sum& of_chunk(const Mode& mode, std::int64_t tokens, const Cell& context, bool joined) const {
    const auto place = static_cast<std::uint64_t>(context.low / context.width()) << 6 |
                       static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(context.width()))) << 1 |
                       (joined ? 1U : 0U);
    return known(key_of(kChunk, mode, tokens, place), 2, [&](Sum& sum, std::vector<double>& shares) {
      for (std::size_t point = 0; point < 2; ++point) {
        add_group(mode, {1, tokens, point > 0 ? context.high : context.low}, joined, point, sum, shares);
      }
    });
  }

  // Latencies at both ends of a cell of contexts, and then the intervals.
  StepTime whole_step(const StepShape& shape) const {
    const Cell context = context_cell(shape.decodes > 0 ? d(shape.context_sum) / d(shape.decodes) : 0);
    std::uint64_t key = mixed(static_cast<std::uint64_t>(shape.decodes), static_cast<std::uint64_t>(context.low));
    for (const Chunk& chunk : shape.chunks) {
      key = mixed(mixed(key, static_cast<std::uint64_t>(chunk.tokens)), static_cast<std::uint64_t>(chunk.context));
    }
    const auto fill = [&](Sum& made, const std::vector<double>&) { whole_sum(shape, context, made); };
    const Sum& sum = known(key | 1, 0, fill);
    const auto between = [&](std::size_t i) {
      return Seconds{sum.seconds[i] + context.share * (sum.seconds[i + 1] - sum.seconds[i])};
    };
    return {between(0), between(2)};
  }
  void whole_sum(const StepShape& shape, const Cell& context, Sum& sum) const {
    for (std::size_t point = 0; point < 2; ++point) {
      set_groups(shape, d(point > 0 ? context.high : context.low));
      const std::int64_t parts = setup.serving.overlap_batches;
      for (SequenceGroup& g : groups) {  // a lone sequence that decodes is in both
        std::int64_t& shared = g.prompts() ? g.new_tokens : g.count;
        shared = (shared + parts - 1) / parts;
      }
      estimator.mixed_step(groups, phase);
      sum.seconds[point] = phase.time.value;
      sum.seconds[point + 2] = phase.time.value - phase.bubble.value;
      if (shape.decodes == 0) sum.seconds[1] = sum.seconds[0], sum.seconds[3] = sum.seconds[2];
    }
  }

  StepTime step(const StepShape& shape) const {
    if (whole_steps) return whole_step(shape);
    std::int64_t rows = shape.decodes * setup.serving.verify;
    const auto sequences = shape.decodes + static_cast<std::int64_t>(shape.chunks.size());
    for (const Chunk& chunk : shape.chunks) rows += chunk.tokens;
    const std::int64_t sampled = shape.decodes * setup.serving.verify + static_cast<std::int64_t>(shape.chunks.size());
    const Mode mode = mode_of(shape, rows, sequences);

    Total total(stages);
    total.add(of_step(kRows, Scope::rows, mode, shape, rows));
    total.add(of_step(kSampled, Scope::sampled, mode, shape, sampled));
    if (by_sequences) {
      total.add(of_step(kSequences, Scope::sequences, mode, shape, rows, static_cast<std::uint64_t>(sequences)));
    }
    bool decodes_before = false;
    bool prompts_before = false;
    if (shape.decodes > 0) {
      const double mean = d(shape.context_sum) / d(shape.decodes);
      const Cell context = cell_of(mean, setup.serving.verify);
      const Cell excess = excess_cell(d(shape.context_max) - mean);
      const double x = context.share;
      const double y = excess.share;
      total.add(of_decodes(mode, shape.decodes, context, excess), {(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y});
      decodes_before = true;
    }
    const bool varlen = setup.profile && !setup.profile->choices.ggml;
    const bool joint = varlen && setup.profile->choices.joint_attention;
    for (const Chunk& chunk : shape.chunks) {
      const bool decodes = chunk.tokens == 1 && chunk.context > 0;
      const bool before = joint ? decodes_before || prompts_before : decodes ? decodes_before : prompts_before;
      const Cell context = cell_of(d(chunk.context), chunk.tokens);
      total.add(of_chunk(mode, chunk.tokens, context, varlen && before), {1 - context.share, context.share, 0, 0});
      (decodes ? decodes_before : prompts_before) = true;
    }
    return timed(total, mode, sequences);
  }

  // Sums of a step.
  struct Total {
    static constexpr std::size_t kMostStages = 512;
    explicit Total(std::size_t number) : stages(number > 1 ? number : 0) {
      std::fill_n(busy.begin(), std::min(stages, kMostStages), 0.0);
    }
    void add(const Sum& sum, const std::array<double, 4>& weights = {1, 0, 0, 0}) {
      launched.host += sum.launched.host;
      launched.kernels += sum.launched.kernels;
      for (std::size_t p = 0; p < 4; ++p) {
        if (weights[p] == 0) continue;
        device += weights[p] * sum.seconds[p];
        for (std::size_t s = 0; s < stages; ++s) busy[s] += weights[p] * sum.stages[p * stages + s];
      }
    }
    double device = 0;
    Launched launched;
    std::size_t stages;
    std::array<double, kMostStages> busy;  // NOLINT(cppcoreguidelines-pro-type-member-init): as many as there are
  };

  StepTime timed(const Total& total, const Mode& mode, std::int64_t sequences) const {
    Seconds overhead;
    const Serving& serving = setup.serving;
    const double layers = d(setup.execution.model->num_layers());
    if (setup.profile) {
      mapper::StepOverhead host(setup.profile->values, mode.dispatch, mode.prompts, setup.profile->choices.overlapped);
      host.add(total.launched);
      const double begun = serving.joins_step ? 0 : d(serving.drafts);
      overhead = host.time(Seconds{total.device}, layers * d(serving.drafts), d(sequences) * begun, begun);
    }
    StepTime time;
    time.latency = time.interval = Seconds{total.device} + overhead;
    if (stages == 1) return time;
    // Every stage has a host of its own, which launches its layers.
    time.interval = {};
    for (std::size_t s = 0; s < stages; ++s) {
      double own = 0;
      for (const std::int64_t n : estimator.stages()[s].layers) own += d(n);
      time.interval = std::max(time.interval, Seconds{total.busy[s]} + overhead * (own / layers));
    }
    return time;
  }

  mutable Estimator estimator;
  const Setup& setup;
  std::size_t stages;
  bool chained;
  bool splits;
  bool on_host;
  bool whole_steps = false;
  bool by_sequences = false;
  bool chooses = false;  // keys
  std::unique_ptr<Tables> draft;

  mutable Memo memo;
  // What is below belongs to who fills.
  mutable std::mutex filling;
  mutable std::deque<std::vector<double>> stage_seconds;
  mutable graph::Graph graph;
  mutable std::vector<SequenceGroup> groups;
  mutable Phase phase;
};

StepCost::StepCost(Setup setup) : tables_(std::make_unique<Tables>(std::move(setup))) {}
StepCost::~StepCost() = default;

StepTime StepCost::operator()(const StepShape& shape) const {
  StepTime time = tables_->step(shape);
  if (!tables_->draft || shape.decodes == 0) return time;
  StepShape drafts = shape;
  drafts.chunks = {};
  const StepTime drafting = tables_->draft->step(drafts);
  time.latency += drafting.latency;
  time.interval += drafting.interval;
  return time;
}

const Setup& StepCost::setup() const { return tables_->setup; }

}  // namespace llmperf::estimate
