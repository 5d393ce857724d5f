#include "deploy/retrieve/item_ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

// The values are small integers, so that every product is exact and many scores are equal.
std::vector<float> SomeVectors(uint64_t seed, int64_t count, int64_t dim) {
  std::vector<float> values(count * dim);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(RandomBits(seed, i) % 7) - 3;
  }
  return values;
}

RankedItems RankBySorting(const float* user, const VectorSet& items, const std::set<uint32_t>& seen,
                          size_t k) {
  std::vector<float> scores(items.count);
  for (int64_t i = 0; i < items.count; ++i) {
    for (int64_t d = 0; d < items.dim; ++d) scores[i] += user[d] * items.values[i * items.dim + d];
  }
  RankedItems ranked(items.count);
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  ranked.erase(
      std::remove_if(ranked.begin(), ranked.end(), [&](uint32_t i) { return seen.count(i) > 0; }),
      ranked.end());
  ranked.resize(std::min(ranked.size(), k));
  return ranked;
}

// There are more users and items than a block holds, and their numbers are not multiples of its
// size.
TEST(RankItemsTest, GivesEachUserTheBestItemsThatTheUserHasNotSeen) {
  constexpr int64_t kUsers = 131, kItems = 4100, kDim = 5;
  const std::vector<float> users = SomeVectors(1, kUsers, kDim);
  const std::vector<float> items = SomeVectors(2, kItems, kDim);
  std::vector<std::vector<uint32_t>> seen(kUsers);
  for (int64_t u = 0; u < kUsers; ++u) {
    for (int i = 0; i < 300; ++i) seen[u].push_back(RandomBits(3, u, i) % kItems);
  }
  const VectorSet item_set = {items.data(), kItems, kDim};
  for (int threads : {1, 3}) {
    ForkJoinPool pool(threads);
    const std::vector<RankedItems> ranked = RankItems(
        {users.data(), kUsers, kDim}, item_set, [&](int64_t u) { return absl::MakeSpan(seen[u]); },
        50, &pool);
    ASSERT_EQ(ranked.size(), static_cast<size_t>(kUsers));
    for (int64_t u = 0; u < kUsers; ++u) {
      EXPECT_EQ(ranked[u], RankBySorting(&users[u * kDim], item_set,
                                         std::set<uint32_t>(seen[u].begin(), seen[u].end()), 50))
          << "user " << u << ", " << threads << " threads";
    }
  }
}

TEST(RankItemsTest, GivesFewerItemsToAUserWhoHasSeenNearlyAll) {
  const std::vector<float> user = {1};
  const std::vector<float> items = {1, 3, 2};
  const std::vector<uint32_t> seen = {2, 1, 1};
  ForkJoinPool pool(1);
  const auto ranked = RankItems(
      {user.data(), 1, 1}, {items.data(), 3, 1}, [&](int64_t) { return absl::MakeSpan(seen); }, 5,
      &pool);
  EXPECT_THAT(ranked[0], ElementsAre(0));
}

TEST(RankItemsTest, RanksAScoreOfNanAfterAllOthers) {
  const std::vector<float> user = {1};
  const std::vector<float> items = {std::numeric_limits<float>::quiet_NaN(), -1e30f, 2};
  ForkJoinPool pool(1);
  const auto ranked = RankItems(
      {user.data(), 1, 1}, {items.data(), 3, 1},
      [](int64_t) { return absl::Span<const uint32_t>(); }, 3, &pool);
  EXPECT_THAT(ranked[0], ElementsAre(2, 1, 0));
}

TEST(RankItemsTest, OfNoUsersAndOfNoItemsIsEmpty) {
  const std::vector<float> user = {1};
  ForkJoinPool pool(1);
  const auto none = [](int64_t) { return absl::Span<const uint32_t>(); };
  EXPECT_TRUE(RankItems({nullptr, 0, 1}, {user.data(), 1, 1}, none, 3, &pool).empty());
  EXPECT_TRUE(RankItems({user.data(), 1, 1}, {nullptr, 0, 1}, none, 3, &pool)[0].empty());
}

}  // namespace
}  // namespace satrap
