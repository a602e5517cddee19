#include "model/module_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/number.h"
#include "base/text.h"

namespace llmperf::model {
namespace {

constexpr std::string_view kExperts = "experts.";
constexpr std::string_view kWayOut = "remove the entry, or the quantisation and choose with --weights";

// Other spellings of a module: `usual` in its name is `other` in some checkpoints. @ is the number of an expert.
struct Spelling {
  std::string_view usual;
  std::string_view other;
};
constexpr std::array<Spelling, 17> kSpellings = {{
    {"self_attn.q_proj", "self_attn.qkv_proj"},
    {"self_attn.k_proj", "self_attn.qkv_proj"},
    {"self_attn.v_proj", "self_attn.qkv_proj"},
    {"mlp.gate_proj", "mlp.gate_up_proj"},
    {"mlp.up_proj", "mlp.gate_up_proj"},
    {"mlp.gate", "mlp.router"},
    {"mlp.gate", "block_sparse_moe.gate"},
    {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"},
    {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj"},
    {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"},
    {"mlp.experts.@.gate_proj", "mlp.experts.gate_up_proj"},
    {"mlp.experts.@.up_proj", "mlp.experts.gate_up_proj"},
    {"mlp.experts.@.down_proj", "mlp.experts.down_proj"},
    {"mlp.experts.@.gate_proj", "block_sparse_moe.experts.@.w1"},
    {"mlp.experts.@.up_proj", "block_sparse_moe.experts.@.w3"},
    {"mlp.experts.@.down_proj", "block_sparse_moe.experts.@.w2"},
    {"self_attn.o_proj", "self_attn.dense"},
}};

// What a language model is wrapped in, by the library and by models that read more than text.
constexpr std::array<std::string_view, 4> kWrappers = {"model.", "language_model.", "transformer.", "backbone."};
constexpr std::array<std::string_view, 4> kPrefixes = {"model.", "language_model.model.", "model.language_model.", ""};

// Parts of a name that no matrix of the decoder has: norms, embeddings, other modalities, heads for further tokens.
constexpr std::array<std::string_view, 15> kElsewhere = {"norm",  "emb",   "bias",    "vis",    "image",
                                                         "audio", "tower", "patch",   "merger", "projector",
                                                         "mm_",   "mtp",   "eh_proj", "nextn",  "multi_modal"};

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The number of the layer that an entry names ("model.layers.61*", "re:.*layers\.61\..*"); -1 without one.
std::int64_t layer_of(std::string_view text) {
  const std::size_t at = text.find("layers");
  if (at == std::string_view::npos) return -1;
  text.remove_prefix(at + 6);
  text.remove_prefix(std::min(text.size(), text.find_first_not_of("\\.")));
  return parse_int(text.substr(0, std::min(text.size(), text.find_first_not_of("0123456789")))).value_or(-1);
}

std::string unwrapped(std::string_view text) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!text.starts_with(wrapper)) continue;
      text.remove_prefix(wrapper.size());
      again = true;
    }
  }
  return std::string(text);
}

std::string with_number(std::string_view name, std::int64_t expert) {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}{}{}", name.substr(0, at), expert, name.substr(at + 1));
}

}  // namespace

Module module_of(const Tensor& tensor, std::int64_t layer) {
  const bool expert =
      tensor.role == Role::expert_gate || tensor.role == Role::expert_up || tensor.role == Role::expert_down;
  std::string usual(tensor.name.substr(0, tensor.name.rfind(".weight")));
  if (expert) usual.insert(usual.find(kExperts) + kExperts.size(), "@.");
  std::vector<std::string> spellings = {usual};
  for (const Spelling& s : kSpellings) {
    if (s.usual == usual) spellings.emplace_back(s.other);
  }
  Module module{.names = {}, .experts = expert ? tensor.count : 0};
  for (const std::int64_t number : {std::int64_t{0}, module.experts - 1}) {
    if (number < 0) break;
    for (const std::string& name : spellings) {
      module.names.push_back(fmt::format("layers.{}.{}", layer, with_number(name, number)));
    }
  }
  return module;
}

Module lm_head_module() { return {.names = {"lm_head"}}; }

void ModuleList::read(descriptor::Reader& reader, std::string_view key) {
  reader.optional_strings(key);  // reports what is not a list of texts
  const descriptor::Node* list = reader.find(key);
  if (list == nullptr) return;
  for (const descriptor::Node& item : list->items) {
    if (item.kind == descriptor::Node::Kind::scalar) add(item.scalar, item, reader.problems());
  }
}

void ModuleList::add(std::string_view text, const descriptor::Node& where, descriptor::Problems& problems) {
  const Place place{where.line, where.column};
  const bool regex = text.starts_with("re:");
  if (regex || text.find_first_of("*?[") != std::string_view::npos) {
    std::optional<NamePattern> pattern = regex ? NamePattern::regex(text.substr(3)) : NamePattern::glob(text);
    if (pattern) {
      const bool anywhere = text.starts_with('*') || text.starts_with("re:.*");
      patterns_.push_back({std::string(text), place, *std::move(pattern), anywhere});
    } else {
      problems.add(where, fmt::format("pattern {} is not supported", quote(text)), std::string(kWayOut));
    }
    return;
  }
  // Experts that are listed one by one become one entry of the first one's name.
  std::string name = unwrapped(text);
  std::int64_t expert = -1;
  if (const std::size_t at = name.find(kExperts); at != std::string::npos) {
    const std::size_t first = at + kExperts.size();
    const std::size_t end = std::min(name.size(), name.find('.', first));
    if (const auto number = parse_int(std::string_view(name).substr(first, end - first))) {
      expert = *number;
      name.replace(first, end - first, "0");
    }
  }
  Name& entry = names_.try_emplace(name, Name{std::string(text), place, {}}).first->second;
  if (expert >= 0) entry.experts.insert(expert);
}

bool ModuleList::has_name(const std::string& name, std::int64_t experts) {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  Name& entry = found->second;
  entry.used = true;
  entry.in_part =
      entry.in_part || (!entry.experts.empty() && static_cast<std::int64_t>(entry.experts.size()) != experts);
  return true;
}

bool ModuleList::names(const Module& module) {
  bool named = false;
  for (const std::string& name : module.names) {
    for (std::size_t first = 0; first < name.size();) {
      for (std::size_t end = first; end != std::string::npos;) {
        end = name.find('.', end + 1);
        named = has_name(name.substr(first, end == std::string::npos ? end : end - first), module.experts) || named;
      }
      const std::size_t dot = name.find('.', first);
      first = dot == std::string::npos ? name.size() : dot + 1;
    }
  }
  // The second half of an expert's names is the last expert's.
  const std::size_t half = module.experts > 0 ? module.names.size() / 2 : module.names.size();
  for (Pattern& p : patterns_) {
    const auto matches = [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) {
        for (const std::string_view prefix : kPrefixes) {
          if (p.pattern.matches(std::string(prefix) + module.names[i])) return true;
          if (p.begins_anywhere) break;  // the other prefixes make no difference
        }
      }
      return false;
    };
    const bool all = matches(0, half);
    if (module.experts > 0 && matches(half, module.names.size()) != all) p.in_part = p.used = true;
    p.used = p.used || all;
    named = named || all;
  }
  return named;
}

bool ModuleList::is_too_long(std::int64_t layers, descriptor::Problems& problems) const {
  constexpr std::int64_t kMostMatches = 40'000;
  const auto most = static_cast<std::size_t>(kMostMatches / layers);
  if (patterns_.size() <= most) return false;
  problems.add(patterns_[most].where.line, patterns_[most].where.column,
               fmt::format("more than {} patterns for {} layers", most, layers), std::string(kWayOut));
  return true;
}

void ModuleList::check(std::int64_t layers, descriptor::Problems& problems) const {
  const auto check_entry = [&](const std::string& text, const Place& where, bool used, bool in_part) {
    const bool elsewhere =
        layer_of(text) >= layers ||
        std::any_of(kElsewhere.begin(), kElsewhere.end(), [&](std::string_view part) { return has_part(text, part); });
    const char* fault = in_part               ? "names some of a layer's experts: they are stored alike here"
                        : !used && !elsewhere ? "names nothing that this model is known to have"
                                              : nullptr;
    if (fault == nullptr) return;
    problems.add(where.line, where.column, fmt::format("{} {}", quote(text), fault), std::string(kWayOut));
  };
  for (const auto& [key, n] : names_) check_entry(n.text, n.where, n.used, n.in_part);
  for (const Pattern& p : patterns_) check_entry(p.text, p.where, p.used, p.in_part);
}

}  // namespace llmperf::model
