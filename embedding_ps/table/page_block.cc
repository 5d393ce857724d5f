#include "embedding_ps/table/page_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/shortage.h"

namespace satrap {

PageBlock::PageBlock(size_t size_bytes, size_t small_bytes) {
  const size_t alignment = size_bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  size_ = RoundUp(size_bytes, kPageBytes);
  // mmap aligns only to small pages, so map more than needed and unmap what lies before and after
  // the aligned block. MAP_NORESERVE, because a chunk of rows is mapped as a whole long before it
  // is full.
  const size_t slack = alignment - kPageBytes;
  void* mapped = mmap(nullptr, size_ + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    EndForWantOf(Shortage::kMemory, absl::StrCat("no memory for ", size_ + slack,
                                                 " more bytes of a table: ", std::strerror(errno)));
  }
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const size_t before = RoundUp(address, alignment) - address;
  data_ = static_cast<uint8_t*>(mapped) + before;
  if (before > 0) munmap(mapped, before);
  if (slack > before) munmap(data_ + size_, slack - before);
  // Small pages need advice, too, because huge pages may be the system's default. A kernel without
  // huge pages refuses both kinds of advice. This is not an error: the table only runs slower.
  if (small_bytes > 0) (void)madvise(data_, std::min(small_bytes, size_), MADV_NOHUGEPAGE);
  if (alignment == kHugePageBytes && small_bytes < size_) {
    (void)madvise(data_ + small_bytes, size_ - small_bytes, MADV_HUGEPAGE);
  }
}

PageBlock::PageBlock(PageBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  if (this != &other) {
    Unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

PageBlock::~PageBlock() { Unmap(); }

void PageBlock::Unmap() {
  if (data_ != nullptr) CHECK(munmap(data_, size_) == 0) << std::strerror(errno);
}

}  // namespace satrap
