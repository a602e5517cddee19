// The Arrow C data interface, read by its specification: offsets, bits and who gives what back.
#include <cmath>
#include <cstring>
#include <string>

#include "catch.h"
#include "llmperf.h"

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}

TEST_CASE("rows leave as an Arrow array that outlives the result, and a child that outlives the array") {
  llmperf_session* session = llmperf_open();
  const std::string request =
      R"({"model": ["qwen-7b", "llama-3-70b"], "hw": "rtx4090", "columns": ["model", "fits", "ttft_s", "error"]})";
  llmperf_result* result = llmperf_sweep(session, request.data(), request.size());
  REQUIRE(llmperf_rows(result) == 2);
  const double ttft = llmperf_column(result, 2).numbers[0];
  ArrowSchema schema;
  ArrowArray array;
  REQUIRE(llmperf_arrow(result, &schema, &array) == 0);
  llmperf_free(result);
  llmperf_close(session);

  CHECK(std::string(schema.format) == "+s");
  REQUIRE(schema.n_children == 4);
  const char* const expected[][2] = {{"model", "U"}, {"fits", "b"}, {"ttft_s", "g"}, {"error", "U"}};
  for (int i = 0; i < 4; ++i) {
    CHECK(std::string(schema.children[i]->name) == expected[i][0]);
    CHECK(std::string(schema.children[i]->format) == expected[i][1]);
  }
  REQUIRE(array.n_children == 4);
  CHECK(array.length == 2);
  const ArrowArray& models = *array.children[0];
  const auto* offsets = static_cast<const int64_t*>(models.buffers[1]);
  const auto* text = static_cast<const char*>(models.buffers[2]);
  CHECK(std::string(text + offsets[1], text + offsets[2]) == "llama-3-70b");
  CHECK(models.null_count == 0);
  CHECK((static_cast<const uint8_t*>(array.children[1]->buffers[1])[0] & 3U) == 1);  // the first fits, the second not

  ArrowArray moved = *array.children[2];
  array.children[2]->release = nullptr;  // as the specification marks what was moved
  array.release(&array);
  CHECK(array.release == nullptr);
  CHECK(moved.null_count == 1);
  CHECK((static_cast<const uint8_t*>(moved.buffers[0])[0] & 3U) == 1);
  CHECK(static_cast<const double*>(moved.buffers[1])[0] == ttft);
  moved.release(&moved);
  schema.release(&schema);
  CHECK(schema.release == nullptr);
  CHECK(llmperf_arrow(nullptr, &schema, &array) != 0);
}
