#include "embedding_ps/table/row_arena.h"

#include <algorithm>

#include "common/check.h"

namespace satrap {
namespace {

constexpr size_t kMaxChunkBytes = size_t{32} << 20;

int ChunkShift(size_t stride_bytes) {
  int shift = 0;
  while ((stride_bytes << (shift + 1)) <= kMaxChunkBytes) ++shift;
  return shift;
}

}  // namespace

RowArena::RowArena(size_t stride_bytes)
    : stride_bytes_(stride_bytes),
      chunk_shift_(ChunkShift(stride_bytes)),
      chunk_mask_((uint32_t{1} << chunk_shift_) - 1) {
  CHECK(stride_bytes > 0 && stride_bytes % 8 == 0) << "stride " << stride_bytes;
}

uint32_t RowArena::Add() {
  CHECK(num_rows_ < kMaxRows) << "a shard is full: use more shards";
  if ((num_rows_ >> chunk_shift_) == chunks_.size()) {
    const size_t small_bytes = chunks_.empty() ? kHugePageBytes : 0;
    chunks_.emplace_back(stride_bytes_ << chunk_shift_, small_bytes);
    bases_.push_back(chunks_.back().data());
  }
  return num_rows_++;
}

void RowArena::Clear() {
  num_rows_ = 0;
  bases_.clear();
  chunks_.clear();
}

size_t RowArena::bytes() const {
  if (num_rows_ == 0) return 0;
  size_t bytes = 0;
  for (size_t i = 0; i + 1 < chunks_.size(); ++i) bytes += chunks_[i].size();
  const size_t used = (((num_rows_ - 1) & chunk_mask_) + 1) * stride_bytes_;
  const bool small_pages = chunks_.size() == 1 && used <= kHugePageBytes;
  return bytes +
         std::min(RoundUp(used, small_pages ? kPageBytes : kHugePageBytes), chunks_.back().size());
}

}  // namespace satrap
