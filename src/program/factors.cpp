#include "program/factors.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "program/work.h"

namespace llmperf::program {
namespace {

using Dims = std::vector<std::int64_t>;

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
  const Dims& operand(std::size_t n) const { return program_.type(node_.operands[n]).dims; }
  const Dims& result(std::size_t n = 0) const { return program_.type(node_.results[n]).dims; }

  // A dimension of an operand and one of the result; places that there are not are passed over.
  void join(std::size_t operand, std::int64_t at, std::int64_t result_at) {
    auto& labels = f_.operands[operand];
    auto& result_labels = f_.results[0];
    if (at < 0 || at >= static_cast<std::int64_t>(labels.size())) return;
    if (result_at < 0 || result_at >= static_cast<std::int64_t>(result_labels.size())) return;
    int& there = result_labels[static_cast<std::size_t>(result_at)];
    if (there == kWhole) there = f_.count++;
    labels[static_cast<std::size_t>(at)] = there;
  }
  // A factor of these operand dimensions that no result has.
  void sum(std::initializer_list<std::pair<std::size_t, std::int64_t>> places) {
    for (const auto& [operand, at] : places) {
      if (at < 0 || at >= static_cast<std::int64_t>(f_.operands[operand].size())) return;
    }
    for (const auto& [operand, at] : places) f_.operands[operand][static_cast<std::size_t>(at)] = f_.count;
    ++f_.count;
  }

  bool apply() {
    const std::string_view op = i_.op();
    if (op == "broadcast_in_dim" || op == "dynamic_broadcast_in_dim" || op == "broadcast") return broadcast(op);
    if (op == "transpose") return transpose();
    if (op == "reshape" || op == "dynamic_reshape") return reshape();
    if (op == "gather" || op == "dynamic_gather") return gather();
    if (op == "scatter") return scatter();
    if (op == "reduce") return reduce();
    switch (node_.traits.op_class) {
      case OpClass::product: return product();
      case OpClass::convolution: return convolution();
      case OpClass::elementwise: return alike({});
      case OpClass::movement: return alike(op == "reverse" ? integers(i_, {"dims", "dimensions"}) : Dims{});
      case OpClass::broadcast: return true;  // iota: no operands that count
      case OpClass::slice: return slice(op);
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
  bool alike(const Dims& whole) {
    for (std::size_t r = 0; r < f_.results.size(); ++r) {
      if (result(r).size() != result().size()) continue;
      for (std::size_t d = 0; d < result(r).size(); ++d) {
        if (contains(whole, static_cast<std::int64_t>(d)) || result(r)[d] != result()[d]) continue;
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
      for (auto& labels : all) std::replace(labels.begin(), labels.end(), label, kWhole);
    };
    clear(f_.operands);
    clear(f_.results);
  }

  bool last_whole(std::int64_t count) {
    Dims whole;
    const auto rank = static_cast<std::int64_t>(result().size());
    for (std::int64_t d = std::max<std::int64_t>(0, rank - std::max<std::int64_t>(1, count)); d < rank; ++d) {
      whole.push_back(d);
    }
    return alike(whole);
  }

  std::int64_t sort_dimension(std::string_view op) const {
    const Dims given = integers(i_, {"dimension"});
    return op == "sort" && !given.empty() && given[0] >= 0 ? given[0] : static_cast<std::int64_t>(result().size()) - 1;
  }

  bool broadcast(std::string_view op) {
    if (f_.operands.empty()) return false;
    const auto shift = static_cast<std::int64_t>(result().size()) - static_cast<std::int64_t>(operand(0).size());
    const Dims places = integers(i_, {"dims", "broadcast_dimensions"});
    for (std::size_t d = 0; d < result().size(); ++d) f_.results[0][d] = f_.count++;
    for (std::size_t d = 0; d < operand(0).size(); ++d) {
      const std::int64_t to = op == "broadcast"   ? static_cast<std::int64_t>(d) + shift
                              : d < places.size() ? places[d]
                                                  : -1;
      if (to < 0 || to >= static_cast<std::int64_t>(result().size())) return false;
      if (operand(0)[d] == result()[static_cast<std::size_t>(to)]) join(0, static_cast<std::int64_t>(d), to);
    }
    return true;
  }

  bool transpose() {
    if (f_.operands.empty()) return false;
    const Dims order = integers(i_, {"dims", "permutation"});
    if (order.size() != result().size()) return false;
    for (std::size_t d = 0; d < order.size(); ++d) join(0, order[d], static_cast<std::int64_t>(d));
    return true;
  }

  // Extents are read outwards in groups of equal product; in a group the outermost extents above 1 go together.
  bool reshape() {
    if (f_.operands.empty()) return false;
    const Dims& from = operand(0);
    const Dims& to = result();
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

  bool product() {
    if (f_.operands.size() < 2) return false;
    const DotDimensions dims = dot_dimensions(i_, program_.type(node_.operands[0]), program_.type(node_.operands[1]));
    std::int64_t at = 0;
    for (std::size_t n = 0; n < std::min(dims.batch[0].size(), dims.batch[1].size()); ++n, ++at) {
      for (std::size_t side = 0; side < 2; ++side) join(side, dims.batch[side][n], at);
    }
    for (std::size_t side = 0; side < 2; ++side) {
      for (const std::int64_t free : dims.free(static_cast<int>(side), program_.type(node_.operands[side]))) {
        join(side, free, at++);
      }
    }
    for (std::size_t n = 0; n < std::min(dims.contracted[0].size(), dims.contracted[1].size()); ++n) {
      sum({{0, dims.contracted[0][n]}, {1, dims.contracted[1][n]}});
    }
    return at == static_cast<std::int64_t>(result().size());
  }

  bool reduce() {
    const Dims reduced = integers(i_, {"dimensions"});
    const std::size_t inputs = f_.operands.size() / 2;
    if (inputs == 0) return false;
    std::int64_t at = 0;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand(0).size()); ++d) {
      if (contains(reduced, d)) {
        for (std::size_t n = 0; n < inputs; ++n) {
          if (d < static_cast<std::int64_t>(f_.operands[n].size()))
            f_.operands[n][static_cast<std::size_t>(d)] = f_.count;
        }
        ++f_.count;
        continue;
      }
      for (std::size_t n = 0; n < inputs; ++n) join(n, d, at);
      ++at;
    }
    for (auto& labels : f_.results) labels = f_.results[0];
    return at == static_cast<std::int64_t>(result().size());
  }

  bool slice(std::string_view op) {
    if (op == "slice" || op == "dynamic_slice" || op == "real_dynamic_slice") return alike({});
    return false;
  }

  bool window() {
    const Dims sizes = integers(i_, {"window_dimensions"});
    Dims whole;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) whole.push_back(static_cast<std::int64_t>(d));
    }
    return i_.op() == "reduce_window" && sizes.size() == result().size() && alike(whole);
  }

  // Rows of a table by index. A device that has some of the rows answers for those with zeros in the other places, so
  // that a division of the rows is one of summands (GSPMD: Xu et al. 2021, arXiv 2105.04663, section on Gather).
  bool gather() {
    if (f_.operands.size() < 2) return false;
    const std::string_view numbers = i_.find("dimension_numbers").value_or(std::string_view{});
    const Dims offset = field_integers(numbers, "offset_dims");
    const Dims collapsed = field_integers(numbers, "collapsed_slice_dims");
    const Dims batching = field_integers(numbers, "operand_batching_dims");
    const Dims indices_batching = field_integers(numbers, "start_indices_batching_dims");
    const Dims mapped = field_integers(numbers, "start_index_map");
    const Dims vector = field_integers(numbers, "index_vector_dim");
    const Dims sizes = integers(i_, {"slice_sizes"});
    std::size_t next_offset = 0;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand(0).size()); ++d) {
      const bool is_batch = contains(batching, d);
      if (!is_batch && !contains(collapsed, d)) {
        const std::int64_t to = next_offset < offset.size() ? offset[next_offset] : -1;
        ++next_offset;
        const auto at = static_cast<std::size_t>(d);
        if (at < sizes.size() && sizes[at] == operand(0)[at]) join(0, d, to);
      } else if (!is_batch && contains(mapped, d)) {
        sum({{0, d}});
      }
    }
    std::int64_t at = 0;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(operand(1).size()); ++d) {
      if (!vector.empty() && vector[0] == d) continue;
      while (contains(offset, at)) ++at;
      join(1, d, at);
      for (std::size_t n = 0; n < std::min(indices_batching.size(), batching.size()); ++n) {
        if (indices_batching[n] == d) join(0, batching[n], at);
      }
      ++at;
    }
    return true;
  }

  // Rows of the updates written to rows of the first operand. A device that has some of those rows passes over the
  // updates of others (GSPMD as above).
  bool scatter() {
    if (f_.operands.size() != 3) return false;
    const std::string_view numbers = i_.find("scatter_dimension_numbers").value_or(std::string_view{});
    const Dims windows = field_integers(numbers, "update_window_dims");
    const Dims inserted = field_integers(numbers, "inserted_window_dims");
    const Dims batching = field_integers(numbers, "input_batching_dims");
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
      const std::int64_t window = operand(2)[static_cast<std::size_t>(from)];
      const bool same = window == operand(0)[static_cast<std::size_t>(d)];
      if (same || window == 1) join(0, d, d);
      if (same) join(2, from, d);
    }
    return true;
  }

  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], or input_batch_dimension = 0 and so on.
  bool convolution() {
    const auto text = convolution_numbers(i_);
    if (!text || f_.operands.size() < 2) return false;
    const bool raw = text->find("]x[") == std::string_view::npos || text->find("->") == std::string_view::npos;
    const auto place = [&](std::size_t bracket, char letter, std::string_view key) {
      constexpr std::size_t kMostDimensions = 64;
      const Dims value = raw ? field_integers(*text, key) : Dims{};
      const auto axis = raw ? std::nullopt : axis_of(*text, bracket, letter, kMostDimensions);
      return axis ? static_cast<std::int64_t>(*axis) : value.empty() ? -1 : value[0];
    };
    join(0, place(0, 'b', "input_batch_dimension"), place(2, 'b', "output_batch_dimension"));
    const Dims groups = integers(i_, {"feature_group_count"});
    const Dims batches = integers(i_, {"batch_group_count"});
    if ((!groups.empty() && groups[0] > 1) || (!batches.empty() && batches[0] > 1)) return true;
    join(1, place(1, 'o', "kernel_output_feature_dimension"), place(2, 'f', "output_feature_dimension"));
    sum({{0, place(0, 'f', "input_feature_dimension")}, {1, place(1, 'i', "kernel_input_feature_dimension")}});
    return true;
  }

  const Program& program_;
  const Node& node_;
  const Instruction& i_;
  OpFactors f_;
};

}  // namespace

Linear linear_in(const Instruction& i, std::size_t operand) {
  const std::string_view op = i.op();
  if (op == "multiply" || (op == "divide" && operand == 0)) return Linear::alone;
  const bool sum = op == "add" || op == "subtract" || op == "negate" || op == "convert";
  return sum || op == "reshape" || op == "transpose" ? Linear::together : Linear::no;
}

OpFactors op_factors(const Program& program, const Node& node) { return Rules(program, node).run(); }

void Division::offer(const std::vector<int>& labels, const Sharding& sharding, const std::vector<std::int64_t>& dims) {
  for (std::size_t d = 0; d < std::min({labels.size(), sharding.dims.size(), dims.size()}); ++d) {
    const DeviceAxes& axes = sharding.dims[d];
    const std::int64_t parts = size_of(axes);
    if (labels[d] == kWhole || parts == 1 || parts > dims[d]) continue;
    const auto factor = static_cast<std::size_t>(labels[d]);
    if (!parts_[factor].empty() || (f_.divides[factor] > 0 && f_.divides[factor] % parts != 0)) continue;
    const bool taken =
        overlap(reserved_, axes) ||
        std::any_of(parts_.begin(), parts_.end(), [&](const DeviceAxes& other) { return overlap(other, axes); });
    if (!taken) parts_[factor] = axes;
  }
}

Sharding Division::of(const std::vector<int>& labels) const {
  Sharding sharding;
  sharding.dims.resize(labels.size());
  for (std::size_t d = 0; d < labels.size(); ++d) {
    if (labels[d] != kWhole) sharding.dims[d] = parts_[static_cast<std::size_t>(labels[d])];
  }
  return sharding;
}

DeviceAxes Division::summands() const {
  DeviceAxes axes;
  for (std::size_t factor = 0; factor < parts_.size(); ++factor) {
    const bool kept = std::any_of(f_.results.begin(), f_.results.end(), [&](const std::vector<int>& labels) {
      return std::find(labels.begin(), labels.end(), static_cast<int>(factor)) != labels.end();
    });
    if (!kept) axes.insert(axes.end(), parts_[factor].begin(), parts_[factor].end());
  }
  return axes;
}

}  // namespace llmperf::program
