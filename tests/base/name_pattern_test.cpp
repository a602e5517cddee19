#include "base/name_pattern.h"

#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "catch.h"

namespace llmperf::name_pattern_test {

namespace {

bool glob(const std::string& pattern, const std::string& name) { return NamePattern::glob(pattern).matches(name); }
bool regex(const std::string& pattern, const std::string& name) { return NamePattern::regex(pattern).matches(name); }
bool found(const std::string& pattern, const std::string& name) { return NamePattern::regex(pattern).is_in(name); }

std::string refusal(NamePattern (*read)(std::string_view), const std::string& pattern) {
  try {
    read(pattern);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return {};
}

}  // namespace

TEST_CASE("a glob names modules and what is inside them") {
  CHECK(glob("model.layers.0*", "model.layers.0.mlp.up_proj"));
  CHECK_FALSE(glob("model.layers.0*", "model.layers.10.mlp.up_proj"));
  CHECK(glob("model.layers.1*", "model.layers.12.mlp"));  // as fnmatch has it
  CHECK_FALSE(glob("model.layers.1.*", "model.layers.12.mlp"));
  CHECK(glob("*.mlp", "model.layers.3.mlp.up_proj"));
  CHECK_FALSE(glob("*.mlp", "model.layers.3.mlp_norm"));
  CHECK(glob("*.self_attn.[qk]_proj", "layers.3.self_attn.k_proj"));
  CHECK_FALSE(glob("*.self_attn.[!qk]_proj", "layers.3.self_attn.k_proj"));
  CHECK(glob("layers.?.mlp", "layers.3.mlp"));
}

TEST_CASE("an expression begins with the name and may end before it does") {
  CHECK(regex(".*self_attn.*", "model.layers.3.self_attn.q_proj"));
  CHECK(regex("model", "model.layers.3"));
  CHECK_FALSE(regex("layers", "model.layers.3"));
  CHECK(regex(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.0.mlp.gate_proj"));
  CHECK_FALSE(regex(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.1.mlp.experts.0.gate_proj"));
  CHECK(regex(".*mlp.gate$", "model.layers.0.mlp.gate"));
  CHECK_FALSE(regex(".*mlp.gate$", "model.layers.0.mlp.gate_proj"));
  CHECK(regex(R"(^model\.layers\.[0-2]\.)", "model.layers.2.mlp"));
  CHECK_FALSE(regex(R"(^model\.layers\.[^0-2]\.)", "model.layers.2.mlp"));
  CHECK(regex(R"(model\.layers\.\d+\.mlp)", "model.layers.61.mlp"));
  CHECK(regex("(?:a|b)?c+", "bccc"));
  CHECK_FALSE(regex("(?:a|b)?c+", "ab"));
}

TEST_CASE("what llama.cpp's users write is searched for in names of tensors") {
  CHECK(found("exps", "blk.3.ffn_up_exps.weight"));
  CHECK(found("\\.ffn_.*_exps\\.", "blk.3.ffn_up_exps.weight"));
  CHECK_FALSE(found("\\.ffn_.*_exps\\.", "blk.3.ffn_up_shexp.weight"));
  constexpr const char* kLayers = "blk\\.(2[0-9]|3[0-5])\\.ffn_(up|down|gate)_exps\\.weight";
  for (int layer = 0; layer < 48; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".ffn_down_exps.weight";
    INFO(name);
    CHECK(found(kLayers, name) == (layer >= 20 && layer <= 35));
    CHECK(found("blk\\.([6-9]|[1-9][0-9])\\.ffn.*", name) == (layer >= 6));
    CHECK(found("^blk\\.\\d\\.", name) == (layer < 10));
    CHECK(found("blk\\.[0-9]{2}\\.", name) == (layer >= 10));
    CHECK(found("blk\\.(?:1|2){2,}\\.", name) == (layer == 11 || layer == 12 || layer == 21 || layer == 22));
    CHECK(found("\\.1?[02]?\\.ffn", name) == (layer == 0 || layer == 1 || layer == 2 || layer == 10 || layer == 12));
  }
  CHECK(found("^output\\.weight$", "output.weight"));
  CHECK_FALSE(found("^output\\.weight$", "blk.0.attn_output.weight"));
  CHECK_FALSE(found("^output\\.weight$", "output.weight.scale"));
  CHECK(found("a{2,3}b", "xaaab"));
  CHECK_FALSE(found("^a{2,3}b", "aaaab"));
  CHECK_FALSE(found("^a{0}$", "a"));
  CHECK(found("", "anything"));
  CHECK_FALSE(found("a^", "aa"));
}

TEST_CASE("expressions with more than that are refused by name, where it stands") {
  CHECK(refusal(NamePattern::regex, "blk(?!x)a") == "character 5: a look-ahead");
  CHECK(refusal(NamePattern::regex, "(?=x)") == "character 2: a look-ahead");
  CHECK(refusal(NamePattern::regex, "(?<!x)a") == "character 2: a look-behind");
  CHECK(refusal(NamePattern::regex, "(?i)a") == "character 2: a group with flags");
  CHECK(refusal(NamePattern::regex, "(?P<n>a)") == "character 2: a group with a name");
  CHECK(refusal(NamePattern::regex, "(a)\\1") == "character 5: a back reference");
  CHECK(refusal(NamePattern::regex, "\\bword") == "character 2: a word boundary");
  CHECK(refusal(NamePattern::regex, "[[:digit:]]") == "character 2: a class with a name");
  CHECK(refusal(NamePattern::regex, "*") == "character 1: nothing to repeat");
  CHECK(refusal(NamePattern::regex, "a)") == "character 1: a ) without its (");
  for (const char* pattern : {"(a", "[a", "a\\", "a++", "a{", "a{2", "a{3,2}", "a{x}", "\\q", "[b-a]", "模"}) {
    INFO(pattern);
    CHECK_FALSE(refusal(NamePattern::regex, pattern).empty());
  }
  CHECK(refusal(NamePattern::glob, "[a") == "character 2: a ] is missing");
  CHECK(refusal(NamePattern::regex, std::string(kLongestText, 'a')).empty());
  CHECK_FALSE(refusal(NamePattern::regex, std::string(kLongestText + 1, 'a')).empty());
}

TEST_CASE("a pattern that backtracking would take for ever with is matched") {
  const std::string name(200, 'a');
  CHECK_FALSE(regex("(a*)*b", name));
  CHECK_FALSE(regex("((a+)+)+b", name));
  CHECK_FALSE(glob("*a*a*a*a*a*a*a*a*a*a*b", name));
  CHECK_FALSE(found("((.*)*)*x", name));
  CHECK_FALSE(found("(.*)*(.*)*(.*)*x", name));
  CHECK_FALSE(found("((a|.)*)*z", name));
  CHECK_FALSE(found("(.+)+(.+)+(.+)+(.+)+#", name));
  // The same repeated in themselves: copies are counted before they are made.
  CHECK(refusal(NamePattern::regex, "((((a{9}){9}){9}){9}){9}").find("a repetition of too much") != std::string::npos);
  CHECK_FALSE(refusal(NamePattern::regex, "a{1000000000}").empty());
  std::string deep(kLongestText, '(');
  CHECK(refusal(NamePattern::regex, deep).find("too deep") != std::string::npos);
}

}  // namespace llmperf::name_pattern_test
