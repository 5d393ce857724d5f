#include "embedding_ps/update_gate.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Admission = UpdateGate::Admission;
using testing::ElementsAre;
using testing::HasSubstr;

class UpdateGateTest : public testing::Test {
 protected:
  // An Update that notes its number when it runs.
  Admission Admit(int number) {
    Task update = [this, number] { ran_.push_back(number); };
    const Admission admission = gate_.Admit(&update);
    EXPECT_EQ(update == nullptr, admission == Admission::kWaits);
    return admission;
  }
  void Release(uint64_t cut) {
    for (Task& update : gate_.Release(cut)) std::move(update)();
  }
  // A load that ends well.
  void Load(bool of_start_model = false) {
    const absl::StatusOr<bool> untouched = gate_.BeginLoad();
    ASSERT_TRUE(untouched.ok()) << untouched.status();
    gate_.EndLoad({true, false, *untouched, of_start_model});
  }

  UpdateGate gate_;
  std::vector<int> ran_;
};

TEST_F(UpdateGateTest, NeitherACutNorALoadBeginsWhileAnUpdateIsOpen) {
  EXPECT_EQ(Admit(1), Admission::kRun);
  EXPECT_THAT(gate_.BeginCut(1, false).message(), HasSubstr("1 Updates are not answered yet"));
  EXPECT_THAT(gate_.BeginLoad().status().message(), HasSubstr("1 Updates are not answered yet"));
  gate_.Open();  // the step of this Update is summed, and waits to be applied
  gate_.Finish();
  EXPECT_FALSE(gate_.BeginCut(1, false).ok());
  gate_.Finish();
  EXPECT_TRUE(gate_.BeginCut(1, false).ok());
}

TEST_F(UpdateGateTest, ACutHoldsUpdatesInOrderUntilItReleasesThem) {
  ASSERT_TRUE(gate_.BeginCut(3, true).ok());
  EXPECT_EQ(Admit(1), Admission::kWaits);
  EXPECT_EQ(Admit(2), Admission::kWaits);
  EXPECT_FALSE(gate_.BeginCut(4, true).ok()) << "what waits is open";
  Release(2);
  EXPECT_THAT(ran_, ElementsAre()) << "another cut holds them";
  Release(3);
  EXPECT_THAT(ran_, ElementsAre(1, 2));
  EXPECT_EQ(Admit(3), Admission::kRun);
  Release(3);
  EXPECT_THAT(ran_, ElementsAre(1, 2)) << "they are released once";
}

TEST_F(UpdateGateTest, ACutThatHoldsNoUpdatesLetsThemRun) {
  ASSERT_TRUE(gate_.BeginCut(1, false).ok());
  EXPECT_EQ(Admit(1), Admission::kRun);
}

TEST_F(UpdateGateTest, AnUpdateDuringALoadIsRefusedAndStaysOpenUntilItIsAnswered) {
  ASSERT_TRUE(gate_.BeginLoad().ok());
  EXPECT_EQ(Admit(1), Admission::kRefused);
  EXPECT_THAT(gate_.BeginCut(1, false).message(), HasSubstr("1 Updates"));
  gate_.Finish();
  EXPECT_THAT(gate_.BeginCut(1, false).message(), HasSubstr("are being loaded"));
  EXPECT_THAT(gate_.BeginLoad().status().message(), HasSubstr("another load is running"));
}

TEST_F(UpdateGateTest, AfterALoadThatLeftNoRowsOnlyALoadHelps) {
  const absl::StatusOr<bool> untouched = gate_.BeginLoad();
  gate_.EndLoad({true, true, *untouched, false});
  EXPECT_EQ(Admit(1), Admission::kRefused);
  gate_.Finish();
  EXPECT_FALSE(gate_.BeginCut(1, false).ok());
  Load();
  EXPECT_EQ(Admit(2), Admission::kRun);
}

TEST_F(UpdateGateTest, ALoadThatFailedBeforeItRemovedRowsChangesNothing) {
  const absl::StatusOr<bool> untouched = gate_.BeginLoad();
  gate_.EndLoad({false, true, *untouched, false});
  EXPECT_EQ(Admit(1), Admission::kRun);
  gate_.Finish();
  EXPECT_TRUE(gate_.BeginCut(1, false).ok());
}

TEST_F(UpdateGateTest, RowsLoadedIntoTablesInUseAreNeverSaved) {
  Load();
  EXPECT_TRUE(gate_.BeginCut(1, false).ok())
      << "the first load is the cut that the run begins from";
  Load();
  EXPECT_THAT(gate_.BeginCut(2, false).message(), HasSubstr("the rows of another cut"));
  EXPECT_EQ(Admit(1), Admission::kRun) << "an evaluation may send Updates without gradients";
}

TEST_F(UpdateGateTest, AModelToStartFromMayBeLoadedAgain) {
  Load(/*of_start_model=*/true);
  Load(/*of_start_model=*/true);
  EXPECT_TRUE(gate_.BeginCut(1, false).ok());
  Load(/*of_start_model=*/true);
  EXPECT_FALSE(gate_.BeginCut(2, false).ok()) << "the cut has touched the tables";
}

TEST_F(UpdateGateTest, AnUpdateTouchesTheTablesEvenIfItIsRefused) {
  const absl::StatusOr<bool> first = gate_.BeginLoad();
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_EQ(Admit(1), Admission::kRefused);
  gate_.Finish();
  gate_.EndLoad({true, false, *first, /*of_start_model=*/true});
  const absl::StatusOr<bool> second = gate_.BeginLoad();
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(*second);
}

}  // namespace
}  // namespace satrap
