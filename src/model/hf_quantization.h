// Internal to src/model: what the files of a checkpoint say about how its weights and KV cache are stored.
#pragma once

#include <string>
#include <vector>

#include "descriptor/reader.h"
#include "model/decoder.h"
#include "model/module_list.h"

namespace llmperf::model {

struct Quantization {
  std::string scheme;         // of matrices that no rule names; empty: they are not quantised
  bool experts_only = false;  // `scheme` is for routed experts
  bool with_head = false;     // `scheme` is for lm_head too
  struct Rule {
    std::string scheme;
    ModuleList modules;
  };
  std::vector<Rule> rules;  // matrices that are stored otherwise; the first that names one counts
  ModuleList ignored;       // … that are not quantised, whatever else is said
  std::string kv;           // type of the KV cache; empty: not said
};

// config.json's quantization_config, of every quant_method that has a counterpart here.
Quantization read_quantization_config(descriptor::Reader& quantization);
// The hf_quant_config.json that NVIDIA's Model Optimizer leaves beside config.json; `kv_only`: config.json says the
// rest.
Quantization read_hf_quant_config(descriptor::Reader& root, bool kv_only);

// What every layer of `decoder` is stored as, in order; default_weights, default_kv and mixture of the decoder with it.
// Layers are to be marked with the result (Layer::stored_as). Reports, where the lists stand, entries that mean
// nothing.
std::vector<int> apply_quantization(Quantization& quantization, const std::vector<Layer>& layers, Decoder& decoder,
                                    descriptor::Problems& problems);

}  // namespace llmperf::model
