// How many devices a token goes to. Its k experts are any k of the s = M E / G experts of the M groups that it picked
// of G. Of a part of the experts that holds h of these s it misses all with the chance
//
//   miss(h) = C(s - h, k) / C(s, k) = product over i < k of (s - h - i) / (s - i)
//
// A part of `held` experts has w = floor(held / (E / G)) whole groups and r = held mod (E / G) experts of one more. Of
// its w groups the token picks j, and the partial one (p = 1) or not (p = 0), with the chance of drawing M groups
// without putting them back: C(w, j) C(G - w - [r > 0], M - j - p) / C(G, M). So
//
//   reached = 1 - sum over j and p of that chance times miss(j E / G + p r)
//
// With one group it is 1 - miss(held). The experts of n devices are n parts that each token reaches with this chance,
// those of a node of m devices a part of m times as many.
#include "graph/op.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "graph/keys_read.h"

namespace llmperf::graph {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 7> kCollectiveNames = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "ring pass", "broadcast"};
constexpr std::array<std::string_view, 8> kAxisNames = {"tensor", "tensor rows", "tensor columns", "ulysses",
                                                        "ring",   "expert",      "data",           "pipeline"};

constexpr std::array<std::string_view, 4> kPlaceNames = {"device", "host", "link", "network"};

// The name of every tag in every pass, made of the list of tags when this is compiled.
constexpr std::array<std::string_view, 6> kPassNames = {"", " backward", " dgrad", " wgrad", " wgrad sum", " again"};
static_assert(static_cast<std::size_t>(Pass::again) + 1 == kPassNames.size());
struct TagName {
  std::array<char, 32> letters = {};
  std::size_t size = 0;
  constexpr void add(std::string_view text) {
    for (const char c : text) letters.at(size++) = c;
  }
};
constexpr auto kTagNames = [] {
  constexpr auto kTags = static_cast<std::size_t>(std::count(kTagWords.begin(), kTagWords.end(), ',') + 1);
  std::array<std::array<TagName, kPassNames.size()>, kTags> names = {};
  std::string_view rest = kTagWords.substr(kTagWords.find(' ') + 1);  // none has no name
  for (std::size_t tag = 1; tag < kTags; ++tag) {
    const std::string_view word = rest.substr(0, rest.find(','));
    for (std::size_t pass = 0; pass < kPassNames.size(); ++pass) {
      names[tag][pass].add(word);
      names[tag][pass].add(kPassNames[pass]);
    }
    rest.remove_prefix(std::min(rest.size(), word.size() + 2));
  }
  return names;
}();

static_assert(static_cast<std::size_t>(CollectiveKind::broadcast) + 1 == kCollectiveNames.size());
static_assert(static_cast<std::size_t>(Axis::pipeline) + 1 == kAxisNames.size());

// n over k; 0 outside.
double choose(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  double ways = 1;
  for (std::int64_t i = 0; i < k; ++i) ways *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return ways;
}

// The chance to pick `picks` of `all` without picking any of `held`.
double miss(std::int64_t all, std::int64_t held, std::int64_t picks) {
  if (held + picks > all) return 0;
  double chance = 1;
  for (std::int64_t i = 0; i < picks; ++i) chance *= static_cast<double>(all - held - i) / static_cast<double>(all - i);
  return chance;
}

}  // namespace

double keys_read(const Attention& a) { return keys_of_tiles<double>(a); }

double reached(const Routing& r, std::int64_t held) {
  const std::int64_t group = r.experts / r.groups;
  const std::int64_t whole = held / group;
  const std::int64_t rest = held % group;
  const std::int64_t partial = rest > 0 ? 1 : 0;
  double missed = 0;
  for (std::int64_t j = 0; j <= std::min(whole, r.groups_per_token); ++j) {
    for (std::int64_t p = 0; p <= partial; ++p) {
      const double picked = choose(whole, j) * choose(r.groups - whole - partial, r.groups_per_token - j - p) /
                            choose(r.groups, r.groups_per_token);
      missed += picked * miss(r.groups_per_token * group, j * group + p * rest, r.per_token);
    }
  }
  return 1 - missed;
}

std::string_view name(CollectiveKind kind) { return kCollectiveNames[static_cast<std::size_t>(kind)]; }
std::string_view name(Axis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }
std::string_view name(Place place) { return kPlaceNames[static_cast<std::size_t>(place)]; }
std::string_view name(Tag tag, Pass pass) {
  const TagName& name = kTagNames[static_cast<std::size_t>(tag)][static_cast<std::size_t>(pass)];
  return {name.letters.data(), name.size};
}

}  // namespace llmperf::graph
