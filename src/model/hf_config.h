// Internal to src/model: reading a Hugging Face config by the row of its architecture (families.h). What a row cannot
// say are the functions of hf_families.cpp and hf_layers.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "descriptor/reader.h"
#include "model/decoder.h"
#include "model/families.h"

namespace llmperf::model {

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

  // Of a list of words with one per layer, the place of each layer's word among `known`; nothing where the key is
  // absent. Reports other words, and lists of another length (longer ones are read where `may_be_longer`: some count
  // layers that predict further tokens).
  std::optional<std::vector<std::size_t>> words_of_layers(std::string_view key, std::span<const std::string_view> known,
                                                          bool may_be_longer = false);
  // The same of integers.
  std::optional<std::vector<std::int64_t>> numbers_of_layers(std::string_view key, descriptor::IntRange range,
                                                             bool may_be_longer = false);
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
  void read_window_period();
  void read_layer_types();
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
  std::optional<std::int64_t> window_;                    // of the layers with sliding_[i]
  std::vector<bool> sliding_;                             // empty: all layers
  FeedForward dense_;                                     // replaces the experts in the layers with dense_layers_[i]
  std::vector<bool> dense_layers_;                        // empty: none
  std::vector<std::pair<std::string_view, bool>> flags_;  // read: one key may say several things
};

}  // namespace llmperf::model
