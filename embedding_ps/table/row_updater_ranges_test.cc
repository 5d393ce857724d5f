#include "common/config/field_path.h"
#include "common/config/testing/range_check.h"
#include "common/config/testing/validation_check.h"
#include "embedding_ps/table/row_updater.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RowUpdaterRangesTest, EveryNumericFieldOfATableHasARange) {
  EXPECT_EQ(FieldsOf(BordersOf(TableConfig::descriptor())),
            NumericFields(TableConfig::descriptor()));
}

TEST(RowUpdaterRangesTest, ValidatorAndTableAgreeOnTheBordersOfEveryField) {
  const auto expect = [](const BorderCase& border, const std::string& value, bool legal) {
    const std::string& field = border.field;
    JobConfig job = SmallJob();
    TableConfig* table = job.mutable_tables(0);
    for (const std::string& with : border.with) ASSERT_TRUE(SetField(with, table).ok()) << with;
    ASSERT_TRUE(SetField(absl::StrCat(field, "=", value), table).ok()) << field;
    EXPECT_EQ(ProblemsOf(job).empty(), legal) << field << " " << value;
    const absl::Status status = RowUpdater::Create(*table, 1).status();
    EXPECT_EQ(status.ok(), legal) << field << " " << value << ": " << status;
  };
  for (const BorderCase& border : BordersOf(TableConfig::descriptor(), OptimizerRules())) {
    for (const std::string& value : border.good) expect(border, value, true);
    for (const std::string& value : border.bad) expect(border, value, false);
  }
}

}  // namespace
}  // namespace satrap
