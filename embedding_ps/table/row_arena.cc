#include "embedding_ps/table/row_arena.h"

#include <algorithm>

#include "common/base/check.h"

namespace satrap {
namespace {

constexpr size_t kMaxChunkBytes = size_t{32} << 20;

int ChunkShift(size_t stride_bytes) {
  int shift = 0;
  while ((stride_bytes << (shift + 1)) <= kMaxChunkBytes) ++shift;
  return shift;
}

}  // namespace

RowArena::RowArena(size_t stride_bytes, double phase)
    : stride_bytes_(stride_bytes),
      chunk_shift_(ChunkShift(stride_bytes)),
      chunk_mask_((uint32_t{1} << chunk_shift_) - 1),
      first_row_(static_cast<uint32_t>(phase * kHugePageBytes) /
                 static_cast<uint32_t>(stride_bytes)),
      end_row_(first_row_) {
  CHECK(stride_bytes > 0 && stride_bytes % 8 == 0) << "stride " << stride_bytes;
  CHECK(phase >= 0 && phase < 1) << "phase " << phase;
}

uint32_t RowArena::AddRange(uint32_t n) {
  CHECK(n <= kMaxRows - end_row_) << "a shard of the table is full: raise embedding_ps.shards";
  const uint32_t first = end_row_;
  end_row_ += n;
  while (((end_row_ - 1) >> chunk_shift_) >= chunks_.size()) {
    // The first chunk begins with small pages, because a table of few rows would otherwise commit 2
    // MiB in each shard. Small pages also keep the memory before first_row_ uncommitted.
    const size_t small_bytes = chunks_.empty() ? SmallBytes() : 0;
    chunks_.emplace_back(stride_bytes_ << chunk_shift_, small_bytes);
    bases_.push_back(chunks_.back().data());
  }
  return first;
}

size_t RowArena::SmallBytes() const {
  return first_row_ == 0 ? kHugePageBytes : 2 * kHugePageBytes;
}

void RowArena::Clear() {
  end_row_ = first_row_;
  bases_.clear();
  chunks_.clear();
}

size_t RowArena::bytes() const {
  if (num_rows() == 0) return 0;
  size_t bytes = 0;
  for (size_t i = 0; i + 1 < chunks_.size(); ++i) bytes += chunks_[i].size();
  const size_t used = (((end_row_ - 1) & chunk_mask_) + 1) * stride_bytes_;
  const bool small_pages = chunks_.size() == 1 && used <= SmallBytes();
  const size_t untouched = first_row_ * stride_bytes_ / kPageBytes * kPageBytes;
  return bytes - untouched +
         std::min(RoundUp(used, small_pages ? kPageBytes : kHugePageBytes), chunks_.back().size());
}

}  // namespace satrap
