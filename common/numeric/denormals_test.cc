#include "common/numeric/denormals.h"

#include <thread>

#include "common/testing/denormal_probe.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(DenormalsTest, AThreadThatSetsTheModeFlushesToZero) {
  bool before = true;
  bool after = false;
  std::thread thread([&] {
    before = FlushesToZeroHere();
    SetFlushToZero();
    after = FlushesToZeroHere();
  });
  thread.join();
  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
  EXPECT_FALSE(FlushesToZeroHere()) << "the mode belongs to one thread";
}

TEST(DenormalsTest, AScopeRestoresTheModeBefore) {
  {
    const ScopedFlushToZero on;
    EXPECT_TRUE(FlushesToZeroHere());
    {
      const ScopedFlushToZero off(false);
      EXPECT_FALSE(FlushesToZeroHere());
    }
    EXPECT_TRUE(FlushesToZeroHere());
  }
  EXPECT_FALSE(FlushesToZeroHere());
}

}  // namespace
}  // namespace satrap
