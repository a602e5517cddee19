#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/launch.h"
#include "descriptor/catalog.h"
#include "model/model_file.h"
#include "serving/engine.h"

namespace llmperf::cli {
namespace {

using descriptor::Node;
using serving::EngineKind;
using ShellWords = std::vector<std::string>;

constexpr const char* kCommands =
    "vllm serve MODEL, python -m sglang.launch_server --model-path MODEL, trtllm-serve MODEL, or a manifest with one";

// ---- Words as a shell reads them: quotes, lines that go on, comments. What is written to or read from files is left
// out; nothing is put in for variables.

std::vector<ShellWords> shell_commands(std::string_view text) {
  std::vector<ShellWords> commands(1);
  std::string word;
  bool inside = false;      // a word, maybe an empty one in quotes
  bool redirected = false;  // the next word is a file
  const auto end_word = [&] {
    if (inside && !redirected) commands.back().push_back(word);
    if (inside) redirected = false;
    word.clear();
    inside = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i + 1);
    if (c == '\\') {
      const std::size_t line_end = rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') ? 1 : 0;
      i += std::max<std::size_t>(line_end, 1);
      if (line_end == 0 && !rest.empty()) word += rest[0], inside = true;
    } else if (c == '\'' || c == '"') {
      inside = true;
      const std::size_t closes = read_quoted(text, i, word);
      if (closes == std::string_view::npos) {
        throw Error::bad_input(fmt::format("a quote is not closed: {}", quote(text.substr(i))),
                               std::string("end it with ") + c);
      }
      i = closes;
    } else if (c == '#' && !inside) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '\n' || c == ';' || c == '&' || c == '|') {
      end_word();
      redirected = false;
      if (!commands.back().empty()) commands.emplace_back();
    } else if (c == '<' || c == '>') {
      if (word.find_first_not_of("0123456789") == std::string::npos) inside = false;  // "2>": which stream
      end_word();
      redirected = true;
      while (i + 1 < text.size() && (text[i + 1] == '>' || text[i + 1] == '&')) ++i;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
    } else {
      word += c;
      inside = true;
    }
  }
  end_word();
  if (commands.back().empty()) commands.pop_back();
  return commands;
}

// ---- The engine among the words of a command, and what it is given.

struct Call {
  EngineKind engine = EngineKind::vllm;
  ShellWords before, args;
  std::int64_t replicas = 1;
};

// "vllm" of "/usr/bin/vllm".
std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<Call> call_of(const ShellWords& words, int depth = 0) {
  const auto call = [&](EngineKind engine, std::size_t args) {
    const auto from = words.begin() + static_cast<std::ptrdiff_t>(std::min(args, words.size()));
    return Call{engine, {words.begin(), from}, {from, words.end()}};
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view base = last_part(words[i]);
    const std::size_t serve = i + 1 < words.size() && words[i + 1] == "serve" ? i + 2 : i + 1;
    if (base == "vllm" && serve == i + 2) return call(EngineKind::vllm, serve);
    if (base.starts_with("vllm.entrypoints") || base == "api_server.py") return call(EngineKind::vllm, serve);
    if (base.starts_with("sglang.launch_server") || base == "launch_server.py") return call(EngineKind::sglang, i + 1);
    if (base == "sglang" && serve == i + 2) return call(EngineKind::sglang, serve);
    if (base == "trtllm-serve") return call(EngineKind::trtllm, serve);
    const bool script = i > 0 && (words[i] == "-c" || words[i] == "-lc" || words[i] == "-ec");
    if (!script || i + 1 == words.size() || depth > 3) continue;
    for (const ShellWords& inner : shell_commands(words[i + 1])) {
      if (std::optional<Call> found = call_of(inner, depth + 1)) {
        found->before.insert(found->before.begin(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
        return found;
      }
    }
  }
  // vLLM's images start it themselves.
  for (std::size_t i = 1; contains(words, "run") && i < words.size(); ++i) {
    const std::string_view base = last_part(words[i]);
    const bool image = words[i].find('/') != std::string::npos && words[i - 1] != "-v" && words[i - 1] != "--volume";
    if (image && !is_letter_or_digit(words[i][0])) continue;
    if (image && base.find("vllm") != std::string::npos) return call(EngineKind::vllm, i + 1);
  }
  return std::nullopt;
}

// ---- Flags.

// "32k" of vLLM, and counts of others as they are.
std::string plain_count(const std::string& text) {
  const std::size_t at = text.empty() ? std::string::npos : std::string_view("kmgKMG").find(text.back());
  const std::optional<double> number =
      at == std::string::npos ? std::nullopt : parse_double(text.substr(0, text.size() - 1));
  if (!number || std::abs(*number) > 1e9) return text;
  return fmt::format("{:.0f}",
                     std::floor(*number * std::pow(at < 3 ? 1000.0 : 1024.0, static_cast<double>(at % 3 + 1))));
}

std::string field_flag(std::string_view flag) {
  std::string key(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

class LaunchReader {
 public:
  explicit LaunchReader(EngineKind engine) : engine_(engine) { launch_.request.engine = serving::name(engine); }
  void read(const ShellWords& args);
  ReadLaunch finish();
  void unused(std::string text) { unused_.push_back(std::move(text)); }
  void take_version(const ShellWords& before);

 private:
  struct Speculation {
    std::string method, model, tokens;
  };

  bool take(const std::string& key, const std::string& value);
  bool take_switch(const std::string& key, const std::string& value);
  bool take_speculation(const std::string& key, const std::string& value);
  bool take_field(const std::string& key, const std::string& value);
  void spread_experts(const model::Decoder* model);
  void choose_weights(const model::Decoder* model);
  void choose_draft();

  EngineKind engine_;
  ReadLaunch launch_;
  ShellWords unused_;
  std::string method_;  // of --quantization
  std::string cached_;  // of --hicache-size
  bool adapters_ = false;
  bool hierarchical_ = false;
  Speculation draft_;
  bool spreads_ = false;          // experts over all devices
  std::int64_t attention_ = 0;    // ranks of dp inside tp; 0: none
  bool attention_by_dp_ = false;  // … which --dp-size says
};

void LaunchReader::read(const ShellWords& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    const bool is_flag = word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
    if (!is_flag) {
      if (launch_.request.model || !take("model", word)) unused(word);
      continue;
    }
    const std::size_t sign = word.find('=');
    const std::string key = field_flag(std::string_view(word).substr(0, sign));
    std::string value = sign == std::string::npos ? "" : word.substr(sign + 1);
    std::string shown = word;
    const std::string next = i + 1 < args.size() ? args[i + 1] : "";
    const bool is_value =
        !next.empty() &&
        (next[0] != '-' || (next.size() > 1 && std::isdigit(static_cast<unsigned char>(next[1])) != 0));
    // What switches on or off takes true or false, if anything, and not the model behind it.
    const bool switches = key.starts_with("enable-") || key.starts_with("disable-") || key.starts_with("no-") ||
                          key.starts_with("trust-") || key.starts_with("enforce-") || key.starts_with("schedule-low") ||
                          (key == "ep" && engine_ == EngineKind::vllm);
    if (sign == std::string::npos && is_value &&
        (!switches || next == "true" || next == "false" || next == "True" || next == "False")) {
      value = next;
      shown += " " + next;
      ++i;
    }
    if (!take(key, value)) unused(shown);
  }
}

bool LaunchReader::take(const std::string& key, const std::string& value) {
  return take_switch(key, value) || take_speculation(key, value) || take_field(key, value);
}

bool LaunchReader::take_switch(const std::string& key, const std::string& value) {
  request::Request& q = launch_.request;
  const bool yes = to_lower(value) != "false";
  const std::string bare = key.starts_with("no-") ? key.substr(3) : key;
  const char* on = (bare == key) == yes ? "on" : "off";
  const bool vllm = engine_ == EngineKind::vllm;
  if (key == "enable-expert-parallel" || key == "enable-ep-moe" || (key == "ep" && vllm)) {
    spreads_ = yes;
  } else if (key == "enable-lora") {
    adapters_ = yes;
  } else if (bare == "enable-prefix-caching") {
    q.prefix_caching = on;
  } else if (key == "disable-radix-cache") {
    if (yes) q.prefix_caching = "off";
  } else if (bare == "enable-chunked-prefill") {
    q.chunked_prefill = on;
  } else if (key == "enforce-eager" || key == "disable-cuda-graph") {
    if (yes) q.execution = "eager";
  } else if (key == "scheduling-policy" || key.find("priority-scheduling") != std::string::npos ||
             key == "schedule-low-priority-values-first") {
    return true;  // `classes` says who comes first
  } else if (key == "kv-offloading-size") {
    q.kv_tier = "host:" + value + "GiB";
  } else if (key == "hicache-size") {
    cached_ = value;  // GB of each device
  } else if (key == "kv-offloading-backend") {
    return true;
  } else if (key == "enable-hierarchical-cache" || key == "enable-hicache") {
    hierarchical_ = yes;
  } else if (key == "enable-dp-attention") {
    attention_by_dp_ = yes;
  } else if (key == "attn-dp-size" || key == "attention-data-parallel-size") {
    attention_ = count_value("--" + key, value, 1, graph::kMostDevices);
  } else if (key == "moe-a2a-backend") {
    spreads_ = spreads_ || value != "none";  // which is of as many as tp
  } else if (key == "chunked-prefill-size" && value == "-1") {
    q.chunked_prefill = "off";
  } else if (key == "quantization" || key == "q") {
    method_ = value;
  } else {
    return false;
  }
  return true;
}

bool LaunchReader::take_speculation(const std::string& key, const std::string& value) {
  constexpr std::string_view kDotted = "speculative-config.";
  std::string part = key.starts_with(kDotted) ? key.substr(kDotted.size()) : key;
  if (key == "speculative-config" || key == "sc") {
    const descriptor::Document document = descriptor::parse_json(value, "--speculative-config");
    for (const Node::Entry& entry : document.root.entries) {
      const std::string text =
          entry.value.kind == Node::Kind::scalar ? entry.value.scalar : descriptor::to_json(entry.value);
      if (!take_speculation(field_flag(kDotted) + field_flag(entry.key), text))
        unused("speculative-config " + entry.key);
    }
    return true;
  }
  constexpr std::string_view kModels =
      "speculative-model spec-model speculative-draft-model-path speculative-draft-model";
  constexpr std::string_view kMethods = "spec-method speculative-algorithm";
  constexpr std::string_view kTokens = "num-speculative-tokens spec-tokens speculative-num-steps";
  const bool dotted = part != key;
  if (contains(words(kModels), part) || (dotted && part == "model")) {
    draft_.model = value;
  } else if (contains(words(kMethods), part) || (dotted && part == "method")) {
    draft_.method = to_lower(value);
  } else if (contains(words(kTokens), part)) {
    draft_.tokens = value;
  } else {
    // One more than the steps where nothing branches.
    return key == "speculative-num-draft-tokens" || (key == "speculative-eagle-topk" && value == "1");
  }
  return true;
}

bool LaunchReader::take_field(const std::string& key, const std::string& value) {
  const request::Field* found = key == "model-tag" || key == "model" ? &request::field("model") : nullptr;
  for (const LaunchFlag& row : kLaunchFlags) {
    const std::string its = field_flag(row.flags.at(static_cast<std::size_t>(engine_)));
    if (key == its || key == row.field) found = &request::field(row.field);
  }
  for (std::size_t i = 0; found == nullptr && i <= std::size(kLaunchFlags); ++i) {
    const request::Field& one = request::field(i < std::size(kLaunchFlags) ? kLaunchFlags[i].field : "model");
    for (const std::string_view alias : words(one.aliases)) {
      if (field_flag(alias) == key && field_flag(alias).size() > 1) found = &one;
    }
  }
  if (found == nullptr) return false;
  if (value.empty()) throw Error::bad_input(fmt::format("--{} of the command needs a value", key));
  if (value.find('$') != std::string::npos) {
    throw Error::bad_input(fmt::format("--{} of the command is a variable: {}", key, quote(value)),
                           "write its value in its place");
  }
  std::string text = value;
  if (std::holds_alternative<request::Count request::Request::*>(found->member)) text = plain_count(value);
  if (found->name == "max-model-len" && (text == "-1" || text == "auto")) return true;  // the engine's
  if (found->name == "kv") {
    const std::size_t scaled = text.find("_per_token_head");
    if (scaled != std::string::npos) text.resize(scaled);
    if (text == "fp8_inc" || text == "fp8_ds_mla") text = "fp8";
  }
  request::set(launch_.request, *found, text);
  return true;
}

// "vllm/vllm-openai:v0.11.0" says whose rules.
void LaunchReader::take_version(const ShellWords& before) {
  for (const std::string& word : before) {
    const std::size_t colon = word.rfind(':');
    const std::string image = word.substr(0, colon);
    const bool its = image.find('/') != std::string::npos &&
                     (image.find("vllm") != std::string::npos || image.find("sglang") != std::string::npos ||
                      image.find("tensorrt-llm") != std::string::npos);
    if (colon == std::string::npos || !its || word[0] == '-') continue;
    std::string tag = word.substr(colon + 1);
    if (tag.starts_with('v')) tag.erase(0, 1);
    tag.resize(std::min(tag.find_first_not_of("0123456789."), tag.size()));
    if (tag.find('.') != std::string::npos && tag.back() != '.')
      launch_.request.engine = fmt::format("{}@{}", serving::name(engine_), tag);
  }
}

void LaunchReader::spread_experts(const model::Decoder* model) {
  request::Request& q = launch_.request;
  if (attention_by_dp_ && attention_ == 0) attention_ = q.dp.value_or(1);
  std::int64_t ranks = q.tp ? count_value("`tp`", *q.tp, 1, graph::kMostDevices) : 1;
  if (attention_ > 1) {
    if (ranks % attention_ != 0) {
      throw Error::bad_input(
          fmt::format("the {} ranks of attention do not divide the {} of --tp-size", attention_, ranks));
    }
    q.tp = std::to_string(ranks / attention_);
    q.dp = attention_;
    // Of all ranks together.
    for (request::Count request::Request::*member :
         {&request::Request::max_seqs, &request::Request::max_batched_tokens}) {
      if (q.*member) q.*member = std::max<std::int64_t>(1, *(q.*member) / attention_);
    }
  } else if (!attention_by_dp_) {
    ranks *= engine_ == EngineKind::vllm ? q.dp.value_or(1) : 1;
  }
  const bool experts = model == nullptr || model->has_experts();
  if (!experts) {
    if (spreads_) unused("--enable-expert-parallel (there are no experts)");
    return;
  }
  if (spreads_ && ranks > 1) q.ep = ranks;
  const bool together = attention_ > 1 || (engine_ == EngineKind::vllm && q.dp.value_or(1) > 1);
  if (model == nullptr || !together || q.ep.value_or(1) == ranks) return;
  q.ep = ranks;
  launch_.notes.push_back(
      fmt::format("the engine divides each expert over {} devices of `tp` and `dp`: taken is `ep` {}, "
                  "whole experts on them",
                  ranks, ranks));
}

void LaunchReader::choose_weights(const model::Decoder* model) {
  if (method_.empty() || to_lower(method_) == "none" || method_ == "unquant") return;
  for (const LaunchScheme& row : kLaunchSchemes) {
    const bool meant = method_ == row.vllm || method_ == row.sglang || contains(words(row.others), method_);
    if (!meant) continue;
    // A checkpoint that is stored so says in which form: DeepSeek's fp8 has blocks.
    const std::string own = model == nullptr ? "" : model->default_weights;
    const bool alike = own.starts_with(row.scheme) ||
                       (!own.empty() && row.scheme == "fp8-block128" && own.starts_with("fp8")) ||
                       (own.starts_with("w4a16") && (row.scheme == "awq" || row.scheme == "gptq"));
    if (!alike) launch_.request.weights = row.scheme;
    return;
  }
  unused("--quantization " + method_ + " (the checkpoint's own)");
}

void LaunchReader::choose_draft() {
  if (draft_.method.empty() && draft_.model.empty()) return;
  const std::string& method = draft_.method;
  const std::string head = to_lower(draft_.model);
  std::string name;
  if (method.ends_with("mtp") || method == "nextn" || (method == "eagle" && head.empty())) {
    name = "mtp";
  } else if (method.starts_with("eagle") || (method.empty() && head.find("eagle") != std::string::npos)) {
    name = "eagle";
  } else if (method.empty() || method == "draft_model" || method == "standalone") {
    name = draft_.model;
  }
  if (name.empty()) return unused("speculative decoding by " + method);
  launch_.request.draft = name + (draft_.tokens.empty() ? "" : ":" + draft_.tokens);
}

ReadLaunch LaunchReader::finish() {
  // What is not known is told when it is asked for, if flags say no other model.
  std::optional<model::Decoder> model;
  try {
    if (launch_.request.model) model = model::load_decoder(*launch_.request.model);
  } catch (const Error&) {
  }
  spread_experts(model ? &*model : nullptr);
  choose_weights(model ? &*model : nullptr);
  choose_draft();
  if (adapters_) {  // with what engines take where flags do not say it
    if (!launch_.request.adapters) launch_.request.adapters = engine_ == EngineKind::vllm ? 1 : 8;
    if (!launch_.request.lora) launch_.request.lora = "16";
  } else if (engine_ == EngineKind::vllm && (launch_.request.adapters || launch_.request.lora)) {
    launch_.request.adapters.reset();
    launch_.request.lora.reset();
    unused("--max-loras, --max-lora-rank (without --enable-lora)");
  }
  const double each = parse_double(cached_).value_or(0);
  if (hierarchical_ && each <= 0) unused("--enable-hierarchical-cache (--hicache-size says how much there is)");
  if (hierarchical_ && each > 0) {
    const request::Request& q = launch_.request;
    const std::int64_t ranks = q.tp ? count_value("`tp`", *q.tp, 1, graph::kMostDevices) : 1;
    const double all = each * d(ranks * q.dp.value_or(1) * q.pp.value_or(1));
    launch_.request.kv_tier = fmt::format("host:{:.6g}GB", all);
  }
  if (!unused_.empty()) launch_.notes.push_back("not used of the command: " + join(unused_, ", "));
  return std::move(launch_);
}

// ---- Files of YAML: what starts engines in them, wherever it stands.

ShellWords shell_words_of(const Node* node) {
  ShellWords all;
  if (node == nullptr) return all;
  for (const Node& item : node->items) all.push_back(item.scalar);
  if (node->kind != Node::Kind::scalar) return all;
  for (ShellWords& command : shell_commands(node->scalar)) all.insert(all.end(), command.begin(), command.end());
  return all;
}

void find_calls(const Node& node, std::int64_t replicas, std::vector<Call>& calls) {
  const auto number = [&](const Node* of) {
    const Node* said = of == nullptr ? nullptr : of->find("replicas");
    const std::optional<std::int64_t> value = said == nullptr ? std::nullopt : parse_int(said->scalar);
    if (value && *value > 0) replicas = *value;
  };
  number(&node);
  number(node.find("deploy"));  // of docker compose
  if (node.find("image") != nullptr || node.find("command") != nullptr || node.find("args") != nullptr) {
    ShellWords all = {"run"};
    for (const char* key : {"image", "entrypoint", "command", "args"}) {
      const ShellWords some = shell_words_of(node.find(key));
      all.insert(all.end(), some.begin(), some.end());
    }
    if (std::optional<Call> call = call_of(all)) {
      call->replicas = replicas;
      calls.push_back(std::move(*call));
      return;
    }
  }
  for (const Node::Entry& entry : node.entries) find_calls(entry.value, replicas, calls);
  for (const Node& item : node.items) find_calls(item, replicas, calls);
}

// An engine's own file of flags.
std::optional<Call> config_of(const Node& root) {
  const auto has = [&](const char* key) { return root.find(key) != nullptr; };
  const bool sglang = has("model-path") || has("model_path");
  if (!sglang && !has("model") && !has("model_tag") && !has("model-tag")) return std::nullopt;
  Call call;
  if (sglang) call.engine = EngineKind::sglang;
  for (const Node::Entry& entry : root.entries) {
    const std::string text =
        entry.value.kind == Node::Kind::scalar ? entry.value.scalar : descriptor::to_json(entry.value);
    call.args.push_back("--" + entry.key + "=" + text);
  }
  return call;
}

std::vector<Call> calls_of_yaml(const std::string& text, const std::string& name) {
  std::vector<Call> calls;
  std::string part;
  const auto end_part = [&] {
    if (trim(part).empty()) return;
    const Node root = descriptor::parse_yaml(part, name).root;
    find_calls(root, 1, calls);
    if (std::optional<Call> config = calls.empty() ? config_of(root) : std::nullopt)
      calls.push_back(std::move(*config));
    part.clear();
  };
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("---")) {
      end_part();
    } else {
      part.append(line).append("\n");
    }
  }
  end_part();
  return calls;
}

bool looks_like_yaml(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> some = words(trim(line));
    if (some.empty() || some[0].starts_with('#')) continue;
    return some[0].ends_with(':') || some[0] == "-" || some[0].starts_with("---") || some[0].starts_with('{');
  }
  return false;
}

}  // namespace

ReadLaunch read_launch(const std::string& text, const std::string& name) {
  std::vector<Call> calls;
  std::string first;
  if (looks_like_yaml(text)) {
    calls = calls_of_yaml(text, name);
  } else {
    std::vector<ShellWords> commands;
    for (ShellWords& command : shell_commands(text)) {
      // A line that begins with a flag goes on with the one before, whose "\\" somebody forgot.
      if (commands.empty() || !command.front().starts_with("--")) {
        commands.push_back(std::move(command));
      } else {
        commands.back().insert(commands.back().end(), command.begin(), command.end());
      }
    }
    for (const ShellWords& command : commands) {
      if (first.empty()) first = command.front();
      if (std::optional<Call> call = call_of(command)) calls.push_back(std::move(*call));
    }
  }
  if (calls.empty()) {
    const ShellWords known = {"vllm", "sglang", "trtllm-serve"};
    const bool near = !first.empty() && !nearest_names(first, known).empty() && !contains(known, first);
    throw Error::bad_input(fmt::format("{}: nothing in it starts vLLM, SGLang or TensorRT-LLM", name),
                           near ? name_hint(first, known) : kCommands);
  }
  const Call& call = calls.front();
  LaunchReader reader(call.engine);
  for (const std::string& word : call.before) {
    const bool variable = !word.starts_with('-') && word.find('=') != std::string::npos &&
                          word.find('=') == word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (variable) reader.unused(word);
  }
  reader.read(call.args);
  reader.take_version(call.before);
  if (calls.size() > 1) reader.unused(fmt::format("{} further commands of engines", calls.size() - 1));
  ReadLaunch launch = reader.finish();
  if (call.replicas > 1) launch.request.replicas = call.replicas;
  return launch;
}

}  // namespace llmperf::cli
