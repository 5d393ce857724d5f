#include "nn_worker/device/host/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "nn_worker/device/host/sanitizer.h"

namespace satrap::host {
namespace {

constexpr int64_t kGuardBytes = 64;
constexpr int64_t kAlignment = 64;
// No real kernel declares so many arrays in 48 KiB.
constexpr int64_t kMaxArrays = 64;
constexpr int64_t kStorageBytes = kSharedBytes + kMaxArrays * (kGuardBytes + kAlignment);
constexpr unsigned char kNanByte = 0xff;

void Poison(const void* begin, int64_t bytes) {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(begin, bytes);
}
void Unpoison(const void* begin, int64_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(begin, bytes);
}

}  // namespace

SharedMemory::SharedMemory() : storage_(new char[kStorageBytes + kAlignment]) {
  const auto address = reinterpret_cast<uintptr_t>(storage_.get());
  memory_ = storage_.get() + (kAlignment - address % kAlignment) % kAlignment;
  entries_.reserve(kMaxArrays);
}

SharedMemory::~SharedMemory() { Unpoison(memory_, kStorageBytes); }

void SharedMemory::Begin(int64_t dynamic_bytes) {
  Unpoison(memory_, used_bytes_);
  entries_.clear();
  used_bytes_ = 0;
  array_bytes_ = 0;
  if (dynamic_bytes > 0) Add(nullptr, "DynamicShared", dynamic_bytes);
}

void* SharedMemory::Array(const void* site, const char* name, int64_t bytes) {
  for (const Entry& entry : entries_) {
    if (entry.site == site) return memory_ + entry.begin;
  }
  return Add(site, name, bytes);
}

void* SharedMemory::Add(const void* site, const char* name, int64_t bytes) {
  const auto count = static_cast<int64_t>(entries_.size());
  if (array_bytes_ + bytes > kSharedBytes || count == kMaxArrays) return nullptr;
  const Entry entry{site, name, used_bytes_, used_bytes_ + bytes};
  // The guard extends to where the next array may begin.
  const int64_t next = (entry.end + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
  std::memset(memory_ + entry.begin, kNanByte, next - entry.begin);
  Poison(memory_ + entry.end, next - entry.end);
  entries_.push_back(entry);
  used_bytes_ = next;
  array_bytes_ += bytes;
  return memory_ + entry.begin;
}

const char* SharedMemory::FindOverrun() const {
  for (const Entry& entry : entries_) {
    Unpoison(memory_ + entry.end, kGuardBytes);
    const auto* guard = reinterpret_cast<const unsigned char*>(memory_ + entry.end);
    if (!std::all_of(guard, guard + kGuardBytes, [](unsigned char b) { return b == kNanByte; })) {
      return entry.name;
    }
  }
  return nullptr;
}

}  // namespace satrap::host
