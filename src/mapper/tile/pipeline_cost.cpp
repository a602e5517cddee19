// A step takes the tiles the longest of: its units (their sum where they do not overlap), its hand-overs on the busiest
// link, and the wait for its slots. With s slots a slice is asked for s steps ahead, so that s steps take at least
// the units' time, the load and the latency; with one slot every step takes that. Tiles that share an operand wait for
// each other: "the load" is that of all tiles of such a set. Sets do not wait for each other and get out of step, so
// that one loads or stores while another computes.
#include "mapper/tile/pipeline_cost.h"

#include <algorithm>

namespace llmperf::mapper::tile {
namespace {

constexpr double kUnlimited = 1e30;

double chain_of(const Step& s) { return s.before + s.vector + s.after; }  // while which a slot is in use

double passed_on(double bytes, const Stream& stream, const Paths& paths) {
  if (!stream.used || stream.feed == Feed::direct) return 0;
  return stream.feed == Feed::ring ? bytes * (paths.length - 1) : bytes;
}

}  // namespace

CostModel::CostModel(const Machine& machine, const Schedule& schedule) : m_(machine), s_(schedule), g_(*schedule.grid) {
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
      s_.a.used && std::any_of(s_.blocks.begin(), s_.blocks.end(), [&](const Block& b) { return s_.panel < b.steps; });
  slots_ = std::min(a_streams ? s_.a.slots : kManySlots, s_.b.used ? s_.b.slots : kManySlots);
}

CostModel::Sharing CostModel::sharing(int a, int b) const {
  Sharing result;
  result.sets = static_cast<double>(m_.tiles) / (a * b);
  result.loose = static_cast<double>(m_.tiles) / ((s_.a.slots == 1 ? a : 1) * (s_.b.slots == 1 ? b : 1));
  result.slots = std::min(a > 1 ? s_.a.slots : kManySlots, b > 1 ? s_.b.slots : kManySlots);
  return result;
}

double CostModel::latency(const Stream& stream, const Paths& paths) const {
  if (!stream.used) return 0;
  const int hops = stream.feed == Feed::multicast ? paths.hops : 0;
  return m_.dram_latency + hops * m_.hop_latency;
}

double CostModel::compute_of(const Step& s) const {
  const double matrix = s.before + s.after;
  return s_.overlapped ? std::max(matrix, s.vector) : matrix + s.vector;
}

// Vector work between two products, beside the products of other steps.
bool CostModel::chained(const Step& s) const { return s_.overlapped && s.before > 0; }

double CostModel::noc_of(const Step& s, bool loads_a) const {
  const double a = loads_a || s_.a.feed == Feed::ring ? passed_on(s.a, s_.a, g_.a) : 0;
  const double b = passed_on(s.b, s_.b, g_.b);
  if (a + b <= 0) return 0;
  double most = 0;
  for (const LinkLoad& load : g_.loads) most = std::max(most, load.a * a + load.b * b);
  return most / m_.link;
}

// Of the tiles, without waiting for the channel's other business. Of every `apart` slices of A one goes through the
// slots, 0: none.
double CostModel::period(const Step& s, double apart, double noc, const Sharing& sharing) const {
  const double chain = chain_of(s);
  double single = 0;  // what cannot be loaded while the units work
  double latency = 0;
  double most = std::max(compute_of(s), noc);
  // A slice is handed on as it comes, but takes a link `link`.
  const auto wait = [&](double slots, double load, double link, double wait_latency) {
    if (load <= 0) return;
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
  const auto handed_on = [&](double bytes, const Stream& stream) {
    return stream.feed == Feed::multicast ? bytes / m_.link : 0;
  };
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
double CostModel::uneven(const Block& b) const {
  if (b.steps == 1 || !chained(b.last) || !ahead()) return 0;
  const Step& f = b.full;
  const Step& l = b.last;
  const double ends = std::max(l.vector, f.after + f.before);
  if (b.steps == 2) return ends + std::max(f.vector, l.after + l.before) - compute_of(l) - compute_of(f);
  return ends + std::max(f.vector, f.after + l.before) + std::max(f.vector, l.after + f.before) - compute_of(l) -
         2 * compute_of(f);
}

Cost CostModel::cost_of(const Block& b, bool opens) const {
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
  c.streamed = (a_requests_ * (a_slices - a_staying) + b_requests_ * ((steps - 1) * b.full.b + b.last.b) +
                m_.tiles * (b.start + b.end)) /
               m_.dram;
  c.panel = finds_last ? 0 : a_requests_ * (a_staying - found * b.full.a) / m_.dram;
  c.store = m_.tiles * b.result / m_.dram;
  const Step& step = b.steps > 1 ? b.full : b.last;
  c.next = (opens ? 1 : 1 - panel / steps) * a_load(step) + b_load(step);
  return c;
}

BlockCost CostModel::cost(const Block& b, bool opens, bool follows) const {
  BlockCost result;
  if (follows) result.of[0] = cost_of(b, false);
  if (opens) result.of[1] = cost_of(b, true);
  const auto steps = static_cast<double>(b.steps);
  const Step& step = b.steps > 1 ? b.full : b.last;
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
  result.apart = kUnlimited;
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

}  // namespace llmperf::mapper::tile
