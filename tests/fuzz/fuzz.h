// What is fuzzed: each takes any bytes, and ends the process where it finds something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

void fuzz_api(std::string_view text);
void fuzz_cli(std::string_view text);
void fuzz_config(std::string_view text);
void fuzz_gguf(std::string_view text);
void fuzz_gguf_model(std::string_view text);
void fuzz_hlo(std::string_view text);
void fuzz_html(std::string_view text);
void fuzz_import(std::string_view text);
void fuzz_json(std::string_view text);
void fuzz_launch(std::string_view text);
void fuzz_result(std::string_view text);
void fuzz_study(std::string_view text);
void fuzz_sweep(std::string_view text);
void fuzz_trace(std::string_view text);
void fuzz_value(std::string_view text);
void fuzz_yaml(std::string_view text);
// Before the first input, so that the limit of one input does not count a thousand others.
void prepare_api();

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline std::uint8_t byte(std::string_view text, std::size_t at = 0) { return static_cast<std::uint8_t>(text[at]); }
