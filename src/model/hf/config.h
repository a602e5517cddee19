// Internal to src/model: reading a Hugging Face config by the row of its architecture (families.h). What a row cannot
// say are the functions of layers.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/name_pattern.h"
#include "descriptor/reader.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/parameters.h"

namespace llmperf::model {

inline constexpr descriptor::IntRange kSwitch = {0, 1};
inline constexpr std::string_view kWindowTypes = "full_attention sliding_attention";  // of layer_types

class ConfigReader {
 public:
  ConfigReader(descriptor::Reader& of, const Family& family) : reader(of), family_(family) {}
  void read();

  // The key of a fact: the architecture's spelling, or the usual one where the file has that.
  std::string_view key(Fact fact) const;
  std::int64_t require(Fact fact);
  std::optional<std::int64_t> optional(Fact fact);
  std::int64_t value_or(Fact fact, std::int64_t absent) { return optional(fact).value_or(absent); }
  bool is_null(Fact fact) const { return reader.is_null(key(fact)); }
  bool flag(const Trait& trait);

  // Of a list of integers with one per layer; nothing where the key is absent. Reports lists of another length (longer
  // ones are read where `may_be_longer`: some count layers that predict further tokens).
  std::optional<std::vector<std::int64_t>> numbers_of_layers(std::string_view key, descriptor::IntRange range,
                                                             bool may_be_longer = false);
  // Which layers such a list of words says are of the second of `two` kinds, or a list of 0 and 1 are 1; `absent` of a
  // layer's place where there is no list. Reports other words.
  using OfLayer = std::function<bool(std::int64_t)>;
  std::vector<bool> second_of(std::string_view key, std::string_view two, const OfLayer& absent,
                              bool may_be_longer = false);
  std::vector<bool> switched(std::string_view key, const OfLayer& absent);
  std::vector<bool> of_layers(const OfLayer& rule) const;
  // Calls `change` with every layer and its place.
  template <class Change>
  void each(const Change& change) {
    for (std::size_t i = 0; i < layers.size(); ++i) change(layers[i], i);
  }
  // Passes over what nobody asked for and what says nothing that costs: nulls, empty parts, a fact of the model once
  // more in other words, texts. Reports facts that are said twice and differ. Returns the keys of the texts.
  std::vector<std::string> pass_over_harmless();
  // Makes the layers those of a list, whose length was not known before.
  void set_layers(std::vector<Layer> all);

  descriptor::Reader& reader;
  Decoder decoder;
  Layer layer;                // every layer, but for windows and dense layers
  std::vector<Layer> layers;  // all of them, in order

 private:
  void read_dimensions();
  void read_heads();
  void read_rotation(Attention& attention);
  void read_latent();
  void read_window();
  std::int64_t read_window_period();
  void read_feed_forward();
  Activation read_activation();
  void read_experts();
  void read_shared_experts(Experts& experts);
  void read_dense_layers();
  // Reports a boolean key that is not `expected`: that variant is not supported.
  void expect(std::string_view key, bool expected);
  // Keys of this architecture, and of every one, that must say what they usually say.
  void check_keys();
  bool fits_layers(std::string_view key, std::size_t entries, bool may_be_longer);
  void make_layers();

  const Family& family_;
  std::map<Fact, std::int64_t> facts_;  // as the file says them
  std::int64_t num_layers_ = 1;
  std::optional<std::int64_t> window_;  // of the layers with sliding_[i]
  std::vector<bool> sliding_;
  FeedForward dense_;  // replaces the experts in the layers with dense_layers_[i]
  std::vector<bool> dense_layers_;
  std::vector<std::pair<std::string_view, bool>> flags_;  // read: one key may say several things
};

// ---- What the files of a checkpoint say about how its weights and KV cache are stored.

// One matrix by the names that checkpoints give it, without what a model is wrapped in ("model.", "language_model.").
struct Module {
  // "layers.3.self_attn.q_proj"; of routed experts the names of the first expert, and those of the last one after them.
  std::vector<std::string> names;
  std::int64_t experts = 0;  // routed experts that it stands for; 0: it is no expert
};
// `architecture`: some have parts of other names.
Module module_of(const Tensor& tensor, std::int64_t layer, std::string_view architecture = {});
Module lm_head_module();

// A list of modules ("model.layers.0.self_attn*", "re:.*mlp.gate$", "lm_head"), which the libraries that wrote them
// match in ways that differ little.
class ModuleList {
 public:
  // The texts of the list `key`. A name stands for the module and what is inside it; a name of several parts may begin
  // anywhere ("mlp.gate", "gate"). Reports patterns that cannot be read.
  void read(descriptor::Reader& reader, std::string_view key);
  void add(std::string_view text, const descriptor::Node& where, descriptor::Problems& problems);
  bool empty() const { return names_.empty() && patterns_.empty(); }

  // Whether the list names the module; notes which entries did.
  bool names(const Module& module);
  // After every module was asked for: reports entries that name some experts of a layer only, and those that name
  // nothing of the model and nothing known to lie outside it (vision towers, layers that predict further tokens).
  void check(std::int64_t layers, descriptor::Problems& problems) const;
  // Before any module is asked for: reports, and says, that there are more patterns than matching with every layer is
  // worth. Real lists have a few per layer.
  bool is_too_long(std::int64_t layers, descriptor::Problems& problems) const;

 private:
  struct Entry {
    std::string text;
    int line = 0;
    int column = 0;
    bool used = false;
    bool in_part = false;  // names some of a layer's experts
  };
  struct Name {
    Entry entry;
    std::set<std::int64_t> experts;  // that were listed one by one
  };
  struct Pattern {
    Entry entry;
    NamePattern pattern;
    bool begins_anywhere = false;
  };
  bool has_name(const std::string& name, std::int64_t experts);

  std::unordered_map<std::string, Name> names_;
  std::vector<Pattern> patterns_;
};

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

// Whether quantisers store matrices of the role otherwise at all: they leave vectors, routers and small gates alone.
bool is_quantisable(Role role);
// A mixture of two schemes: routed experts, and all else that is quantised.
RoleSchemes expert_mixture(const std::string& experts, const std::string& others);

// What every layer of `decoder` is stored as, in order; default_weights, default_kv and mixture of the decoder with it.
// Layers are to be marked with the result (Layer::stored_as). Reports, where the lists stand, entries that mean
// nothing.
std::vector<int> apply_quantization(Quantization& quantization, const std::vector<Layer>& layers, Decoder& decoder,
                                    descriptor::Problems& problems);

}  // namespace llmperf::model
