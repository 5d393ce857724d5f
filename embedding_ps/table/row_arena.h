// A RowArena holds the rows of a shard. Rows have a fixed stride, are numbered in the order of
// creation, and never move.
//
// Rows are stored in chunks of 2^n rows. A chunk is mapped as a whole, and the kernel commits its
// pages as rows are touched, so a growing arena never copies. The only memory committed ahead of
// the rows is the rest of the last page: a page has 4 KiB in the first 2 MiB of rows, and 2 MiB
// after them.
//
// Not thread-safe: the shard's lock guards it.

#ifndef SATRAP_EMBEDDING_PS_TABLE_ROW_ARENA_H_
#define SATRAP_EMBEDDING_PS_TABLE_ROW_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "embedding_ps/table/page_block.h"

namespace satrap {

class RowArena {
 public:
  static constexpr uint32_t kMaxRows = 0xfffffffe;

  // The first row begins `phase` huge pages, 0 <= phase < 1, after the start of the first chunk.
  // The memory before it is never touched and so never committed. The shards of a table hold about
  // the same number of rows. If their phases are spread over [0, 1), their last huge pages are
  // filled to different degrees. So on average half a huge page per shard is committed ahead of its
  // rows, however many rows there are. REQUIRES: stride_bytes > 0, a multiple of 8
  explicit RowArena(size_t stride_bytes, double phase = 0);

  uint32_t num_rows() const { return end_row_ - first_row_; }
  // Rows have the numbers [first_row(), end_row()).
  uint32_t first_row() const { return first_row_; }
  uint32_t end_row() const { return end_row_; }

  // Creates a row, all zero, and returns its number, which is below kMaxRows. Ends the process if
  // no number is left.
  uint32_t Add() { return AddRange(1); }
  // Creates `n` rows with consecutive numbers and returns the first number. Otherwise as Add.
  uint32_t AddRange(uint32_t n);

  // REQUIRES: `row` was returned by Add since the last Clear
  float* Row(uint32_t row) const {
    return reinterpret_cast<float*>(bases_[row >> chunk_shift_] +
                                    (row & chunk_mask_) * stride_bytes_);
  }

  // The number of rows from `row` on that are in the same chunk, and thus one stride apart.
  uint32_t RowsInChunk(uint32_t row) const { return chunk_mask_ + 1 - (row & chunk_mask_); }

  // Removes all rows and returns their memory.
  void Clear();

  // Memory that the kernel has committed for the rows made so far.
  size_t bytes() const;

 private:
  // The number of bytes at the start of the first chunk that use small pages: at least 2 MiB of
  // rows.
  size_t SmallBytes() const;

  size_t stride_bytes_;
  int chunk_shift_;
  uint32_t chunk_mask_;
  uint32_t first_row_;
  uint32_t end_row_;             // the number that Add returns next
  std::vector<uint8_t*> bases_;  // of chunks_: saves Row a load
  std::vector<PageBlock> chunks_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_ARENA_H_
