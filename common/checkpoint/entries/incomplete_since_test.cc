#include "common/checkpoint/entries/incomplete_since.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

RunLogEntry GenerationAt(uint64_t unix_ms, uint64_t submission = 1, Began began = BEGAN_RESTART) {
  RunLogEntry entry;
  entry.set_unix_ms(unix_ms);
  entry.mutable_generation()->set_generation(unix_ms);
  entry.mutable_generation()->set_submission(submission);
  entry.mutable_generation()->set_began(began);
  return entry;
}

RunLogEntry At(uint64_t unix_ms) {
  RunLogEntry entry;
  entry.set_unix_ms(unix_ms);
  return entry;
}

TEST(IncompleteSince, CountsFromTheFirstGenerationThatLackedMembers) {
  EXPECT_EQ(IncompleteSinceMs({}), absl::nullopt);
  RunLogEntry left = At(25);
  left.mutable_left();
  EXPECT_EQ(IncompleteSinceMs({GenerationAt(10), GenerationAt(20), left, GenerationAt(30)}), 10);
}

TEST(IncompleteSince, BeginsAnewAfterAGenerationThatHadAllItsMembersAndADroppedJob) {
  RunLogEntry complete = At(15);
  complete.mutable_complete()->set_generation(1);
  RunLogEntry running = At(15);
  running.mutable_running()->set_generation(1);
  RunLogEntry cut = At(15);
  cut.mutable_cut()->set_generation(1);
  RunLogEntry dropped = At(15);
  dropped.mutable_dropped()->set_generation(1);
  for (const RunLogEntry& had : {complete, running, cut, dropped}) {
    EXPECT_EQ(IncompleteSinceMs({GenerationAt(10), had, GenerationAt(20), GenerationAt(30)}), 20);
    EXPECT_EQ(IncompleteSinceMs({GenerationAt(10), had}), absl::nullopt);
  }
}

TEST(IncompleteSince, BeginsAnewWithASubmission) {
  RunLogEntry end = At(25);
  end.mutable_end()->set_submission(1);
  EXPECT_EQ(IncompleteSinceMs({GenerationAt(10), end, GenerationAt(30, 2), GenerationAt(40, 2)}),
            30);
  EXPECT_EQ(IncompleteSinceMs({GenerationAt(10), GenerationAt(30, 2)}), 30) << "without an END";
  EXPECT_EQ(IncompleteSinceMs({GenerationAt(10, 0), GenerationAt(20, 1)}), 10)
      << "an older build began submission 1 without its number";
}

TEST(IncompleteSince, ASizeThatIsOnlyAnnouncedHasNotBegun) {
  EXPECT_EQ(IncompleteSinceMs({GenerationAt(10, 1, BEGAN_SCALE_ANNOUNCED), GenerationAt(20)}), 20);
}

}  // namespace
}  // namespace satrap
