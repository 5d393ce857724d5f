#include "deploy/coordinator/members/waiting_processes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSecondUs = 1000000;

RegisterRequest RequestOf(uint64_t incarnation) {
  RegisterRequest request;
  request.mutable_member()->set_role(EMBEDDING_PS);
  request.mutable_member()->set_index(1);
  request.set_incarnation(incarnation);
  request.set_holder(absl::StrCat("pod-", incarnation));
  return request;
}

// "HOLDER: WHY for SECONDS"
std::vector<std::string> Told(const WaitingProcesses& waiting, int64_t now_us) {
  StatusAnswer answer;
  waiting.AddTo(&answer, now_us);
  std::vector<std::string> told;
  for (const WaitingProcess& process : answer.waiting()) {
    EXPECT_EQ(process.member().role(), EMBEDDING_PS);
    EXPECT_EQ(process.member().index(), 1u);
    told.push_back(absl::StrCat(process.holder(), ": ", process.why(), " for ", process.seconds()));
  }
  return told;
}

TEST(WaitingProcesses, ThoseThatWaitAreToldWithTheNewestReasonUntilTheyHaveAPlace) {
  WaitingProcesses waiting;
  waiting.OnAsked(RequestOf(1), "it is a twin", 0);
  waiting.OnAsked(RequestOf(2), "another build", kSecondUs);
  waiting.OnAsked(RequestOf(1), "the generation is over", 2 * kSecondUs);
  EXPECT_THAT(Told(waiting, 3 * kSecondUs),
              ElementsAre("pod-1: the generation is over for 3", "pod-2: another build for 2"));
  waiting.OnAsked(RequestOf(1), "", 3 * kSecondUs);
  EXPECT_THAT(Told(waiting, 3 * kSecondUs), ElementsAre("pod-2: another build for 2"));
  waiting.OnAsked(RequestOf(3), "", 3 * kSecondUs);
  EXPECT_THAT(Told(waiting, 3 * kSecondUs), ElementsAre("pod-2: another build for 2"));
}

TEST(WaitingProcesses, OneThatDoesNotAskAnyMoreIsGone) {
  WaitingProcesses waiting;
  waiting.OnAsked(RequestOf(1), "it is a twin", 0);
  EXPECT_THAT(Told(waiting, WaitingProcesses::kGoneUs), ElementsAre("pod-1: it is a twin for 5"));
  EXPECT_THAT(Told(waiting, WaitingProcesses::kGoneUs + 1), IsEmpty());
  waiting.OnAsked(RequestOf(1), "it is a twin", 9 * kSecondUs);
  EXPECT_THAT(Told(waiting, 9 * kSecondUs), ElementsAre("pod-1: it is a twin for 0"));
}

TEST(WaitingProcesses, OfTooManyThoseThatAskedLastAreKept) {
  WaitingProcesses waiting;
  for (uint64_t i = 0; i < WaitingProcesses::kMost; ++i) {
    waiting.OnAsked(RequestOf(100 + i), "another build", 1);
  }
  waiting.OnAsked(RequestOf(100), "another build", 2);
  waiting.OnAsked(RequestOf(1), "another build", 3);
  const std::vector<std::string> told = Told(waiting, 3);
  EXPECT_EQ(told.size(), WaitingProcesses::kMost);
  EXPECT_EQ(told.front().substr(0, 8), "pod-100:");
  EXPECT_EQ(told.back().substr(0, 6), "pod-1:");
}

}  // namespace
}  // namespace satrap
