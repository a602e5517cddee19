// How an engine divides the room for keys, values and states among sequences.
//
// Pages (vLLM, v1/core/kv_cache_utils.py and v1/kv_cache_interface.py): layers of one kind (full, of a window, with a
// state) are dealt into groups of equally many, and a page holds so many tokens of one group that every group's page
// is of one size: full layers whose tokens take half as much have pages of twice as many tokens, a state is a page of
// its own, for which the pages of attention are made large enough, and a group that is short of layers is padded. All
// layers alike are one group. DeepSeek-V4's caches have three sizes of page, and a block is one of each in as many
// layers as the largest group has.
//
// A sequence holds, in every group of full layers a page of each so many tokens, of a window no more than the tokens
// of the window and of the steps in flight (and a page for where it begins), of states a fixed number.
//
// Slots (SGLang, TensorRT-LLM, llama.cpp): a token takes what it takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "graph/decoder_graph.h"

namespace llmperf::estimate {

struct PoolRules {
  enum class Layout : std::uint8_t { pages, slots };
  Layout layout = Layout::pages;
  std::int64_t page = 16;              // tokens of a page of full layers, where nothing makes it larger
  std::int64_t compressed_page = 256;  // … of compressed keys, which are made of whole entries
  std::int64_t in_flight = 8192;       // tokens of the steps that run or are scheduled
  bool windows_are_full = false;       // pages of a window are kept until the sequence ends: vLLM before 0.10
  bool one_of_each = true;             // DeepSeek-V4: a block has a page of every size; else it is the largest group
  std::int64_t state_pages = 2;        // of a sequence, per group of states: those that run, and that of a prefix
  double window_share = 1;             // slots: of as many tokens as full layers keep, those of windowed ones
  double state_share = 0;              // slots: what states get for each byte of keys and values; 0: by sequences
};

// What a device's share of a stage's layers takes.
class KvPool {
 public:
  // `layers`: of each kind, on this stage; of a model that drafts those of `draft`, too.
  KvPool(const graph::Execution& execution, std::span<const std::int64_t> layers, const PoolRules& rules);
  void add_draft(const graph::Execution& draft, std::span<const std::int64_t> layers);

  Bytes page() const { return page_; }  // of all layers of a group
  // That a sequence of so many tokens holds at most, one at least, with all tokens of the steps in flight its own; and
  // while it runs among others, whose tokens these are.
  double pages(std::int64_t tokens) const { return pages(tokens, rules_.in_flight); }
  double running_pages(std::int64_t tokens) const { return pages(tokens, 1); }
  Bytes state() const { return state_; }  // of a sequence
  bool has_states() const { return state_.value > 0; }
  // Tokens of the blocks when every group holds every token, as vLLM printed them before 0.21.
  std::int64_t tokens_in_all_groups(std::int64_t blocks) const;
  std::int64_t page_tokens() const { return page_tokens_; }  // of the groups that hold fewest
  double groups() const;

 private:
  struct Kind {  // of layers with one kind of cache
    std::int64_t layers = 0;
    double token = 0;         // bytes of a token in a layer; of a state: of all of it
    std::int64_t window = 0;  // tokens; 0: all
    bool chunked = false;
    bool state = false;
  };
  double pages(std::int64_t tokens, std::int64_t in_flight) const;
  // Groups of one kind: a sequence holds in each a page of so many tokens, and some more; of a window no more than its
  // tokens and those in flight.
  struct Part {
    double groups = 0;
    std::int64_t tokens = 0;  // of a page; 0: none, `more` alone
    std::int64_t window = 0;  // 0: all
    std::int64_t more = 0;
  };

  void take(const graph::Execution& execution, std::span<const std::int64_t> layers);
  void lay_out();
  void lay_out_pages();
  void lay_out_compressed();
  void lay_out_slots();
  void one_group(std::int64_t tokens);
  static Part part(double groups, std::int64_t tokens, const Kind& kind);

  PoolRules rules_;
  std::vector<Kind> kinds_;
  std::int64_t entries_[3] = {};  // layers with compressed keys: of windows, with an indexer, without
  const model::Attention* compressed_ = nullptr;
  double cached_bits_ = 16;
  std::vector<Part> parts_;
  Bytes page_, state_;
  std::int64_t page_tokens_ = 0;
};

}  // namespace llmperf::estimate
