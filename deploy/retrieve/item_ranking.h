// Ranks all items for each user by the dot product of their vectors. The ranking is exact. It works
// in blocks, so memory does not grow with users times items.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_RETRIEVE_ITEM_RANKING_H_
#define SATRAP_DEPLOY_RETRIEVE_ITEM_RANKING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/thread/fork_join_pool.h"

namespace satrap {

// Vectors [count, dim] without gaps, in memory that the caller owns.
struct VectorSet {
  const float* values = nullptr;
  int64_t count = 0;
  int64_t dim = 0;
};

// The numbers of a user's best items, best first: k of them, or fewer if the user has seen nearly
// all items. Of items with equal scores, the one with the lower number comes first. A score of NaN
// ranks after all others.
using RankedItems = std::vector<uint32_t>;

// Returns the numbers, in any order, of the items that are not ranked for `user`.
using SeenItems = absl::FunctionRef<absl::Span<const uint32_t>(int64_t user)>;

// Ranks the items for all users. `seen` is called once per user, from the threads of `pool`.
// Element u of the result belongs to user u; it does not depend on the number of threads. REQUIRES:
// users.dim == items.dim >= 1, items.count < 2^32, k >= 1, every seen item < items.count
std::vector<RankedItems> RankItems(const VectorSet& users, const VectorSet& items, SeenItems seen,
                                   int k, ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_ITEM_RANKING_H_
