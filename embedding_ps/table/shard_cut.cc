#include "embedding_ps/table/shard_cut.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace satrap {

bool CopyBudget::Take(int64_t rows, int64_t bytes) {
  if (left_bytes_.fetch_sub(bytes) < bytes) {
    left_bytes_ += bytes;
    exhausted_ = true;
    return false;
  }
  rows_ += rows;
  bytes_ += bytes;
  return true;
}

ShardCut::ShardCut(uint64_t number, uint8_t mark, int num_partitions, size_t row_bytes,
                   size_t stride_bytes, std::shared_ptr<CopyBudget> budget)
    : number_(number),
      mark_(mark),
      row_bytes_(row_bytes),
      place_bytes_(static_cast<int64_t>(stride_bytes + sizeof(Head))),
      budget_(std::move(budget)),
      partitions_(static_cast<size_t>(num_partitions)),
      copies_(stride_bytes + sizeof(Head)) {}

void ShardCut::CopyOut(uint64_t ordinal, const float* row) {
  uint32_t place = free_;
  if (place == RowArena::kMaxRows) {
    place = copies_.Add();
  } else {
    free_ = HeadOf(place)->next;
  }
  Partition& partition = partitions_[ordinal >> KeyOrder::kLowBits];
  *HeadOf(place) = {ordinal, partition.newest};
  std::memcpy(copies_.Row(place) + kHeadFloats, row, row_bytes_);
  partition.newest = place;
}

ShardCut::Partition& ShardCut::Sorted(int nth) {
  Partition& partition = partitions_[static_cast<size_t>(nth)];
  if (partition.newest == RowArena::kMaxRows) return partition;
  for (uint32_t place = partition.newest; place != RowArena::kMaxRows;) {
    const Head& head = *HeadOf(place);
    partition.sorted.push_back({head.ordinal, place});
    place = head.next;
  }
  partition.newest = RowArena::kMaxRows;
  std::sort(partition.sorted.begin(), partition.sorted.end(),
            [](const Copy& a, const Copy& b) { return a.ordinal > b.ordinal; });
  return partition;
}

void ShardCut::Release(const Copy& copy) {
  HeadOf(copy.place)->next = free_;
  free_ = copy.place;
  budget_->Return(place_bytes_);
}

bool ShardCut::IsRead() const {
  return std::all_of(partitions_.begin(), partitions_.end(), [](const Partition& partition) {
    return partition.next > KeyOrder::kLowMask;
  });
}

}  // namespace satrap
