#include "nn_worker/device/host/guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "nn_worker/device/host/fault_report.h"
#include "nn_worker/device/host/sanitizer.h"

namespace satrap::host {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kAlignment = 64;
constexpr int64_t kGuardBytes = 64;
constexpr unsigned char kNanByte = 0xff;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Reads the guards, whose pages must be open. The guards are poisoned, so AddressSanitizer is
// switched off here.
__attribute__((no_sanitize("address"))) bool GuardIntact(const char* begin, const char* end) {
  for (const char* p = begin; p < end; ++p) {
    if (static_cast<unsigned char>(*p) != kNanByte) return false;
  }
  return true;
}

void Protect(char* begin, char* end, bool open) {
  CHECK(mprotect(begin, end - begin, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace

GuardedMemory::GuardedMemory(int64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes),
      begin_(static_cast<char*>(mmap(nullptr, kReservedBytes, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      next_(begin_) {
  CHECK(begin_ != MAP_FAILED) << "no room for " << kReservedBytes << " addresses";
  AddFaultReport(this);
}

GuardedMemory::~GuardedMemory() {
  RemoveFaultReport(this);
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(begin_, next_ - begin_);
  }
  munmap(begin_, kReservedBytes);
}

void* GuardedMemory::Allocate(int64_t bytes) {
  const int64_t rounded = RoundUp(std::max<int64_t>(bytes, 1), kAlignment);
  const int64_t page_bytes = RoundUp(rounded + kGuardBytes, kPageBytes);
  // One closed page lies in front of the allocation. The closed page after the allocation is the
  // one that lies in front of the next allocation.
  if (used_bytes_ + rounded > capacity_bytes_ ||
      begin_ + kReservedBytes - next_ < page_bytes + 2 * kPageBytes) {
    return nullptr;
  }
  char* const pages = next_ + kPageBytes;
  char* const end = pages + page_bytes;
  char* const data = end - rounded;
  next_ = end;
  Protect(pages, end, /*open=*/true);
  std::memset(pages, kNanByte, page_bytes);
  Protect(pages, end, /*open=*/false);
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(pages, data - pages);
    __asan_poison_memory_region(data + bytes, end - data - bytes);
  }
  allocations_[data] = {bytes, pages, end};
  open_.resize(allocations_.size());
  used_bytes_ += rounded;
  return data;
}

void GuardedMemory::Free(void* data) {
  const auto found = allocations_.find(static_cast<const char*>(data));
  CHECK(found != allocations_.end() && !found->second.freed) << "no allocation: " << Describe(data);
  Allocation& allocation = found->second;
  allocation.freed = true;
  used_bytes_ -= RoundUp(std::max<int64_t>(allocation.bytes, 1), kAlignment);
  const int64_t page_bytes = allocation.pages_end - allocation.pages;
  madvise(allocation.pages, page_bytes, MADV_DONTNEED);
  Protect(allocation.pages, allocation.pages_end, /*open=*/false);
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(allocation.pages, page_bytes);
  }
}

// The handler of a fault also calls this, so it takes no lock and allocates nothing. The map does
// not change while a kernel runs.
bool GuardedMemory::Open(const void* p) {
  const char* const at = static_cast<const char*>(p);
  auto found = allocations_.upper_bound(at);
  // The pages of an allocation begin before its data.
  if (found == allocations_.end() || at < found->second.pages) {
    if (found == allocations_.begin()) return false;
    --found;
  }
  Allocation& allocation = found->second;
  if (allocation.freed || at < allocation.pages || at >= allocation.pages_end) return false;
  // If another thread is just opening the pages, this thread returns and may fault again.
  if (std::atomic_ref(allocation.open).exchange(true)) return true;
  open_[num_open_.fetch_add(1)] = &allocation;
  Protect(allocation.pages, allocation.pages_end, /*open=*/true);
  return true;
}

void GuardedMemory::CloseAll() {
  for (size_t i = 0; i < num_open_; ++i) {
    Protect(open_[i]->pages, open_[i]->pages_end, /*open=*/false);
    open_[i]->open = false;
  }
  num_open_ = 0;
}

bool GuardedMemory::Holds(const void* p, int64_t bytes) const {
  const char* const begin = static_cast<const char*>(p);
  auto next = allocations_.upper_bound(begin);
  if (next == allocations_.begin()) return false;
  const auto& [data, allocation] = *--next;
  return !allocation.freed && begin + bytes <= data + allocation.bytes;
}

std::string GuardedMemory::FindOverrun() const {
  for (size_t i = 0; i < num_open_; ++i) {
    const Allocation& allocation = *open_[i];
    const char* const data =
        allocation.pages_end - RoundUp(std::max<int64_t>(allocation.bytes, 1), kAlignment);
    if (!GuardIntact(data + allocation.bytes, allocation.pages_end)) {
      return absl::StrCat("wrote past the end of an allocation of ", allocation.bytes, " bytes");
    }
    if (!GuardIntact(data - kGuardBytes, data)) {
      return absl::StrCat("wrote before the beginning of an allocation of ", allocation.bytes,
                          " bytes");
    }
  }
  return "";
}

std::string GuardedMemory::Describe(const void* p) const {
  const char* const at = static_cast<const char*>(p);
  const auto next = allocations_.upper_bound(at);
  if (next != allocations_.begin()) {
    const auto& [data, allocation] = *std::prev(next);
    const int64_t offset = at - data;
    const char* const kind = allocation.freed ? "a freed allocation of " : "an allocation of ";
    if (offset < allocation.bytes) {
      return absl::StrCat("byte ", offset, " of ", kind, allocation.bytes, " bytes");
    }
    // An address in a closed page between two allocations is reported with the nearer one.
    if (next == allocations_.end() || offset - allocation.bytes < next->first - at) {
      return absl::StrCat(offset - allocation.bytes, " bytes past the end of ", kind,
                          allocation.bytes, " bytes");
    }
  }
  if (next == allocations_.end()) return "device memory that was never allocated";
  return absl::StrCat(next->first - at, " bytes before an allocation of ", next->second.bytes,
                      " bytes");
}

}  // namespace satrap::host
