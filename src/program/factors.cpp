#include "program/factors.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "program/extents.h"
#include "program/work.h"

namespace llmperf::program {
namespace {

class Rules {
 public:
  Rules(const Program& program, const Node& node) : program_(program), node_(node), i_(*node.instruction) {
    for (const TensorId t : node.operands) f_.operands.emplace_back(program.type(t).dims.size(), kWhole);
    for (const TensorId t : node.results) f_.results.emplace_back(program.type(t).dims.size(), kWhole);
  }

  OpFactors run() {
    if (node_.results.empty() || !apply()) f_.known = f_.operands.empty();
    f_.divides.resize(static_cast<std::size_t>(f_.count));
    return std::move(f_);
  }

 private:
  const Integers& operand(std::size_t n) const { return program_.type(node_.operands[n]).dims; }
  const Integers& result(std::size_t n = 0) const { return program_.type(node_.results[n]).dims; }

  // A dimension of an operand and one of the result; places that there are not are passed over.
  void join(std::size_t operand, std::int64_t at, std::int64_t result_at) {
    auto& labels = f_.operands[operand];
    auto& result_labels = f_.results[0];
    if (at < 0 || at >= static_cast<std::int64_t>(labels.size())) return;
    if (result_at < 0 || result_at >= static_cast<std::int64_t>(result_labels.size())) return;
    int& there = result_labels[result_at];
    if (there == kWhole) there = f_.count++;
    labels[at] = there;
  }
  // Dimensions that go together by the text; those of a broadcast that only the result has are free. False where the
  // text and the result do not match.
  bool link(const std::vector<Link>& links, bool broadcasts) {
    if (broadcasts) {
      for (int& label : f_.results[0]) label = f_.count++;
    }
    std::map<std::int64_t, int> sums;  // factors that no result has
    std::set<std::int64_t> places;
    for (const auto& [o, at, to] : links) {
      if (to >= 0) places.insert(to);
      if (at < 0 || at >= static_cast<std::int64_t>(operand(o).size())) continue;
      if (to < 0) {
        const auto [sum, fresh] = sums.try_emplace(to, f_.count);
        if (fresh) ++f_.count;
        f_.operands[o][at] = sum->second;
      } else if (to < static_cast<std::int64_t>(result().size()) && operand(o)[at] == result()[to]) {
        join(o, at, to);
      }
    }
    const auto rank = static_cast<std::int64_t>(result().size());
    if (!places.empty() && *places.rbegin() >= rank) return false;
    for (auto& labels : f_.results) {
      if (i_.op() == "reduce") labels = f_.results[0];
    }
    const bool some = broadcasts || i_.op() == "gather" || i_.op() == "dynamic_gather";  // of the result's dimensions
    return some || static_cast<std::int64_t>(places.size()) == rank;
  }

  bool apply() {
    const std::string_view op = i_.op();
    std::vector<const Type*> types;
    for (const TensorId t : node_.operands) types.push_back(&program_.type(t));
    if (const auto links = links_of(i_, node_.traits, types, program_.type(node_.results[0]))) {
      return link(*links, node_.traits.op_class == OpClass::broadcast);
    }
    if (op == "reshape" || op == "dynamic_reshape") return reshape();
    if (op == "scatter") return scatter();
    switch (node_.traits.op_class) {
      case OpClass::convolution: return convolution();
      case OpClass::elementwise: return alike({});
      case OpClass::movement: return alike(op == "reverse" ? integers(i_, {"dims", "dimensions"}) : Integers{});
      case OpClass::broadcast: return true;  // iota: no operands that count
      case OpClass::slice: return (op == "slice" || op == "dynamic_slice" || op == "real_dynamic_slice") && alike({});
      case OpClass::update: return op == "dynamic_update_slice" && alike({});
      case OpClass::sort: return alike({sort_dimension(op)});
      case OpClass::window: return window();
      case OpClass::transform:
        return last_whole(static_cast<std::int64_t>(integers(i_, {"length", "fft_length"}).size()));
      case OpClass::factorization: return last_whole(2);
      case OpClass::free: return alike({});
      default: return false;
    }
  }

  // Dimensions of the same extent at the same place go together, but for those in `whole`.
  bool alike(const Integers& whole) {
    for (std::size_t r = 0; r < f_.results.size(); ++r) {
      if (result(r).size() != result().size()) continue;
      for (std::size_t d = 0; d < result(r).size(); ++d) {
        if (contains(whole, d) || result(r)[d] != result()[d]) continue;
        if (f_.results[0][d] == kWhole) f_.results[0][d] = f_.count++;
        f_.results[r][d] = f_.results[0][d];
      }
    }
    for (std::size_t o = 0; o < f_.operands.size(); ++o) {
      if (operand(o).size() != result().size()) continue;
      for (std::size_t d = 0; d < result().size(); ++d) {
        if (operand(o)[d] == result()[d]) f_.operands[o][d] = f_.results[0][d];
      }
    }
    // What an operand has in another extent (cut, padded, put together) cannot stay divided in the result.
    for (std::size_t o = 0; o < f_.operands.size(); ++o) {
      if (operand(o).size() != result().size()) continue;
      for (std::size_t d = 0; d < result().size(); ++d) {
        const bool repeated = operand(o)[d] == 1 && node_.traits.op_class == OpClass::elementwise;
        if (operand(o)[d] != result()[d] && !repeated) unjoin(d);
      }
    }
    return true;
  }
  void unjoin(std::size_t dim) {
    const int label = f_.results[0][dim];
    if (label == kWhole) return;
    const auto clear = [&](auto& all) {
      for (auto& labels : all) std::ranges::replace(labels, label, kWhole);
    };
    clear(f_.operands);
    clear(f_.results);
  }

  bool last_whole(std::int64_t count) {
    Integers whole;
    const auto rank = static_cast<std::int64_t>(result().size());
    for (std::int64_t d = std::max<std::int64_t>(0, rank - std::max<std::int64_t>(1, count)); d < rank; ++d) {
      whole.push_back(d);
    }
    return alike(whole);
  }

  std::int64_t sort_dimension(std::string_view op) const {
    const Integers given = integers(i_, {"dimension"});
    return op == "sort" && !given.empty() && given[0] >= 0 ? given[0] : static_cast<std::int64_t>(result().size()) - 1;
  }

  // Extents are read outwards in groups of equal product; in a group the outermost extents above 1 go together.
  bool reshape() {
    if (f_.operands.empty()) return false;
    const Integers& from = operand(0);
    const Integers& to = result();
    std::size_t a = 0;
    std::size_t b = 0;
    while (a < from.size() && b < to.size()) {
      if (from[a] == 1 && to[b] != 1) {
        ++a;
        continue;
      }
      if (to[b] == 1 && from[a] != 1) {
        ++b;
        continue;
      }
      const std::size_t first_a = a;
      const std::size_t first_b = b;
      double left = static_cast<double>(from[a++]);
      double right = static_cast<double>(to[b++]);
      while (left != right && (a < from.size() || b < to.size())) {
        if (left < right && a < from.size()) {
          left *= static_cast<double>(from[a++]);
        } else if (right < left && b < to.size()) {
          right *= static_cast<double>(to[b++]);
        } else {
          return true;  // extents of 0
        }
      }
      join(0, static_cast<std::int64_t>(first_a), static_cast<std::int64_t>(first_b));
      const bool same = a == first_a + 1 && b == first_b + 1;
      f_.divides.resize(static_cast<std::size_t>(f_.count));
      f_.divides.back() = same ? 0 : std::gcd(from[first_a], to[first_b]);
    }
    return true;
  }

  bool window() {
    const Integers sizes = integers(i_, {"window_dimensions"});
    Integers whole;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) whole.push_back(static_cast<std::int64_t>(d));
    }
    return i_.op() == "reduce_window" && sizes.size() == result().size() && alike(whole);
  }

  // Rows of the updates written to rows of the first operand. A device that has some of those rows passes over the
  // updates of others (GSPMD as above).
  bool scatter() {
    if (f_.operands.size() != 3) return false;
    const std::string_view numbers = i_.find("scatter_dimension_numbers").value_or(std::string_view{});
    const Integers windows = field_integers(numbers, "update_window_dims");
    const Integers inserted = field_integers(numbers, "inserted_window_dims");
    const Integers batching = field_integers(numbers, "input_batching_dims");
    std::size_t next = 0;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand(0).size()); ++d) {
      if (contains(batching, d)) continue;
      if (contains(inserted, d)) {
        join(0, d, d);
        continue;
      }
      const std::int64_t from = next < windows.size() ? windows[next] : -1;
      ++next;
      if (from < 0 || from >= static_cast<std::int64_t>(operand(2).size())) continue;
      const std::int64_t window = operand(2)[from];
      const bool same = window == operand(0)[d];
      if (same || window == 1) join(0, d, d);
      if (same) join(2, from, d);
    }
    return true;
  }

  bool convolution() {
    if (f_.operands.size() < 2) return false;
    join(0, convolution_axis(i_, 0, 'b'), convolution_axis(i_, 2, 'b'));
    const Integers groups = integers(i_, {"feature_group_count"});
    const Integers batches = integers(i_, {"batch_group_count"});
    if ((!groups.empty() && groups[0] > 1) || (!batches.empty() && batches[0] > 1)) return true;
    join(1, convolution_axis(i_, 1, 'o'), convolution_axis(i_, 2, 'f'));
    // The inputs, which are summed over.
    const std::int64_t inputs[] = {convolution_axis(i_, 0, 'f'), convolution_axis(i_, 1, 'i')};
    if (std::min(inputs[0], inputs[1]) < 0) return true;
    for (const std::size_t side : {0U, 1U}) {
      if (inputs[side] < static_cast<std::int64_t>(operand(side).size())) f_.operands[side][inputs[side]] = f_.count;
    }
    ++f_.count;
    return true;
  }

  const Program& program_;
  const Node& node_;
  const Instruction& i_;
  OpFactors f_;
};

}  // namespace

bool rearranges(const Instruction& i) { return i.op() == "reshape" || i.op() == "transpose"; }

Linear linear_in(const Instruction& i, std::size_t operand) {
  const std::string_view op = i.op();
  if (op == "multiply" || (op == "divide" && operand == 0)) return Linear::alone;
  const bool sum = op == "add" || op == "subtract" || op == "negate" || op == "convert";
  return sum || rearranges(i) ? Linear::together : Linear::no;
}

OpFactors op_factors(const Program& program, const Node& node) { return Rules(program, node).run(); }

void Division::offer(const List<int>& labels, const Sharding& sharding, const Integers& dims) {
  for (std::size_t d = 0; d < std::min({labels.size(), sharding.dims.size(), dims.size()}); ++d) {
    const DeviceAxes& axes = sharding.dims[d];
    const std::int64_t parts = size_of(axes);
    if (labels[d] == kWhole || parts == 1 || parts > dims[d]) continue;
    const auto factor = static_cast<std::size_t>(labels[d]);
    if (!parts_[factor].empty() || (f_.divides[factor] > 0 && f_.divides[factor] % parts != 0)) continue;
    const bool taken = overlap(reserved_, axes) ||
                       std::ranges::any_of(parts_, [&](const DeviceAxes& other) { return overlap(other, axes); });
    if (!taken) parts_[factor] = axes;
  }
}

Sharding Division::of(const List<int>& labels) const {
  Sharding sharding;
  sharding.dims.resize(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (labels[d] != kWhole) sharding.dims[d] = parts_[labels[d]];
  }
  return sharding;
}

DeviceAxes Division::summands() const {
  DeviceAxes axes;
  for (std::size_t factor = 0; factor < parts_.size(); ++factor) {
    const bool kept =
        std::ranges::any_of(f_.results, [&](const List<int>& labels) { return contains(labels, factor); });
    if (!kept) append(axes, parts_[factor]);
  }
  return axes;
}

}  // namespace llmperf::program
