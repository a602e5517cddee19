#include "cli/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {

// A signal handler may neither lock nor allocate, so the files stand in a list that only grows: entries are used again,
// never freed, and one that is armed does not change.
struct Entry {
  std::atomic<bool> taken = true;
  std::atomic<bool> armed = false;
  std::string path;
  Entry* next = nullptr;
};

namespace {

constexpr unsigned kPermissions = 07777;
constexpr unsigned kNewFile = 0666;  // less what the umask takes away

std::atomic<Entry*> entries = nullptr;
static_assert(std::atomic<Entry*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

Entry* free_entry() {
  for (Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
    bool taken = false;
    if (entry->taken.compare_exchange_strong(taken, true)) return entry;
  }
  auto* entry = new Entry;
  entry->next = entries.load();
  while (!entries.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

extern "C" void remove_and_end(int signal) {
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  raise(signal);  // delivered when the handler returns: whoever waits sees which signal it was
}

void handle_signals() {
  for (const int signal : kEndingSignals) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = remove_and_end;
    sigaction(signal, &now, nullptr);
  }
}

// Signals wait while there is a file that their handler does not know of yet.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : kEndingSignals) sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_ = {};
};

// Whether there is an unfinished file of that path.
bool is_being_written(const std::string& path) {
  for (const Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->armed.load() && entry->path == path) return true;
  }
  return false;
}

}  // namespace

void remove_unfinished_files() {
  for (const Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->armed.load()) unlink(entry->path.c_str());
  }
}

UnfinishedFile::UnfinishedFile(const std::string& path) : entry_(free_entry()) {
  entry_->path = path;
  entry_->armed = true;
  handle_signals();
}

UnfinishedFile::~UnfinishedFile() {
  entry_->armed = false;
  entry_->taken = false;
}

std::string followed_link(const std::string& path) {
  std::filesystem::path at = path;
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(at, error); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  const std::filesystem::path folder = std::filesystem::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
  return error || !at.has_filename() ? at.string() : (folder / at.filename()).string();
}

PartialFile::PartialFile(std::string path) : path_(std::move(path)), target_(followed_link(path_)) {}

// An object that the other constructor finished is destroyed when this one throws.
PartialFile::PartialFile(std::string path, const char* ending, Left left) : PartialFile(std::move(path)) {
  struct stat there = {};
  const bool exists = stat(target_.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(there.st_mode)) fail(EISDIR);
  if (exists && access(target_.c_str(), W_OK) != 0) fail(errno);
  if (exists && !S_ISREG(there.st_mode)) {
    stream_ = std::fopen(target_.c_str(), "wbe");
  } else {
    partial_ = target_ + ending;
    open_beside(left, exists ? std::optional(there.st_mode & kPermissions) : std::nullopt);
    // A descriptor of its own: closing the stream, which may fail, does not give up the lock.
    const int descriptor = fcntl(lock_, F_DUPFD_CLOEXEC, 0);
    stream_ = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
  }
  if (stream_ == nullptr) fail(errno);
}

void PartialFile::open_beside(Left left, std::optional<unsigned> mode) {
  if (is_being_written(partial_)) {
    throw Error::bad_input("two results are to be written to " + quote(path_), "give each a file of its own");
  }
  for (;;) {
    const HeldSignals held;
    lock_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kNewFile);
    const bool fresh = lock_ >= 0;
    if (!fresh && errno == EEXIST) {
      lock_ = open(partial_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
      if (lock_ < 0 && errno == ENOENT) continue;  // whoever wrote it is done
    }
    if (lock_ < 0) fail(errno);
    const bool locked = try_lock(fresh);
    if (locked && (fresh || left == Left::kept)) {
      if (fresh) removed_at_end_.emplace(partial_);
      break;
    }
    if (locked) unlink(partial_.c_str());
    close(std::exchange(lock_, -1));
  }
  struct stat status = {};
  if (fstat(lock_, &status) != 0) fail(errno);
  if (!S_ISREG(status.st_mode)) fail(EEXIST);
  left_bytes_ = status.st_size;
  if (mode && removed_at_end_) fchmod(lock_, *mode);
}

// False when what was locked is no longer what has the name: another process finished it between the two.
bool PartialFile::try_lock(bool fresh) const {
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw Error::bad_input(fmt::format("another process is writing {} ({} is locked)", quote(path_), partial_),
                             "wait until it is done, or write another file");
    }
    if (!fresh) fail(errno);  // a file system without locks, where only a new file is surely nobody else's
  }
  struct stat ours = {};
  struct stat there = {};
  return fstat(lock_, &ours) == 0 && stat(partial_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

void PartialFile::fail(int error) const {
  throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(error)));
}

PartialFile::~PartialFile() {
  // The name goes before the lock, and the signal handler's order to remove it before that: from then on the name may
  // be another process's.
  const bool remove = removed_at_end_.has_value();
  removed_at_end_.reset();
  if (remove) unlink(partial_.c_str());
  if (stream_ != nullptr) std::fclose(stream_);
  if (lock_ >= 0) close(lock_);
}

void PartialFile::go_on_behind(std::int64_t bytes) {
  if (partial_.empty()) return;
  if (ftruncate(fileno(stream_), bytes) != 0 || std::fseek(stream_, 0, SEEK_END) != 0) fail(errno);
}

void PartialFile::keep(bool kept) {
  if (kept || partial_.empty()) {
    removed_at_end_.reset();
  } else if (!removed_at_end_) {
    removed_at_end_.emplace(partial_);
  }
}

void PartialFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) fail(errno);
}

void PartialFile::flush() {
  if (std::fflush(stream_) != 0) fail(errno);
}

void PartialFile::commit() {
  flush();
  if (std::fclose(std::exchange(stream_, nullptr)) != 0) fail(errno);
  if (partial_.empty()) return;
  const bool was_removed = removed_at_end_.has_value();
  removed_at_end_.reset();
  if (std::rename(partial_.c_str(), target_.c_str()) == 0) return;
  const int error = errno;
  keep(!was_removed);
  fail(error);
}

GivenText read_given(const std::string& path, std::size_t most) {
  if (path != "-") return {descriptor::read_text_file(path, most), path};
  return {{std::istreambuf_iterator<char>(std::cin), {}}, "(stdin)"};
}

}  // namespace llmperf::cli
