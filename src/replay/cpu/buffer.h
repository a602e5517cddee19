// Memory for operands: aligned to cache lines, on huge pages where the system gives them (a product that streams
// gigabytes would otherwise wait for page tables), zero until written, and not touched before, so that each page comes
// to lie beside the processor that writes it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace llmperf::replay::cpu {

class Buffer {
 public:
  Buffer() = default;
  // Throws Error(failed) when the system has no such memory.
  explicit Buffer(std::int64_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Rounded up to whole cache lines.
constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace llmperf::replay::cpu
