#include "common/checkpoint/start_cut.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(StartCut, ADamagedCutSaysWhatToDoAndIsMarked) {
  const absl::Status status = MarkAsStartCutError(absl::DataLossError("a.rows is damaged"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "a.rows is damaged; continue from another cut with `satrap resume RUN --from CUT`");
  EXPECT_TRUE(IsStartCutError(status));
}

TEST(StartCut, OtherErrorsStayAsTheyAre) {
  const absl::Status status = MarkAsStartCutError(absl::UnavailableError("the disk is away"));
  EXPECT_EQ(status.message(), "the disk is away");
  EXPECT_FALSE(IsStartCutError(status));
  EXPECT_FALSE(IsStartCutError(absl::OkStatus()));
}

TEST(StartCut, TheWordsAloneMarkNothing) {
  EXPECT_FALSE(IsStartCutError(absl::DataLossError(std::string("x; ") + kChooseAnotherCut)));
}

}  // namespace
}  // namespace satrap
