// Models that llama.cpp has, as short descriptors: dimensions of their config.json files.
#pragma once

#include <string>
#include <vector>

#include "descriptor/node.h"
#include "model/decoder.h"

inline llmperf::model::Decoder described(const std::string& yaml) {
  return llmperf::model::parse_decoder(llmperf::descriptor::parse_yaml(yaml, "model.yaml"));
}

inline const std::string kQwen3Next = R"(
name: qwen3-next-80b-a3b
architecture: qwen3_next
hidden_size: 2048
num_layers: 48
vocab_size: 151936
norm: rms
feed_forward: {activation: silu, experts: {count: 512, per_token: 10, intermediate: 512,
                                         shared_intermediate: 512, shared_gate: true}}
kinds:
  delta: {recurrent: {kind: gated_delta_net, heads: 32, key_heads: 16, key_dim: 128, value_dim: 128, conv: 4}}
  full: {attention: {heads: 16, kv_heads: 2, head_dim: 256, rotary_dim: 64, qk_norm: head, gate: with_queries}}
pattern: [delta x3, full]
)";
inline const std::string kQwen35 = R"(
name: qwen3.5-27b
architecture: qwen3_5_text
hidden_size: 5120
num_layers: 64
vocab_size: 248320
norm: rms
next_token_layers: 1
feed_forward: {activation: silu, intermediate: 17408}
kinds:
  delta: {recurrent: {kind: gated_delta_net, heads: 48, key_heads: 16, key_dim: 128, value_dim: 128, conv: 4}}
  full: {attention: {heads: 24, kv_heads: 4, head_dim: 256, rotary_dim: 64, qk_norm: head, gate: with_queries}}
pattern: [delta x3, full]
)";
inline const std::string kNemotron3Nano = R"(
name: nemotron-3-nano-30b-a3b
architecture: nemotron_h
hidden_size: 2688
num_layers: 52
vocab_size: 131072
norm: rms
kinds:
  mamba:
    recurrent: {kind: mamba2, heads: 64, key_heads: 8, key_dim: 128, value_dim: 64, conv: 4, conv_bias: true}
  full: {attention: {heads: 32, kv_heads: 2, head_dim: 128, rotary_dim: 0}}
  experts:
    feed_forward:
      activation: relu2
      gated: false
      experts: {count: 128, per_token: 6, intermediate: 1856, shared_intermediate: 3712, score_correction: true}
layers: [mamba, experts, mamba, experts, mamba, full, experts, mamba, experts, mamba, experts, mamba, full, experts,
         mamba, experts, mamba, experts, mamba, full, experts, mamba, experts, mamba, experts, mamba, full, experts,
         mamba, experts, mamba, experts, mamba, full, experts, mamba, experts, mamba, experts, mamba, experts, mamba,
         full, experts, mamba, experts, mamba, experts, mamba, experts, mamba, experts]
)";
inline const std::string kNemotronNano9b = R"(
name: nemotron-nano-9b-v2
architecture: nemotron_h
hidden_size: 4480
num_layers: 6
vocab_size: 131072
norm: rms
kinds:
  mamba:
    recurrent: {kind: mamba2, heads: 128, key_heads: 8, key_dim: 128, value_dim: 80, conv: 4, conv_bias: true}
  mlp: {feed_forward: {intermediate: 15680, activation: relu2, gated: false}}
  full: {attention: {heads: 40, kv_heads: 8, head_dim: 128, rotary_dim: 0}}
layers: [mamba, mlp, mamba, mlp, full, mlp]
)";
inline const std::string kLfm2 = R"(
name: lfm2-1.2b
architecture: lfm2
hidden_size: 2048
num_layers: 16
vocab_size: 65536
norm: rms
tied_embeddings: true
feed_forward: {activation: silu, intermediate: 8192}
kinds:
  conv: {recurrent: {kind: short_conv, heads: 2048, key_heads: 1, conv: 3}}
  full: {attention: {heads: 32, kv_heads: 8, qk_norm: head}}
layers: [conv x2, full, conv x2, full, conv x2, full, conv, full, conv, full, conv, full, conv]
)";
inline const std::string kLfm2Moe = R"(
name: lfm2-8b-a1b
architecture: lfm2_moe
hidden_size: 2048
num_layers: 24
vocab_size: 65536
norm: rms
tied_embeddings: true
feed_forward: {activation: silu, experts: {count: 32, per_token: 4, intermediate: 1792, score_correction: true}}
kinds:
  dense: {recurrent: {kind: short_conv, heads: 2048, key_heads: 1, conv: 3}, feed_forward: {activation: silu, intermediate: 7168}}
  conv: {recurrent: {kind: short_conv, heads: 2048, key_heads: 1, conv: 3}}
  full: {attention: {heads: 32, kv_heads: 8, qk_norm: head}}
layers: [dense x2, full, conv x3, full, conv x3, full, conv x3, full, conv x3, full, conv x2, full, conv x2]
)";
inline const std::string kGemma3 = R"(
name: gemma-3-1b
architecture: gemma3_text
hidden_size: 1152
num_layers: 26
vocab_size: 262144
norm: rms
tied_embeddings: true
norms_per_layer: 4
attention: {heads: 4, kv_heads: 1, head_dim: 256, qk_norm: head}
feed_forward: {intermediate: 6912, activation: gelu_tanh}
kinds:
  sliding: {attention: {heads: 4, kv_heads: 1, head_dim: 256, qk_norm: head, window: 512}}
  full: {}
pattern: [sliding x5, full]
)";
inline const std::string kGemma3n = R"(
name: gemma-3n
architecture: gemma3n_text
hidden_size: 2048
num_layers: 10
vocab_size: 262400
norm: rms
tied_embeddings: true
norms_per_layer: 4
low_rank_branch: 64
layer_embedding: {width: 256, vocab: 262144}
streams: {mix: altup, count: 4}
feed_forward: {intermediate: 16384, activation: gelu_tanh}
kinds:
  sliding: {attention: {heads: 8, kv_heads: 2, head_dim: 256, qk_norm: head, window: 512}}
  full: {attention: {heads: 8, kv_heads: 2, head_dim: 256, qk_norm: head}}
  sharing:
    attention: {heads: 8, kv_heads: 2, head_dim: 256, qk_norm: head, window: 512, shares_cache: true, unused_kv: true}
  full_sharing:
    attention: {heads: 8, kv_heads: 2, head_dim: 256, qk_norm: head, shares_cache: true, unused_kv: true}
layers: [sliding x4, full, sliding x2, sharing x2, full_sharing]
)";
inline const std::string kGemma4Moe = R"(
name: gemma-4-26b-a4b
architecture: gemma4_text
hidden_size: 2816
num_layers: 30
vocab_size: 262144
norm: rms
tied_embeddings: true
norms_per_layer: 4
scaled: true
feed_forward:
  activation: gelu_tanh
  experts: {count: 128, per_token: 8, intermediate: 704, router_scales: true}
  beside: 2112
kinds:
  sliding: {attention: {heads: 16, kv_heads: 8, head_dim: 256, qk_norm: head, window: 1024}}
  full: {attention: {heads: 16, kv_heads: 2, head_dim: 512, qk_norm: head, no_v_proj: true}}
pattern: [sliding x5, full]
)";
inline const std::string kGraniteSmall = R"(
name: granite-4.0-h-small
architecture: granitemoehybrid
hidden_size: 4096
num_layers: 40
vocab_size: 100352
norm: rms
tied_embeddings: true
feed_forward: {activation: silu, experts: {count: 72, per_token: 10, intermediate: 768, shared_intermediate: 1536}}
kinds:
  mamba:
    recurrent: {kind: mamba2, heads: 128, key_heads: 1, key_dim: 128, value_dim: 64, conv: 4, conv_bias: true}
  full: {attention: {heads: 32, kv_heads: 8, rotary_dim: 0}}
layers: [mamba x5, full, mamba x9, full, mamba x9, full, mamba x9, full, mamba x4]
)";
inline const std::string kGlm45Air = R"(
name: glm-4.5-air
architecture: glm4_moe
hidden_size: 4096
num_layers: 46
vocab_size: 151552
norm: rms
max_position: 131072
next_token_layers: 1
attention: {heads: 96, kv_heads: 8, head_dim: 128, rotary_dim: 64, qkv_bias: true}
feed_forward:
  activation: silu
  experts: {count: 128, per_token: 8, intermediate: 1408, shared_intermediate: 1408, score_correction: true}
  first_dense_layers: 1
  dense_intermediate: 10944
)";
inline const std::string kJamba = R"(
name: jamba-v0.1
architecture: jamba
hidden_size: 4096
num_layers: 32
vocab_size: 65536
norm: rms
feed_forward: {activation: silu, intermediate: 14336}
kinds:
  mamba: {recurrent: {kind: mamba, heads: 8192, key_heads: 1, key_dim: 16, gate_rank: 256, conv: 4, conv_bias: true}}
  experts:
    recurrent: {kind: mamba, heads: 8192, key_heads: 1, key_dim: 16, gate_rank: 256, conv: 4, conv_bias: true}
    feed_forward: {activation: silu, experts: {count: 16, per_token: 2, intermediate: 14336}}
  full: {attention: {heads: 32, kv_heads: 8, rotary_dim: 0}}
pattern: [mamba, experts, mamba, experts, full, experts, mamba, experts]
)";
inline const std::string kFalconH1 = R"(
name: falcon-h1-7b
architecture: falcon_h1
hidden_size: 3072
num_layers: 44
vocab_size: 130048
norm: rms
attention: {heads: 12, kv_heads: 2, head_dim: 128}
recurrent:
  {kind: mamba2, heads: 24, key_heads: 1, key_dim: 256, value_dim: 128, conv: 4, conv_bias: true, norms: false}
feed_forward: {activation: silu, intermediate: 12288}
)";
inline const std::string kKimiLinear = R"(
name: kimi-linear-48b-a3b
architecture: kimi_linear
hidden_size: 2304
num_layers: 27
vocab_size: 163840
norm: rms
feed_forward: {activation: silu, experts: {count: 256, per_token: 8, intermediate: 1024,
                                         shared_intermediate: 1024, score_correction: true}}
kinds:
  dense: {recurrent: {kind: kimi_delta, heads: 32, key_dim: 128, value_dim: 128, conv: 4, gate_rank: 128},
          feed_forward: {activation: silu, intermediate: 9216}}
  delta: {recurrent: {kind: kimi_delta, heads: 32, key_dim: 128, value_dim: 128, conv: 4, gate_rank: 128}}
  full: {attention: {heads: 32, kv_lora_rank: 512, rope_dim: 64, nope_dim: 128, v_head_dim: 128, rotary_dim: 0}}
layers: [dense, delta x2, full, delta x3, full, delta x3, full, delta x3, full, delta x3, full, delta x3, full,
         delta x2, full]
)";
inline const std::string kGlm52 = R"(
name: glm-5.2
architecture: glm_moe_dsa
hidden_size: 6144
num_layers: 78
vocab_size: 154880
norm: rms
next_token_layers: 1
feed_forward:
  activation: silu
  experts: {count: 256, per_token: 8, intermediate: 2048, shared_intermediate: 2048, score_correction: true}
kinds:
  dense:
    attention: {heads: 64, q_lora_rank: 2048, kv_lora_rank: 512, rope_dim: 64, nope_dim: 192, v_head_dim: 256,
                indexer: {heads: 32, head_dim: 128, top_k: 2048}}
    feed_forward: {activation: silu, intermediate: 12288}
  own:
    attention: {heads: 64, q_lora_rank: 2048, kv_lora_rank: 512, rope_dim: 64, nope_dim: 192, v_head_dim: 256,
                indexer: {heads: 32, head_dim: 128, top_k: 2048}}
  reusing:
    attention: {heads: 64, q_lora_rank: 2048, kv_lora_rank: 512, rope_dim: 64, nope_dim: 192, v_head_dim: 256,
                indexer: {heads: 32, head_dim: 128, top_k: 2048, reused: true}}
layers: [dense x3, reusing x3,
         own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3,
         own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3,
         own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3, own, reusing x3]
)";
inline const std::string kMinimaxM2 = R"(
name: minimax-m2.5
architecture: minimax_m2
hidden_size: 3072
num_layers: 62
vocab_size: 200064
norm: rms
attention: {heads: 48, kv_heads: 8, head_dim: 128, rotary_dim: 64, qk_norm: whole}
feed_forward: {activation: silu, experts: {count: 256, per_token: 8, intermediate: 1536, score_correction: true}}
)";
inline const std::string kMimoV2 = R"(
name: mimo-v2-flash
architecture: mimo_v2_flash
hidden_size: 4096
num_layers: 6
vocab_size: 152576
norm: rms
feed_forward: {activation: silu, experts: {count: 256, per_token: 8, intermediate: 2048, score_correction: true}}
kinds:
  dense: {attention: {heads: 64, kv_heads: 4, head_dim: 192, v_head_dim: 128, rotary_dim: 64},
          feed_forward: {activation: silu, intermediate: 16384}}
  sliding: {attention: {heads: 64, kv_heads: 8, head_dim: 192, v_head_dim: 128, rotary_dim: 64, window: 128,
                        sinks: true}}
  full: {attention: {heads: 64, kv_heads: 4, head_dim: 192, v_head_dim: 128, rotary_dim: 64}}
layers: [dense, sliding x4, full]
)";
inline const std::string kStep35 = R"(
name: step-3.5
architecture: step3p5
hidden_size: 4096
num_layers: 8
vocab_size: 128896
norm: rms
feed_forward: {activation: silu, intermediate: 11264}
kinds:
  full: {attention: {heads: 64, kv_heads: 8, head_dim: 128, qk_norm: head, gate: head}}
  sliding: {attention: {heads: 96, kv_heads: 8, head_dim: 128, qk_norm: head, gate: head, window: 512}}
pattern: [full, sliding x3]
)";
inline const std::string kOlmo3 = R"(
name: olmo-3-7b
architecture: olmo2
hidden_size: 4096
num_layers: 32
vocab_size: 100278
norm: rms
norms_after: true
feed_forward: {activation: silu, intermediate: 11008}
kinds:
  sliding: {attention: {heads: 32, qk_norm: whole, window: 4096}}
  full: {attention: {heads: 32, qk_norm: whole}}
pattern: [sliding x3, full]
)";
inline const std::string kCommandR7b = R"(
name: command-r7b
architecture: cohere2
hidden_size: 4096
num_layers: 32
vocab_size: 256000
norm: layer_no_bias
tied_embeddings: true
parallel_blocks: true
norms_per_layer: 1
feed_forward: {activation: silu, intermediate: 14336}
kinds:
  sliding: {attention: {heads: 32, kv_heads: 8, window: 4096}}
  full: {attention: {heads: 32, kv_heads: 8, rotary_dim: 0}}
pattern: [sliding x3, full]
)";
inline const std::string kLlama4 = R"(
name: llama-4-maverick
architecture: llama4_text
hidden_size: 5120
num_layers: 8
vocab_size: 202048
norm: rms
feed_forward: {activation: silu, intermediate: 16384}
kinds:
  dense: {attention: {heads: 40, kv_heads: 8, head_dim: 128, window: 8192, chunked: true}}
  experts:
    attention: {heads: 40, kv_heads: 8, head_dim: 128, window: 8192, chunked: true}
    feed_forward: {activation: silu, experts: {count: 128, per_token: 1, intermediate: 8192, shared_intermediate: 8192}}
  full:
    attention: {heads: 40, kv_heads: 8, head_dim: 128, rotary_dim: 0}
    feed_forward: {activation: silu, experts: {count: 128, per_token: 1, intermediate: 8192, shared_intermediate: 8192}}
pattern: [dense, experts, dense, full]
)";
inline const std::string kGpt2 = R"(
name: gpt2
architecture: gpt2
hidden_size: 768
num_layers: 12
vocab_size: 50257
norm: layer
tied_embeddings: true
position_embeddings: 1024
attention: {heads: 12, qkv_bias: true, o_bias: true, fused_qkv: true}
feed_forward: {intermediate: 3072, activation: gelu_tanh, gated: false, bias: true}
)";
inline const std::string kStarcoder2 = R"(
name: starcoder2-7b
architecture: starcoder2
hidden_size: 4608
num_layers: 32
vocab_size: 49152
norm: layer
tied_embeddings: true
attention: {heads: 36, kv_heads: 4, qkv_bias: true, o_bias: true}
feed_forward: {intermediate: 18432, activation: gelu_tanh, gated: false, bias: true}
)";
inline const std::string kGptNeox = R"(
name: gpt-neox-20b
architecture: gpt_neox
hidden_size: 6144
num_layers: 44
vocab_size: 50432
norm: layer
parallel_blocks: true
norms_per_layer: 2
attention: {heads: 64, rotary_dim: 24, qkv_bias: true, o_bias: true, fused_qkv: true}
feed_forward: {intermediate: 24576, activation: gelu, gated: false, bias: true}
)";
inline const std::string kFalcon40b = R"(
name: falcon-40b
architecture: falcon
hidden_size: 8192
num_layers: 60
vocab_size: 65024
norm: layer
parallel_blocks: true
norms_per_layer: 2
attention: {heads: 128, kv_heads: 8, fused_qkv: true}
feed_forward: {intermediate: 32768, activation: gelu, gated: false}
)";
inline const std::string kDbrx = R"(
name: dbrx
architecture: dbrx
hidden_size: 6144
num_layers: 40
vocab_size: 100352
norm: layer_no_bias
attention: {heads: 48, kv_heads: 8, fused_qkv: true}
feed_forward: {activation: silu, experts: {count: 16, per_token: 4, intermediate: 10752}}
)";
inline const std::string kNemotronSuper = R"(
name: nemotron-super
architecture: nemotron-nas
hidden_size: 8192
num_layers: 4
vocab_size: 128256
norm: rms
attention: {heads: 64, kv_heads: 8}
feed_forward: {activation: silu, intermediate: 28672}
kinds:
  whole: {}
  narrow: {feed_forward: {activation: silu, intermediate: 14336}}
  mlp: {attention: none}
layers: [whole x2, mlp, narrow]
)";
inline const std::string kBert = R"(
name: bert-base
architecture: bert
hidden_size: 768
num_layers: 12
vocab_size: 30522
norm: layer
encoder: true
pooler: true
position_embeddings: 512
type_embeddings: 2
embedding_norm: true
final_norm: false
norms_after: true
attention: {heads: 12, qkv_bias: true, o_bias: true}
feed_forward: {intermediate: 3072, activation: gelu, gated: false, bias: true}
)";

// Every one of them.
inline const std::vector<std::string> kGgufModels = {
    kQwen3Next, kQwen35,     kNemotron3Nano, kNemotronNano9b, kLfm2,  kLfm2Moe,       kGemma3,
    kGemma3n,   kGemma4Moe,  kGraniteSmall,  kGlm45Air,       kJamba, kFalconH1,      kKimiLinear,
    kGlm52,     kMinimaxM2,  kMimoV2,        kStep35,         kOlmo3, kCommandR7b,    kLlama4,
    kGpt2,      kStarcoder2, kGptNeox,       kFalcon40b,      kDbrx,  kNemotronSuper, kBert};
