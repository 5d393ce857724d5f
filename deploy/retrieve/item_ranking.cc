#include "deploy/retrieve/item_ranking.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace satrap {
namespace {

// The scores of a block of users for a tile of items are computed as one matrix product. They take
// 1 MiB, which stays in the cache of a core until the best items are picked.
constexpr int64_t kUsers = 64;
constexpr int64_t kItems = 4096;

struct ScoredItem {
  float score;
  uint32_t item;
};

// Whether `a` ranks before `b`.
bool RanksBefore(const ScoredItem& a, const ScoredItem& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.item < b.item;
}

// The best k items so far. The worst of them is at the front of a heap, so that most items cost
// only one comparison.
class BestItems {
 public:
  explicit BestItems(size_t k) : k_(k) { heap_.reserve(k); }

  void Add(ScoredItem item) {
    // Replace NaN, which compares false with everything and would break the order of the heap.
    if (std::isnan(item.score)) item.score = -std::numeric_limits<float>::infinity();
    if (heap_.size() < k_) {
      heap_.push_back(item);
      std::push_heap(heap_.begin(), heap_.end(), RanksBefore);
    } else if (RanksBefore(item, heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), RanksBefore);
      heap_.back() = item;
      std::push_heap(heap_.begin(), heap_.end(), RanksBefore);
    }
  }

  RankedItems Ranked() {
    std::sort(heap_.begin(), heap_.end(), RanksBefore);
    RankedItems items;
    items.reserve(heap_.size());
    for (const ScoredItem& item : heap_) items.push_back(item.item);
    return items;
  }

 private:
  const size_t k_;
  std::vector<ScoredItem> heap_;
};

// Computes scores [users, items] for `num_users` users from `first_user` on and `num_items` items
// from `first_item` on.
void Score(const VectorSet& users, int64_t first_user, int64_t num_users, const VectorSet& items,
           int64_t first_item, int64_t num_items, float* scores) {
  // Compute in the calling thread alone: the pool's threads already share the blocks of users.
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(
      'N', 'T', num_users, num_items, users.dim, 1.0f, users.values + first_user * users.dim,
      users.dim, items.values + first_item * items.dim, items.dim, 0.0f, scores, kItems);
  CHECK(status == dnnl_success) << "dnnl_sgemm: " << status;
}

}  // namespace

std::vector<RankedItems> RankItems(const VectorSet& users, const VectorSet& items, SeenItems seen,
                                   int k, ForkJoinPool* pool) {
  CHECK(users.dim == items.dim && users.dim >= 1 && k >= 1);
  CHECK(items.count <= std::numeric_limits<uint32_t>::max());
  std::vector<RankedItems> ranked(users.count);
  std::vector<std::vector<float>> scores_of_thread(pool->num_threads());
  pool->Run((users.count + kUsers - 1) / kUsers, [&](int64_t block, int thread) {
    const int64_t first_user = block * kUsers;
    const int64_t num_users = std::min(kUsers, users.count - first_user);
    std::vector<float>& scores = scores_of_thread[thread];
    scores.resize(kUsers * kItems);
    std::vector<BestItems> best(num_users, BestItems(std::min<int64_t>(k, items.count)));
    // Sort them, so that they can be skipped in a single pass along with the items.
    std::vector<std::vector<uint32_t>> skipped(num_users);
    std::vector<size_t> next_skipped(num_users);
    for (int64_t u = 0; u < num_users; ++u) {
      const absl::Span<const uint32_t> of_user = seen(first_user + u);
      skipped[u].assign(of_user.begin(), of_user.end());
      std::sort(skipped[u].begin(), skipped[u].end());
    }
    for (int64_t first_item = 0; first_item < items.count; first_item += kItems) {
      const int64_t num_items = std::min(kItems, items.count - first_item);
      Score(users, first_user, num_users, items, first_item, num_items, scores.data());
      for (int64_t u = 0; u < num_users; ++u) {
        const float* row = scores.data() + u * kItems;
        size_t& skip = next_skipped[u];
        for (int64_t i = 0; i < num_items; ++i) {
          const uint32_t item = static_cast<uint32_t>(first_item + i);
          while (skip < skipped[u].size() && skipped[u][skip] < item) ++skip;
          if (skip < skipped[u].size() && skipped[u][skip] == item) continue;
          best[u].Add({row[i], item});
        }
      }
    }
    for (int64_t u = 0; u < num_users; ++u) ranked[first_user + u] = best[u].Ranked();
  });
  return ranked;
}

}  // namespace satrap
