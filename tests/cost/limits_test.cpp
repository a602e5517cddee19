// The closed-form limits against arithmetic by hand.
#include "cost/limits.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/integer.h"
#include "catch.h"
#include "limit_times.h"

namespace llmperf::limits_test {

using namespace llmperf::cost;

namespace {

constexpr double kGi = 1024.0 * 1024.0 * 1024.0;

Limits article_limits(const std::string& model, const std::string& precision) {
  return compute_limits(model::load_decoder(model), hardware::load_device("rtx4090"), parse_limit_precision(precision),
                        UnitConvention::article);
}

// A device with an fp16 matrix rate of `compute` FLOP/s and half that in plain fp32.
hardware::Device make_device(double capacity, double bandwidth, double compute) {
  hardware::Device device;
  device.name = "test";
  hardware::Peak matrix;
  matrix.rate = FlopsPerSecond{compute};
  hardware::Peak plain;
  plain.engine = hardware::Engine::vector;
  plain.dtype = Dtype::fp32;
  plain.rate = FlopsPerSecond{compute / 2};
  device.peaks = {matrix, plain};
  device.memory = {{.name = "DRAM",
                    .capacity = Bytes{capacity},
                    .board = {},
                    .capacity_note = {},
                    .bandwidth = BytesPerSecond{bandwidth}}};
  return device;
}

// One layer of hidden 4, two heads of 2, MLP of 8, vocabulary of 10, no biases:
// q, k, v, o 4 * 16 + gate, up, down 3 * 32 = 160 weights, lm_head 40, KV 8 values a token.
model::Decoder tiny_model() {
  model::Decoder m;
  m.hidden = 4;
  m.vocab = 10;
  model::Layer layer;
  layer.attention.heads = layer.attention.kv_heads = 2;
  layer.attention.head_dim = layer.attention.v_head_dim = 2;
  layer.feed_forward.intermediate = 8;
  m.add_layer(layer);
  return m;
}

}  // namespace

TEST_CASE("article units count in powers of 1024 and compute at the plain fp32 rate, SI at the matrix peak",
          "[limits]") {
  const hardware::Device rtx4090 = hardware::load_device("rtx4090");
  const LimitRates article = limit_rates(rtx4090, UnitConvention::article);
  CHECK(article.bandwidth.value == Approx(1008.0 * 1073741824).epsilon(1e-14));
  CHECK(article.compute.value == Approx(82.58 * 1099511627776).epsilon(1e-14));
  CHECK(article.capacity.value == 24 * kGi);  // of the board
  CHECK(article.peak.engine == hardware::Engine::vector);
  const LimitRates si = limit_rates(rtx4090, UnitConvention::si);
  CHECK(si.bandwidth.value == 1008e9);
  CHECK(si.compute.value == 165.2e12);
  CHECK(si.capacity.value == Approx(23.52 * kGi));  // of it, what software can use
  CHECK(si.peak.engine == hardware::Engine::matrix);
  // Without a figure of the board: binary stays, a decimal capacity is read as binary, 80 GB as 80 GiB.
  CHECK(limit_rates(make_device(24 * kGi, 1, 1), UnitConvention::article).capacity.value == 24 * kGi);
  CHECK(limit_rates(make_device(80e9, 1, 1), UnitConvention::article).capacity.value ==
        Approx(80 * kGi).epsilon(1e-14));
  // No matrix engine: plain fp32.
  hardware::Device cpu = make_device(1, 1, 2);
  cpu.peaks.erase(cpu.peaks.begin());
  CHECK(limit_rates(cpu, UnitConvention::si).compute.value == 1);
}

TEST_CASE("the limits of a tiny model follow by hand", "[limits]") {
  // 200 activated weights of 2 bytes and 8 KV values of 2 bytes: 400 and 16 bytes.
  const model::Decoder m = tiny_model();
  const Limits l = compute_limits(m, make_device(1000, 100, 100), parse_limit_precision("w16kv16"));
  CHECK(l.counts.decoder_layers == 160);
  CHECK(l.counts.lm_head == 40);
  CHECK(l.counts.activated == 200);
  CHECK(l.counts.total == 240);
  CHECK(l.counts.kv_values_per_token == 8);
  CHECK(l.counts.attention_macs_per_pair == 8);  // two heads, 2 multiply-adds each for the score and the value
  CHECK(l.kv_tokens == 37);                      // (1000 - 400) / 16 = 37.5
  CHECK(l.decode_tokens_per_ms == 100.0 / 16 / 1000);
  CHECK(l.decode_base == Seconds{4});
  CHECK(decode_bytes(l, 1) / l.rates.bandwidth == Seconds{4});
  CHECK(decode_bytes(l, 26) / l.rates.bandwidth == Seconds{8});  // 25 cached tokens * 16 bytes = 400 bytes more
  // n = 3: 6 pairs. Reads 400 + 96 bytes, computes 2 (160 * 3 + 8 * 6 + 40) = 1136 FLOPs.
  CHECK(prefill_bytes(l, 3) == Bytes{496});
  CHECK(prefill_flops(l, 3) == Flops{1136});
  CHECK(prefill_latency(l, 3) == Seconds{11.36});
  // A pair takes as long to read as to compute (16 bytes, 16 FLOPs), so both curves differ by a line: rough
  // 2 * 200 n = 400 at n = 1, exact 2 (160 n + 40) = 400 at n = 1; no way back to memory bound.
  CHECK(l.rough.first == Approx(1));
  CHECK(!l.rough.second);
  CHECK(l.exact.first == Approx(1));
  CHECK(!l.exact.second);
}

TEST_CASE("at an inflection point reading and computing take equally long", "[limits]") {
  for (const char* name : {"qwen1.5-7b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3", "gemma-2b"}) {
    const model::Decoder m = model::load_decoder(name);
    for (const UnitConvention units : {UnitConvention::si, UnitConvention::article}) {
      const Limits l = compute_limits(m, hardware::load_device("rtx4090"), parse_limit_precision("w4kv16"), units);
      for (const std::optional<double>& root : {l.exact.first, l.exact.second}) {
        if (!root) continue;
        INFO(name << " " << *root);
        const double n = *root;
        const double visible = n * (n + 1) / 2;
        const double read = (l.resident_weights.value + visible * l.kv_per_token.value) / l.rates.bandwidth.value;
        const double flops = 2 * (static_cast<double>(l.counts.decoder_layers_activated) * n +
                                  visible * static_cast<double>(l.counts.attention_macs_per_pair) +
                                  static_cast<double>(l.counts.lm_head));
        CHECK(read == Approx(flops / l.rates.compute.value).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("each side of the inflection points has the bound it is said to have", "[limits]") {
  const model::Decoder m = tiny_model();
  const auto limits = [&](double bandwidth, double compute) {
    return compute_limits(m, make_device(1000, bandwidth, compute), parse_limit_precision("w16kv16"));
  };
  const auto compute_bound = [](const Limits& l, std::int64_t n) {
    return prefill_flops(l, n) / l.rates.compute > prefill_bytes(l, n) / l.rates.bandwidth;
  };
  SECTION("two points: memory, compute, memory") {
    const Limits l = limits(100, 150);
    REQUIRE(l.exact.first);
    REQUIRE(l.exact.second);
    CHECK(*l.exact.first < *l.exact.second);
    const auto first = static_cast<std::int64_t>(*l.exact.first);
    const auto second = static_cast<std::int64_t>(*l.exact.second);
    CHECK(!compute_bound(l, first));
    CHECK(compute_bound(l, first + 1));
    CHECK(compute_bound(l, second));
    CHECK(!compute_bound(l, second + 1));
  }
  SECTION("none: memory bound at every length when computing is fast") {
    const Limits l = limits(1, 1e9);
    CHECK(!l.exact.first);
    CHECK(!l.exact.second);
    CHECK(!l.exact.compute_bound_at_zero);
    CHECK(!compute_bound(l, 1));
    CHECK(!compute_bound(l, 1'000'000));
    CHECK(!free_chunk(l));
  }
  SECTION("none: compute bound at every length when reading is fast") {
    const Limits l = limits(1e9, 1);
    CHECK(!l.exact.first);
    CHECK(!l.exact.second);
    CHECK(l.exact.compute_bound_at_zero);
    CHECK(compute_bound(l, 1));
    CHECK(compute_bound(l, 1'000'000));
    CHECK(free_chunk(l) == 0.0);
  }
  SECTION("first only: compute bound for ever when a pair costs more to compute than to read") {
    const Limits l = limits(100, 50);
    REQUIRE(l.rough.first);
    CHECK(!l.rough.second);
    CHECK(compute_bound(l, 1'000'000));
  }
  SECTION("second only: lm_head alone outweighs the reads, until the cache does") {
    // A vocabulary of 1000: lm_head takes 2 * 4000 / 102 = 78 s, reading 4160 weights of half a byte at 100 B/s 21 s. A
    // pair takes 16 / 102 s to compute and 16 / 100 s to read.
    model::Decoder wide = m;
    wide.vocab = 1000;
    const Limits l = compute_limits(wide, make_device(1e6, 100, 102), parse_limit_precision("w4kv16"));
    CHECK(l.exact.compute_bound_at_zero);
    CHECK(!l.exact.first);
    REQUIRE(l.exact.second);
    const auto second = static_cast<std::int64_t>(*l.exact.second);
    CHECK(compute_bound(l, 1));
    CHECK(compute_bound(l, second));
    CHECK(!compute_bound(l, second + 1));
  }
}

TEST_CASE(
    "a first chunk as long as the first inflection point is free, later ones have to make up for the cache they read",
    "[limits]") {
  const Limits l = article_limits("qwen1.5-7b", "w16kv16");
  CHECK(free_chunk(l, 0) == l.exact.first);
  SECTION("a later chunk's length balances reading and computing with the cached tokens") {
    const std::optional<double> later = free_chunk(l, 50);
    REQUIRE(later);
    CHECK(*later > *l.exact.first);
    const auto n = static_cast<std::int64_t>(*later);
    const auto reading = [&](std::int64_t tokens) { return prefill_bytes(l, tokens, 50) / l.rates.bandwidth; };
    const auto computing = [&](std::int64_t tokens) { return prefill_flops(l, tokens, 50) / l.rates.compute; };
    CHECK(reading(n) > computing(n));
    CHECK(reading(n + 1) <= computing(n + 1));
  }
  SECTION("the rule holds for the weights alone: a second chunk that reads its keys and values costs more") {
    // Both chunks are above the first point (113), and so is the whole prompt, below the second (481).
    const Seconds whole = prefill_latency(l, 240);
    const Seconds split = prefill_latency(l, 120) + prefill_latency(l, 120, 120);
    CHECK(whole == prefill_flops(l, 240) / l.rates.compute);
    CHECK(split > whole * 1.05);
    CHECK(!free_chunk(l, 120));
  }
  SECTION("chunks add up to the prompt: pairs split exactly, weights are read per chunk, lm_head runs per chunk") {
    const auto whole = prefill_bytes(l, 240).value;
    CHECK(prefill_bytes(l, 100).value + prefill_bytes(l, 140, 100).value == whole + l.resident_weights.value);
    CHECK(prefill_flops(l, 100).value + prefill_flops(l, 140, 100).value ==
          prefill_flops(l, 240).value + 2 * static_cast<double>(l.counts.lm_head));
  }
  SECTION("with many query heads per KV head a pair is cheap to read and chunks stay free for long") {
    const Limits grouped = article_limits("qwen1.5-110b", "w16kv16");
    const std::optional<double> later = free_chunk(grouped, 4096);
    REQUIRE(later);
    CHECK(*later < 2 * *grouped.exact.first);
  }
}

TEST_CASE("all experts occupy memory, a decode step reads the ones it uses", "[limits]") {
  // 8 experts, 2 used.
  const model::Decoder m = model::load_decoder("mixtral-8x7b");
  const LimitCounts counts = limit_counts(m);
  const std::int64_t expert = 3 * m.hidden * m.kinds.front().feed_forward.experts->intermediate;
  CHECK(counts.resident - counts.activated == m.num_layers() * 6 * expert);
  const Limits l = compute_limits(m, make_device(200e9, 1e12, 1e14), parse_limit_precision("w16kv16"));
  CHECK(l.decode_base == Bytes{2.0 * static_cast<double>(counts.activated)} / BytesPerSecond{1e12});
  CHECK(prefill_bytes(l, 0) == Bytes{2.0 * static_cast<double>(counts.resident)});
  const double room = 200e9 - 2.0 * static_cast<double>(counts.resident);
  CHECK(l.kv_tokens == static_cast<std::int64_t>(room / 2 / static_cast<double>(counts.kv_values_per_token)));
  REQUIRE(l.notes.size() == 1);
  CHECK(l.notes.front().find("27 tokens") != std::string::npos);  // 0.62, 0.36, 0.26 … 0.12: the chances of the eight
}

TEST_CASE("a tied embedding is counted once and a sliding window is told", "[limits]") {
  const model::Decoder gemma = model::load_decoder("gemma-2-2b");
  REQUIRE(gemma.tied_embeddings);
  const LimitCounts counts = limit_counts(gemma);
  CHECK(counts.total == counts.decoder_layers + counts.lm_head);
  const Limits l = compute_limits(gemma, make_device(24e9, 1e12, 1e14), parse_limit_precision("w16kv16"));
  REQUIRE(l.notes.size() == 1);
  CHECK(l.notes.front().find("sliding windows") != std::string::npos);
  CHECK(compute_limits(tiny_model(), make_device(24e9, 1e12, 1e14), parse_limit_precision("w16kv16")).notes.empty());
}

TEST_CASE("a multiply-add per pair is K times the query heads per KV head", "[limits]") {
  for (const char* name : {"qwen1.5-0.5b", "qwen1.5-32b", "qwen1.5-110b", "llama-3-8b"}) {
    const model::Decoder m = model::load_decoder(name);
    const model::Attention& a = m.kinds.front().attention;
    const LimitCounts counts = limit_counts(m);
    CHECK(counts.attention_macs_per_pair == counts.kv_values_per_token * (a.heads / a.kv_heads));
  }
}

TEST_CASE("limit precisions name a width or a scheme, and scales count in SI only", "[limits]") {
  const auto bits = [](std::string_view text) {
    const LimitPrecision p = parse_limit_precision(text);
    return std::vector<double>{p.weight_bits, p.stored_weight_bits, p.kv_bits};
  };
  using Bits = std::vector<double>;
  CHECK(bits("w16kv16") == Bits{16, 16, 16});
  CHECK(bits("w4kv8") == Bits{4, 4, 8});
  CHECK(bits("w6") == Bits{6, 6, 16});
  CHECK(bits("bf16") == Bits{16, 16, 16});
  CHECK(bits("fp8kv8") == Bits{8, 8, 8});
  CHECK(bits("w8a8") == Bits{8, 8, 16});
  CHECK(bits("4.5") == Bits{4.5, 4.5, 16});
  // An fp16 scale and a 4-bit zero point per 128 weights: 20 / 128 bits more.
  CHECK(bits("w4a16-g128kv16") == Bits{4, 4.15625, 16});
  CHECK(parse_limit_precision("w4", 8).kv_bits == 8);
  CHECK(parse_limit_precision("w4kv4", 8).kv_bits == 4);
  CHECK(parse_limit_precision("w4kv16").label == "w4kv16");

  const LimitPrecision awq = parse_limit_precision("awq");
  const hardware::Device device = make_device(24e9, 1e12, 1e14);
  CHECK(compute_limits(tiny_model(), device, awq).bytes_per_weight == 4.15625 / 8);
  CHECK(compute_limits(tiny_model(), device, awq, UnitConvention::article).bytes_per_weight == 0.5);

  for (const char* bad : {"", "w", "w0", "w-4", "w65", "wnan", "w4kv", "w4kv0", "w4kvx", "kv16", "w16kv16kv", "mxfp4",
                          "int3", "1e400", "w1e400"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_limit_precision(bad), Error);
  }
}

TEST_CASE("devices that share every matrix have their memory and rates together, and a KV head each at least",
          "[limits]") {
  const model::Decoder m = model::load_decoder("llama-3.1-8b");  // 8 KV heads
  const hardware::Device device = make_device(80e9, 1e12, 1e14);
  const LimitPrecision bf16 = parse_limit_precision("bf16");
  const Limits one = compute_limits(m, device, bf16);
  const Limits eight = compute_limits(m, device, bf16, UnitConvention::si, 8);
  CHECK(eight.rates.capacity.value == 640e9);
  CHECK(eight.decode_base.value == Approx(one.decode_base.value / 8));
  CHECK(eight.decode_tokens_per_ms == Approx(8 * one.decode_tokens_per_ms));
  CHECK(eight.exact.first.has_value() == one.exact.first.has_value());
  CHECK(d(*eight.kv_tokens) == Approx((640e9 - one.resident_weights.value) / one.kv_per_token.value).epsilon(1e-6));
  // On 16 devices every KV head is there twice.
  const Limits sixteen = compute_limits(m, device, bf16, UnitConvention::si, 16);
  CHECK(sixteen.kv_per_token.value == 2 * one.kv_per_token.value);
  CHECK(sixteen.decode_tokens_per_ms == Approx(eight.decode_tokens_per_ms));
  // Latents are kept whole by every device.
  const model::Decoder latent = model::load_decoder("deepseek-v2-lite");
  CHECK(compute_limits(latent, device, bf16, UnitConvention::si, 4).kv_per_token.value ==
        4 * compute_limits(latent, device, bf16).kv_per_token.value);
}

}  // namespace llmperf::limits_test
