// A GGUF file from its bytes. Layout (ggml's docs/gguf.md): magic, version (4 bytes each), number of tensors, number of
// metadata entries (8 each); the entries {key, type, value}; the tensors {name, dimensions, extents, type, offset};
// padding to the alignment; data. A string is a length of 8 bytes and its bytes, an array a type, a length of 8 bytes
// and its elements. Version 1 had lengths of 4 bytes.
#include "model/gguf/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/file.h"
#include "base/integer.h"
#include "base/text.h"

namespace llmperf::model {
namespace {

// ---- Bytes, read in order: nothing is taken before it is known to be there

constexpr std::int64_t kMaxFile = std::int64_t{1} << 50;
constexpr std::int64_t kBuffer = std::int64_t{64} << 10;
// The largest vocabularies take some 20 MB. Bounding where a header may end bounds the time a hostile one takes: all of
// a sparse file of 100 GB could be an array of empty strings.
constexpr std::int64_t kMaxHeader = std::int64_t{64} << 20;

[[noreturn]] void fail_at(const std::string& path, std::int64_t offset, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::bad_input, {{{path, 0, 0, offset}, std::move(message), std::move(hint)}});
}

// A file, or memory in its place, that is read onwards. Files are read, not mapped: one that shrinks meanwhile must
// give an error, not a signal. `what` names what is being read, for messages ("the file ends within the key of a
// metadata entry"); every failure is an Error(bad_input) at a byte offset.
class GgufStream {
 public:
  // Opens a regular file; Error(bad_input) when that fails.
  explicit GgufStream(const std::string& path) : name_(path) {
    file_.emplace(path, kMaxFile);
    size_ = file_->size();
  }
  // `bytes` must outlive the stream.
  GgufStream(std::string_view bytes, std::string name)
      : name_(std::move(name)), memory_(bytes), size_(static_cast<std::int64_t>(bytes.size())) {}

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }  // at most 1 PiB: sums of offsets in one file fit 64 bits
  std::int64_t position() const { return position_; }
  std::int64_t left() const { return size_ - position_; }
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }

  // An unsigned integer of 1, 2, 4 or 8 bytes.
  std::uint64_t integer(int bytes, std::string_view what) {
    std::uint64_t value = 0;
    int done = 0;
    take(bytes, what, [&](std::string_view part) {
      for (const char c : part) {
        const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(c));
        value = big_endian_ ? value << 8 | byte : value | byte << 8 * done;
        ++done;
      }
    });
    return value;
  }
  // The caller bounds `length`.
  std::string text(std::int64_t length, std::string_view what) {
    std::string result;
    take(length, what, [&](std::string_view part) { result += part; });
    return result;
  }
  void skip(std::int64_t length, std::string_view what) {
    check_room(length, what);
    position_ += length;
  }

  // Checks that `count` items of at least `item_bytes` can follow. `offset` is where the count was read.
  void require(std::uint64_t count, std::int64_t item_bytes, std::string_view items, std::int64_t offset) const {
    if (count <= static_cast<std::uint64_t>(left() / item_bytes)) return;
    fail(offset, fmt::format("{} {} take at least {} bytes each, but only {} bytes are left", count, items, item_bytes,
                             left()));
  }
  [[noreturn]] void fail(std::int64_t offset, std::string message, std::string hint = {}) const {
    fail_at(name_, offset, std::move(message), std::move(hint));
  }

 private:
  void check_room(std::int64_t length, std::string_view what) const {
    if (length > left()) {
      fail(position_, fmt::format("the file ends within {}: {} bytes are needed, {} are left", what, length, left()),
           "the file may be incomplete");
    }
    if (length > kMaxHeader - position_) {
      fail(position_, fmt::format("{} would make the header longer than 64 MiB", what));
    }
  }

  // Moves over the next `length` bytes and hands them to `use`, as many at a time as are buffered.
  template <class Use>
  void take(std::int64_t length, std::string_view what, const Use& use) {
    check_room(length, what);
    while (length > 0) {
      if (position_ < buffer_begin_ || position_ >= buffer_end_) fill();
      const std::int64_t part = std::min(length, buffer_end_ - position_);
      use(std::string_view(buffer_.data() + (position_ - buffer_begin_), static_cast<std::size_t>(part)));
      position_ += part;
      length -= part;
    }
  }

  // The bytes from here on, as many as are there.
  void fill() {
    buffer_begin_ = position_;
    buffer_end_ = position_ + std::min(kBuffer, left());
    buffer_.resize(static_cast<std::size_t>(buffer_end_ - buffer_begin_));
    if (!file_) {
      memory_.copy(buffer_.data(), buffer_.size(), static_cast<std::size_t>(position_));
      return;
    }
    for (std::span<char> into = buffer_; !into.empty();) {
      const std::int64_t got = file_->read_some(buffer_end_ - std::ssize(into), into);
      if (got == 0) file_->fail("became shorter while it was read");
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

  std::string name_;
  std::optional<RegularFile> file_;  // none: memory_
  std::string_view memory_;
  std::int64_t size_ = 0;
  std::int64_t position_ = 0;
  bool big_endian_ = false;
  std::vector<char> buffer_;  // bytes [buffer_begin_, buffer_end_)
  std::int64_t buffer_begin_ = 0;
  std::int64_t buffer_end_ = 0;
};

// ---- The header of one file, be it a whole model or one of its shards

// What may still be kept of a model, over all its files. The largest models have some 50,000 tensors (every expert on
// its own) with names of 40 bytes, and about a hundred settings. Entries and descriptions take up to 128 bytes each
// beside their texts, so that a reader stays below 40 MB even while its vectors grow.
struct GgufBudget {
  std::int64_t entries = 32'768;
  std::int64_t tensors = 65'536;
  std::int64_t kept_bytes = std::int64_t{8} << 20;  // keys, names, strings and numbers
};

// Indices of `items` in the order of key(item); equal items keep theirs.
template <class Item, class Key>
std::vector<std::size_t> order_by(const std::vector<Item>& items, Key key) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(items[a]) < key(items[b]); });
  return order;
}

bool is_gguf_magic(std::string_view first_bytes) { return first_bytes == "GGUF" || first_bytes == "FUGG"; }

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

// Throws Error(bad_input) with all that is wrong, at most twenty places: after a broken length nothing more is found,
// but one bad tensor does not hide the next. Names of tensors are not compared (they may be in different files).
class HeaderReader {
 public:
  HeaderReader(GgufStream& stream, GgufBudget& budget) : stream_(stream), budget_(budget) {
    header_.path = stream.name();
    header_.shards = {stream.name()};
    header_.file_bytes = stream.size();
  }

  GgufFile read() {
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
    for (const GgufTensorInfo& info : header_.tensors) header_.tensor_bytes += info.bytes;
    return std::move(header_);
  }

 private:
  // Something wrong that does not keep the rest from being read.
  void report(std::int64_t offset, std::string message, std::string_view hint = {}) {
    errors_.push_back({{stream_.name(), 0, 0, offset}, std::move(message), std::string(hint)});
    if (errors_.size() >= kMaxErrors) stream_.fail(offset, "too many errors: the rest of the file is not read");
  }

  void keep(std::int64_t bytes, std::int64_t offset) {
    if (bytes > budget_.kept_bytes) stream_.fail(offset, "metadata and names of tensors take more than 8 MiB");
    budget_.kept_bytes -= bytes;
  }

  void read_magic_and_version() {
    const std::string magic = stream_.text(4, "the magic number");
    if (!is_gguf_magic(magic)) {
      stream_.fail(0, fmt::format("not a GGUF file: it starts with {} instead of 'GGUF'", quote(magic)),
                   magic == "vers"
                       ? "this may be a Git LFS pointer instead of the model: 'git lfs pull' fetches the model"
                       : "");
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
      stream_.fail(4, fmt::format("unknown GGUF version {}: llmperf reads 2 and 3",
                                  static_cast<std::uint32_t>(header_.version)));
    }
  }

  void read_counts() {
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
  std::int64_t length(std::int64_t most, std::string_view what) {
    const std::int64_t offset = stream_.position();
    const std::uint64_t bytes = stream_.integer(8, what);
    if (bytes > static_cast<std::uint64_t>(stream_.left())) {
      stream_.fail(offset, fmt::format("{} takes {} bytes, but only {} bytes are left in the file", what, bytes,
                                       stream_.left()));
    }
    if (bytes > static_cast<std::uint64_t>(most)) {
      stream_.fail(offset, fmt::format("{} takes {} bytes: more than {}", what, bytes, most));
    }
    return static_cast<std::int64_t>(bytes);
  }

  std::string kept_text(std::int64_t most, std::string_view what) {
    const std::int64_t offset = stream_.position();
    const std::int64_t bytes = length(most, what);
    if (bytes == 0) stream_.fail(offset, fmt::format("{} is empty", what));
    keep(bytes, offset);
    return stream_.text(bytes, what);
  }

  const ValueType& value_type(std::string_view what) {
    const std::int64_t offset = stream_.position();
    const std::uint64_t id = stream_.integer(4, what);
    if (id >= std::size(kValueTypes)) stream_.fail(offset, fmt::format("unknown value type {}", id));
    return kValueTypes[id];
  }

  void read_metadata() {
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

  GgufValue value(const ValueType& type) {
    const std::int64_t offset = stream_.position();
    switch (type.kind) {
      case Kind::string: {
        const std::int64_t bytes = length(stream_.size(), "a string");
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

  std::uint64_t number(const ValueType& type) {
    const std::int64_t offset = stream_.position();
    const std::uint64_t raw = stream_.integer(type.bytes, "a metadata value");
    if (type.kind == Kind::boolean && raw > 1) report(offset, fmt::format("a boolean must be 0 or 1, not {}", raw));
    return raw;
  }

  GgufArray array() {
    const std::int64_t type_offset = stream_.position();
    const ValueType& type = value_type("the type of an array");
    // The specification allows them, llama.cpp does not load them.
    if (type.kind == Kind::array) stream_.fail(type_offset, "arrays of arrays are not supported");
    const std::int64_t offset = stream_.position();
    const std::uint64_t count = stream_.integer(8, "the length of an array");
    stream_.require(count, type.bytes, "elements of an array", offset);

    GgufArray result{.length = static_cast<std::int64_t>(count), .numbers = {}};
    if (type.kind == Kind::string) {
      for (std::uint64_t i = 0; i < count; ++i) stream_.skip(length(stream_.size(), "a string"), "a string");
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

  void read_alignment() {
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

  void read_tensors() {
    for (std::uint64_t i = 0; i < tensors_; ++i) {
      if (std::optional<GgufTensorInfo> info = tensor()) header_.tensors.push_back(std::move(*info));
    }
  }

  const GgmlTypeInfo* tensor_type(const std::string& name) {
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
  std::optional<GgufTensorInfo> tensor() {
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
    if (!counted)
      report(shape_offset, fmt::format("tensor {} has no elements or more than 2^63 - 1", quote(info.name)));

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
    if (data_offset > static_cast<std::uint64_t>(stream_.size())) {
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
  void place_tensors() {
    const std::int64_t data = divide_up(stream_.position(), alignment_) * alignment_;
    const GgufTensorInfo* first_cut = nullptr;
    std::int64_t cut = 0;
    std::int64_t end = 0;
    for (GgufTensorInfo& info : header_.tensors) {
      info.data_offset += data;
      const std::int64_t room = stream_.size() - info.data_offset;
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
                       quote(first_cut->name), others, stream_.size(), end),
           "the file may be incomplete");
  }

  void check_overlaps() {
    const auto place = [](const GgufTensorInfo& t) { return t.data_offset; };
    const std::vector<std::size_t> order = order_by(header_.tensors, place);
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensorInfo& before = header_.tensors[order[i - 1]];
      const GgufTensorInfo& after = header_.tensors[order[i]];
      if (after.data_offset >= before.data_offset + before.bytes) continue;
      report(after.offset, fmt::format("the data of tensors {} and {} overlap", quote(before.name), quote(after.name)));
    }
  }

  GgufStream& stream_;
  GgufBudget& budget_;
  GgufFile header_;
  std::uint64_t entries_ = 0;
  std::uint64_t tensors_ = 0;
  std::int64_t alignment_ = 32;  // of the data, unless the metadata says otherwise
  std::vector<Diagnostic> errors_;
};

// ---- A model of one file or of several

constexpr std::int64_t kMaxShards = 1024;
constexpr std::size_t kMaxDuplicates = 20;

// The place of a shard in its model, from the metadata that llama.cpp's gguf-split writes.
struct Split {
  std::int64_t number = 0;  // split.no, from 0
  std::int64_t count = 1;   // split.count; 1: not split
  std::int64_t offset = 0;  // of split.count in the file
};

std::optional<std::int64_t> integer(const GgufFile& file, std::string_view key, std::int64_t least, std::int64_t most) {
  const GgufEntry* entry = file.find(key);
  if (entry == nullptr) return std::nullopt;
  const std::int64_t* value = std::get_if<std::int64_t>(&entry->value);
  if (value == nullptr || *value < least || *value > most) {
    fail_at(file.shards.front(), entry->offset, fmt::format("{} must be an integer from {} to {}", key, least, most));
  }
  return *value;
}

Split split_of(const GgufFile& file) {
  Split split;
  // gguf-split writes 0 or no count into a file that it merged.
  split.count = std::max<std::int64_t>(1, integer(file, "split.count", 0, kMaxShards).value_or(1));
  if (split.count == 1) return split;
  split.offset = file.find("split.count")->offset;
  const std::optional<std::int64_t> number = integer(file, "split.no", 0, split.count - 1);
  if (!number) fail_at(file.path, split.offset, "split.count without split.no");
  split.number = *number;
  return split;
}

std::string shard_ending(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// Adds the tensors of a further file of the model.
void append(GgufFile& file, GgufFile shard) {
  for (GgufTensorInfo& info : shard.tensors) {
    info.shard = static_cast<int>(file.shards.size());
    file.tensors.push_back(std::move(info));
  }
  file.shards.push_back(std::move(shard.path));
  file.tensor_bytes += shard.tensor_bytes;
  file.file_bytes += shard.file_bytes;
}

// gguf-split writes the count of all shards into each of them, and leaves it in the file that it merges them into.
void check_count(const GgufFile& file) {
  constexpr std::string_view kKey = "split.tensors.count";
  const std::optional<std::int64_t> count = integer(file, kKey, 0, INT64_MAX);
  if (!count || *count == static_cast<std::int64_t>(file.tensors.size())) return;
  const bool split = file.shards.size() > 1;
  fail_at(file.shards.front(), file.find(kKey)->offset,
          fmt::format("{} is {}, but the {} {} tensors", kKey, *count, split ? "shards hold" : "file holds",
                      file.tensors.size()),
          split ? "" : "a shard whose split.count is lost is not a whole model");
}

void check_names(const GgufFile& file) {
  const auto name = [](const GgufTensorInfo& t) { return std::string_view(t.name); };
  const std::vector<std::size_t> order = order_by(file.tensors, name);
  std::vector<Diagnostic> errors;
  for (std::size_t i = 1; i < order.size() && errors.size() < kMaxDuplicates; ++i) {
    const GgufTensorInfo& first = file.tensors[order[i - 1]];
    const GgufTensorInfo& second = file.tensors[order[i]];
    if (first.name != second.name) continue;
    const std::string other =
        first.shard == second.shard ? "" : fmt::format(" of {}", file.shards[static_cast<std::size_t>(first.shard)]);
    errors.push_back({{file.shards[static_cast<std::size_t>(second.shard)], 0, 0, second.offset},
                      fmt::format("duplicate tensor {}: first at byte {}{}", quote(second.name), first.offset, other),
                      ""});
  }
  if (!errors.empty()) throw Error(ErrorKind::bad_input, std::move(errors));
}

// Reads all shards; `given` is what the file at `path` said of them.
GgufFile read_shards(const std::string& path, const Split& given) {
  const std::string ending = shard_ending(given.number, given.count);
  if (!path.ends_with(ending)) {
    fail_at(path, given.offset,
            fmt::format("this is shard {} of {} of a split model, but its name does not end in {}", given.number + 1,
                        given.count, ending),
            "the shards are found by their names");
  }
  const std::string prefix = path.substr(0, path.size() - ending.size());

  GgufFile file;
  GgufBudget budget;
  for (std::int64_t number = 0; number < given.count; ++number) {
    GgufStream stream(prefix + shard_ending(number, given.count));
    GgufFile header = HeaderReader(stream, budget).read();
    const Split split = split_of(header);
    if (split.count != given.count || split.number != number) {
      fail_at(header.path, split.offset,
              fmt::format("is shard {} of {} by its metadata, but {} of {} by its name", split.number + 1, split.count,
                          number + 1, given.count));
    }
    if (number == 0) {
      file = std::move(header);
      continue;
    }
    if (header.big_endian != file.big_endian) {
      fail_at(header.path, 4, "its byte order differs from that of " + file.path);
    }
    append(file, std::move(header));
  }
  file.path = path;
  return file;
}

}  // namespace

const GgufEntry* GgufFile::find(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, &GgufEntry::key);
  return found == metadata.end() ? nullptr : &*found;
}

bool is_gguf(const std::string& path) {
  try {
    return is_gguf_magic(GgufStream(path).text(4, "the magic number"));
  } catch (const Error&) {
    return false;
  }
}

GgufFile read_gguf(const std::string& path) {
  GgufStream stream(path);
  GgufBudget budget;
  GgufFile file = HeaderReader(stream, budget).read();
  const Split split = split_of(file);
  // Each shard's header takes milliseconds, so the given one is simply read again in its turn.
  if (split.count > 1) {
    file = {};
    file = read_shards(path, split);
  }
  check_count(file);
  check_names(file);
  return file;
}

GgufFile parse_gguf(std::string_view bytes, const std::string& name) {
  GgufStream stream(bytes, name);
  GgufBudget budget;
  GgufFile file = HeaderReader(stream, budget).read();
  check_names(file);
  return file;
}

// ---- Tensor types

namespace {

using T = GgmlType;
using K = FormatKernel;
constexpr GgmlTypeInfo kGgmlTypes[] = {
    {T::f32, "F32", 1, 4},
    {T::f16, "F16", 1, 2},
    {T::q4_0, "Q4_0", 32, 18, K::q4_0},         // fp16 scale, 32 x 4 bits
    {T::q4_1, "Q4_1", 32, 20, K::q4_1},         // fp16 scale and minimum
    {T::q5_0, "Q5_0", 32, 22, K::q5_0},         // fp16 scale, 32 fifth bits, 32 x 4 bits
    {T::q5_1, "Q5_1", 32, 24, K::q5_1},         //
    {T::q8_0, "Q8_0", 32, 34, K::q8_0},         // fp16 scale, 32 bytes
    {T::q8_1, "Q8_1", 32, 36, K::q8_0, false},  // activations only
    {T::q2_k, "Q2_K", 256, 84, K::q2_k},        // 16 4-bit scales and minima, 256 x 2 bits, two fp16
    {T::q3_k, "Q3_K", 256, 110, K::q3_k},       // 256 high bits, 256 x 2 bits, 16 6-bit scales, fp16
    {T::q4_k, "Q4_K", 256, 144, K::q4_k},       // 8 6-bit scales and minima, two fp16
    {T::q5_k, "Q5_K", 256, 176, K::q5_k},       //
    {T::q6_k, "Q6_K", 256, 210, K::q6_k},       // 16 8-bit scales, fp16
    {T::q8_k, "Q8_K", 256, 292, K::q8_0, false},
    {T::iq2_xxs, "IQ2_XXS", 256, 66},
    {T::iq2_xs, "IQ2_XS", 256, 74},
    {T::iq3_xxs, "IQ3_XXS", 256, 98, K::iq3},
    {T::iq1_s, "IQ1_S", 256, 50},
    {T::iq4_nl, "IQ4_NL", 32, 18, K::iq4},
    {T::iq3_s, "IQ3_S", 256, 110, K::iq3},
    {T::iq2_s, "IQ2_S", 256, 82},
    {T::iq4_xs, "IQ4_XS", 256, 136, K::iq4},
    {T::i8, "I8", 1, 1, K::iq, false},
    {T::i16, "I16", 1, 2, K::iq, false},
    {T::i32, "I32", 1, 4, K::iq, false},
    {T::i64, "I64", 1, 8, K::iq, false},
    {T::f64, "F64", 1, 8, K::iq, false},
    {T::iq1_m, "IQ1_M", 256, 56},
    {T::bf16, "BF16", 1, 2},
    {T::tq1_0, "TQ1_0", 256, 54},
    {T::tq2_0, "TQ2_0", 256, 66},
    {T::mxfp4, "MXFP4", 32, 17, K::mxfp4},  // 8-bit exponent, 32 x 4 bits
    {T::nvfp4, "NVFP4", 64, 36, K::mxfp4},  // four 8-bit scales, 64 x 4 bits
    {T::q1_0, "Q1_0", 128, 18},
    {T::q2_0, "Q2_0", 64, 18},
};

}  // namespace

std::span<const GgmlTypeInfo> ggml_types() { return kGgmlTypes; }

const GgmlTypeInfo* find_ggml_type(std::uint32_t id) {
  const auto* found = std::ranges::find(kGgmlTypes, static_cast<GgmlType>(id), &GgmlTypeInfo::type);
  return found == std::end(kGgmlTypes) ? nullptr : found;
}

const GgmlTypeInfo& info(GgmlType type) {
  const GgmlTypeInfo* found = find_ggml_type(static_cast<std::uint32_t>(type));
  if (found == nullptr) throw std::logic_error("internal error: a ggml type without a row in the table");
  return *found;
}

Bytes ggml_bytes(GgmlType type, std::int64_t n, std::int64_t k) {
  const GgmlTypeInfo& t = info(type);
  const std::int64_t row = k / t.block * t.block_bytes;
  return Bytes{static_cast<double>(n) * static_cast<double>(row)};
}

StoredFormat stored_format(GgmlType type) {
  const GgmlTypeInfo& t = info(type);
  StoredFormat format{.name = t.name, .bits = t.bits(), .compute = Dtype::fp16, .dequant_flops = 2};
  if (type == GgmlType::f32) format.compute = Dtype::fp32;
  if (type == GgmlType::bf16) format.compute = Dtype::bf16;
  if (t.block == 1) format.dequant_flops = 0;
  if (t.block > 1) format.kernel = t.kernel;
  return format;
}

}  // namespace llmperf::model
