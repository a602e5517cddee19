#include "estimate/kv_pool.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "cost/memory.h"

namespace llmperf::estimate {
namespace {

// Up to so many times the layers of the smallest kind, the largest kind is a group whole, and the smaller ones padded.
constexpr double kNearlyAlike = 1.5;

double round_up(double value, double multiple) { return std::ceil(value / multiple) * multiple; }

}  // namespace

KvPool::KvPool(const graph::Execution& e, std::span<const std::int64_t> layers, const PoolRules& rules)
    : rules_(rules) {
  take(e, layers);
  lay_out();
}

void KvPool::add_draft(const graph::Execution& draft, std::span<const std::int64_t> layers) {
  take(draft, layers);
  lay_out();
}

void KvPool::take(const graph::Execution& e, std::span<const std::int64_t> layers) {
  const double share = 1 / d(e.plan.sequence());  // of every sequence
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == 0 || e.model->encoder) continue;
    const model::Layer layer = graph::shard(e.model->kinds[i], e.plan);
    const model::Attention& a = layer.attention;
    const auto add = [&](Kind kind) {
      const auto same = std::ranges::find_if(kinds_, [&](const Kind& k) {
        return k.token == kind.token && k.window == kind.window && k.state == kind.state && k.chunked == kind.chunked;
      });
      if (same == kinds_.end()) {
        kinds_.push_back(kind);
      } else {
        same->layers += kind.layers;
      }
    };
    if (const Bytes state = cost::layer_state_bytes(e, layer); state.value > 0) {
      state_ += state * d(layers[i]);
      if (layer.recurrent) add({.layers = layers[i], .token = state.value, .state = true});
    }
    if (!layer.attends() || a.shares_cache) continue;
    constexpr std::int64_t kMany = 1 << 20;
    const auto per_token = [&](std::int64_t kept, std::int64_t tokens) {
      return cost::layer_kv_bytes(e.kv, a, kept, tokens).value * share / d(kMany);
    };
    const bool windowed = e.window(a).has_value();
    if (a.compression || (a.one_vector && windowed)) {
      compressed_ = &e.model->kinds[i].attention;
      cached_bits_ = e.kv.keys.bits;
      entries_[!a.compression ? 0 : a.indexer ? 1 : 2] += layers[i];
    }
    const double growing = per_token(windowed ? 0 : kMany, kMany);
    if (growing > 0) add({.layers = layers[i], .token = growing});
    if (windowed) {
      add({.layers = layers[i],
           .token = per_token(kMany, 0),
           .window = rules_.windows_are_full ? 0 : e.cached_tokens(a, std::int64_t{1} << 40),
           .chunked = a.chunked});
    }
  }
}

void KvPool::lay_out() {
  parts_.clear();
  page_ = {};
  page_tokens_ = rules_.page;
  if (rules_.layout == PoolRules::Layout::slots) {
    lay_out_slots();
  } else if (compressed_ != nullptr) {
    lay_out_compressed();
  } else {
    lay_out_pages();
  }
}

void KvPool::lay_out_slots() {
  double all = 0;
  for (const Kind& kind : kinds_) {
    if (!kind.state) all += kind.token * d(kind.layers) * (kind.window > 0 ? rules_.window_share : 1);
  }
  // A server that keeps states for so many sequences takes their room off first.
  if (rules_.state_share > 0 && has_states()) all *= 1 + rules_.state_share;
  page_ = Bytes{all} * d(rules_.page);
  // Windows that have slots of their own, or states, never hold a sequence back.
  if (rules_.window_share != 1 || rules_.state_share > 0) {
    parts_ = {{1, rules_.page, 0, 0}};
  } else {
    for (const Kind& kind : kinds_) {
      if (!kind.state && all > 0) parts_.push_back({kind.token * d(kind.layers) / all, rules_.page, kind.window, 0});
    }
  }
  // Without a share of their own states take their room out of the same.
  if (has_states() && rules_.state_share == 0 && all > 0) parts_.push_back({state_ / page_, 0, 0, 1});
}

void KvPool::one_group(std::int64_t tokens) {
  double bytes = 0;
  for (const Kind& kind : kinds_) bytes += kind.token * d(kind.layers) * d(tokens);
  page_ = Bytes{bytes};
  page_tokens_ = tokens;
  parts_ = {part(1, tokens, kinds_.empty() ? Kind{} : kinds_.front())};
}

// Windows begin in the middle of a page; what is cut into chunks does not.
KvPool::Part KvPool::part(double groups, std::int64_t tokens, const Kind& kind) {
  if (kind.window == 0) return {groups, tokens, 0, 0};
  return {groups, tokens, kind.window - (kind.chunked ? 0 : 1), kind.chunked ? 0 : 1};
}

void KvPool::lay_out_pages() {
  const bool alike = std::ranges::all_of(kinds_, [&](const Kind& kind) {
    return !kind.state && kind.window == kinds_.front().window && kind.chunked == kinds_.front().chunked;
  });
  if (alike) return one_group(rules_.page);
  double token = 0;
  double state = 0;
  std::int64_t fewest = kinds_.front().layers;
  std::int64_t most = 0;
  for (const Kind& kind : kinds_) {
    (kind.state ? state : token) = std::max(kind.state ? state : token, kind.token);
    fewest = std::min(fewest, kind.layers);
    most = std::max(most, kind.layers);
  }
  const double tokens = token > 0 ? round_up(std::max(d(rules_.page), state / token), d(rules_.page)) : 1;
  const double page = token > 0 ? token * tokens : state;
  const std::int64_t group = d(most) < kNearlyAlike * d(fewest) ? most : fewest;
  page_ = Bytes{page * d(group)};
  page_tokens_ = static_cast<std::int64_t>(tokens);
  for (const Kind& kind : kinds_) {
    const double groups = d(divide_up(kind.layers, group));
    if (kind.state) {
      parts_.push_back({groups, 0, 0, rules_.state_pages});
      continue;
    }
    const auto held = static_cast<std::int64_t>(std::floor(page / kind.token));
    const std::int64_t in_page = std::max<std::int64_t>(1, held / rules_.page) * rules_.page;
    parts_.push_back(part(groups, in_page, kind));
  }
}

// Rows of latents are aligned to 576 bytes: keys in fp8 with rotated ones in 16 bits and 8 bytes of scales, 64 to a
// page; of index keys as many, in fp8 with a scale; the few that stand for 128 tokens. What compressors wait with are
// keys and gates of each token in fp32, kept like a window of as many tokens as an entry is made of.
void KvPool::lay_out_compressed() {
  constexpr double kAligned = 576;
  constexpr std::int64_t kRows = 64;
  const model::Attention& a = *compressed_;
  const double row = cached_bits_ > 8 ? 2.0 * d(a.head_dim) : d(a.head_dim - a.rotary_dim) + 2.0 * d(a.rotary_dim) + 8;
  constexpr std::int64_t kFine = 4;      // tokens of an entry beside index keys, and of a page of its state
  constexpr std::int64_t kCoarse = 128;  // … without them
  constexpr std::int64_t kCoarsePage = 8;
  constexpr double kIndexRow = 132;
  const double keys = round_up(d(kRows) * row, kAligned);
  const double index = round_up(d(kRows) * kIndexRow, kAligned);
  const double coarse = round_up(d(rules_.compressed_page) / d(kCoarse) * row, kAligned);
  const double fine_layers = d(entries_[1]);
  const double coarse_layers = d(entries_[2]);
  const double all = fine_layers + coarse_layers + d(entries_[0]);
  const double window_groups = std::max(1.0, std::round(all / std::max(1.0, std::max(fine_layers, coarse_layers))));
  const double tuples = std::max({std::ceil(all / window_groups), fine_layers, coarse_layers});
  const double largest = fine_layers * (keys + index) + coarse_layers * coarse;
  page_ = Bytes{rules_.one_of_each ? tuples * (keys + index + coarse) : std::max(largest, tuples * keys)};
  page_tokens_ = rules_.compressed_page;
  parts_ = {{1, rules_.compressed_page, 0, 0},
            {window_groups, kRows, a.window.value_or(kCoarse) - 1, 1},
            {fine_layers > 0 ? 1.0 : 0.0, kFine, 2 * kFine - 1, 1},
            {coarse_layers > 0 ? 1.0 : 0.0, kCoarsePage, kCoarse - 1, 1}};
}

double KvPool::pages(std::int64_t tokens, std::int64_t in_flight) const {
  double sum = 0;
  const std::int64_t flying = rules_.layout == PoolRules::Layout::pages ? in_flight : 0;  // slots are freed at once
  for (const Part& part : parts_) {
    const std::int64_t held = part.window > 0 ? std::min(part.window + flying, tokens) : tokens;
    sum += part.groups * d((part.tokens > 0 ? divide_up(held, part.tokens) : 0) + part.more);
  }
  return std::max(1.0, sum);
}

double KvPool::groups() const {
  double groups = 0;
  for (const Part& part : parts_) groups += part.groups;
  return std::max(1.0, groups);
}

std::int64_t KvPool::tokens_in_all_groups(std::int64_t blocks) const {
  return static_cast<std::int64_t>(d(blocks) / groups()) * page_tokens_;
}

}  // namespace llmperf::estimate
