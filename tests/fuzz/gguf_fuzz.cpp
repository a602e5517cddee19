// GGUF headers: bytes that are accepted describe tensors that lie in the file, bytes that are refused are explained
// with a place in it. The limit on memory (-rss_limit_mb) checks that no count is believed.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fuzz.h"
#include "model/gguf/file.h"

namespace {

using namespace llmperf;

void check_tensors(const model::GgufFile& file, std::int64_t size) {
  std::set<std::string_view> names;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  std::int64_t bytes = 0;
  for (const model::GgufTensorInfo& tensor : file.tensors) {
    const model::GgmlTypeInfo& type = model::info(tensor.type);
    require(!tensor.name.empty() && names.insert(tensor.name).second);
    require(tensor.dimensions >= 0 && tensor.dimensions <= 4);
    for (const std::int64_t extent : tensor.shape) require(extent > 0);
    require(tensor.elements() % type.block == 0 && tensor.shape[0] % type.block == 0);
    require(tensor.bytes > 0 && tensor.bytes / type.block_bytes == tensor.elements() / type.block);
    require(tensor.offset < tensor.data_offset && tensor.data_offset <= size &&
            tensor.bytes <= size - tensor.data_offset);
    places.emplace_back(tensor.data_offset, tensor.bytes);
    bytes += tensor.bytes;
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i)
    require(places[i - 1].first + places[i - 1].second <= places[i].first);
  require(bytes == file.tensor_bytes && bytes <= size && file.file_bytes == size);
}

void check_metadata(const model::GgufFile& file, std::int64_t size) {
  std::int64_t last = 0;
  for (const model::GgufEntry& entry : file.metadata) {
    require(entry.offset > last && entry.offset < size);
    last = entry.offset;
    require(file.find(entry.key) == &entry);
    const auto* array = std::get_if<model::GgufArray>(&entry.value);
    if (array == nullptr) continue;
    require(array->length >= 0 && array->length <= size);
    require(array->numbers.empty() || array->numbers.size() == static_cast<std::size_t>(array->length));
  }
}

}  // namespace

void fuzz_gguf(std::string_view text) {
  const auto length = static_cast<std::int64_t>(text.size());
  try {
    const model::GgufFile file = model::parse_gguf(text, "fuzz.gguf");
    check_tensors(file, length);
    check_metadata(file, length);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty() && error.diagnostics().size() <= 21);
    for (const Diagnostic& d : error.diagnostics()) {
      require(!d.message.empty() && d.where.byte && *d.where.byte >= 0 && *d.where.byte <= length);
    }
  }
}
