#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "catch.h"
#include "replay/ascend/ascend_backend.h"
#include "support.h"

namespace llmperf::replay::ascend::libraries_test {
namespace {

std::string message(const std::vector<std::string>& from) {
  try {
    cann::load(from);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::failed);
    return error.what();
  }
  return "";
}

bool missing(const cann::Functions& cann, const std::string& name) {
  return std::find(cann.missing.begin(), cann.missing.end(), name) != cann.missing.end();
}

}  // namespace

TEST_CASE("libraries are found under ASCEND_HOME_PATH") {
  setenv("ASCEND_HOME_PATH", (std::string(LLMPERF_STANDIN_HOME) + "/standin").c_str(), 1);
  setenv("ASCEND_TOOLKIT_HOME", "/elsewhere", 1);
  const std::vector<std::string> looked = cann::library_folders();
  REQUIRE(looked.size() == 4);
  CHECK(looked[0] == folders().front());
  CHECK(looked[1] == "/elsewhere/lib64");
  CHECK(looked[2] == "/usr/local/Ascend/ascend-toolkit/latest/lib64");
  standin().standin_reset();
  {
    const auto npu = make_ascend_backend(1);
    const Description description = npu->describe();
    CHECK(description.backend == "ascend");
    CHECK(description.device == "ascend-910b4");
    CHECK(description.title == "Huawei Ascend910B4");
    const std::vector<std::pair<std::string, std::string>> facts = {
        {"soc", "Ascend910B4"}, {"device", "1 of 4"}, {"cube cores", "20"}, {"vector cores", "40"},
        {"L2", "64 KiB"},       {"HBM", "32 GiB"},    {"CANN", "8.1.RC1"},  {"AscendCL", "1.14.0"}};
    REQUIRE(description.facts.size() == facts.size() + 1);
    CHECK(std::equal(facts.begin(), facts.end(), description.facts.begin()));
    CHECK(description.facts.back().first == "libraries");
    CHECK(description.facts.back().second.find("standin/lib64/libopapi.so") != std::string::npos);
  }
  check_clean();
  unsetenv("ASCEND_HOME_PATH");
  unsetenv("ASCEND_TOOLKIT_HOME");
}

TEST_CASE("ops may be in several libraries") {
  const auto cann = cann::load(folders("split"));
  CHECK(cann->missing.empty());
  CHECK(std::count_if(cann->libraries.begin(), cann->libraries.end(),
                      [](const std::string& path) { return path.find("libopapi_") != std::string::npos; }) == 3);
}

TEST_CASE("the device's name is that of its file") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
  CHECK(device_name("Ascend910B1", 64 * kGiB) == "ascend-910b1");
  CHECK(device_name("Ascend910B4", 32 * kGiB) == "ascend-910b4");
  CHECK(device_name("Ascend910B4", 64 * kGiB) == "ascend-910b4-1");
  CHECK(device_name("Ascend910B4", std::nullopt) == "ascend-910b4");
  CHECK(device_name("Ascend910B4-1", 64 * kGiB) == "ascend-910b4-1");
  CHECK(device_name("Ascend310P3", 21 * kGiB) == "ascend-310p");
  CHECK(device_name("Ascend910PremiumA", 32 * kGiB) == "ascend-910a");
  CHECK(device_name("Ascend910_9391", 64 * kGiB) == "ascend-910_9391");
}

TEST_CASE("a device that is not there is an error with its code") {
  standin().standin_reset();
  try {
    NpuBackend npu(functions(), 7, Seconds{0});
    FAIL("there is no such device");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "aclrtSetDevice failed with 107001 (ACL_ERROR_RT_INVALID_DEVICEID: no such device)");
  }
  check_clean();
}

// Hidden: what was loaded before is found without looking, so these run in processes of their own (standin.cmake).
TEST_CASE("without CANN the error names the library and every folder", "[.without_cann]") {
  const std::string text = message({"/first/lib64", "/second/lib64"});
  CHECK(
      text.find("CANN's library libascendcl.so was not found in /first/lib64, /second/lib64 or where the loader looks "
                "by itself") == 0);
  CHECK(text.find("ASCEND_HOME_PATH") != std::string::npos);
}

TEST_CASE("a CANN that lacks ops is loaded, and says which", "[.reduced_cann]") {
  const auto cann = cann::load(folders("reduced"));
  CHECK(missing(*cann, "aclnnFusedInferAttentionScoreV3GetWorkspaceSize"));
  CHECK(missing(*cann, "aclnnRmsNormGetWorkspaceSize"));
  CHECK_FALSE(missing(*cann, "aclnnMatmul"));
  CHECK_FALSE(missing(*cann, "aclnnMatmulGetWorkspaceSize"));
}

TEST_CASE("a runtime library without its functions is an error that names them", "[.broken_cann]") {
  const std::string text = message(folders("broken"));
  CHECK(text.find("aclFinalize, aclrtGetSocName") != std::string::npos);
  CHECK(text.find("not in CANN's libraries") != std::string::npos);
}

}  // namespace llmperf::replay::ascend::libraries_test
