// A signal handler may neither lock nor allocate, so the files stand in a list that only grows: entries are used again,
// never freed, and one that is armed does not change.
#include "cli/unfinished_files.h"

#include <unistd.h>

#include <atomic>

namespace llmperf::cli {

struct Entry {
  std::atomic<bool> taken = true;
  std::atomic<bool> armed = false;
  std::string path;
  Entry* next = nullptr;
};

namespace {

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

}  // namespace

bool is_being_written(const std::string& path) {
  for (const Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->armed.load() && entry->path == path) return true;
  }
  return false;
}

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

}  // namespace llmperf::cli
