// Layout (ggml's docs/gguf.md): magic, version (4 bytes each), number of tensors, number of metadata entries (8 each);
// the entries {key, type, value}; the tensors {name, dimensions, extents, type, offset}; padding to the alignment;
// data. A string is a length of 8 bytes and its bytes, an array a type, a length of 8 bytes and its elements. Version 1
// had lengths of 4 bytes.
#include "model/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"

namespace llmperf::model {
namespace {

constexpr std::size_t kMaxErrors = 20;
constexpr std::int64_t kMaxKey = 65'535;                     // by the specification
constexpr std::int64_t kMaxName = 256;                       // 64 by the specification, which llama.cpp keeps to
constexpr std::int64_t kMaxString = std::int64_t{64} << 10;  // longer ones are skipped
constexpr std::int64_t kMaxNumbers = 4096;                   // of an array
constexpr std::int64_t kMinEntry = 8 + 1 + 4 + 1;            // a key of one character and a value of one byte
constexpr std::int64_t kMinTensor = 8 + 1 + 4 + 4 + 8;
constexpr std::int64_t kMaxAlignment = std::int64_t{16} << 20;

enum class Kind : unsigned char { natural, integer, real, boolean, string, array };
struct ValueType {
  Kind kind;
  int bytes;  // of a value; of a string or array, the least it takes
};
// By id.
constexpr ValueType kValueTypes[] = {{Kind::natural, 1}, {Kind::integer, 1}, {Kind::natural, 2}, {Kind::integer, 2},
                                     {Kind::natural, 4}, {Kind::integer, 4}, {Kind::real, 4},    {Kind::boolean, 1},
                                     {Kind::string, 8},  {Kind::array, 12},  {Kind::natural, 8}, {Kind::integer, 8},
                                     {Kind::real, 8}};

struct RemovedType {
  std::uint64_t id;
  std::string_view name;
};
constexpr RemovedType kRemovedTypes[] = {{4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
                                         {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
constexpr std::string_view kConvertAgain = "convert or quantise the model again with a current llama.cpp";

std::int64_t signed_value(std::uint64_t raw, int bytes) {
  const int unused = 64 - 8 * bytes;
  return static_cast<std::int64_t>(raw << unused) >> unused;
}

double real_value(std::uint64_t raw, int bytes) {
  return bytes == 4 ? std::bit_cast<float>(static_cast<std::uint32_t>(raw)) : std::bit_cast<double>(raw);
}

std::int64_t align_up(std::int64_t offset, std::int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

class HeaderReader {
 public:
  HeaderReader(const ByteSource& source, GgufBudget& budget) : source_(source), stream_(source), budget_(budget) {}

  GgufHeader read() {
    try {
      read_magic_and_version();
      read_counts();
      read_metadata();
      read_alignment();
      read_tensors();
      place_tensors();
      if (errors_.empty()) check_overlaps();
    } catch (const Error& error) {
      errors_.insert(errors_.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
    if (!errors_.empty()) throw Error(ErrorKind::bad_input, std::move(errors_));
    return std::move(header_);
  }

 private:
  // Something wrong that does not keep the rest from being read.
  void report(std::int64_t offset, std::string message, std::string_view hint = {}) {
    errors_.push_back({{source_.name(), 0, 0, offset}, std::move(message), std::string(hint)});
    if (errors_.size() >= kMaxErrors) stream_.fail(offset, "too many errors: the rest of the file is not read");
  }

  void keep(std::int64_t bytes, std::int64_t offset) {
    if (bytes > budget_.kept_bytes) stream_.fail(offset, "metadata and names of tensors take more than 8 MiB");
    budget_.kept_bytes -= bytes;
  }

  void read_magic_and_version();
  void read_counts();
  void read_metadata();
  void read_alignment();
  void read_tensors();
  void place_tensors();
  void check_overlaps();

  std::int64_t length(std::int64_t most, std::string_view what);
  std::string kept_text(std::int64_t most, std::string_view what);
  const ValueType& value_type(std::string_view what);
  GgufValue value(const ValueType& type);
  GgufArray array();
  std::uint64_t number(const ValueType& type);
  std::optional<GgufTensorInfo> tensor();
  const GgmlTypeInfo* tensor_type(const std::string& name);

  const ByteSource& source_;
  GgufStream stream_;
  GgufBudget& budget_;
  GgufHeader header_;
  std::uint64_t entries_ = 0;
  std::uint64_t tensors_ = 0;
  std::int64_t alignment_ = 32;  // of the data, unless the metadata says otherwise
  std::vector<Diagnostic> errors_;
};

void HeaderReader::read_magic_and_version() {
  const std::string magic = stream_.text(4, "the magic number");
  if (!is_gguf_magic(magic)) {
    stream_.fail(
        0, fmt::format("not a GGUF file: it starts with {} instead of 'GGUF'", quote(magic)),
        magic == "vers" ? "this may be a Git LFS pointer instead of the model: 'git lfs pull' fetches the model" : "");
  }
  const std::uint64_t version = stream_.integer(4, "the version");
  // Nothing says which byte order a file has. The specification's magic number is the same in both, so readers go by
  // the version, a small number; gguf-py also knows files with the magic number reversed.
  header_.big_endian = magic == "FUGG" || (version & 0xffff) == 0;
  stream_.set_big_endian(header_.big_endian);
  const auto stored = static_cast<std::uint32_t>(version);
  header_.version = static_cast<int>(header_.big_endian ? __builtin_bswap32(stored) : stored);
  if (header_.version == 1) stream_.fail(4, "GGUF version 1 is no longer supported", std::string(kConvertAgain));
  if (header_.version != 2 && header_.version != 3) {
    stream_.fail(
        4, fmt::format("unknown GGUF version {}: llmperf reads 2 and 3", static_cast<std::uint32_t>(header_.version)));
  }
}

void HeaderReader::read_counts() {
  const std::int64_t offset = stream_.position();
  tensors_ = stream_.integer(8, "the number of tensors");
  entries_ = stream_.integer(8, "the number of metadata entries");
  stream_.require(tensors_, kMinTensor, "tensors", offset);
  stream_.require(entries_, kMinEntry, "metadata entries", offset + 8);
  if (tensors_ > static_cast<std::uint64_t>(budget_.tensors)) {
    stream_.fail(offset, fmt::format("{} tensors: too many for one model", tensors_));
  }
  if (entries_ > static_cast<std::uint64_t>(budget_.entries)) {
    stream_.fail(offset + 8, fmt::format("{} metadata entries: too many for one model", entries_));
  }
  budget_.tensors -= static_cast<std::int64_t>(tensors_);
  budget_.entries -= static_cast<std::int64_t>(entries_);
  header_.tensors.reserve(tensors_);
  header_.metadata.reserve(entries_);
}

// The length of a string, which must be there.
std::int64_t HeaderReader::length(std::int64_t most, std::string_view what) {
  const std::int64_t offset = stream_.position();
  const std::uint64_t bytes = stream_.integer(8, what);
  if (bytes > static_cast<std::uint64_t>(stream_.left())) {
    stream_.fail(offset,
                 fmt::format("{} takes {} bytes, but only {} bytes are left in the file", what, bytes, stream_.left()));
  }
  if (bytes > static_cast<std::uint64_t>(most)) {
    stream_.fail(offset, fmt::format("{} takes {} bytes: more than {}", what, bytes, most));
  }
  return static_cast<std::int64_t>(bytes);
}

std::string HeaderReader::kept_text(std::int64_t most, std::string_view what) {
  const std::int64_t offset = stream_.position();
  const std::int64_t bytes = length(most, what);
  if (bytes == 0) stream_.fail(offset, fmt::format("{} is empty", what));
  keep(bytes, offset);
  return stream_.text(bytes, what);
}

const ValueType& HeaderReader::value_type(std::string_view what) {
  const std::int64_t offset = stream_.position();
  const std::uint64_t id = stream_.integer(4, what);
  if (id >= std::size(kValueTypes)) stream_.fail(offset, fmt::format("unknown value type {}", id));
  return kValueTypes[id];
}

void HeaderReader::read_metadata() {
  for (std::uint64_t i = 0; i < entries_; ++i) {
    GgufEntry entry;
    entry.offset = stream_.position();
    entry.key = kept_text(kMaxKey, "the key of a metadata entry");
    entry.value = value(value_type("the type of a metadata value"));
    header_.metadata.push_back(std::move(entry));
  }
  const auto key = [](const GgufEntry& e) { return std::string_view(e.key); };
  const std::vector<std::size_t> order = order_by(header_.metadata, key);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufEntry& first = header_.metadata[order[i - 1]];
    const GgufEntry& second = header_.metadata[order[i]];
    if (first.key != second.key) continue;
    report(second.offset, fmt::format("duplicate key {}: first at byte {}", quote(second.key), first.offset));
  }
}

GgufValue HeaderReader::value(const ValueType& type) {
  const std::int64_t offset = stream_.position();
  switch (type.kind) {
    case Kind::string: {
      const std::int64_t bytes = length(source_.size(), "a string");
      if (bytes <= kMaxString) {
        keep(bytes, offset);
        return stream_.text(bytes, "a string");
      }
      stream_.skip(bytes, "a string");
      return std::string();
    }
    case Kind::array: return array();
    case Kind::real: return real_value(number(type), type.bytes);
    case Kind::boolean: return number(type) != 0;
    case Kind::integer: return signed_value(number(type), type.bytes);
    case Kind::natural: break;
  }
  const std::uint64_t raw = number(type);
  if (raw > INT64_MAX) report(offset, fmt::format("{} is larger than 2^63 - 1", raw));
  return static_cast<std::int64_t>(raw);
}

std::uint64_t HeaderReader::number(const ValueType& type) {
  const std::int64_t offset = stream_.position();
  const std::uint64_t raw = stream_.integer(type.bytes, "a metadata value");
  if (type.kind == Kind::boolean && raw > 1) report(offset, fmt::format("a boolean must be 0 or 1, not {}", raw));
  return raw;
}

GgufArray HeaderReader::array() {
  const std::int64_t type_offset = stream_.position();
  const ValueType& type = value_type("the type of an array");
  // The specification allows them, llama.cpp does not load them.
  if (type.kind == Kind::array) stream_.fail(type_offset, "arrays of arrays are not supported");
  const std::int64_t offset = stream_.position();
  const std::uint64_t count = stream_.integer(8, "the length of an array");
  stream_.require(count, type.bytes, "elements of an array", offset);

  GgufArray result{.length = static_cast<std::int64_t>(count), .numbers = {}};
  if (type.kind == Kind::string) {
    for (std::uint64_t i = 0; i < count; ++i) stream_.skip(length(source_.size(), "a string"), "a string");
    return result;
  }
  if (result.length > kMaxNumbers) {
    stream_.skip(result.length * type.bytes, "an array");
    return result;
  }
  keep(result.length * static_cast<std::int64_t>(sizeof(double)), offset);
  result.numbers.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t raw = number(type);
    const double natural = static_cast<double>(raw);
    result.numbers.push_back(type.kind == Kind::real      ? real_value(raw, type.bytes)
                             : type.kind == Kind::integer ? static_cast<double>(signed_value(raw, type.bytes))
                                                          : natural);
  }
  return result;
}

void HeaderReader::read_alignment() {
  for (const GgufEntry& entry : header_.metadata) {
    if (entry.key != "general.alignment") continue;
    const std::int64_t* value = std::get_if<std::int64_t>(&entry.value);
    if (value != nullptr && *value >= 8 && *value <= kMaxAlignment && std::has_single_bit(std::uint64_t(*value))) {
      alignment_ = *value;
    } else {
      alignment_ = 1;  // no offset of a tensor is blamed for it
      report(entry.offset, "general.alignment must be a power of two from 8 to 16777216");
    }
  }
}

void HeaderReader::read_tensors() {
  for (std::uint64_t i = 0; i < tensors_; ++i) {
    if (std::optional<GgufTensorInfo> info = tensor()) header_.tensors.push_back(std::move(*info));
  }
}

const GgmlTypeInfo* HeaderReader::tensor_type(const std::string& name) {
  const std::int64_t offset = stream_.position();
  const std::uint64_t id = stream_.integer(4, "the type of a tensor");
  const GgmlTypeInfo* type = find_ggml_type(static_cast<std::uint32_t>(id));
  if (type != nullptr) return type;
  const auto removed = std::ranges::find(kRemovedTypes, id, &RemovedType::id);
  if (removed == std::end(kRemovedTypes)) {
    report(offset, fmt::format("tensor {} has the unknown type {}", quote(name), id));
  } else {
    report(offset, fmt::format("tensor {} has type {} ({}), which ggml has removed", quote(name), id, removed->name),
           kConvertAgain);
  }
  return nullptr;
}

// Nothing when the tensor is unusable, which has been reported.
std::optional<GgufTensorInfo> HeaderReader::tensor() {
  const std::size_t errors_before = errors_.size();
  GgufTensorInfo info;
  info.offset = stream_.position();
  info.name = kept_text(kMaxName, "the name of a tensor");

  const std::int64_t dimensions_offset = stream_.position();
  const std::uint64_t dimensions = stream_.integer(4, "the dimensions of a tensor");
  if (dimensions > info.shape.size()) {
    stream_.fail(dimensions_offset,
                 fmt::format("tensor {} has {} dimensions: more than 4", quote(info.name), dimensions));
  }
  info.dimensions = static_cast<int>(dimensions);
  const std::int64_t shape_offset = stream_.position();
  std::int64_t elements = 1;
  bool counted = true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const std::uint64_t extent = stream_.integer(8, "the shape of a tensor");
    info.shape[d] = static_cast<std::int64_t>(extent);
    counted = counted && extent > 0 && !__builtin_mul_overflow(elements, extent, &elements);
  }
  if (!counted) report(shape_offset, fmt::format("tensor {} has no elements or more than 2^63 - 1", quote(info.name)));

  const GgmlTypeInfo* type = tensor_type(info.name);
  if (type != nullptr && counted) {
    info.type = type->type;
    if (info.shape[0] % type->block != 0) {
      report(shape_offset, fmt::format("tensor {} has rows of {} elements, but {} needs a multiple of {}",
                                       quote(info.name), info.shape[0], type->name, type->block));
    } else if (__builtin_mul_overflow(elements / type->block, type->block_bytes, &info.bytes)) {
      report(shape_offset, fmt::format("tensor {} has more than 2^63 - 1 bytes", quote(info.name)));
    }
  }

  const std::int64_t offset_offset = stream_.position();
  const std::uint64_t data_offset = stream_.integer(8, "the offset of a tensor");
  if (data_offset > static_cast<std::uint64_t>(source_.size())) {
    report(offset_offset,
           fmt::format("tensor {} starts at offset {}: beyond the end of the file", quote(info.name), data_offset));
  } else if (data_offset % static_cast<std::uint64_t>(alignment_) != 0) {
    report(offset_offset, fmt::format("tensor {} starts at offset {}, no multiple of the alignment {}",
                                      quote(info.name), data_offset, alignment_));
  }
  info.data_offset = static_cast<std::int64_t>(data_offset);  // from the start of the data, until place_tensors()
  if (errors_.size() > errors_before) return std::nullopt;
  return info;
}

// Makes the offsets those in the file. What is cut off is one error, however many tensors it hits.
void HeaderReader::place_tensors() {
  const std::int64_t data = align_up(stream_.position(), alignment_);
  const GgufTensorInfo* first_cut = nullptr;
  std::int64_t cut = 0;
  std::int64_t end = 0;
  for (GgufTensorInfo& info : header_.tensors) {
    info.data_offset += data;
    const std::int64_t room = source_.size() - info.data_offset;
    if (info.bytes <= room) continue;
    if (first_cut == nullptr) first_cut = &info;
    ++cut;
    // An end that 64 bits cannot hold is no plausible size to name.
    std::int64_t tensor_end = 0;
    if (!__builtin_add_overflow(info.data_offset, info.bytes, &tensor_end)) end = std::max(end, tensor_end);
  }
  if (first_cut == nullptr) return;
  const std::string others = cut == 1 ? "ends" : fmt::format("and {} more end", cut - 1);
  report(first_cut->offset,
         fmt::format("the data of tensor {} {} beyond the end of the file, which has {} bytes instead of at least {}",
                     quote(first_cut->name), others, source_.size(), end),
         "the file may be incomplete");
}

void HeaderReader::check_overlaps() {
  const auto place = [](const GgufTensorInfo& t) { return t.data_offset; };
  const std::vector<std::size_t> order = order_by(header_.tensors, place);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensorInfo& before = header_.tensors[order[i - 1]];
    const GgufTensorInfo& after = header_.tensors[order[i]];
    if (after.data_offset >= before.data_offset + before.bytes) continue;
    report(after.offset, fmt::format("the data of tensors {} and {} overlap", quote(before.name), quote(after.name)));
  }
}

}  // namespace

bool is_gguf_magic(std::string_view first_bytes) { return first_bytes == "GGUF" || first_bytes == "FUGG"; }

GgufHeader read_gguf_header(const ByteSource& source, GgufBudget& budget) {
  return HeaderReader(source, budget).read();
}

}  // namespace llmperf::model
