#include "deploy/report/warm_start_text.h"

#include "common/json/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

WarmStartResult Result() {
  WarmStartResult result;
  result.set_model("/runs/before/checkpoints/cut_0001_000004");
  result.set_step(1200);
  WarmStartResult::Table* users = result.add_tables();
  users->set_name("users");
  users->set_rows(80154);
  users->add_features("user");
  users->add_features("friend");
  WarmStartResult::Table* items = result.add_tables();
  items->set_name("items");
  items->set_rows(1);
  items->add_features_without_rows("item");
  result.add_parameters("deep/linear_0.weight");
  result.add_parameters("deep/linear_0.bias");
  result.set_optimizer_state(true);
  result.add_fresh("top.weight");
  result.add_ignored("old");
  result.add_warnings("feature item: no rows");
  return result;
}

TEST(WarmStartText, SaysWhatWasTakenByTableAndFeatureAndWhatIsWrong) {
  const std::string text = WarmStartText(Result());
  EXPECT_THAT(text,
              HasSubstr("began with   /runs/before/checkpoints/cut_0001_000004 (step 1,200)"));
  EXPECT_THAT(text, HasSubstr("  table users: 80,154 rows; of user, friend\n"));
  EXPECT_THAT(text, HasSubstr("  table items: 1 row; none of item\n"));
  EXPECT_THAT(text, HasSubstr("  dense: 2 parameters with the optimizer's state; began anew: "
                              "top.weight; not taken: old\n"));
  EXPECT_THAT(text, HasSubstr("warning      feature item: no rows\n"));
}

TEST(WarmStartText, SaysNothingOfWhatIsNotThere) {
  WarmStartResult result;
  result.set_model("m");
  const std::string text = WarmStartText(result);
  EXPECT_THAT(text, AllOf(HasSubstr("  dense: 0 parameters\n"), Not(HasSubstr("table")),
                          Not(HasSubstr("warning"))));
}

TEST(WarmStartText, TheJsonHasTheSame) {
  ReportFile::WarmStart shown;
  CopyWarmStart(Result(), &shown);
  EXPECT_EQ(JsonOf(shown), R"({"model":"/runs/before/checkpoints/cut_0001_000004","step":1200,)"
                           R"("tables":[{"name":"users","rows":80154,"features":["user","friend"],)"
                           R"("features_without_rows":[]},{"name":"items","rows":1,"features":[],)"
                           R"("features_without_rows":["item"]}],)"
                           R"("parameters":["deep/linear_0.weight","deep/linear_0.bias"],)"
                           R"("optimizer_state":true,"fresh":["top.weight"],"ignored":["old"],)"
                           R"("warnings":["feature item: no rows"]})");
}

}  // namespace
}  // namespace satrap
