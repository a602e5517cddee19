#include "model/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "model/gguf_header.h"
#include "model/gguf_stream.h"

namespace llmperf::model {
namespace {

constexpr std::int64_t kMaxShards = 1024;
constexpr std::size_t kMaxDuplicates = 20;

// The place of a shard in its model, from the metadata that llama.cpp's gguf-split writes.
struct Split {
  std::int64_t number = 0;  // split.no, from 0
  std::int64_t count = 1;   // split.count; 1: not split
  std::int64_t offset = 0;  // of split.count in the file
};

[[noreturn]] void fail(const std::string& path, std::int64_t offset, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::bad_input, {{{path, 0, 0, offset}, std::move(message), std::move(hint)}});
}

const GgufEntry* find_entry(const std::vector<GgufEntry>& metadata, std::string_view key) {
  const auto found = std::find_if(metadata.begin(), metadata.end(), [&](const GgufEntry& e) { return e.key == key; });
  return found == metadata.end() ? nullptr : &*found;
}

std::optional<std::int64_t> integer(const std::string& path, const std::vector<GgufEntry>& metadata,
                                    std::string_view key, std::int64_t least, std::int64_t most) {
  const GgufEntry* entry = find_entry(metadata, key);
  if (entry == nullptr) return std::nullopt;
  const std::int64_t* value = std::get_if<std::int64_t>(&entry->value);
  if (value == nullptr || *value < least || *value > most) {
    fail(path, entry->offset, fmt::format("{} must be an integer from {} to {}", key, least, most));
  }
  return *value;
}

Split split_of(const std::string& path, const std::vector<GgufEntry>& metadata) {
  Split split;
  // gguf-split writes 0 or no count into a file that it merged.
  split.count = std::max<std::int64_t>(1, integer(path, metadata, "split.count", 0, kMaxShards).value_or(1));
  if (split.count == 1) return split;
  split.offset = find_entry(metadata, "split.count")->offset;
  const std::optional<std::int64_t> number = integer(path, metadata, "split.no", 0, split.count - 1);
  if (!number) fail(path, split.offset, "split.count without split.no");
  split.number = *number;
  return split;
}

std::string shard_ending(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// Adds what one file of the model says; `shards` must hold its path already.
void append(GgufFile& file, GgufHeader header, std::int64_t file_bytes) {
  const int shard = static_cast<int>(file.shards.size()) - 1;
  if (shard == 0) {
    file.version = header.version;
    file.big_endian = header.big_endian;
    file.metadata = std::move(header.metadata);
  }
  for (GgufTensorInfo& info : header.tensors) {
    info.shard = shard;
    file.tensor_bytes += info.bytes;
  }
  file.tensors.insert(file.tensors.end(), std::move_iterator(header.tensors.begin()),
                      std::move_iterator(header.tensors.end()));
  file.file_bytes += file_bytes;
}

// gguf-split writes the count of all shards into each of them, and leaves it in the file that it merges them into.
void check_count(const GgufFile& file) {
  constexpr std::string_view kKey = "split.tensors.count";
  const std::string& first = file.shards.front();
  const std::optional<std::int64_t> count = integer(first, file.metadata, kKey, 0, INT64_MAX);
  if (!count || *count == static_cast<std::int64_t>(file.tensors.size())) return;
  const bool split = file.shards.size() > 1;
  fail(first, file.find(kKey)->offset,
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
    fail(path, given.offset,
         fmt::format("this is shard {} of {} of a split model, but its name does not end in {}", given.number + 1,
                     given.count, ending),
         "the shards are found by their names");
  }
  const std::string prefix = path.substr(0, path.size() - ending.size());

  GgufFile file;
  file.path = path;
  GgufBudget budget;
  for (std::int64_t number = 0; number < given.count; ++number) {
    file.shards.push_back(prefix + shard_ending(number, given.count));
    const std::string& shard = file.shards.back();
    const ByteSource source(shard);
    GgufHeader header = read_gguf_header(source, budget);
    const Split split = split_of(shard, header.metadata);
    if (split.count != given.count || split.number != number) {
      fail(shard, split.offset,
           fmt::format("is shard {} of {} by its metadata, but {} of {} by its name", split.number + 1, split.count,
                       number + 1, given.count));
    }
    if (number > 0 && header.big_endian != file.big_endian) {
      fail(shard, 4, "its byte order differs from that of " + file.shards.front());
    }
    append(file, std::move(header), source.size());
  }
  return file;
}

GgufFile single(const ByteSource& source, GgufHeader header) {
  GgufFile file;
  file.path = source.name();
  file.shards = {source.name()};
  append(file, std::move(header), source.size());
  return file;
}

}  // namespace

const GgufEntry* GgufFile::find(std::string_view key) const { return find_entry(metadata, key); }

bool is_gguf(const std::string& path) {
  try {
    const ByteSource source(path);
    std::array<char, 4> magic{};
    if (source.size() < static_cast<std::int64_t>(magic.size())) return false;
    source.read(0, magic);
    return is_gguf_magic({magic.data(), magic.size()});
  } catch (const Error&) {
    return false;
  }
}

GgufFile read_gguf(const std::string& path) {
  const ByteSource source(path);
  GgufBudget budget;
  GgufHeader header = read_gguf_header(source, budget);
  const Split split = split_of(path, header.metadata);
  GgufFile file;
  if (split.count == 1) {
    file = single(source, std::move(header));
  } else {
    header = {};  // each shard's header takes milliseconds, so the given one is simply read again in its turn
    file = read_shards(path, split);
  }
  check_count(file);
  check_names(file);
  return file;
}

GgufFile parse_gguf(std::string_view bytes, const std::string& name) {
  const ByteSource source(bytes, name);
  GgufBudget budget;
  GgufFile file = single(source, read_gguf_header(source, budget));
  check_names(file);
  return file;
}

}  // namespace llmperf::model
