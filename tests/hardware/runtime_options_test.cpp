#include "base/error.h"
#include "catch.h"
#include "hardware/runtime.h"

namespace llmperf::runtime_options_test {

using hardware::format_runtime_options;
using hardware::parse_runtime_options;
using hardware::RuntimeOptions;

TEST_CASE("all is the default, none and baseline switch everything off") {
  CHECK(parse_runtime_options("all") == RuntimeOptions{});
  CHECK(parse_runtime_options("baseline") == parse_runtime_options("none"));
  const RuntimeOptions none = parse_runtime_options("none");
  for (const std::string& name : hardware::runtime_option_names()) {
    RuntimeOptions options = none;
    set_option(options, name, true);
    CHECK(options == parse_runtime_options(name));
    CHECK(options != none);
  }
}

TEST_CASE("overlapping collectives are asked for by name, not by all") {
  CHECK_FALSE(parse_runtime_options("all").overlap_collectives);
  CHECK_FALSE(parse_runtime_options("no_fused_qkv").overlap_collectives);
  CHECK(parse_runtime_options("all,overlap_collectives").overlap_collectives);
  CHECK(parse_runtime_options("all,overlap_collectives").fused_qkv);
  CHECK(parse_runtime_options("overlap_collectives").overlap_collectives);
  CHECK_FALSE(parse_runtime_options("overlap_collectives").fused_qkv);
}

TEST_CASE("names of tuning guides stand for their switches, in lists joined by plus signs too") {
  const RuntimeOptions o = parse_runtime_options("static_kv+fused_add_rmsnorm+last_token_head+mc2");
  CHECK(o == parse_runtime_options("static_kv,fused_norm,fused_add_norm,last_token_logits,overlap_collectives"));
  CHECK(parse_runtime_options("all,no_fused_add_rmsnorm") ==
        parse_runtime_options("all,no_fused_norm,no_fused_add_norm"));
  CHECK(hardware::is_option("mc2"));
  CHECK(hardware::is_option("fused_norm"));
  CHECK_FALSE(hardware::is_option("no_fused_norm"));
  CHECK_FALSE(hardware::is_option("all"));
  CHECK_FALSE(hardware::is_option(""));
}

TEST_CASE("an unknown option is an error that names the nearest ones") {
  RuntimeOptions options;
  CHECK_THROWS_AS(set_option(options, "mc3", true), Error);
  CHECK_THROWS_AS(parse_runtime_options("fused_qkv,none"), Error);
  try {
    parse_runtime_options("static_kv+no_fused_nrom");
    FAIL("accepted");
  } catch (const Error& error) {
    REQUIRE(error.diagnostics().size() == 1);
    CHECK(error.diagnostics()[0].message == "`options`: unknown runtime option 'no_fused_nrom'");
    CHECK(error.diagnostics()[0].hint.find("'fused_norm'") != std::string::npos);
  }
}

TEST_CASE("options are written as the shortest list that reads back as them") {
  CHECK(format_runtime_options({}) == "all");
  CHECK(format_runtime_options(parse_runtime_options("baseline")) == "none");
  CHECK(format_runtime_options(parse_runtime_options("all,mc2")) == "all,overlap_collectives");
  CHECK(format_runtime_options(parse_runtime_options("no_fused_norm,mc2")) == "all,no_fused_norm,overlap_collectives");
  CHECK(format_runtime_options(parse_runtime_options("mc2+fused_norm")) == "fused_norm,overlap_collectives");
  // Every combination of switches.
  const std::vector<std::string>& names = hardware::runtime_option_names();
  for (unsigned set = 0; set < 1U << names.size(); ++set) {
    RuntimeOptions options;
    for (std::size_t i = 0; i < names.size(); ++i) set_option(options, names[i], (set >> i & 1U) != 0);
    const RuntimeOptions again = parse_runtime_options(format_runtime_options(options));
    if (!(again == options)) CHECK(format_runtime_options(options) == "read back as other options");
  }
}

}  // namespace llmperf::runtime_options_test
