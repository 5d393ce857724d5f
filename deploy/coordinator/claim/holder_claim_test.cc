// What coordinators of several pods claim.

#include <string>

#include "deploy/coordinator/claim/testing/generation_claim_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

class HolderClaimTest : public GenerationClaimTest {
 protected:
  HolderClaimTest() {
    request_.submission = 1;
    request_.job.set_max_restarts(10);
  }
  // The generation that a coordinator of the pod claims; 0 if it has to wait to be asked.
  uint64_t ClaimIn(const std::string& holder, bool is_asked = false) {
    request_.holder = holder;
    request_.is_asked = is_asked;
    const auto claimed = Claim("the coordinator was started again");
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    if (!claimed.ok()) return 0;
    EXPECT_FALSE(claimed->superseded);
    if (claimed->waits_to_be_asked) return 0;
    EXPECT_EQ(Log().last_generation()->holder(), holder);
    return claimed->generation;
  }
};

TEST_F(HolderClaimTest, WhoHasBegunTheNewestOrNoneClaimsAtOnce) {
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  EXPECT_EQ(ClaimIn("pod-1"), 2u) << "it was started again in its pod";
  EXPECT_EQ(ClaimIn("pod-2"), 3u) << "the pod was replaced";
  Commit(3, 1);
  EXPECT_EQ(ClaimIn("pod-2"), 4u);
}

TEST_F(HolderClaimTest, WhoseGenerationAnotherPodsFollowsClaimsOnlyWhenItIsAsked) {
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  EXPECT_EQ(ClaimIn("pod-2"), 2u);
  const size_t entries = Log().number();
  EXPECT_EQ(ClaimIn("pod-1"), 0u);
  EXPECT_EQ(ClaimIn("pod-1"), 0u);
  EXPECT_EQ(Log().number(), entries) << "nothing is claimed";
  EXPECT_EQ(ClaimIn("pod-1", /*is_asked=*/true), 3u);
  EXPECT_EQ(ClaimIn("pod-2"), 0u) << "now the other one waits";
  EXPECT_EQ(ClaimIn("pod-1"), 4u);
}

TEST_F(HolderClaimTest, ALogThatIsCompactedStillKnowsWhoHasBegunWhat) {
  request_.compact_after = 1;
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  EXPECT_EQ(ClaimIn("pod-2"), 2u);
  ASSERT_GT(Log().compacted_number(), 0u);
  EXPECT_EQ(ClaimIn("pod-1"), 0u);
}

TEST_F(HolderClaimTest, ASizeThatIsAnnouncedIsNobodysGenerationYet) {
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  RunLogEntry next;
  *next.mutable_generation() = *Log().last_generation();
  next.mutable_generation()->set_generation(2);
  next.mutable_generation()->set_began(BEGAN_SCALE_ANNOUNCED);
  next.mutable_generation()->clear_holder();
  ASSERT_TRUE(Log().Append(next).ok());
  EXPECT_EQ(ClaimIn("pod-1"), 3u);
}

TEST_F(HolderClaimTest, WhoWaitsAppendsNoEndAndServesOneThatIsThere) {
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  EXPECT_EQ(ClaimIn("pod-2"), 2u);
  Commit(ManifestOf(2, 1), CutEntry::STOP);
  EXPECT_EQ(ClaimIn("pod-1"), 0u);
  EXPECT_EQ(Log().end(), nullptr) << "the other one is about to append it";
  request_.holder = "pod-2";
  ASSERT_TRUE(Claim("x").ok());
  ASSERT_NE(Log().end(), nullptr);
  request_.holder = "pod-1";
  const auto claimed = Claim("x");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_FALSE(claimed->waits_to_be_asked);
  EXPECT_NE(claimed->log.end(), nullptr);
}

TEST_F(HolderClaimTest, AResumeIsClaimedAtOnceByWhoeverBelongsToIt) {
  EXPECT_EQ(ClaimIn("pod-1"), 1u);
  EXPECT_EQ(ClaimIn("pod-2"), 2u);
  request_.submission = 2;
  EXPECT_EQ(ClaimIn("pod-1"), 3u);
}

}  // namespace
}  // namespace satrap
