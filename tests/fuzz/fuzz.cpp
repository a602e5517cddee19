// One program for all that is fuzzed: fuzz --reader=NAME, and what libFuzzer takes, which passes over words with two
// dashes.
#include "fuzz.h"

#include <cstdio>

namespace {

struct Reader {
  std::string_view name;
  void (*read)(std::string_view text);
  void (*prepare)() = [] {};
};
constexpr Reader kReaders[] = {
    {"api", fuzz_api, prepare_api},
    {"cli", fuzz_cli},
    {"config", fuzz_config},
    {"gguf", fuzz_gguf},
    {"gguf_model", fuzz_gguf_model},
    {"hlo", fuzz_hlo},
    {"html", fuzz_html},
    {"import", fuzz_import},
    {"json", fuzz_json},
    {"launch", fuzz_launch},
    {"result", fuzz_result},
    {"study", fuzz_study},
    {"sweep", fuzz_sweep},
    {"trace", fuzz_trace},
    {"value", fuzz_value},
    {"yaml", fuzz_yaml},
};

const Reader* reader = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    for (const Reader& one : kReaders) {
      if (word.starts_with(kFlag) && word.substr(kFlag.size()) == one.name) reader = &one;
    }
  }
  if (reader == nullptr) {
    std::fputs("usage: fuzz --reader=NAME …, one of:", stderr);
    for (const Reader& one : kReaders) std::fprintf(stderr, " %s", one.name.data());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  reader->prepare();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reader->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
