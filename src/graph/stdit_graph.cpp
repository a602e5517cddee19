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
//
// The blocks of a denoising step: self-attention over space or time, cross-attention on the prompt, MLP, each with the
// kernels around it. What eager PyTorch runs was read from hpcaitech/Open-Sora v1.2.0 (opensora/models/stdit/stdit3.py,
// layers/blocks.py) and rotary-embedding-torch; M = tokens x hidden, one kernel a line, as elements read > written in
// the activation type, f for fp32:
//
//   modulation      LayerNorm M > M; 1 + scale (tiny); multiply M > M; add M > M
//   frame mask      the same again with the vectors of time 0, and a selection 2M > M; likewise of the gates
//   query/key norm  to fp32 M > fM; square fM > fM; mean fM > rows; add epsilon; root; multiply fM > fM; from fp32
//                   fM > M; weight M > M
//   rope            cos, sin (tiny); multiply M > M; scale M > M; negate the odd half; interleave the halves (two
//                   copies); multiply M > M; scale M > M; add 2M > M; concatenate M > M
//   attention       A = sequences x heads x length^2: scale M > M; product; to fp32 A > fA; softmax fA > fA; from fp32
//                   fA > A; copy of the values M > M; product; copy of the result M > M
//   gate            multiply M > M; add 2M > M
//
// Broadcast, permuted and short-row kernels are strided (graph::Access). A library of fused kernels has one for each of
// these lines' headings. Flash attention is taken where the sequence is longer than the number of sequences.
//
// Encoding the prompt by a T5 encoder (transformers' T5EncoderModel), which works on the padded text:
//
//   embed; per layer: norm, q k v, scores + relative positions, softmax, weighted sum, output, add;
//                     norm, gate and up, activation, down, add;
//   final norm
//
// Eager: a norm is square, mean, root, multiply, weight in fp32; q, k, v and the heads' result are copied to and from
// the order of heads; the gate's activation and its product are two kernels.
//
// Decoding the latent: a 3-D decoder per chunk of frames, which lengthens time (where there is one), then a 2-D decoder
// per micro-batch of frames, which enlarges them (Open-Sora v1.2.0, opensora/models/vae; diffusers 0.27 AutoencoderKL).
// Both are residual blocks of
//
//   norm, SiLU, convolution, norm, SiLU, convolution, + input (through a 1 x 1 convolution where the widths differ)
//
// of all channels at a level's resolution. Filters have 3 x 3 taps in 2-D, 3 x 3 x 3 in 3-D, padded with zeros (in time
// with earlier ones only). The middle of the 2-D decoder has an attention block with one head of all channels.
//
// Eager PyTorch, in tensors of the block's shape: a group norm reads twice and writes once, SiLU reads and writes, and
// a convolution library's kernels on channels-last data cost a copy before and after each convolution, its bias a
// kernel. The 2-D blocks divide their result by 1; an enlarged map is made in fp32; the 3-D decoder writes padded
// copies.
#include "graph/stdit_graph.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/integer.h"

namespace llmperf::graph {
namespace {

using enum VectorKind;
constexpr Access kDense = Access::dense;
constexpr Access kStrided = Access::strided;

// One element-wise kernel on tensors of a shape: how many of them it reads and writes in the activation type (narrow)
// and in fp32 (wide).
struct Kernel {
  std::string_view name;
  VectorKind kind = VectorKind::add;
  Access access = Access::dense;
  double narrow_reads = 1;
  double wide_reads = 0;
  double narrow_writes = 1;
  double wide_writes = 0;
};

// One side of the frame mask: the norm and its two vectors.
struct Modulation {
  Kernel norm, scale, multiply, add, fused;
};
constexpr Modulation kModulate = {{"modulate_norm", layer_norm, kDense},
                                  {"modulate_scale", add, kDense},
                                  {"modulate_multiply", multiply, kStrided},
                                  {"modulate_add", add, kStrided},
                                  {"modulate", modulate, kDense}};
constexpr Modulation kMasked = {{"frame_mask_norm", layer_norm, kDense},
                                {"frame_mask_scale", add, kDense},
                                {"frame_mask_multiply", multiply, kStrided},
                                {"frame_mask_add", add, kStrided},
                                {"frame_mask_modulate", modulate, kDense}};
constexpr Kernel kSelect = {"frame_mask_select", select, kStrided, 2};
constexpr Kernel kMaskedGate = {"frame_mask_gate", multiply, kStrided};
constexpr Kernel kFusedMaskedGate = {"frame_mask_gate", gate_add, kDense, 2};

// Of one tensor of heads; rows are heads of tokens but for the two kernels on statistics, which have one per row.
constexpr Kernel kNormKernels[] = {
    {"qk_norm_to_fp32", add, kStrided, 1, 0, 0, 1}, {"qk_norm_square", multiply, kDense, 0, 1, 0, 1},
    {"qk_norm_mean", reduce, kStrided, 0, 1, 0, 0}, {"qk_norm_multiply", multiply, kStrided, 0, 1, 0, 1},
    {"qk_norm_from_fp32", add, kDense, 0, 1, 1, 0}, {"qk_norm_weight", multiply, kStrided},
};
constexpr Kernel kNormStatistics = {"qk_norm_statistics", add, kDense, 0, 1, 0, 1};
constexpr Kernel kFusedNorm = {"qk_norm", rms_norm, kDense};

constexpr Kernel kRopeTables = {"rope_tables", activation, kDense};
constexpr Kernel kRopeKernels[] = {
    {"rope_multiply_cos", multiply, kStrided},
    {"rope_scale", multiply, kDense},
    {"rope_multiply_sin", multiply, kStrided},
    {"rope_scale", multiply, kDense},
    {"rope_add", add, kStrided, 2},
    {"rope_concatenate", add, kStrided},
};
// On half of the elements, whose neighbours share their memory transactions.
constexpr Kernel kRopeHalves[] = {{"rope_negate", multiply, kStrided, 2},
                                  {"rope_interleave_even", add, kStrided},
                                  {"rope_interleave_odd", add, kStrided, 1, 0, 2}};
constexpr Kernel kFusedRope = {"rope", rope, kDense};

constexpr Kernel kFusedGate = {"gate_add", gate_add, kDense, 2};

// A box of pixels.
struct Box {
  std::int64_t frames = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t positions() const { return frames * rows * columns; }
};

class VideoBuilder {
 public:
  VideoBuilder(const VideoExecution& execution, Graph& graph)
      : e_(execution),
        m_(*execution.model),
        o_(execution.runtime),
        p_(execution.plan),
        t_(m_.text_encoder),
        graph_(graph),
        batch_(execution.batch()),
        // Rows of patches are dealt out whole: a device's share is padded to the largest.
        spatial_(divide_up(execution.shape.patch_rows, execution.plan.ulysses * execution.patches) *
                 execution.shape.patch_columns) {
    graph_.clear();
  }

  void denoise() {
    inputs();
    conditions();
    text();
    patches();
    blocks();
    final_layer();
    sampler();
  }

  void encode_text() {
    push("text_embed",
         Gather{.rows = text_rows(), .width = t_.hidden, .table = &e_.text_weights, .activation = e_.text_activations});
    count_ = t_.layers;
    text_attention();
    text_mlp();
    count_ = 1;
    text_norm("text_final_norm");
  }
  void decode() {
    const model::VideoShape& s = e_.shape;
    const model::TemporalAutoencoder& t = m_.temporal_decoder;
    if (t.chunk > 0) {
      const std::int64_t whole = (t.chunk + t.scale() - 1) / t.scale();
      decode_temporal(whole, s.latent_frames / whole * e_.replica_videos());
      decode_temporal(s.latent_frames % whole, e_.replica_videos());
    }
    const std::int64_t frames = s.frames * e_.replica_videos();
    const std::int64_t batch = m_.image_decoder.micro_batch;
    decode_spatial(batch, frames / batch);
    decode_spatial(frames % batch, 1);
  }

 private:
  Op& push(std::string_view name, const OpBody& body, std::int32_t launches = 1) {
    graph_.push_back(Op{.name = name,
                        .tag = tag_,
                        .count = count_,
                        .layer_kind = static_cast<int>(layer_),
                        .launches = launches,
                        .body = body});
    return graph_.back();
  }
  // Ops written during its life are those of a part of a block.
  struct Part {
    Part(VideoBuilder& builder, Tag tag) : current(builder.tag_), before(std::exchange(builder.tag_, tag)) {}
    ~Part() { current = before; }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    Tag& current;
    Tag before;
  };
  // `launches` kernels alike are one op with their traffic together.
  void run(const Kernel& k, double rows, std::int64_t width, Dtype activation, std::int32_t launches = 1) {
    const double wide = 32 / bits(activation);
    push(k.name,
         Vector{.kind = k.kind,
                .rows = static_cast<std::int64_t>(rows),
                .width = width,
                .reads = (k.narrow_reads + k.wide_reads * wide) * launches,
                .writes = (k.narrow_writes + k.wide_writes * wide) * launches,
                .activation = activation,
                .access = k.access},
         launches);
  }
  void run(const Kernel& k, double rows, std::int64_t width, std::int32_t launches = 1) {
    run(k, rows, width, e_.activations, launches);
  }
  // Elements moved, and converted on the way when the types differ.
  static Copy copy_of(double elements, Access access, Dtype from, Dtype to) {
    return {.read_elements = elements,
            .write_elements = elements,
            .from = model::element_format(from),
            .to = model::element_format(to),
            .access = access};
  }
  void copy(std::string_view name, double elements, Access access, Dtype from, Dtype to, std::int32_t launches = 1) {
    push(name, copy_of(elements, access, from, to), launches);
  }
  void product(std::string_view name, std::int64_t rows, std::int64_t n, std::int64_t k, bool bias,
               const model::StoredFormat& format, Dtype activation) {
    Gemm g{.m = rows, .n = n, .k = k, .activation = activation, .weights = &format, .bias = bias};
    g.joined.input = std::exchange(modulation_, std::nullopt);
    push(name, g);
  }

  // ---- Vector work that products take over (RuntimeOptions::joined_vectors).
  bool joins() const { return o_.joined_vectors && !eager() && p_.tensor_rows == 0; }
  // On what the next op, a product, reads.
  void run_before_product(const Kernel& k, double rows, std::int64_t width) {
    if (joins()) {
      modulation_ = k.kind;
    } else {
      run(k, rows, width);
    }
  }
  // On the results of the product just written, if that is what was written.
  void run_after_product(const Kernel& k, double rows, std::int64_t width) {
    Gemm* g = joins() ? std::get_if<Gemm>(&graph_.back().body) : nullptr;
    if (g && d(g->m) == rows && g->n == width && !g->joined.output) {
      g->joined.output = k.kind;
      g->joined.reads = k.narrow_reads - 1;
    } else {
      run(k, rows, width);
    }
  }
  bool eager() const { return o_.chains != hardware::Chains::one_kernel; }

  // ---- Shapes on one device

  bool masked() const { return m_.architecture == model::VideoArchitecture::stdit3 && !o_.skip_frame_mask; }

  std::int64_t batch() const { return batch_; }
  std::int64_t frames() const { return e_.shape.patch_frames; }
  std::int64_t spatial() const { return spatial_; }                     // tokens of a frame
  std::int64_t tokens() const { return batch_ * frames() * spatial_; }  // rows of a product
  std::int64_t heads() const { return m_.heads / p_.tensor; }
  std::int64_t width() const { return heads() * m_.head_dim(); }
  std::int64_t text_tokens() const { return e_.text_tokens > 0 ? e_.text_tokens : m_.text_tokens; }
  std::int64_t residual_tokens() const {
    return p_.sequence_parallel ? (tokens() + p_.tensor - 1) / p_.tensor : tokens();
  }
  bool two_dimensional() const { return p_.tensor_rows > 0; }
  std::int64_t residual_width() const { return two_dimensional() ? m_.hidden / p_.tensor : m_.hidden; }

  // `n` and `k` of linear() are those of one device of the tensor axis.
  enum class Split : unsigned char { outputs, inputs };

  // ---- Parts of a block

  struct AttentionNames {
    Tag tag;
    std::string_view flash, scale, scores, to_fp32, softmax, from_fp32, copy_values, values, copy_result;
  };
  // The vectors that a block's table adds to the step's, `kernels` of them for each side of the frame mask.
  void modulation_vectors(std::int32_t kernels) {
    const Part part(*this, Tag::modulate);
    run({"modulate_vectors", add, kDense}, d(batch_), 3 * m_.hidden,
        o_.fused_modulate ? 1 : kernels * (masked() ? 2 : 1));
  }

  // `copied`: before the product that reads the result there are copies of it.
  void norm_and_modulate(bool copied) {
    const Part part(*this, Tag::modulate);
    const double rows = d(residual_tokens());
    const std::int64_t columns = residual_width();
    const bool sole = !masked() && !copied;
    const auto side = [&](const Modulation& k) {
      if (o_.fused_modulate) return sole ? run_before_product(k.fused, rows, columns) : run(k.fused, rows, columns);
      run(k.norm, rows, columns);
      run(k.scale, d(batch_), columns);
      run(k.multiply, rows, columns);
      run(k.add, rows, columns);
    };
    side(kModulate);
    if (two_dimensional()) {
      exchange("norm_statistics", CollectiveKind::all_reduce, Axis::tensor, p_.tensor, residual_tokens(), 2);
    }
    if (!masked()) return;
    const Part other_side(*this, Tag::frame_mask);
    side(kMasked);
    run(kSelect, rows, columns);
  }

  void gate(std::string_view multiply_name, std::string_view add_name) {
    const Part part(*this, Tag::gate);
    const double rows = d(residual_tokens());
    const std::int64_t columns = residual_width();
    const bool fused = o_.fused_gate;
    if (fused && !masked()) return run_after_product(kFusedGate, rows, columns);
    run(fused ? kFusedGate : Kernel{multiply_name, multiply, kStrided}, rows, columns);
    if (masked()) {
      const Part other_side(*this, Tag::frame_mask);
      run(fused ? kFusedMaskedGate : kMaskedGate, rows, columns);
      run(kSelect, rows, columns);
    }
    if (!fused) run({add_name, add, kDense, 2}, rows, columns);
  }

  void norm_queries_and_keys() {
    if (!m_.qk_norm) return;
    const Part part(*this, Tag::qk_norm);
    const double rows = d(tokens() * heads());
    const std::int64_t head = m_.head_dim();
    if (o_.fused_qk_norm) return run(kFusedNorm, 2 * rows, head);
    constexpr int kTensors = 2;  // queries and keys
    for (int i = 0; i < kTensors; ++i) {
      for (const Kernel& kernel : kNormKernels) run(kernel, rows, head);
      run(kNormStatistics, rows, 1, 2);  // epsilon added, root
    }
  }

  void rotate() {
    const Part part(*this, Tag::rotate);
    const double rows = d(tokens() * heads());
    const std::int64_t head = m_.head_dim();
    if (o_.fused_rope) return run(kFusedRope, 2 * rows, head);
    constexpr int kTensors = 2;
    for (int i = 0; i < kTensors; ++i) {
      run(kRopeTables, d(frames()), head, 2);
      for (const Kernel& kernel : kRopeKernels) run(kernel, rows, head);
      for (const Kernel& kernel : kRopeHalves) run(kernel, rows / 2, head);
    }
  }

  void flash(std::string_view name, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
             std::int64_t heads) {
    push(name, Attention{.sequences = sequences,
                         .q_tokens = queries,
                         .keys = keys,
                         .heads = heads,
                         .kv_heads = heads,
                         .qk_dim = m_.head_dim(),
                         .v_dim = m_.head_dim(),
                         .window = {},
                         .activation = e_.activations});
  }

  void attend(const AttentionNames& names, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
              std::int64_t heads, bool in_one_kernel) {
    const Part part(*this, names.tag);
    if (in_one_kernel) return flash(names.flash, sequences, queries, keys, heads);
    const std::int64_t head = m_.head_dim();
    const std::int64_t products = sequences * heads;
    const double rows = d(products * queries);
    run({names.scale, multiply, kDense}, rows, head);
    push(names.scores, Gemm{.m = queries, .n = keys, .k = head, .batch = products, .activation = e_.activations});
    run({names.to_fp32, add, kDense, 1, 0, 0, 1}, rows, keys);
    run({names.softmax, softmax, kDense, 0, 1, 0, 1}, rows, keys);
    run({names.from_fp32, add, kDense, 0, 1, 1, 0}, rows, keys);
    run({names.copy_values, add, kStrided}, d(products * keys), head);
    push(names.values, Gemm{.m = queries, .n = head, .k = keys, .batch = products, .activation = e_.activations});
    run({names.copy_result, add, kStrided}, rows, head);
  }

  void rearrange(std::string_view name, std::int64_t rows, std::int64_t width) {
    const Part part(*this, Tag::rearrange);
    run({name, add, kStrided}, d(rows), width);
  }
  // Modulated input, self-attention over `layer_`'s axis, gate and residual. `modulated`: with a norm, scale and shift
  // of its own.
  void self_attention(bool modulated) {
    static constexpr AttentionNames kSpatialNames = {Tag::spatial_attention,        "spatial_attention",
                                                     "spatial_attention_scale",     "spatial_attention_scores",
                                                     "spatial_attention_to_fp32",   "spatial_attention_softmax",
                                                     "spatial_attention_from_fp32", "spatial_attention_copy_v",
                                                     "spatial_attention_weighted",  "spatial_attention_copy"};
    static constexpr AttentionNames kTemporalNames = {Tag::temporal_attention,        "temporal_attention",
                                                      "temporal_attention_scale",     "temporal_attention_scores",
                                                      "temporal_attention_to_fp32",   "temporal_attention_softmax",
                                                      "temporal_attention_from_fp32", "temporal_attention_copy_v",
                                                      "temporal_attention_weighted",  "temporal_attention_copy"};
    const bool over_space = layer_ == VideoLayer::spatial;
    // A kernel that strides through memory does without the permuted copies.
    const bool copies = !over_space && !o_.flash_any_length;
    if (modulated) norm_and_modulate(copies);
    gather_tokens("attention_gather");
    if (copies) rearrange("rearrange_to_time", tokens(), m_.hidden);
    linear("qkv_proj", Split::outputs, tokens(), 3 * width(), m_.hidden);
    // All heads of some tokens become some heads of all tokens.
    const std::int64_t ranks = over_space ? p_.ulysses : 1;
    if (over_space) exchange("qkv_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, ranks, tokens(), 3 * width());
    norm_queries_and_keys();
    if (!over_space && m_.rotary()) rotate();
    const std::int64_t sequences = batch_ * (over_space ? frames() : spatial_);
    const std::int64_t queries = over_space ? spatial_ * ranks : frames();
    const std::int64_t keys = over_space ? queries * e_.patches : queries;
    // Open-Sora's attention over divided sequences has no test of their length.
    const bool long_enough = keys > sequences || (over_space && ranks > 1);
    const AttentionNames& names = over_space ? kSpatialNames : kTemporalNames;
    attend(names, sequences, queries, keys, heads() / ranks,
           o_.flash_attention && (o_.flash_any_length || long_enough));
    if (over_space)
      exchange("attention_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, ranks, tokens(), width());
    linear("attention_proj", Split::inputs, tokens(), m_.hidden, width());
    reduce_tokens("attention_reduce", "attention_scatter");
    if (copies) rearrange("rearrange_to_space", residual_tokens(), residual_width());
    gate("gate_attention", "gate_attention_residual");
  }

  void cross_attention() {
    const std::int64_t text = batch_ * text_tokens();
    gather_tokens("cross_gather");
    linear("cross_q_proj", Split::outputs, tokens(), width(), m_.hidden);
    linear("cross_kv_proj", Split::outputs, text, 2 * width(), m_.hidden);
    exchange("cross_q_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, tokens(), width());
    {
      const Part part(*this, Tag::cross_attention);
      // Where the queries and keys of every sequence start: two small tensors, filled on the host and copied.
      if (eager()) copy("cross_attention_starts", d(batch_ + 1), kDense, Dtype::int32, Dtype::int32, 4);
      flash("cross_attention", batch_, frames() * spatial_ * p_.ulysses, text_tokens(), heads() / p_.ulysses);
    }
    exchange("cross_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, tokens(), width());
    linear("cross_proj", Split::inputs, tokens(), m_.hidden, width());
    reduce_tokens("cross_reduce", "cross_scatter");
    const Part part(*this, Tag::gate);
    run_after_product({"gate_cross_residual", add, kDense, 2}, d(residual_tokens()), residual_width());
  }

  void mlp() {
    const std::int64_t inner = m_.intermediate / p_.tensor;
    norm_and_modulate(false);
    gather_tokens("mlp_gather");
    linear("mlp_up_proj", Split::outputs, tokens(), inner, m_.hidden);
    {
      const Part part(*this, Tag::gelu);
      run_after_product({"gelu", activation, kDense}, d(tokens()), inner);
    }
    linear("mlp_down_proj", Split::inputs, tokens(), m_.hidden, inner);
    reduce_tokens("mlp_reduce", "mlp_scatter");
    gate("gate_mlp", "gate_mlp_residual");
  }

  void exchange(std::string_view name, CollectiveKind kind, Axis axis, std::int64_t ranks, std::int64_t rows,
                std::int64_t columns) {
    if (ranks == 1) return;
    push(name, Collective{.kind = kind,
                          .axis = axis,
                          .ranks = ranks,
                          .stride = p_.stride(axis),
                          .rows = d(rows),
                          .width = d(columns),
                          .element = model::element_format(e_.activations)})
        .place = Place::network;
  }

  void gather_tokens(std::string_view name) {
    if (p_.sequence_parallel) exchange(name, CollectiveKind::all_gather, Axis::tensor, p_.tensor, tokens(), m_.hidden);
  }

  void reduce_tokens(std::string_view all_reduce, std::string_view scatter) {
    if (two_dimensional()) return;
    exchange(p_.sequence_parallel ? scatter : all_reduce,
             p_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, Axis::tensor,
             p_.tensor, tokens(), m_.hidden);
  }

  // Two-dimensional plans as in decoder_graph.cpp: the input is gathered along the columns, partial
  // products are reduce-scattered along the rows.
  void linear(std::string_view name, Split split, std::int64_t rows, std::int64_t n, std::int64_t k) {
    if (two_dimensional()) {
      const std::int64_t columns = p_.tensor_columns();
      n = split == Split::outputs ? n * p_.tensor_rows : n / columns;
      k = split == Split::outputs ? k / p_.tensor_rows : k * columns;
      exchange("gather_columns", CollectiveKind::all_gather, Axis::tensor_columns, columns, rows, k);
    }
    product(name, rows, n, k, true, e_.weights, e_.activations);
    if (two_dimensional()) {
      exchange("reduce_rows", CollectiveKind::reduce_scatter, Axis::tensor_rows, p_.tensor_rows, rows, n);
    }
  }

  // ---- The rest of a denoising step

  double rows_of_batch() const { return d(batch()); }
  // Numbers of the latent of all sequences of the batch.
  double latent(std::int64_t channels) const {
    return rows_of_batch() * d(frames() * spatial() * m_.patch_elements() * channels);
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
    run({"text_gelu", activation, kDense}, d(rows), m_.hidden);
    product("text_embed_out", rows, m_.hidden, m_.hidden, true, e_.weights, e_.activations);
    // The real tokens of all sequences are packed: the mask is compared, counted and scanned, rows are picked.
    copy("text_pack", d(batch() * text_tokens() * m_.hidden), kStrided, e_.activations, e_.activations, 6);
  }

  void patches() {
    const std::int64_t elements = m_.patch_elements() * m_.in_channels;
    copy("latent_pad", latent(m_.in_channels), kStrided, e_.activations, e_.activations);
    product("patch_embed", tokens(), m_.hidden, elements, true, e_.weights, e_.activations);
    if (eager()) run({"patch_bias", add, kStrided}, d(tokens()), m_.hidden);
    run({"positions_from_fp32", add, kDense, 0, 1, 1, 0}, d(spatial()), m_.hidden);
    run({"positions_add", add, kStrided}, d(tokens()), m_.hidden);
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
    const double rows = d(tokens());
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
  // ---- Encoding the prompt

  std::int64_t text_rows() const { return e_.replica_videos() * m_.text_tokens; }
  std::int64_t text_width() const { return t_.heads * t_.head_dim; }
  void text_vectors(const Kernel& kernel, double rows, std::int64_t width, std::int32_t launches = 1) {
    run(kernel, rows, width, e_.text_activations, launches);
  }
  void text_linear(std::string_view name, std::int64_t n, std::int64_t k) {
    product(name, text_rows(), n, k, false, e_.text_weights, e_.text_activations);
  }
  void text_norm(std::string_view name) {
    if (eager()) {
      text_vectors({name, rms_norm, kStrided}, d(text_rows()), t_.hidden, 5);
    } else {
      text_vectors({name, rms_norm, kDense}, d(text_rows()), t_.hidden);
    }
  }
  void text_attention() {
    const std::int64_t tokens = m_.text_tokens;
    const std::int64_t products = e_.replica_videos() * t_.heads;
    const double scores = d(products * tokens);
    text_norm("text_attention_norm");
    for (const std::string_view name : {"text_q_proj", "text_k_proj", "text_v_proj"})
      text_linear(name, text_width(), t_.hidden);
    if (eager()) text_vectors({"text_heads", add, kStrided}, d(text_rows()), text_width(), 3);
    push("text_scores",
         Gemm{.m = tokens, .n = tokens, .k = t_.head_dim, .batch = products, .activation = e_.text_activations});
    text_vectors({"text_positions", add, kStrided}, scores, tokens);
    text_vectors({"text_softmax", softmax, kDense}, scores, tokens);
    push("text_weighted_sum",
         Gemm{.m = tokens, .n = t_.head_dim, .k = tokens, .batch = products, .activation = e_.text_activations});
    if (eager()) text_vectors({"text_merge_heads", add, kStrided}, d(text_rows()), text_width());
    text_linear("text_o_proj", t_.hidden, text_width());
    text_vectors({"text_attention_add", add, kDense, 2}, d(text_rows()), t_.hidden);
  }
  void text_mlp() {
    const double rows = d(text_rows());
    text_norm("text_mlp_norm");
    text_linear("text_gate_proj", t_.intermediate, t_.hidden);
    if (eager()) text_vectors({"text_gelu", activation, kDense}, rows, t_.intermediate);
    text_linear("text_up_proj", t_.intermediate, t_.hidden);
    text_vectors({eager() ? "text_multiply_gate" : "text_activation", eager() ? multiply : gated_activation, kDense, 2},
                 rows, t_.intermediate);
    text_linear("text_down_proj", t_.hidden, t_.intermediate);
    text_vectors({"text_mlp_add", add, kDense, 2}, rows, t_.hidden);
  }

  // ---- Decoding the latent

  struct DecoderNames {
    std::string_view in, first, second, shortcut, norm, activation, layout, bias, pad, add, rescale, enlarge, out,
        quant;
  };

  // The convolution and what eager PyTorch adds to it.
  void convolve(std::string_view name, const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t taps,
                bool bias) {
    const bool pads = !names_->pad.empty() && taps > 1 && eager();
    const Box padded = pads ? Box{box.frames + 2, box.rows + 2, box.columns + 2} : box;
    const double read = d(padded.positions());
    const double written = d(box.positions());
    if (eager()) {
      if (pads) {
        Copy pad = copy_of(read * d(inputs), kDense, e_.activations, e_.activations);
        pad.read_elements = written * d(inputs);
        push(names_->pad, pad);
      }
      copy(names_->layout, read * d(inputs), kDense, e_.activations, e_.activations);
    }
    push(name, Convolution{.positions = box.positions(),
                           .outputs = outputs,
                           .inputs = inputs,
                           .taps = taps,
                           .input_positions = read,
                           .activation = e_.activations,
                           .weights = &e_.decoder_weights,
                           .bias = bias && !eager()});
    if (eager()) {
      copy(names_->layout, written * d(outputs), kDense, e_.activations, e_.activations);
      if (bias) run({names_->bias, add, kDense}, written, outputs);
    }
  }
  void norm_and_activate(const Box& box, std::int64_t channels) {
    const double positions = d(box.positions());
    run({names_->norm, group_norm, kDense, 2}, positions, channels);
    if (eager()) run({names_->activation, activation, kDense}, positions, channels);
  }
  void block(const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t taps, bool bias) {
    norm_and_activate(box, inputs);
    convolve(names_->first, box, inputs, outputs, taps, bias);
    norm_and_activate(box, outputs);
    convolve(names_->second, box, outputs, outputs, taps, bias);
    if (inputs != outputs) convolve(names_->shortcut, box, inputs, outputs, 1, bias);
    const double positions = d(box.positions());
    run({names_->add, add, kDense, 2}, positions, outputs);
    if (eager() && !names_->rescale.empty()) run({names_->rescale, multiply, kDense}, positions, outputs);
  }
  // `blocks` blocks, of which the first may change the width; those alike are one description.
  void level(const Box& box, std::int64_t inputs, std::int64_t outputs, std::int64_t blocks, std::int64_t taps,
             bool bias) {
    const std::int64_t times = count_;
    if (inputs != outputs) {
      block(box, inputs, outputs, taps, bias);
      --blocks;
    }
    count_ = times * blocks;
    if (blocks > 0) block(box, outputs, outputs, taps, bias);
    count_ = times;
  }

  // `latents` latent frames of one chunk, `chunks` times.
  void decode_temporal(std::int64_t latents, std::int64_t chunks) {
    static constexpr DecoderNames kNames = {"3d_conv_in", "3d_conv_1", "3d_conv_2",   "3d_shortcut", "3d_norm",
                                            "3d_silu",    "3d_layout", "3d_bias",     "3d_pad",      "3d_add",
                                            "",           "3d_double", "3d_conv_out", "3d_quant"};
    if (latents == 0 || chunks == 0) return;
    names_ = &kNames;
    count_ = chunks;
    constexpr std::int64_t kTaps = 27;
    const model::TemporalAutoencoder& t = m_.temporal_decoder;
    Box box = {latents, e_.shape.latent_height, e_.shape.latent_width};
    std::int64_t width = t.channels.back();
    convolve(kNames.quant, box, m_.in_channels, m_.in_channels, 1, true);
    convolve(kNames.in, box, m_.in_channels, width, kTaps, true);
    level(box, width, width, t.blocks, kTaps, false);
    for (std::size_t i = t.channels.size(); i-- > 0;) {
      level(box, width, t.channels[i], t.blocks, kTaps, false);
      width = t.channels[i];
      if (i == 0 || t.halves[i - 1] == 0) continue;
      convolve(kNames.enlarge, box, width, 2 * width, kTaps, true);
      copy("3d_interleave", d(2 * box.positions() * width), kStrided, e_.activations, e_.activations);
      box.frames *= 2;
    }
    norm_and_activate(box, width);
    convolve(kNames.out, box, width, m_.in_channels, kTaps, true);
    count_ = 1;
  }

  // `frames` frames together, `times` times.
  void decode_spatial(std::int64_t frames, std::int64_t times) {
    static constexpr DecoderNames kNames = {
        "2d_conv_in", "2d_conv_1", "2d_conv_2", "2d_shortcut", "2d_norm",    "2d_silu",     "2d_layout",
        "2d_bias",    "",          "2d_add",    "2d_rescale",  "2d_enlarge", "2d_conv_out", "2d_quant"};
    if (frames == 0 || times == 0) return;
    names_ = &kNames;
    count_ = times;
    constexpr std::int64_t kTaps = 9;
    constexpr std::int64_t kColours = 3;
    const model::ImageAutoencoder& a = m_.image_decoder;
    Box box = {frames, e_.shape.latent_height, e_.shape.latent_width};
    std::int64_t width = a.channels.back();
    convolve(kNames.quant, box, a.latent_channels, a.latent_channels, 1, true);
    convolve(kNames.in, box, a.latent_channels, width, kTaps, true);
    block(box, width, width, kTaps, true);
    middle_attention(box, width);
    block(box, width, width, kTaps, true);
    for (std::size_t i = a.channels.size(); i-- > 0;) {
      level(box, width, a.channels[i], a.blocks + 1, kTaps, true);
      width = a.channels[i];
      if (i > 0) enlarge(box, width);
    }
    norm_and_activate(box, width);
    convolve(kNames.out, box, width, kColours, kTaps, true);
    count_ = 1;
  }
  void enlarge(Box& box, std::int64_t width) {
    const double small = d(box.positions() * width);
    box.rows *= 2;
    box.columns *= 2;
    const double large = d(box.positions() * width);
    const auto repeat = [&](Dtype type) {
      Copy repeated = copy_of(large, kDense, type, type);
      repeated.read_elements = small;
      push("2d_repeat_pixels", repeated);
    };
    if (eager()) {
      copy("2d_to_fp32", small, kDense, e_.activations, Dtype::fp32);
      repeat(Dtype::fp32);
      copy("2d_from_fp32", large, kDense, Dtype::fp32, e_.activations);
    } else {
      repeat(e_.activations);
    }
    convolve(names_->enlarge, box, width, width, 9, true);
  }
  void middle_attention(const Box& box, std::int64_t width) {
    const std::int64_t pixels = box.rows * box.columns;
    const double positions = d(box.positions());
    run({names_->norm, group_norm, kDense, 2}, positions, width);
    for (const std::string_view name : {"2d_q_proj", "2d_k_proj", "2d_v_proj"}) {
      product(name, box.positions(), width, width, true, e_.decoder_weights, e_.activations);
    }
    push("2d_attention", Attention{.sequences = box.frames,
                                   .q_tokens = pixels,
                                   .keys = pixels,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .qk_dim = width,
                                   .v_dim = width,
                                   .window = {},
                                   .activation = e_.activations});
    product("2d_attention_proj", box.positions(), width, width, true, e_.decoder_weights, e_.activations);
    run({"2d_attention_add", add, kDense, 2}, positions, width);
  }

  const VideoExecution& e_;
  const model::VideoDit& m_;
  const hardware::RuntimeOptions& o_;
  const Plan& p_;
  const model::TextEncoder& t_;
  Graph& graph_;
  std::int64_t batch_;
  std::int64_t spatial_;
  std::int64_t count_ = 1;
  VideoLayer layer_ = VideoLayer::outside;
  Tag tag_ = Tag::none;                   // of the part being written
  std::optional<VectorKind> modulation_;  // waits for the product that takes it over
  const DecoderNames* names_ = nullptr;
};

constexpr std::array<std::string_view, 13> kPurposeNames = {
    "products",  "spatial attention", "temporal attention", "cross attention",     "qk-norm",
    "rope",      "modulate",          "frame mask",         "gates and residuals", "activation",
    "rearrange", "communication",     "outside blocks"};
static_assert(static_cast<std::size_t>(VideoPurpose::outside) + 1 == kPurposeNames.size());

// What the parts of a block are there for; all else is products.
constexpr std::pair<Tag, VideoPurpose> kParts[] = {
    {Tag::spatial_attention, VideoPurpose::spatial_attention},
    {Tag::temporal_attention, VideoPurpose::temporal_attention},
    {Tag::cross_attention, VideoPurpose::cross_attention},
    {Tag::qk_norm, VideoPurpose::qk_norm},
    {Tag::rotate, VideoPurpose::rope},
    {Tag::modulate, VideoPurpose::modulate},
    {Tag::frame_mask, VideoPurpose::frame_mask},
    {Tag::gate, VideoPurpose::gate},
    {Tag::gelu, VideoPurpose::activation},
    {Tag::rearrange, VideoPurpose::rearrange},
};

}  // namespace

std::string_view name(VideoPurpose purpose) { return kPurposeNames[static_cast<std::size_t>(purpose)]; }

VideoPurpose purpose_of(const Op& op) {
  if (std::holds_alternative<Collective>(op.body)) return VideoPurpose::communication;
  if (op.layer_kind < 0) return VideoPurpose::outside;
  for (const auto& [tag, purpose] : kParts) {
    if (op.tag == tag) return purpose;
  }
  return VideoPurpose::product;
}

void build_text_encoding(const VideoExecution& execution, Graph& graph) {
  VideoBuilder(execution, graph).encode_text();
}
void build_video_decoding(const VideoExecution& execution, Graph& graph) { VideoBuilder(execution, graph).decode(); }
void build_denoising_step(const VideoExecution& execution, Graph& graph) { VideoBuilder(execution, graph).denoise(); }

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
  divide("`pp`", "pairs of layers", m.depth, p.pipeline);
  divide(p.ulysses > 1 ? "`tp` times ulysses" : "`tp`", "heads", m.heads, p.tensor * p.ulysses);
  divide("`tp`", "MLP columns", m.intermediate, p.tensor);
  if (p.tensor_rows > 0) divide("`tp`", "hidden columns", m.hidden, p.tensor);
  reject(p.ring > 1, "`sp` ring: the attention of video models is divided by heads (ulysses)", "`sp` ulysses");
  reject(p.expert > 1, "`ep` divides routed experts, and the model has none", "leave it out");
  reject(p.sequence_parallel && p.tensor == 1,
         "`megatron-sp` divides the residual stream over the tensor axis: it needs `tp`", "`tp` 2 `megatron-sp`");
  reject(p.sequence_parallel && p.tensor_rows > 0, "`tp` ROWSxCOLUMNS already divides the residual stream",
         "leave out `megatron-sp`");
  reject(p.tensor_rows > 0 && p.tensor % p.tensor_rows != 0, "`tp` ROWSxCOLUMNS: the axis is no multiple of its rows",
         "");
  return found;
}

}  // namespace llmperf::graph
