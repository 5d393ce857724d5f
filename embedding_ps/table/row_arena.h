// A RowArena holds the rows of a shard: fixed stride, numbered from 0 in the order of creation,
// never moved.
//
// Rows lie in chunks of 2^n rows. A chunk is mapped whole and committed by the kernel as rows are
// touched, so a growing arena never copies and a small one costs little. Not thread-safe: the
// shard's lock guards it.

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

  // REQUIRES: stride_bytes > 0, a multiple of 8
  explicit RowArena(size_t stride_bytes);

  uint32_t num_rows() const { return num_rows_; }

  // Makes a row, all zero, and returns its number.
  // REQUIRES: num_rows() < kMaxRows
  uint32_t Add();

  // REQUIRES: row < num_rows()
  float* Row(uint32_t row) const {
    return reinterpret_cast<float*>(bases_[row >> chunk_shift_] +
                                    (row & chunk_mask_) * stride_bytes_);
  }

  // Forgets all rows and returns their memory.
  void Clear();

  // What the kernel has committed for the rows made so far.
  size_t bytes() const;

 private:
  size_t stride_bytes_;
  int chunk_shift_;
  uint32_t chunk_mask_;
  uint32_t num_rows_ = 0;
  std::vector<uint8_t*> bases_;  // of chunks_: one load less for Row
  std::vector<PageBlock> chunks_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_ARENA_H_
