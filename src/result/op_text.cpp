#include "result/op_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/match.h"
#include "base/number.h"
#include "base/text.h"
#include "result/row.h"

namespace llmperf::result {

std::string_view kind_text(const graph::Op& op) {
  return std::visit([](const auto& body) { return body.kKind; }, op.body);
}

std::string layers_text(const model::Decoder& model, int kind) {
  if (kind < 0 || model.kinds.size() < 2) return "";
  const model::Layer& layer = model.kinds[static_cast<std::size_t>(kind)];
  const auto differ = [&](auto&& trait) {
    return std::any_of(model.kinds.begin(), model.kinds.end(),
                       [&](const model::Layer& other) { return trait(other) != trait(layer); });
  };
  const auto routed = [](const model::Layer& l) { return l.feed_forward.experts.has_value(); };
  const auto slides = [](const model::Layer& l) { return l.attention.window.has_value(); };
  const auto recurs = [](const model::Layer& l) { return l.recurrent.has_value(); };
  const auto compressed = [](const model::Layer& l) { return l.attention.compression; };
  std::vector<std::string> traits;
  if (differ(recurs)) traits.emplace_back(recurs(layer) ? name(layer.recurrent->kind) : "attention");
  if (differ(routed)) traits.emplace_back(routed(layer) ? "expert" : layer.has_feed_forward() ? "dense" : "mixer");
  if (differ(slides) && layer.attends()) traits.emplace_back(slides(layer) ? "window" : "full");
  if (differ(compressed)) {
    const auto& c = layer.attention.compression;
    traits.push_back(c ? fmt::format("1 key for {} tokens", c->ratio) : "no compressed keys");
  }
  return traits.empty() ? fmt::format("kind {}", kind + 1) : join(traits, ", ");
}

std::string shape_text(const graph::Op& op) {
  struct Text {
    std::string operator()(const graph::Gemm& g) const {
      std::string text = fmt::format("{}x{}x{}", g.m, g.k, g.n);
      if (g.batch > 1) text = fmt::format("{} * {}", g.batch, text);
      for (const auto& joined : {g.joined.input, g.joined.output}) {
        if (joined) text += fmt::format(" +{}", graph::name(*joined));
      }
      return g.joined.cached > 0 ? text + " +cache" : text;
    }
    std::string operator()(const graph::Attention& a) const {
      const std::int64_t keys = a.keys > 0 ? a.keys : a.context + a.q_tokens;
      return fmt::format("{} * {}q {}kv h{}/{} d{}", a.sequences, a.q_tokens, keys, a.heads, a.kv_heads,
                         a.qk_dim == a.v_dim ? std::to_string(a.qk_dim) : fmt::format("{}/{}", a.qk_dim, a.v_dim));
    }
    std::string operator()(const graph::Scan& s) const {
      return fmt::format("{} * {}q h{} {}x{}", s.sequences, s.tokens, s.heads, s.key_dim, s.value_dim);
    }
    std::string operator()(const graph::Convolution& c) const {
      return fmt::format("{} px {}x{} -> {}", c.positions, c.inputs, c.taps, c.outputs);
    }
    std::string operator()(const graph::Vector& v) const { return fmt::format("{}x{}", v.rows, v.width); }
    std::string operator()(const graph::Gather& g) const { return fmt::format("{}x{}", g.rows, g.width); }
    std::string operator()(const graph::Transfer& t) const { return fmt::format("{}x{}", t.rows, t.width); }
    std::string operator()(const graph::Collective& c) const {
      const bool whole = c.rows == std::floor(c.rows);  // expected rows of routed tokens are none
      return fmt::format("{} * {}x{}", c.ranks, whole ? plain(c.rows) : fmt::format("{:.6g}", c.rows), plain(c.width));
    }
    std::string operator()(const graph::Overhead&) const { return ""; }
    std::string operator()(const graph::Copy& c) const { return format_count(c.write_elements); }
  };
  return std::visit(Text{}, op.body);
}

const model::StoredFormat* weight_format(const graph::Op& op) {
  using Stored = const model::StoredFormat*;
  return match(
      op.body, [](const graph::Gemm& g) -> Stored { return g.weights; },
      [](const graph::Gather& g) -> Stored { return g.table; },
      [](const graph::Convolution& c) -> Stored { return c.weights; },
      [](const graph::Transfer& t) -> Stored { return t.weights; },
      [](const graph::Attention&) -> Stored { return nullptr; }, [](const graph::Vector&) -> Stored { return nullptr; },
      [](const graph::Copy&) -> Stored { return nullptr; }, [](const graph::Collective&) -> Stored { return nullptr; },
      [](const graph::Overhead&) -> Stored { return nullptr; }, [](const graph::Scan&) -> Stored { return nullptr; });
}

}  // namespace llmperf::result
