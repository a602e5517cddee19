// FLOPs of every kind of mixer against loops that count multiply-adds as the mathematics does, over tokens, heads and
// widths: a prompt and a decode step of each. (arXiv 2412.06464, 2510.26692, 2312.00752, 2405.21060 and 2401.04658 for
// recurrences; 2512.02556 for the indexer; the models' published code for the rest.)
#include <algorithm>
#include <functional>

#include "catch.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "graph/mixer_cases.h"
#include "model/parameters.h"

namespace llmperf::mixer_graph_test {

using graph::Graph;
using graph::Op;
using graph::SequenceGroup;
using model::RecurrentKind;

namespace {

constexpr std::int64_t h = test::kMixerHidden;

graph::Execution execution(const model::Decoder& m) {
  graph::Execution e;
  e.model = &m;
  e.weights = model::uniform_layout(m, model::parse_weight_scheme("bf16"));
  e.runtime.flash_attention = e.runtime.last_token_logits = true;
  return e;
}
Graph step(const graph::Execution& e, const SequenceGroup& group) {
  Graph graph;
  graph::build_step(e, {&group, 1}, graph::Part::all, graph);
  return graph;
}

// Work of all executions of the ops of that name in a layer; of all ops without a name.
cost::Work work(const Graph& graph, std::string_view name = {}) {
  cost::Work sum;
  for (const Op& op : graph) {
    if (name.empty() || op.name == name) sum += cost::work_of(op) * static_cast<double>(op.count);
  }
  return sum;
}
cost::Work layer_work(const Graph& graph, std::string_view name) {
  return work(graph, name) * (1.0 / static_cast<double>(test::kMixerLayers));
}

// Multiply-adds, one at a time.
struct Count {
  double macs = 0;

  void product(std::int64_t tokens, std::int64_t outputs, std::int64_t inputs) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) ++macs;
      }
    }
  }
  // `width` for every pair of a query and a key at positions that `sees` allows.
  using Sees = std::function<bool(std::int64_t query, std::int64_t key)>;
  void pairs(const SequenceGroup& g, std::int64_t heads, std::int64_t width, const Sees& sees) {
    for (std::int64_t s = 0; s < g.count; ++s) {
      for (std::int64_t q = g.context; q < g.context + g.new_tokens; ++q) {
        for (std::int64_t key = 0; key <= q; ++key) {
          if (sees(q, key)) product(heads, 1, width);
        }
      }
    }
  }
};
bool any(std::int64_t, std::int64_t) { return true; }

// A prompt of two sequences, whose 13 tokens are no multiple of a chunk, and a decode step of three.
constexpr SequenceGroup kPrompt{2, 13, 0};
constexpr SequenceGroup kDecode{3, 1, 40};

// Calls `count` for the parts of a layer but its usual MLP, and compares the products of the whole step.
void check_products(const char* name, const std::function<void(Count&, const SequenceGroup&)>& layer,
                    const std::function<void(Count&, const SequenceGroup&)>& outside = {}, bool mlp = true) {
  const model::Decoder m = test::mixer_decoders().at(name);
  const graph::Execution e = execution(m);
  for (const SequenceGroup& g : {kPrompt, kDecode}) {
    INFO(name << ", " << g.new_tokens << " new tokens");
    Count count;
    layer(count, g);
    if (mlp) count.product(g.count * g.new_tokens, 3 * 80, h);
    count.macs *= static_cast<double>(test::kMixerLayers);
    count.product(g.count, test::kMixerVocab, h);
    if (outside) outside(count, g);
    CHECK(work(step(e, g)).matrix.value == 2 * count.macs);
  }
}

std::int64_t tokens(const SequenceGroup& g) { return g.count * g.new_tokens; }

// A recurrence in chunks: what the tokens of a chunk have to do with one another, and with the state before it.
// `scores`: products of keys (with queries, of the delta rule with keys as well) in each of `score_heads` heads;
// `with_state`: what is read from the state and written to it.
void count_chunks(Count& count, const model::Recurrent& r, std::int64_t tokens, std::int64_t score_heads, int scores,
                  int with_state) {
  for (std::int64_t first = 0; first < tokens; first += r.chunk) {
    const std::int64_t n = std::min(r.chunk, tokens - first);
    for (int i = 0; i < scores; ++i) {
      for (std::int64_t head = 0; head < score_heads; ++head) count.product(n, n, r.key_dim);
    }
    for (std::int64_t head = 0; head < r.heads; ++head) {
      count.product(n, r.value_dim, n);
      for (int i = 0; i < with_state; ++i) count.product(n, r.value_dim, r.key_dim);
    }
  }
}

const model::Recurrent& recurrent_of(const model::Decoder& m) { return *m.kinds[0].recurrent; }

// Grouped attention of test::grouped_attention(): q and k, v, o, and what queries see.
void count_attention(Count& count, const SequenceGroup& g, std::int64_t q = 64, std::int64_t kv = 64,
                     const Count::Sees& sees = any) {
  count.product(tokens(g), q + kv, h);
  count.pairs(g, 4, 16 + 16, sees);
  count.product(tokens(g), h, 64);
}
void count_experts(Count& count, std::int64_t rows, std::int64_t width) { count.product(rows, 3 * 40, width); }

}  // namespace

TEST_CASE("a gated delta net multiplies as its chunks do, and by 7 operations per element of a state in decode") {
  const model::Decoder m = test::mixer_decoders().at("gated delta net");
  const model::Recurrent& r = recurrent_of(m);
  const auto layer = [&](Count& count, const SequenceGroup& g) {
    count.product(tokens(g), 2 * 16 + 2 * 64, h);  // queries and keys of 2 heads, values and their gate of 4
    count.product(tokens(g), 2 * 4, h);            // decay and how much of a value is written, per head
    if (g.prompts()) {
      for (std::int64_t s = 0; s < g.count; ++s) count_chunks(count, r, g.new_tokens, r.heads, 2, 3);
    }
    count.product(tokens(g), h, 64);
  };
  check_products("gated delta net", layer);

  double operations = 0;  // of a decode step
  for (std::int64_t s = 0; s < kDecode.count; ++s) {
    for (std::int64_t head = 0; head < r.heads; ++head) {
      for (std::int64_t i = 0; i < r.key_dim; ++i) {
        for (std::int64_t j = 0; j < r.value_dim; ++j) {
          operations += 1;  // the state decays
          operations += 2;  // what it has for the key
          operations += 2;  // the key times what of the value is missing
          operations += 2;  // what it has for the query
        }
      }
    }
  }
  const graph::Execution e = execution(m);
  const cost::Work decode = layer_work(step(e, kDecode), "scan");
  CHECK(decode.matrix.value == 0);
  CHECK(decode.vector.value == operations);
  // Both ways 3 sequences x 4 heads x 8 x 16 x 4 B; q, k (2 heads of 8), v, 8 decays and gates, and the result.
  CHECK(decode.kv_read.value == 3 * 4 * 8 * 16 * 4);
  CHECK(decode.kv_written.value == decode.kv_read.value);
  CHECK(decode.activations_read.value == 3 * (2 * 16 + 64 + 8) * 2);
  CHECK(decode.activations_written.value == 3 * 64 * 2);

  // A prompt has no state to read; those between its three chunks of 5 (the last one of 3) go through memory in bf16.
  const cost::Work prompt = layer_work(step(e, kPrompt), "scan");
  CHECK(prompt.kv_read.value == 0);
  CHECK(prompt.kv_written.value == 2 * 4 * 8 * 16 * 4);
  CHECK(prompt.activations_written.value == 26 * 64 * 2 + 2 * 2 * 4 * 8 * 16 * 2);
}

TEST_CASE("what a prompt's chunks are charged covers the system that the delta rule solves, masked halves left out") {
  const model::Recurrent r = recurrent_of(test::mixer_decoders().at("gated delta net"));
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  for (const std::int64_t chunk : {16, 64, 128}) {
    Count charged;
    model::Recurrent big = r;
    big.chunk = chunk;
    count_chunks(charged, big, chunk, r.heads, 2, 3);
    double least = 0;
    for (std::int64_t t = 0; t < chunk; ++t) {
      least += d(t * r.key_dim + (t + 1) * r.key_dim);      // keys before it, queries up to it
      least += d(t * r.value_dim + (t + 1) * r.value_dim);  // forward substitution, result
      least += d(3 * r.key_dim * r.value_dim);
    }
    CHECK(charged.macs >= d(r.heads) * least);
  }
}

TEST_CASE("Kimi's delta rule has decays of each element of a key and gates through a low rank, or a whole matrix") {
  for (const bool full : {false, true}) {
    const char* name = full ? "kimi delta, full gate" : "kimi delta";
    const model::Decoder m = test::mixer_decoders().at(name);
    const model::Recurrent& r = recurrent_of(m);
    check_products(name, [&](Count& count, const SequenceGroup& g) {
      count.product(tokens(g), 3 * 24 + 3, h);  // q, k, v and beta of 3 heads of 8
      count.product(tokens(g), 8, h);           // decay: h -> 8 -> 24
      count.product(tokens(g), 24, 8);
      if (full) {
        count.product(tokens(g), 24, h);
      } else {
        count.product(tokens(g), 8, h);
        count.product(tokens(g), 24, 8);
      }
      if (g.prompts()) {
        for (std::int64_t s = 0; s < g.count; ++s) count_chunks(count, r, g.new_tokens, r.heads, 2, 3);
      }
      count.product(tokens(g), h, 24);
    });
    CHECK(layer_work(step(execution(m), kDecode), "scan").vector.value == 3 * 3 * 8 * 8 * 7);
    CHECK(layer_work(step(execution(m), kDecode), "scan").activations_read.value == 3 * (3 * 24 + 24 + 3) * 2);
  }
}

TEST_CASE("Mamba walks token by token, in prompts too, with 8 operations per element of a state") {
  const model::Decoder m = test::mixer_decoders().at("mamba");
  check_products("mamba", [&](Count& count, const SequenceGroup& g) {
    count.product(tokens(g), 2 * 128, h);       // input and gate
    count.product(tokens(g), 4 + 2 * 16, 128);  // time step, B and C
    count.product(tokens(g), 128, 4);
    count.product(tokens(g), h, 128);
  });
  for (const SequenceGroup& g : {kPrompt, kDecode}) {
    double operations = 0;
    for (std::int64_t t = 0; t < tokens(g); ++t) {
      for (std::int64_t channel = 0; channel < 128; ++channel) {
        for (std::int64_t i = 0; i < 16; ++i) {
          operations += 2;  // exp(time step x A)
          operations += 1;  // the state decays
          operations += 3;  // time step x B x input is added
          operations += 2;  // C x state
        }
      }
    }
    CHECK(layer_work(step(execution(m), g), "scan").vector.value == operations);
  }
  // Input, time step and gate of a channel, B and C.
  CHECK(layer_work(step(execution(m), kDecode), "scan").activations_read.value == 3 * (3 * 128 + 2 * 16) * 2);
}

TEST_CASE("Mamba-2 scores a group of heads once, and takes 6 operations per element of a state in decode") {
  const model::Decoder m = test::mixer_decoders().at("mamba2");
  const model::Recurrent& r = recurrent_of(m);
  check_products("mamba2", [&](Count& count, const SequenceGroup& g) {
    count.product(tokens(g), 2 * 64 + 2 * 32 + 8, h);  // gate and input, B and C of 2 groups, a time step per head
    if (g.prompts()) {
      for (std::int64_t s = 0; s < g.count; ++s) count_chunks(count, r, g.new_tokens, r.key_heads, 1, 2);
    }
    count.product(tokens(g), h, 64);
  });
  // Decay 1, time step x B x input 3, C x state 2.
  CHECK(layer_work(step(execution(m), kDecode), "scan").vector.value == 3 * 8 * 16 * 8 * (1 + 3 + 2));
}

TEST_CASE("lightning attention has a decay that is fixed, and a gate of the result") {
  const model::Decoder m = test::mixer_decoders().at("lightning");
  const model::Recurrent& r = recurrent_of(m);
  check_products("lightning", [&](Count& count, const SequenceGroup& g) {
    count.product(tokens(g), 3 * 64 + 64, h);
    if (g.prompts()) {
      for (std::int64_t s = 0; s < g.count; ++s) count_chunks(count, r, g.new_tokens, r.heads, 1, 2);
    }
    count.product(tokens(g), h, 64);
  });
  CHECK(layer_work(step(execution(m), kDecode), "scan").vector.value == 3 * 4 * 16 * 16 * (1 + 2 + 2));
}

TEST_CASE("a short convolution multiplies by its taps and two gates, and keeps its last inputs") {
  const model::Decoder m = test::mixer_decoders().at("short convolution");
  check_products("short convolution", [&](Count& count, const SequenceGroup& g) {
    count.product(tokens(g), 3 * h, h);
    count.product(tokens(g), h, h);
  });
  for (const SequenceGroup& g : {kPrompt, kDecode}) {
    double operations = 0;
    for (std::int64_t t = 0; t < tokens(g); ++t) {
      for (std::int64_t channel = 0; channel < h; ++channel) operations += 1 + 2 * 3 + 1;
    }
    const cost::Work conv = layer_work(step(execution(m), g), "conv");
    CHECK(conv.vector.value == operations);
    // Two inputs of 64 channels per sequence, read and written beside the three inputs and the result.
    CHECK(conv.activations_read.value == Approx((tokens(g) * 3 + g.count * 2) * h * 2));
    CHECK(conv.activations_written.value == Approx((tokens(g) + g.count * 2) * h * 2));
  }
}

TEST_CASE("gates on attention are columns of the query matrix, a matrix, or one column per head") {
  check_products("gate with queries", [](Count& c, const SequenceGroup& g) { count_attention(c, g, 2 * 64); });
  check_products("gate per element", [](Count& c, const SequenceGroup& g) { count_attention(c, g, 64 + 64); });
  check_products("gate per head", [](Count& c, const SequenceGroup& g) { count_attention(c, g, 64 + 4); });
  for (const auto& [name, gates] :
       {std::pair{"gate with queries", 64.0}, {"gate per element", 64.0}, {"gate per head", 4.0}}) {
    const model::Decoder m = test::mixer_decoders().at(name);
    const cost::Work gate = layer_work(step(execution(m), kDecode), "apply_gate");
    CHECK(gate.activations_read.value == Approx(3 * (64 + gates) * 2));
  }
}

TEST_CASE("a norm over all heads is one of the whole vector, and weighs each of its elements") {
  check_products("norm over all heads", [](Count& c, const SequenceGroup& g) { count_attention(c, g); });
  const model::Decoder m = test::mixer_decoders().at("norm over all heads");
  const Graph graph = step(execution(m), kDecode);
  CHECK(layer_work(graph, "q_norm").weights.value == 64 * 2);
  CHECK(layer_work(graph, "k_norm").weights.value == 32 * 2);
  CHECK(layer_work(graph, "q_norm").activations_read.value == 3 * 64 * 2);
}

TEST_CASE("values that are the keys save a matrix, a cache of another layer both, and neither saves attention") {
  check_products("values are keys", [](Count& c, const SequenceGroup& g) { count_attention(c, g, 64, 32); });
  check_products("shared cache", [](Count& c, const SequenceGroup& g) { count_attention(c, g, 64, 0); });
  const auto cached = [](const char* name) {
    const model::Decoder m = test::mixer_decoders().at(name);
    return layer_work(step(execution(m), kDecode), "kv_write").kv_written.value;
  };
  CHECK(cached("values are keys") == 3 * 64 * 2);
  CHECK(cached("shared cache") == 0);
}

TEST_CASE("a window that does not slide shows a query its chunk up to itself") {
  const auto same_chunk = [](std::int64_t q, std::int64_t key) { return q / 8 == key / 8; };
  check_products("chunked window",
                 [&](Count& c, const SequenceGroup& g) { count_attention(c, g, 64, 64, same_chunk); });
  const model::Decoder m = test::mixer_decoders().at("chunked window");
  for (const std::int64_t context : {0, 6, 7, 8, 40, 47}) {
    std::int64_t keys = 0;
    for (std::int64_t key = 0; key <= context; ++key) keys += key / 8 == context / 8;
    const cost::Work decode = layer_work(step(execution(m), {1, 1, context}), "attention");
    CHECK(decode.kv_read.value == static_cast<double>(keys * 64 * 2));
  }
}

TEST_CASE("an indexer scores every key, and attention is of the best ones alone") {
  // Latents: q through 48, kv of 32 + 8, kv_b 4 x (16 + 16). Absorbed, a head's scores take 40 and its values 32.
  const auto latent = [](Count& c, const SequenceGroup& g) {
    c.product(tokens(g), 48, h);
    c.product(tokens(g), 4 * 24, 48);
    c.product(tokens(g), 40, h);
    c.product(tokens(g), 4 * 16, 32);  // queries into the latent space
    for (std::int64_t q = g.context; q < g.context + g.new_tokens; ++q) {
      c.product(g.count * 4 * std::min<std::int64_t>(q + 1, 7), 1, 40 + 32);
    }
    c.product(tokens(g), 4 * 16, 32);
    c.product(tokens(g), h, 64);
  };
  check_products("reused choice", latent);
  check_products("indexer", [&](Count& c, const SequenceGroup& g) {
    latent(c, g);
    c.product(tokens(g), 3 * 8, 48);
    c.product(tokens(g), 8 + 3, h);
    c.pairs(g, 3, 8, any);
  });
  const model::Decoder m = test::mixer_decoders().at("indexer");
  const cost::Work scores = layer_work(step(execution(m), kDecode), "index_scores");
  CHECK(scores.kv_read.value == 3 * 41 * 8 * 8.25 / 8);           // fp8, with 4 bytes of scale per 128
  CHECK(scores.vector.value == 3 * 41 * 3 * 3 + 2 * 3 * 41 * 8);  // ReLU, weight and sum; keys brought to bf16
  CHECK(scores.activations_written.value == 3 * 41 * 4);
  CHECK(layer_work(step(execution(m), kDecode), "top_k").activations_read.value == 3 * 41 * 4);
  CHECK(layer_work(step(execution(m), kDecode), "attention").kv_read.value == 3 * 7 * 40 * 2);
  CHECK(layer_work(step(execution(m), kDecode), "index_write").kv_written.value == 3 * 8 * 8.25 / 8);
}

TEST_CASE("an indexer over pooled keys scores one key per 4 tokens") {
  check_products("pooled indexer", [&](Count& c, const SequenceGroup& g) {
    const bool chooses = g.context + g.new_tokens > 16;
    for (std::int64_t q = g.context; q < g.context + g.new_tokens; ++q) {
      const std::int64_t keys = chooses ? std::min<std::int64_t>(q + 1, 16) : q + 1;
      c.product(g.count * 4 * keys, 1, 32);
      c.macs += static_cast<double>(g.count * 2 * 8 * (q + 1)) / 4;
    }
    c.product(tokens(g), 64 + 64 + 2 * 8 + 8, h);
    c.product(tokens(g), h, 64);
  });
}

TEST_CASE(
    "compressed attention sees its window, and behind it entries of several tokens, of which an indexer chooses") {
  for (const std::int64_t ratio : {4, 128}) {
    const auto layer = [&](Count& c, const SequenceGroup& g) {
      c.product(tokens(g), 24, h);
      c.product(tokens(g), 64, 24);
      c.product(tokens(g), 16, h);
      c.product(tokens(g), (ratio == 4 ? 2 : 1) * 2 * 16, h);  // keys and gates of entries, which overlap
      c.pairs(g, 4, 16 + 16, [](std::int64_t q, std::int64_t key) { return key > q - 8; });
      for (std::int64_t q = g.context; q < g.context + g.new_tokens; ++q) {
        const double entries = static_cast<double>(q + 1) / static_cast<double>(ratio);
        const double seen = ratio == 4 ? std::min(entries, 6.0) : entries;
        c.macs += static_cast<double>(g.count * 4 * 32) * seen;
        if (ratio == 4) c.macs += static_cast<double>(g.count * 3 * 8) * entries;
      }
      if (ratio == 4) {
        c.product(tokens(g), 3 * 8, 24);
        c.product(tokens(g), 3 + 4 * 8, h);
      }
      for (int group = 0; group < 2; ++group) c.product(tokens(g), 12, 32);
      c.product(tokens(g), h, 24);
    };
    check_products(ratio == 4 ? "compressed by 4" : "compressed by 128", layer);
  }
}

TEST_CASE("experts of a width of their own work between two matrices, and those that return their input do no work") {
  const auto routed = [](std::int64_t experts) {
    return [=](Count& c, const SequenceGroup& g) {
      count_attention(c, g);
      c.product(tokens(g), experts, h);
    };
  };
  check_products(
      "latent experts",
      [&](Count& c, const SequenceGroup& g) {
        routed(8)(c, g);
        c.product(tokens(g), 24, h);
        count_experts(c, 3 * tokens(g), 24);
        c.product(tokens(g), h, 24);
      },
      {}, false);
  check_products(
      "identity experts",
      [&](Count& c, const SequenceGroup& g) {
        routed(12)(c, g);
        count_experts(c, 2 * tokens(g), h);  // of three that a token picks among 12, two are among the 8 real ones
      },
      {}, false);
  check_products(
      "experts beside an MLP",
      [&](Count& c, const SequenceGroup& g) {
        routed(8)(c, g);
        count_experts(c, 3 * tokens(g), h);
        c.product(tokens(g), 3 * 72, h);
      },
      {}, false);
}

TEST_CASE("attention beside a recurrence reads the same input") {
  const model::Recurrent r = recurrent_of(test::mixer_decoders().at("mamba2"));
  check_products("attention beside mamba2", [&](Count& count, const SequenceGroup& g) {
    count_attention(count, g);
    count.product(tokens(g), 2 * 64 + 2 * 32 + 8, h);
    if (g.prompts()) {
      for (std::int64_t s = 0; s < g.count; ++s) count_chunks(count, r, g.new_tokens, r.key_heads, 1, 2);
    }
    count.product(tokens(g), h, 64);
  });
}

TEST_CASE("hyper-connections make their weights from all streams once per part, AltUp from one twice per layer") {
  const auto attention = [](Count& c, const SequenceGroup& g) { count_attention(c, g); };
  check_products(
      "hyper-connections",
      [&](Count& c, const SequenceGroup& g) {
        attention(c, g);
        for (int part = 0; part < 2; ++part) c.product(tokens(g), 4 + 4 + 16, 4 * h);
      },
      [](Count& c, const SequenceGroup& g) { c.product(tokens(g), 4 + 4 + 16, 4 * h); });
  check_products(
      "altup",
      [&](Count& c, const SequenceGroup& g) {
        attention(c, g);
        for (int time = 0; time < 2; ++time) c.product(tokens(g), 4, h);
      },
      [](Count& c, const SequenceGroup& g) {
        c.product(tokens(g), 4, h);
        c.product(tokens(g), 3 * h, h);  // into the three further streams
        c.product(g.count, 3 * h, h);    // and back, of the tokens whose logits are wanted
      });
  const model::Decoder m = test::mixer_decoders().at("altup");
  const Graph graph = step(execution(m), kDecode);
  // Predict: 4 x 4 multiply-adds per element; correct: 4, and the difference that is corrected by.
  CHECK(work(graph, "stream_read").vector.value == (test::kMixerLayers + 1) * 3 * h * 2 * 16);
  CHECK(work(graph, "stream_write").vector.value == test::kMixerLayers * 3 * h * (2 * 4 + 1));
}

TEST_CASE("layer embeddings are looked up for all layers at once, and gated and projected in each") {
  check_products(
      "layer embeddings",
      [&](Count& c, const SequenceGroup& g) {
        count_attention(c, g);
        c.product(tokens(g), 16, h);
        c.product(tokens(g), h, 16);
      },
      [](Count& c, const SequenceGroup& g) { c.product(tokens(g), 3 * 16, h); });
}

}  // namespace llmperf::mixer_graph_test
