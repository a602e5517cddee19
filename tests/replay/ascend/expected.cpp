// Naive versions of every op on the operands of operands.h: what the stand-in's kernels, reached through the backend,
// are compared with. Written from operands.h alone.
#include <algorithm>
#include <cmath>

#include "replay/operands.h"
#include "support.h"

namespace llmperf::replay::ascend {
namespace {

using measure::OpRow;
using Values = std::vector<double>;

double rounded(double value, Dtype dtype) {
  if (dtype == Dtype::fp16) return static_cast<double>(from_fp16(to_fp16(static_cast<float>(value))));
  if (dtype == Dtype::bf16) return static_cast<double>(from_bf16(to_bf16(static_cast<float>(value))));
  return value;
}

struct Operand {
  std::uint32_t number;
  Dtype dtype;
  double scale = 1;
  double offset = 0;
  double operator[](std::int64_t i) const {
    return rounded(static_cast<double>(fill_value(number, static_cast<std::uint64_t>(i))) * scale + offset, dtype);
  }
};

Values product(const measure::GemmShape& s, Dtype dtype) {
  const double column = 1 / std::sqrt(static_cast<double>(s.k));
  const bool quantized = s.weights == "w8a8" || dtype == Dtype::int8;
  const double largest = s.weights.empty() && !quantized ? 0 : s.weights.starts_with("w4") ? 7 : 127;
  const Operand x = {0, dtype};
  const Operand w = {1, dtype, column};
  const auto integer = [](std::uint32_t operand, std::int64_t i, double most) {
    return std::round(most * static_cast<double>(fill_value(operand, static_cast<std::uint64_t>(i))));
  };
  Values out;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < s.k; ++l) {
          const std::int64_t left = (b * s.m + i) * s.k + l;
          const std::int64_t right = (b * s.n + j) * s.k + l;
          const double a = quantized ? integer(0, left, 127) / 127 : x[left];
          sum += a * (largest > 0 ? integer(1, right, largest) * column / largest : w[right]);
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

// Every token's picks weigh alike: 1 / topk is part of what their sum is made with.
Values mixture(const measure::ExpertsShape& s, Dtype dtype) {
  const std::int64_t width = s.inter / s.tp;
  const Operand x = {0, dtype};
  const bool int8 = !s.weights.empty();
  const auto weight = [&](std::uint32_t operand, std::int64_t i, std::int64_t k) {
    const double scale = 1 / std::sqrt(static_cast<double>(k));
    const auto value = static_cast<double>(fill_value(operand, static_cast<std::uint64_t>(i)));
    return int8 ? std::round(127 * value) / 127 * scale : rounded(value * scale, dtype);
  };
  Values out(static_cast<std::size_t>(s.m * s.hidden), 0.0);
  for (std::int64_t row = 0; row < s.m * s.topk; ++row) {
    const std::int64_t token = row / s.topk;
    const std::int64_t expert = row % s.experts;
    Values inner;
    for (std::int64_t i = 0; i < 2 * width; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < s.hidden; ++l) {
        sum += x[token * s.hidden + l] * weight(1, (expert * 2 * width + i) * s.hidden + l, s.hidden);
      }
      inner.push_back(sum);
    }
    for (std::int64_t i = 0; i < s.hidden; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < width; ++l) {
        const double gate = inner[static_cast<std::size_t>(l)];
        sum += gate / (1 + std::exp(-gate)) * inner[static_cast<std::size_t>(width + l)] *
               weight(2, (expert * s.hidden + i) * width + l, width);
      }
      out[static_cast<std::size_t>(token * s.hidden + i)] += sum / static_cast<double>(s.topk);
    }
  }
  return out;
}

Values attend(const measure::AttentionShape& s, Dtype dtype) {
  const Operand q = {0, dtype};
  const Operand k = {1, dtype};
  const Operand v = {2, dtype};
  Values out;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t i = 0; i < s.q_len; ++i) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t group = h * s.kv_heads / s.heads;
        const std::int64_t seen = s.causal ? s.kv_len - s.q_len + i + 1 : s.kv_len;
        const auto key = [&](std::int64_t j) { return ((b * s.kv_len + j) * s.kv_heads + group) * s.head_dim; };
        Values weight;
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < s.head_dim; ++d) {
            score += q[((b * s.q_len + i) * s.heads + h) * s.head_dim + d] * k[key(j) + d];
          }
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(s.head_dim))));
          sum += weight.back();
        }
        for (std::int64_t d = 0; d < s.head_dim; ++d) {
          double mixed = 0;
          for (std::int64_t j = 0; j < seen; ++j) mixed += weight[static_cast<std::size_t>(j)] * v[key(j) + d];
          out.push_back(mixed / sum);
        }
      }
    }
  }
  return out;
}

void append_normed(Values& out, const Values& x, const Operand& gamma, std::int64_t width) {
  const auto n = static_cast<std::size_t>(width);
  for (std::size_t row = 0; row < x.size(); row += n) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x[row + i] * x[row + i];
    const double root = std::sqrt(squares / static_cast<double>(n) + kEpsilon);
    for (std::size_t i = 0; i < n; ++i) out.push_back(x[row + i] / root * gamma[static_cast<std::int64_t>(i)]);
  }
}

Values rotate(const measure::VectorShape& s, Dtype dtype) {
  Values out;
  const std::int64_t tokens = s.tokens / (s.heads + s.kv_heads);
  for (const std::uint32_t operand : {0U, 1U}) {
    const Operand x = {operand, dtype};
    const std::int64_t heads = operand == 0 ? s.heads : s.kv_heads;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t start = (t * heads + h) * s.width;
        for (std::int64_t i = 0; i < s.width; ++i) {
          const std::int64_t half = s.width / 2;
          const std::int64_t pair = i % half;
          const double angle = static_cast<double>(t) *
                               std::pow(kRopeBase, -2.0 * static_cast<double>(pair) / static_cast<double>(s.width));
          const double low = x[start + pair];
          const double high = x[start + pair + half];
          out.push_back(i < half ? low * std::cos(angle) - high * std::sin(angle)
                                 : high * std::cos(angle) + low * std::sin(angle));
        }
      }
    }
  }
  return out;
}

Values vector_values(const measure::VectorShape& s, Dtype dtype) {
  const std::int64_t count = s.tokens * s.width;
  const Operand x = {0, dtype};
  const Operand y = {1, dtype};
  const auto silu = [](double value) { return value / (1 + std::exp(-value)); };
  Values out;
  if (s.layer == "rope") return rotate(s, dtype);
  if (s.layer == "rms_norm" || s.layer == "add_rms_norm") {
    const bool added = s.layer == "add_rms_norm";
    Values sum;
    for (std::int64_t i = 0; i < count; ++i) sum.push_back(added ? x[i] + y[i] : x[i]);
    append_normed(out, sum, {added ? 2U : 1U, dtype, 1.0 / 8, 1}, s.width);
    if (added) out.insert(out.end(), sum.begin(), sum.end());
    return out;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t gate = i / s.width * 2 * s.width + i % s.width;
    out.push_back(s.layer == "add"          ? x[i] + y[i]
                  : s.layer == "multiply"   ? x[i] * y[i]
                  : s.layer == "activation" ? silu(x[i])
                                            : silu(x[gate]) * x[gate + s.width]);
  }
  return out;
}

Values collected(const measure::CollectiveShape& s, Dtype dtype) {
  const auto all = static_cast<std::int64_t>(s.bytes.value / bytes_per_element(dtype));
  const std::int64_t share = all / s.ranks;
  const auto rank = [&](std::int64_t r) { return Operand{static_cast<std::uint32_t>(r), dtype}; };
  Values out;
  switch (s.kind) {
    case graph::CollectiveKind::all_reduce:
    case graph::CollectiveKind::reduce_scatter:
      for (std::int64_t i = 0; i < (s.kind == graph::CollectiveKind::all_reduce ? all : share); ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < s.ranks; ++r) sum += rank(r)[i];
        out.push_back(sum);
      }
      break;
    default:  // each gives rank 0 its first part, which of all-gather is all it has
      for (std::int64_t r = 0; r < s.ranks; ++r) {
        for (std::int64_t i = 0; i < share; ++i) out.push_back(rank(r)[i]);
      }
  }
  return out;
}

struct Expected {
  Dtype dtype;
  Values operator()(const measure::GemmShape& s) const { return product(s, dtype); }
  Values operator()(const measure::AttentionShape& s) const { return attend(s, dtype); }
  Values operator()(const measure::LatentShape&) const { return {}; }  // not replayed
  Values operator()(const measure::ScanShape&) const { return {}; }    // nor this
  Values operator()(const measure::TransferShape&) const { return {}; }
  Values operator()(const measure::ExpertsShape& s) const { return mixture(s, dtype); }
  Values operator()(const measure::VectorShape& s) const { return vector_values(s, dtype); }
  Values operator()(const measure::GatherShape& s) const {
    Values out;
    for (std::int64_t row = 0; row < s.rows; ++row) {
      for (std::int64_t i = 0; i < s.width; ++i) {
        out.push_back(Operand{0, dtype}[gathered_row(row, s.table) * s.width + i]);
      }
    }
    return out;
  }
  Values operator()(const measure::CacheShape& s) const {
    Values out;
    for (const std::uint32_t operand : {0U, 1U}) {
      for (std::int64_t i = 0; i < s.tokens * s.kv_heads * s.head_dim; ++i) out.push_back(Operand{operand, dtype}[i]);
    }
    return out;
  }
  Values operator()(const measure::CollectiveShape& s) const { return collected(s, dtype); }
};

}  // namespace

std::vector<double> expected(const OpRow& row) { return std::visit(Expected{row.dtype}, row.shape); }

}  // namespace llmperf::replay::ascend
