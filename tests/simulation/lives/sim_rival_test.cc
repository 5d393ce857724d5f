#include "tests/simulation/lives/sim_rival.h"

#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "tests/simulation/machine/sim_disk.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {
namespace {

TEST(SimRival, OfTwoClaimsAtOnceOneGetsTheGenerationWhereverTheyMeet) {
  constexpr int64_t kMostOperations = 30;
  int taken_from_the_first = 0, taken_after_the_first = 0;
  for (int64_t at = 1; at <= kMostOperations; ++at) {
    SimLoop loop(1);
    SimDisk disk(1);
    CHECK_OK(disk.Mount()->CreateFolders("/run"));
    const auto claimer = [&loop, &disk](int number) {
      auto process = std::make_unique<SimProcess>(&loop, number, "a coordinator");
      auto mount = disk.Mount(process.get());
      return Claimer(std::move(process), std::move(mount));
    };
    ClaimRequest request;
    request.job.set_run_dir("/run");
    request.run_id = 1;
    request.writer = 1;
    std::vector<std::string> violations;
    const Claimer claimed =
        ClaimAgainst(claimer(2), at, claimer(1), request,
                     [&violations](const std::string& what) { violations.push_back(what); });
    ASSERT_TRUE(violations.empty()) << violations[0];
    ASSERT_TRUE(claimed.claimed.ok()) << claimed.claimed.status();
    const auto log = RunLog::Open("/run", disk.Mount().get());
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(log->last_generation()->generation(), claimed.claimed->generation);
    const bool is_rival = claimed.process->life() == 2;
    taken_from_the_first += is_rival && log->entries().size() == 1 ? 1 : 0;
    taken_after_the_first += log->entries().size() == 2 ? 1 : 0;
  }
  EXPECT_GT(taken_from_the_first, 0);
  EXPECT_GT(taken_after_the_first, 0);
}

}  // namespace
}  // namespace satrap::simulation
