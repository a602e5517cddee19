// The op graph and the closed form count the same work. They are compared without a tolerance: every term the closed
// form leaves out or counts differently is written down here, and what remains is equal to the byte and to the
// operation.
#include <vector>

#include "catch.h"
#include "cost/limits.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "limit_times.h"

namespace llmperf::limits_graph_test {

using namespace llmperf::cost;

namespace {

// Dimensions of a Qwen1.5 model, whose layers are all alike: q, k, v with bias, o without, gated MLP, RMSNorm.
struct Dimensions {
  double h, i, layers, vocab, heads, kv, dim;
  explicit Dimensions(const model::Decoder& m) {
    REQUIRE(m.kinds.size() == 1);
    const model::Layer& layer = m.kinds.front();
    h = static_cast<double>(m.hidden);
    i = static_cast<double>(layer.feed_forward.intermediate);
    layers = static_cast<double>(m.num_layers());
    vocab = static_cast<double>(m.vocab);
    heads = static_cast<double>(layer.attention.heads);
    dim = static_cast<double>(layer.attention.head_dim);
    kv = static_cast<double>(layer.attention.kv_heads) * dim;  // width of k and of v
  }
  double bias() const { return layers * (h + 2 * kv); }  // elements, of q, k and v
  double norms() const { return (2 * layers + 1) * h; }
};

Work step_work(const model::Decoder& m, const graph::SequenceGroup& group) {
  graph::Execution execution;
  execution.model = &m;
  execution.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  execution.runtime.attention_query_tile = 1;  // K and V once per (query, key) pair, as the closed form reads them
  graph::Graph ops;
  graph::build_step(execution, {&group, 1}, graph::Part::all, ops);
  Work sum;
  for (const graph::Op& op : ops) sum += work_of(op) * static_cast<double>(op.count);  // no cache: operands read once
  return sum;
}

constexpr double kBytes = 2;  // of a weight, an activation and a KV value

// What both kinds of step leave out of the closed form: activations through memory and element-wise work. `n` new
// tokens, `visible` (query, key) pairs.
void check_terms_left_out(const Work& work, const Dimensions& x, double n, double visible) {
  // Elements per token and layer.
  const double qkv = x.h + (x.h + 2 * x.kv);  // input; q, k and v
  const double rope = 2 * (x.h + x.kv);       // q and k, read and written
  const double cache = 2 * x.kv;              // k and v on their way to the cache
  const double attention = x.h + x.h;         // q; result
  const double output = x.h + x.h;
  const double add_norm = 2 * x.h + 2 * x.h;  // two addends; sum and its norm
  const double mlp = (x.h + 2 * x.i) + (2 * x.i + x.i) + (x.i + x.h);
  const double per_layer = qkv + rope + cache + attention + output + add_norm + mlp + add_norm;
  // Once: the embedding row written, its norm read and written; the last token through lm_head, its logits written and
  // read.
  const double outside = n * (x.h + 2 * x.h) + x.h + 2 * x.vocab;
  CHECK(work.activations_read.value + work.activations_written.value == kBytes * (n * x.layers * per_layer + outside));
  CHECK(work.kv_written.value == kBytes * n * 2 * x.kv * x.layers);
  // 4 per element of a norm, 5 with the add, 1 per bias, 3 per rotated element, 5 per softmax element and per gated
  // product.
  CHECK(work.vector.value ==
        n * 4 * x.h +
            x.layers * (n * ((x.h + 2 * x.kv) + 3 * (x.h + x.kv) + 2 * 5 * x.h + 5 * x.i) + visible * 5 * x.heads) +
            5 * x.vocab);
}

const char* const kModels[] = {"qwen1.5-0.5b",    "qwen1.5-1.8b", "qwen1.5-4b",  "qwen1.5-7b",       "qwen1.5-14b",
                               "qwen1.5-32b-mha", "qwen1.5-32b",  "qwen1.5-72b", "qwen1.5-110b-mha", "qwen1.5-110b"};
const std::int64_t kLengths[] = {1, 2, 37, 512, 2048};

}  // namespace

TEST_CASE("prefill: the op graph agrees with the closed form in SI units, term by term", "[limits][graph]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  for (const char* name : kModels) {
    const model::Decoder m = model::load_decoder(name);
    const Dimensions x(m);
    const Limits limits = compute_limits(m, device, parse_limit_precision("w16kv16"), UnitConvention::si);
    for (const std::int64_t length : kLengths) {
      INFO(name << ", " << length << " tokens");
      const auto n = static_cast<double>(length);
      const double visible = n * (n + 1) / 2;
      const Work work = step_work(m, {1, length, 0});

      // The closed form counts a bias as a multiply-add per token; the graph adds it on the vector engine.
      CHECK(work.matrix.value == prefill_flops(limits, length).value - 2 * n * x.bias());
      // Norm weights and the n rows of the embedding that are looked up are no part of the closed form.
      CHECK(work.weights.value == limits.activated_weights.value + kBytes * x.norms() + kBytes * n * x.h);
      CHECK(work.kv_read.value == visible * limits.kv_per_token.value);
      CHECK(work.weights.value + work.kv_read.value ==
            prefill_bytes(limits, length).value + kBytes * x.norms() + kBytes * n * x.h);
      check_terms_left_out(work, x, n, visible);
    }
  }
}

TEST_CASE("decode: the op graph agrees with the closed form in SI units, term by term", "[limits][graph]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  for (const char* name : kModels) {
    const model::Decoder m = model::load_decoder(name);
    const Dimensions x(m);
    const Limits limits = compute_limits(m, device, parse_limit_precision("w16kv16"), UnitConvention::si);
    for (const std::int64_t token : kLengths) {
      INFO(name << ", token " << token);
      const auto n = static_cast<double>(token);
      const Work work = step_work(m, {1, 1, token - 1});

      CHECK(work.weights.value == limits.activated_weights.value + kBytes * x.norms() + kBytes * x.h);
      // The graph's token reads its own key and value back from the cache; the closed form only those of the n - 1
      // before it.
      CHECK(work.kv_read.value == n * limits.kv_per_token.value);
      CHECK(work.weights.value + work.kv_read.value ==
            decode_bytes(limits, token).value + limits.kv_per_token.value + kBytes * x.norms() + kBytes * x.h);
      // Decode computes what one more prefill token does, biases aside as above.
      const auto& counts = limits.counts;
      CHECK(work.matrix.value == 2 * (static_cast<double>(counts.activated) - x.bias() +
                                      n * static_cast<double>(counts.attention_macs_per_pair)));
      check_terms_left_out(work, x, 1, n);
    }
  }
}

}  // namespace llmperf::limits_graph_test
