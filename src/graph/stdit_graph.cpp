// The ops of one denoising step, in execution order:
//
//   inputs, timestep (and sizes) embedded, the vectors of all blocks' modulation; text embedded and packed; patches
//   per unit of depth   stdit3: spatial block, temporal block, each of self-attention, cross-attention and MLP
//                       stdit, stdit2: spatial attention, temporal attention, cross-attention, MLP
//   final layer, patches to latent, guidance, update of the sampler
//
// Blocks of a kind are alike: each op is described once and counted. Everything is computed anew in every step: the
// text's embedding and its keys and values too, as Open-Sora does.
//
// A plan divides the blocks (the rest is small, and whole on every device):
//
//   ulysses   rows of patches; in spatial attention all heads of some tokens become some heads of all tokens and back,
//             in cross-attention the queries and the result; keys and values of the text are computed whole
//   tensor    heads and the MLP's width (arXiv 1909.08053): a sum after self-attention, cross-attention and MLP; with
//             sequence parallelism a gather before and a scatter after each; two-dimensional as in decoders
//   data      videos;  pipeline: units of depth, the residual stream sent from stage to stage
#include "graph/stdit_graph.h"

#include <fmt/format.h>

#include <array>

#include "graph/stdit_block.h"

namespace llmperf::graph {
namespace {

using enum VectorKind;
constexpr Access kDense = Access::dense;
constexpr Access kStrided = Access::strided;

class StepBuilder : private BlockWriter {
 public:
  using BlockWriter::BlockWriter;

  void build() {
    inputs();
    conditions();
    text();
    patches();
    blocks();
    final_layer();
    sampler();
  }

 private:
  double rows_of_batch() const { return static_cast<double>(batch()); }
  // Numbers of the latent of all sequences of the batch.
  double latent(std::int64_t channels) const {
    return rows_of_batch() * static_cast<double>(frames() * spatial() * m_.patch_elements() * channels);
  }

  void inputs() {
    if (e_.guidance) copy("repeat_latent", latent(m_.in_channels), kStrided, Dtype::fp32, Dtype::fp32, 2);
    copy("inputs_from_fp32", latent(m_.in_channels), kDense, Dtype::fp32, e_.activations, 3);
  }

  // A number by its sinusoids (frequencies copied, scaled by it, cosines and sines beside each other) and two products.
  void embed_number(std::int64_t columns) {
    run({"sinusoids", activation, kDense, 0, 1, 0, 1}, rows_of_batch(), m_.timestep_channels, 7);
    product("embed_in", batch(), columns, m_.timestep_channels, true, e_.weights, e_.activations);
    run({"embed_silu", activation, kDense}, rows_of_batch(), columns);
    product("embed_out", batch(), columns, columns, true, e_.weights, e_.activations);
  }
  void vectors_of_blocks(std::int64_t count) {
    run({"vectors_silu", activation, kDense}, rows_of_batch(), m_.hidden);
    product("vectors_proj", batch(), count * m_.hidden, m_.hidden, true, e_.weights, e_.activations);
  }
  void conditions() {
    for (const model::VideoDit::SizeEmbedder& size : m_.size_embedders) embed_number(size.width);
    const int sides = masked() ? 2 : 1;
    for (int side = 0; side < sides; ++side) {
      if (side > 0) run({"time_zero", add, kDense, 0, 0, 1}, rows_of_batch(), 1);
      embed_number(m_.hidden);
      if (!m_.size_embedders.empty()) run({"embed_add", add, kDense, 2}, rows_of_batch(), m_.hidden);
      vectors_of_blocks(6);
      if (m_.architecture == model::VideoArchitecture::stdit2) vectors_of_blocks(3);
    }
  }

  void text() {
    const std::int64_t rows = batch() * m_.text_tokens;
    product("text_embed_in", rows, m_.hidden, m_.text_channels, true, e_.weights, e_.activations);
    run({"text_gelu", activation, kDense}, static_cast<double>(rows), m_.hidden);
    product("text_embed_out", rows, m_.hidden, m_.hidden, true, e_.weights, e_.activations);
    // The real tokens of all sequences are packed: the mask is compared, counted and scanned, rows are picked.
    copy("text_pack", static_cast<double>(batch() * text_tokens() * m_.hidden), kStrided, e_.activations,
         e_.activations, 6);
  }

  void patches() {
    const std::int64_t elements = m_.patch_elements() * m_.in_channels;
    copy("latent_pad", latent(m_.in_channels), kStrided, e_.activations, e_.activations);
    product("patch_embed", tokens(), m_.hidden, elements, true, e_.weights, e_.activations);
    if (eager()) run({"patch_bias", add, kStrided}, static_cast<double>(tokens()), m_.hidden);
    run({"positions_from_fp32", add, kDense, 0, 1, 1, 0}, static_cast<double>(spatial()), m_.hidden);
    run({"positions_add", add, kStrided}, static_cast<double>(tokens()), m_.hidden);
  }

  void blocks() {
    count_ = m_.depth;
    layer_ = VideoLayer::spatial;
    switch (m_.architecture) {
      case model::VideoArchitecture::stdit3:
        for (const VideoLayer layer : {VideoLayer::spatial, VideoLayer::temporal}) {
          layer_ = layer;
          modulation_vectors(2);
          self_attention(true);
          cross_attention();
          mlp();
        }
        break;
      case model::VideoArchitecture::stdit:
      case model::VideoArchitecture::stdit2:
        modulation_vectors(m_.architecture == model::VideoArchitecture::stdit2 ? 2 : 1);
        self_attention(true);
        layer_ = VideoLayer::temporal;
        self_attention(m_.architecture == model::VideoArchitecture::stdit2);
        layer_ = VideoLayer::spatial;
        cross_attention();
        mlp();
        break;
    }
    layer_ = VideoLayer::outside;
    count_ = p_.pipeline - 1;
    exchange("stage_send", CollectiveKind::send, Axis::pipeline, p_.pipeline, residual_tokens(), residual_width());
    count_ = 1;
  }

  void final_layer() {
    const auto rows = static_cast<double>(tokens());
    const int sides = masked() ? 2 : 1;
    for (int side = 0; side < sides; ++side) {
      run({"final_vectors", add, kDense}, rows_of_batch(), 2 * m_.hidden);
      if (o_.fused_modulate) {
        const Kernel modulation{"final_modulate", modulate, kDense};
        sides == 1 ? run_before_product(modulation, rows, m_.hidden) : run(modulation, rows, m_.hidden);
        continue;
      }
      run({"final_norm", layer_norm, kDense}, rows, m_.hidden);
      run({"final_scale", add, kDense}, rows_of_batch(), m_.hidden);
      run({"final_multiply", multiply, kStrided}, rows, m_.hidden);
      run({"final_add", add, kStrided}, rows, m_.hidden);
    }
    if (masked()) run({"final_select", select, kStrided, 2}, rows, m_.hidden);
    product("final_proj", tokens(), m_.patch_elements() * m_.out_channels, m_.hidden, true, e_.weights, e_.activations);
    copy("patches_to_latent", latent(m_.out_channels), kStrided, e_.activations, e_.activations);
    copy("latent_to_fp32", latent(m_.out_channels), kDense, e_.activations, Dtype::fp32);
  }

  void sampler() {
    const double values = latent(m_.in_channels) / (e_.guidance ? 2 : 1);
    // with - without, times the scale, + without; the latent moves by the result times the step.
    if (e_.guidance) run({"guidance", add, kDense, 0, 5.0 / 3, 0, 1}, values, 1, 3);
    run({"sampler_update", add, kDense, 0, 1.5, 0, 1}, values, 1, 2);
  }
};

constexpr std::array<std::string_view, 13> kPurposeNames = {
    "products",  "spatial attention", "temporal attention", "cross attention",     "qk-norm",
    "rope",      "modulate",          "frame mask",         "gates and residuals", "activation",
    "rearrange", "communication",     "outside blocks"};
static_assert(static_cast<std::size_t>(VideoPurpose::outside) + 1 == kPurposeNames.size());

// What names of ops in blocks begin with; the rest are products.
struct Prefix {
  std::string_view text;
  VideoPurpose purpose;
};
constexpr Prefix kPrefixes[] = {
    {"spatial_attention", VideoPurpose::spatial_attention},
    {"temporal_attention", VideoPurpose::temporal_attention},
    {"cross_attention", VideoPurpose::cross_attention},
    {"qk_norm", VideoPurpose::qk_norm},
    {"rope", VideoPurpose::rope},
    {"modulate", VideoPurpose::modulate},
    {"frame_mask", VideoPurpose::frame_mask},
    {"gate", VideoPurpose::gate},
    {"gelu", VideoPurpose::activation},
    {"rearrange", VideoPurpose::rearrange},
};

}  // namespace

std::string_view name(VideoPurpose purpose) { return kPurposeNames[static_cast<std::size_t>(purpose)]; }

VideoPurpose purpose_of(const Op& op) {
  if (std::holds_alternative<Collective>(op.body)) return VideoPurpose::communication;
  if (op.layer_kind < 0) return VideoPurpose::outside;
  for (const Prefix& prefix : kPrefixes) {
    if (op.name.starts_with(prefix.text) && !op.name.starts_with("gather")) return prefix.purpose;
  }
  return VideoPurpose::product;
}

void build_denoising_step(const VideoExecution& execution, Graph& graph) { StepBuilder(execution, graph).build(); }

std::vector<Problem> problems(const model::VideoDit& m, const Plan& p) {
  std::vector<Problem> found;
  const auto divide = [&](std::string_view flag, std::string_view what, std::int64_t total, std::int64_t degree) {
    if (total % degree == 0) return;
    found.push_back({fmt::format("{}: {} {} of {} do not divide by {}", flag, total, what, m.name, degree),
                     "nearest legal: " + nearest_divisors(degree, total)});
  };
  const auto reject = [&](bool broken, const char* message, const char* hint) {
    if (broken) found.push_back({message, hint});
  };
  divide("--pp", "pairs of layers", m.depth, p.pipeline);
  divide(p.ulysses > 1 ? "--tp times ulysses" : "--tp", "heads", m.heads, p.tensor * p.ulysses);
  divide("--tp", "MLP columns", m.intermediate, p.tensor);
  if (p.tensor_rows > 0) divide("--tp", "hidden columns", m.hidden, p.tensor);
  reject(p.ring > 1, "--sp ring: the attention of video models is divided by heads (ulysses)", "--sp ulysses");
  reject(p.expert > 1, "--ep divides routed experts, and the model has none", "leave it out");
  reject(p.sequence_parallel && p.tensor == 1,
         "--megatron-sp divides the residual stream over the tensor axis: it needs --tp", "--tp 2 --megatron-sp");
  reject(p.sequence_parallel && p.tensor_rows > 0, "--tp ROWSxCOLUMNS already divides the residual stream",
         "leave out --megatron-sp");
  reject(p.tensor_rows > 0 && p.tensor % p.tensor_rows != 0, "--tp ROWSxCOLUMNS: the axis is no multiple of its rows",
         "");
  return found;
}

}  // namespace llmperf::graph
