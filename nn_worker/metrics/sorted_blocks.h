// A growing list of entries, such as the samples of a metric, that is read once, in ascending
// order. It consists of blocks, so that the list grows without copies, and memory is freed when
// entries are taken away. Each block is sorted separately, and reading merges the blocks, so
// sorting needs no extra memory.
//
// With JoinEntries, the entries of a full block are joined, so equal entries need little memory,
// however many there are.
//
// Memory: as much as the entries need, plus an eighth for the open block, but at least as much as
// kLeastEntries entries need.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_SORTED_BLOCKS_H_
#define SATRAP_NN_WORKER_METRICS_SORTED_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace satrap {

// `Entry` is trivially copyable and has operator<.
template <typename Entry>
class SortedBlocks {
 public:
  static constexpr size_t kLeastEntries = 1 << 12;
  static constexpr size_t kMostEntries = 1 << 20;

  // Replaces `count` ascending entries by at most as many entries that represent them. The new
  // entries must ascend, too, and also begin at `entries`. Returns their number.
  using JoinEntries = size_t (*)(Entry* entries, size_t count);

  // `join` may be null.
  explicit SortedBlocks(JoinEntries join = nullptr) : join_(join) {}

  void Add(const Entry& entry) {
    if (blocks_.empty() || blocks_.back().size == blocks_.back().capacity) MakeRoom();
    Block& block = blocks_.back();
    block.entries[block.size++] = entry;
    block.sorted = false;
    ++size_;
  }

  // The number of entries. Entries that were joined are not counted, but the entries that replaced
  // them are.
  size_t size() const { return size_; }

  // Calls visit(entry) for each entry, in any order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Block& block : blocks_) {
      for (size_t i = 0; i < block.size; ++i) visit(block.entries[i]);
    }
  }

  // Removes at most `most` entries, in any order, and calls take(entry) for each.
  template <typename Take>
  void TakeSome(size_t most, Take take) {
    while (most > 0 && !blocks_.empty()) {
      Block& block = blocks_.back();
      for (; most > 0 && block.size > 0; --most, --size_) take(block.entries[--block.size]);
      if (block.size == 0) blocks_.pop_back();
    }
  }

  // Calls visit(entry) for each entry, in ascending order.
  template <typename Visit>
  void ForEachAscending(Visit visit) {
    std::vector<std::pair<const Entry*, const Entry*>> rests;
    for (Block& block : blocks_) {
      Sort(&block);
      const Entry* const begin = block.entries.get();
      if (block.size > 0) rests.emplace_back(begin, begin + block.size);
    }
    const auto later = [](const auto& a, const auto& b) { return *b.first < *a.first; };
    std::make_heap(rests.begin(), rests.end(), later);
    while (!rests.empty()) {
      std::pop_heap(rests.begin(), rests.end(), later);
      auto& [at, end] = rests.back();
      visit(*at);
      if (++at == end) {
        rests.pop_back();
      } else {
        std::push_heap(rests.begin(), rests.end(), later);
      }
    }
  }

 private:
  static_assert(std::is_trivially_copyable<Entry>::value, "blocks hold plain bytes");

  struct Block {
    std::unique_ptr<Entry[]> entries;
    size_t capacity = 0;
    size_t size = 0;
    bool sorted = false;  // and joined
  };

  void Sort(Block* block) {
    if (block->sorted) return;
    std::sort(block->entries.get(), block->entries.get() + block->size);
    if (join_ != nullptr) {
      size_ -= block->size;
      block->size = join_(block->entries.get(), block->size);
      size_ += block->size;
    }
    block->sorted = true;
  }

  // If joining has shrunk a block to at most half, the block is filled further. Thus equal entries
  // do not make many blocks, however many of them there are.
  void MakeRoom() {
    if (!blocks_.empty() && join_ != nullptr) {
      Sort(&blocks_.back());
      if (blocks_.back().size <= blocks_.back().capacity / 2) return;
    }
    Block block;
    block.capacity = std::clamp(size_ / 8, kLeastEntries, kMostEntries);
    block.entries.reset(new Entry[block.capacity]);  // not touched before it is used
    blocks_.push_back(std::move(block));
  }

  JoinEntries join_;
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_SORTED_BLOCKS_H_
