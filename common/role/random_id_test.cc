#include "common/role/random_id.h"

#include <set>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RandomId, IsAnotherOneEachTimeAndNeverZero) {
  std::set<uint64_t> ids;
  uint64_t set_somewhere = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t id = RandomId();
    EXPECT_NE(id, 0u);
    ids.insert(id);
    set_somewhere |= id;
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(set_somewhere, ~uint64_t{0}) << "all 64 bits are drawn";
}

}  // namespace
}  // namespace satrap
