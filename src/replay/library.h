// A shared library that is loaded when it is wanted, so that what needs none of it starts without it, on machines that
// do not have it too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmperf::replay {

class Library {
 public:
  // The first of `names` that the loader finds: in `folders`, in their order, else where it looks by itself. Nothing
  // where there is none; `problems` then has one line per attempt that says why, in the loader's words. None comes from
  // the current folder: folders that are no whole paths are passed over, and where LD_LIBRARY_PATH has such a part with
  // libraries in it, none is loaded at all, since what a library itself needs would come from there as well.
  static std::optional<Library> open(std::span<const std::string> names, std::span<const std::string> folders,
                                     std::vector<std::string>& problems);
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
  Library& operator=(Library&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    return *this;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  const std::string& path() const { return path_; }  // as opened
  // Null when the library has no such symbol. `Function` is the function's type: Function* is what it is called by.
  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* address(const char* symbol) const;

  void* handle_;
  std::string path_;
};

}  // namespace llmperf::replay
