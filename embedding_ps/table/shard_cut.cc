#include "embedding_ps/table/shard_cut.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace satrap {

bool CopyBudget::Take(int64_t bytes) {
  if (left_bytes_.fetch_sub(bytes) < bytes) {
    left_bytes_ += bytes;
    exhausted_ = true;
    return false;
  }
  ++rows_;
  bytes_ += bytes;
  return true;
}

ShardCut::ShardCut(uint64_t number, uint8_t mark, int num_partitions, size_t row_bytes,
                   size_t stride_bytes, std::shared_ptr<CopyBudget> budget)
    : number_(number),
      mark_(mark),
      row_bytes_(row_bytes),
      copy_bytes_(static_cast<int64_t>(stride_bytes + sizeof(Copy))),
      budget_(std::move(budget)),
      partitions_(static_cast<size_t>(num_partitions)),
      copies_(stride_bytes) {}

bool ShardCut::CopyOut(uint64_t ordinal, const float* row) {
  if (!budget_->Take(copy_bytes_)) return false;
  uint32_t to;
  if (free_rows_.empty()) {
    to = copies_.Add();
  } else {
    to = free_rows_.back();
    free_rows_.pop_back();
  }
  std::memcpy(copies_.Row(to), row, row_bytes_);
  Partition& partition = partitions_[ordinal >> KeyOrder::kLowBits];
  partition.copies.push_back({ordinal, to});
  partition.sorted = false;
  return true;
}

ShardCut::Partition& ShardCut::Sorted(int nth) {
  Partition& partition = partitions_[static_cast<size_t>(nth)];
  if (!partition.sorted) {
    std::sort(partition.copies.begin(), partition.copies.end(),
              [](const Copy& a, const Copy& b) { return a.ordinal > b.ordinal; });
    partition.sorted = true;
  }
  return partition;
}

void ShardCut::Release(const Copy& copy) {
  free_rows_.push_back(copy.row);
  budget_->Return(copy_bytes_);
}

bool ShardCut::IsRead() const {
  return std::all_of(partitions_.begin(), partitions_.end(), [](const Partition& partition) {
    return partition.next > KeyOrder::kLowMask;
  });
}

}  // namespace satrap
