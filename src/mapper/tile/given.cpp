#include "mapper/tile/given.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "mapper/tile/study.h"

namespace llmperf::mapper::tile {
namespace {

constexpr std::size_t kSimulated = 8;  // of the best by the closed form that agree with what is given
constexpr std::string_view kExample = "grid=m8n8 block=256x128x64 a=multicast:2 b=multicast:2 results=staged panel=0";

[[noreturn]] void fail(std::string_view key, const std::string& what, const std::string& hint = {}) {
  throw Error::bad_input(fmt::format("`mapping`: {}: {}", key, what), hint);
}

std::int64_t count(std::string_view key, std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail(key, quote(text) + " is no number");
  if (value < 1 || value > most) fail(key, fmt::format("{} is not between 1 and {}", value, most));
  return value;
}

// One of some enumerators, by its name.
template <class Enum, std::size_t N>
Enum one_of(std::string_view key, std::string_view text, const std::array<Enum, N>& all) {
  std::vector<std::string> names;
  for (const Enum value : all) {
    if (name(value) == text) return value;
    names.emplace_back(name(value));
  }
  fail(key, quote(text) + " is none of " + join(names, ", "), name_hint(text, names));
}

// "m8n8"
GemmGiven::Shares shares(std::string_view text, const Machine& machine, const GemmProblem& problem) {
  GemmGiven::Shares found;
  std::string factors;
  std::int64_t product = 1;
  std::string seen;
  for (std::size_t at = 0; at < text.size();) {
    const char dimension = text[at];
    std::size_t end = at + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    int* const factor = dimension == 'm'   ? &found.m
                        : dimension == 'n' ? &found.n
                        : dimension == 'k' ? &found.k
                        : dimension == 'b' ? &found.batch
                                           : nullptr;
    if (factor == nullptr || end == at + 1 || seen.find(dimension) != std::string::npos) {
      fail("grid", quote(text) + " does not say how many tiles share each of m, n, k and b", "grid=m8n8");
    }
    seen += dimension;
    *factor = static_cast<int>(count("grid", text.substr(at + 1, end - at - 1), machine.tiles));
    product *= *factor;
    factors += fmt::format("{}{}", factors.empty() ? "" : " x ", *factor);
    at = end;
  }
  if (product != machine.tiles) {
    fail("grid", fmt::format("{} are {} tiles, and there are {}", factors, product, machine.tiles));
  }
  if (found.batch > problem.batch) {
    fail("grid",
         fmt::format("{} tiles cannot share {} product{}", found.batch, problem.batch, problem.batch == 1 ? "" : "s"));
  }
  return found;
}

// "multicast:2"
GemmGiven::Operand operand(std::string_view key, std::string_view text, bool local) {
  const std::size_t colon = text.find(':');
  GemmGiven::Operand found;
  const std::string_view feed = text.substr(0, colon);
  found.feed = one_of(key, feed, std::array{Feed::direct, Feed::multicast, Feed::ring});
  if (local && found.feed == Feed::direct) {
    fail(key, "what is in the tiles' memory reaches others over their links", "multicast or ring");
  }
  if (colon != std::string_view::npos) found.slots = static_cast<int>(count(key, text.substr(colon + 1), 2));
  return found;
}

std::vector<Choice<GemmProblem>> agreeing(const GemmGiven& given, const Machine& machine, std::span<const Grid> grids,
                                          const GemmProblem& problem, std::size_t keep) {
  Search<GemmProblem> search(machine, grids);
  search.given = given;
  return search.best(problem, keep);
}

}  // namespace

GemmGiven parse_mapping(std::string_view text, const Machine& machine, const GemmProblem& problem) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::vector<std::string> keys = {"grid", "block", "a", "b", "results", "panel", "tail", "products", "loop"};
  GemmGiven given;
  std::vector<std::string> seen;
  for (const std::string_view word : words(text)) {
    const std::size_t equals = word.find('=');
    const std::string key(word.substr(0, equals));
    if (equals == std::string_view::npos || !contains(keys, key)) {
      throw Error::bad_input(fmt::format("`mapping`: {} is not known", quote(word)), name_hint(key, keys));
    }
    if (contains(seen, key)) fail(key, "given twice");
    seen.push_back(key);
    const std::string_view value = word.substr(equals + 1);
    if (key == "grid") {
      given.grid = shares(value, machine, problem);
    } else if (key == "block") {
      const std::vector<std::string_view> sides = split(value, 'x');
      if (sides.size() != 3) fail(key, quote(value) + " has not the sides along m, n and k", "block=256x128x64");
      const std::array targets = {&given.bm, &given.bn, &given.bk};
      for (std::size_t i = 0; i < sides.size(); ++i) {
        if (sides[i] != "*") *targets[i] = count(key, sides[i], kMost);
      }
    } else if (key == "a") {
      given.a = operand(key, value, problem.a_local);
    } else if (key == "b") {
      given.b = operand(key, value, problem.b_local);
    } else if (key == "results") {
      given.results = one_of(key, value, std::array{Results::in_place, Results::staged, Results::doubled});
    } else if (key == "panel") {
      given.panel = value == "all" ? kMost : value == "0" ? 0 : count(key, value, kMost);
    } else if (key == "tail") {
      given.tail = count(key, value, kMostPieces);
    } else if (key == "products") {
      given.bb = count(key, value, problem.batch);
    } else if (value == "n,m" || value == "m,n") {
      given.is_transposed = value == "m,n";
    } else {
      fail(key, quote(value) + " is neither n,m nor m,n");
    }
  }
  if (seen.empty()) throw Error::bad_input("`mapping`: it says nothing", std::string(kExample));
  return given;
}

Mapped<GemmProblem>::One complete(const GemmGiven& given, const Machine& machine, std::span<const Grid> grids,
                                  const GemmProblem& problem) {
  Mapped<GemmProblem>::One fastest;
  for (const Choice<GemmProblem>& choice : agreeing(given, machine, grids, problem, kSimulated)) {
    const double seconds = selected_seconds(machine, problem, choice);
    if (fastest.choice.mapping.grid == nullptr || seconds < fastest.simulated) fastest = {choice, seconds};
  }
  if (fastest.choice.mapping.grid != nullptr) return fastest;
  Machine large = machine;
  large.sram = 1e18;
  if (agreeing(given, large, grids, problem, 1).empty()) {
    throw Error::bad_input("`mapping`: what it says does not go together",
                           machine.multicast_senders
                               ? "operands that tiles share come to them by multicast"
                               : "several products in a block need blocks of all of a tile's m and n");
  }
  const double needed = least_sram(machine, problem.local_bytes(machine.tiles), [&](const Machine& other) {
    return !agreeing(given, other, grids, problem, 1).empty();
  });
  throw Error::infeasible(fmt::format("`mapping`: it needs {} of a tile, and there are {}",
                                      format_bytes_binary(Bytes{needed}), format_bytes_binary(Bytes{machine.sram})));
}

std::string mapping_text(const GemmProblem& problem, const GemmMapping& map) {
  const bool turned = map.transposed;
  const GemmProblem::Extent e = extent_of(as_mapped(problem, map), map);
  const Grid& g = *map.grid;
  std::string text = "grid=";
  const auto share = [&](char dimension, int tiles) {
    if (tiles > 1) text += fmt::format("{}{}", dimension, tiles);
  };
  share('b', g.batch);
  share('m', turned ? g.n : g.m);
  share('n', turned ? g.m : g.n);
  share('k', g.k);
  if (text == "grid=") text += "m1";
  const auto stream = [](const Stream& s) { return fmt::format("{}:{}", name(s.feed), s.slots); };
  text += fmt::format(" block={}x{}x{} a={} b={} results={} panel={} tail={}", turned ? e.n.block : e.m.block,
                      turned ? e.m.block : e.n.block, e.k.block, stream(turned ? map.b : map.a),
                      stream(turned ? map.a : map.b), name(map.results), map.panel, map.tail);
  if (problem.batch > 1) text += fmt::format(" products={}", map.bb);
  return text + (turned ? " loop=m,n" : " loop=n,m");
}

}  // namespace llmperf::mapper::tile
