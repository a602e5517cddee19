#include "model/name_pattern.h"

#include <string>

#include "catch.h"

namespace llmperf::name_pattern_test {

using namespace llmperf::model;

namespace {

bool glob(const std::string& pattern, const std::string& name) { return NamePattern::glob(pattern)->matches(name); }
bool regex(const std::string& pattern, const std::string& name) { return NamePattern::regex(pattern)->matches(name); }

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

TEST_CASE("expressions with more than that are not read") {
  for (const char* pattern :
       {"(?!x)a", "(?i)a", "a{2}", "(a", "a)", "[a", "a\\", "\\bword", "*", "((((((a))))))", "a^"}) {
    INFO(pattern);
    CHECK_FALSE(NamePattern::regex(pattern));
  }
  CHECK_FALSE(NamePattern::regex(std::string(NamePattern::kLongest + 1, 'a')));
  CHECK_FALSE(NamePattern::glob("[a"));
}

TEST_CASE("a pattern that backtracking would take for ever with is matched") {
  const std::string name(200, 'a');
  CHECK_FALSE(regex("(a*)*b", name));
  CHECK_FALSE(regex("((a+)+)+b", name));
  CHECK_FALSE(glob(std::string("*a*a*a*a*a*a*a*a*a*a*b"), name));
  CHECK_FALSE(glob("*", std::string(NamePattern::kLongest + 1, 'a')));
}

}  // namespace llmperf::name_pattern_test
