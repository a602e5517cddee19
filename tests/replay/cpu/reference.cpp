#include "reference.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "replay/operands.h"

namespace llmperf::replay::cpu {
namespace {

using graph::CollectiveKind;
using graph::VectorKind;
using measure::AttentionShape;
using measure::CacheShape;
using measure::CollectiveShape;
using measure::ExpertsShape;
using measure::GatherShape;
using measure::GemmShape;
using measure::ScanShape;
using measure::VectorShape;
using Values = std::vector<double>;

Values operands(Dtype dtype, unsigned number, std::int64_t count, double scale = 1, double offset = 0) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(operand(dtype, number, i, scale, offset));
  return values;
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double silu(double x) { return x / (1 + std::exp(-x)); }

double rounded(Dtype dtype, double x) {
  if (dtype != Dtype::bf16) return static_cast<double>(static_cast<float>(x));
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16U) & 1U)) & 0xffff0000U);
}

struct Reference {
  Dtype dtype;

  Values operator()(const GemmShape& s) const {
    const bool quantised = dtype == Dtype::int8 || s.weights == "w8a8";
    const double root = std::sqrt(static_cast<double>(s.k));
    Values x, w;
    for (std::int64_t i = 0; i < s.batch * s.m * s.k; ++i) {
      x.push_back(quantised ? std::round(127 * fill_value(0, static_cast<std::uint64_t>(i))) / 127
                            : operand(dtype, 0, i));
    }
    for (std::int64_t i = 0; i < s.batch * s.n * s.k; ++i) {
      w.push_back(quantised ? std::round(127 * fill_value(1, static_cast<std::uint64_t>(i))) / (127 * root)
                            : operand(dtype, 1, i, 1 / root));
    }
    Values y;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = 0;
          for (std::int64_t c = 0; c < s.k; ++c) sum += x[at((b * s.m + i) * s.k + c)] * w[at((b * s.n + j) * s.k + c)];
          y.push_back(sum);
        }
      }
    }
    return y;
  }

  Values operator()(const ExpertsShape& s) const {
    const std::int64_t held = s.experts / s.ep;
    const std::int64_t width = s.inter / s.tp;
    const std::int64_t columns = measure::has_gate(s) ? 2 * width : width;
    const Values x = operands(dtype, 0, s.m * s.hidden);
    const Values up = operands(dtype, 1, held * columns * s.hidden, 1 / std::sqrt(static_cast<double>(s.hidden)));
    const Values down = operands(dtype, 2, held * s.hidden * width,
                                 1 / (static_cast<double>(s.topk) * std::sqrt(static_cast<double>(width))));
    Values y(x.size());
    const auto add = [&](std::int64_t token, std::int64_t expert) {
      if (expert >= held) return;
      const auto product = [&](std::int64_t column) {
        double sum = 0;
        for (std::int64_t c = 0; c < s.hidden; ++c) {
          sum += x[at(token * s.hidden + c)] * up[at((expert * columns + column) * s.hidden + c)];
        }
        return sum;
      };
      Values inner;
      for (std::int64_t j = 0; j < width; ++j) {
        inner.push_back(silu(product(j)) * (columns > width ? product(width + j) : 1));
      }
      for (std::int64_t i = 0; i < s.hidden; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          y[at(token * s.hidden + i)] += inner[at(j)] * down[at((expert * s.hidden + i) * width + j)];
        }
      }
    };
    std::int64_t row = 0;
    const auto place = [&](std::int64_t number) { return number % s.ep * held + number / s.ep; };
    if (const auto exponent = measure::drawn_exponent(s.distribution)) {
      std::int64_t popularity = 0;
      for (const std::int64_t count : graph::drawn_counts(*exponent, s.experts, s.topk, s.m)) {
        for (std::int64_t i = 0; i < count; ++i) add(row++ % s.m, place(popularity));
        ++popularity;
      }
    } else {
      for (; row < s.m * s.topk; ++row) add(row / s.topk, place(row % s.experts));
    }
    return y;
  }

  Values operator()(const measure::LatentShape& s) const {
    const bool decode = s.phase == measure::Phase::decode;
    const AttentionShape shape = {s.phase,           s.batch, s.q_len, s.kv_len, s.heads, decode ? 1 : s.heads,
                                  decode ? 576 : 192};
    const Values k = operands(dtype, 1, s.batch * s.kv_len * shape.kv_heads * shape.head_dim);
    if (!decode) return attention(shape, k, operands(dtype, 2, s.batch * s.kv_len * s.heads * 128), 128, 192);
    Values v;
    for (std::int64_t i = 0; i < s.batch * s.kv_len; ++i) {
      v.insert(v.end(), k.begin() + i * 576, k.begin() + i * 576 + 512);
    }
    return attention(shape, k, v, 512, 192);
  }

  Values operator()(const AttentionShape& s) const {
    const std::int64_t cached = s.batch * s.kv_len * s.kv_heads * s.head_dim;
    return attention(s, operands(dtype, 1, cached), operands(dtype, 2, cached), s.head_dim, s.head_dim);
  }

  // Values are of v_dim elements, and scores over the root of `scaled_by`.
  Values attention(const AttentionShape& s, const Values& k, const Values& v, std::int64_t v_dim,
                   std::int64_t scaled_by) const {
    const Values q = operands(dtype, 0, s.batch * s.q_len * s.heads * s.head_dim);
    Values y;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < s.q_len; ++i) {
        for (std::int64_t h = 0; h < s.heads; ++h) {
          const std::int64_t row = ((b * s.q_len + i) * s.heads + h) * s.head_dim;
          const auto key = [&](std::int64_t j) { return (b * s.kv_len + j) * s.kv_heads + h / (s.heads / s.kv_heads); };
          const std::int64_t seen = s.causal ? s.kv_len - s.q_len + i + 1 : s.kv_len;
          double total = 0;
          Values sums(at(v_dim));
          for (std::int64_t j = 0; j < seen; ++j) {
            double score = 0;
            for (std::int64_t d = 0; d < s.head_dim; ++d) score += q[at(row + d)] * k[at(key(j) * s.head_dim + d)];
            const double weight = std::exp(score / std::sqrt(static_cast<double>(scaled_by)));
            total += weight;
            for (std::int64_t d = 0; d < v_dim; ++d) sums[at(d)] += weight * v[at(key(j) * v_dim + d)];
          }
          for (const double sum : sums) y.push_back(sum / total);
        }
      }
    }
    return y;
  }

  // Rows normed; parameters are operands `number` (gamma) and the next (beta).
  Values normed(const Values& x, std::int64_t n, unsigned number, bool centred) const {
    const Values gamma = operands(dtype, number, n, 0.125, 1);
    const Values beta = operands(dtype, number + 1, n, 0.125);
    Values y;
    for (std::int64_t first = 0; first < static_cast<std::int64_t>(x.size()); first += n) {
      double mean = 0;
      for (std::int64_t i = 0; centred && i < n; ++i) mean += x[at(first + i)] / static_cast<double>(n);
      double square = kEpsilon;
      for (std::int64_t i = 0; i < n; ++i) square += std::pow(x[at(first + i)] - mean, 2) / static_cast<double>(n);
      for (std::int64_t i = 0; i < n; ++i) {
        y.push_back((x[at(first + i)] - mean) / std::sqrt(square) * gamma[at(i)] + (centred ? beta[at(i)] : 0));
      }
    }
    return y;
  }

  Values rotated(const Values& x, std::int64_t heads, std::int64_t n) const {
    Values y(x.size());
    for (std::int64_t row = 0; row * n < static_cast<std::int64_t>(x.size()); ++row) {
      const std::int64_t position = row / heads;
      for (std::int64_t i = 0; i < n / 2; ++i) {
        const double angle =
            static_cast<double>(position) * std::pow(kRopeBase, -2 * static_cast<double>(i) / static_cast<double>(n));
        const double a = x[at(row * n + i)];
        const double b = x[at(row * n + i + n / 2)];
        y[at(row * n + i)] = a * std::cos(angle) - b * std::sin(angle);
        y[at(row * n + i + n / 2)] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return y;
  }

  Values operator()(const VectorShape& s) const {
    const measure::KnownLayer* layer = measure::known_layer(s.layer);
    const VectorKind kind = layer != nullptr ? layer->kind : measure::vector_op(s.layer)->kind;
    const std::int64_t m = s.tokens;
    const std::int64_t n = s.width > 0 ? s.width : layer->width;
    const Values x = operands(dtype, 0, kind == VectorKind::gated_activation ? 2 * m * n : m * n);
    const Values other = operands(dtype, 1, m * n);
    if (s.layer == "embedding" || kind == VectorKind::elementwise) return x;
    if (kind == VectorKind::rms_norm || kind == VectorKind::layer_norm) {
      return normed(x, n, 1, kind == VectorKind::layer_norm);
    }
    Values y;
    if (kind == VectorKind::add_rms_norm || kind == VectorKind::add_layer_norm) {
      Values sum;
      for (std::size_t i = 0; i < x.size(); ++i) sum.push_back(rounded(dtype, x[i] + other[i]));
      y = normed(sum, n, 2, kind == VectorKind::add_layer_norm);
      y.insert(y.end(), sum.begin(), sum.end());
    } else if (kind == VectorKind::rope) {
      const std::int64_t heads = s.heads > 0 ? s.heads : 1;
      const std::int64_t tokens = m / (heads + s.kv_heads);
      y = rotated(operands(dtype, 0, tokens * heads * n), heads, n);
      if (s.kv_heads > 0) {
        const Values keys = rotated(operands(dtype, 1, tokens * s.kv_heads * n), s.kv_heads, n);
        y.insert(y.end(), keys.begin(), keys.end());
      }
    } else if (kind == VectorKind::softmax || kind == VectorKind::sampling) {
      for (std::int64_t row = 0; row < m; ++row) {
        const auto first = x.begin() + row * n;
        if (kind == VectorKind::sampling) {
          y.push_back(static_cast<double>(std::max_element(first, first + n) - first));
          continue;
        }
        double total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += std::exp(first[i]);
        for (std::int64_t i = 0; i < n; ++i) y.push_back(std::exp(first[i]) / total);
      }
    } else if (kind == VectorKind::gated_activation) {
      for (std::int64_t i = 0; i < m * n; ++i)
        y.push_back(silu(x[at(i / n * 2 * n + i % n)]) * x[at(i / n * 2 * n + n + i % n)]);
    } else {
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (kind == VectorKind::activation) y.push_back(silu(x[i]));
        if (kind == VectorKind::add) y.push_back(x[i] + other[i]);
        if (kind == VectorKind::multiply) y.push_back(x[i] * other[i]);
      }
    }
    return y;
  }

  Values operator()(const GatherShape& s) const {
    Values y;
    for (std::int64_t row = 0; row < s.rows; ++row) {
      for (std::int64_t i = 0; i < s.width; ++i)
        y.push_back(operand(dtype, 0, gathered_row(row, s.table) * s.width + i));
    }
    return y;
  }

  Values operator()(const CacheShape& s) const {
    Values y = operands(dtype, 0, s.tokens * s.kv_heads * s.head_dim);
    const Values values = operands(dtype, 1, s.tokens * s.kv_heads * s.head_dim);
    y.insert(y.end(), values.begin(), values.end());
    return y;
  }

  Values operator()(const measure::TransferShape&) const { return {}; }  // not replayed
  Values operator()(const ScanShape& s) const {
    const double root = 1 / std::sqrt(static_cast<double>(s.key_dim));
    const bool delta = s.kind == model::RecurrentKind::gated_delta_net;
    Values y(at(s.batch * s.q_len * s.heads * s.value_dim));
    for (std::int64_t item = 0; item < s.batch * s.heads; ++item) {
      const std::int64_t head = item % s.heads;
      Values state(at(s.key_dim * s.value_dim), 0.0);
      for (std::int64_t i = 0; s.q_len == 1 && i < s.key_dim * s.value_dim; ++i) {
        state[at(i)] = operand(Dtype::fp32, 5, item * s.key_dim * s.value_dim + i);
      }
      for (std::int64_t t = 0; t < s.q_len; ++t) {
        const std::int64_t token = item / s.heads * s.q_len + t;
        const std::int64_t key = (token * s.key_heads + head / (s.heads / s.key_heads)) * s.key_dim;
        const double decay = operand(dtype, 3, token * s.heads + head, 0.125, 0.875);
        const double write = operand(dtype, 4, token * s.heads + head, 0.5, 0.5);
        for (std::int64_t j = 0; j < s.value_dim; ++j) {
          const std::int64_t value = (token * s.heads + head) * s.value_dim + j;
          const auto cell = [&](std::int64_t i) -> double& { return state[at(i * s.value_dim + j)]; };
          double had = 0;
          for (std::int64_t i = 0; i < s.key_dim; ++i) had += (cell(i) *= decay) * operand(dtype, 1, key + i, root);
          const double added = write * (operand(dtype, 2, value) - (delta ? had : 0));
          for (std::int64_t i = 0; i < s.key_dim; ++i) {
            cell(i) += operand(dtype, 1, key + i, root) * added;
            y[at(value)] += operand(dtype, 0, key + i, root) * cell(i);
          }
        }
      }
    }
    return y;
  }

  Values operator()(const CollectiveShape& s) const {
    const auto n = static_cast<std::int64_t>(s.bytes.value / bytes_per_element(dtype));
    const auto ranks = static_cast<unsigned>(s.ranks);
    Values y;
    if (s.kind == CollectiveKind::all_gather || s.kind == CollectiveKind::all_to_all) {
      for (unsigned r = 0; r < ranks; ++r) {
        const Values part = operands(dtype, r, n / s.ranks);  // all-to-all: rank 0's part of what r holds is the first
        y.insert(y.end(), part.begin(), part.end());
      }
      return y;
    }
    for (std::int64_t i = 0; i < (s.kind == CollectiveKind::all_reduce ? n : n / s.ranks); ++i) {
      double sum = 0;
      for (unsigned r = 0; r < ranks; ++r) sum += operand(dtype, r, i);
      y.push_back(sum);
    }
    return y;
  }
};

}  // namespace

double operand(Dtype dtype, unsigned number, std::int64_t i, double scale, double offset) {
  return rounded(dtype, offset + scale * static_cast<double>(fill_value(number, static_cast<std::uint64_t>(i))));
}

std::vector<double> reference(const measure::OpRow& op) { return std::visit(Reference{op.dtype}, op.shape); }

}  // namespace llmperf::replay::cpu
