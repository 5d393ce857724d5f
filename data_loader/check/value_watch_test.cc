#include "data_loader/check/value_watch.h"

#include <functional>
#include <string>
#include <vector>

#include "common/config/testing/validation_check.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job with one number `x`, configured by `numeric`.
JobConfig Job(const std::string& numeric = "") {
  return JobWithData(absl::StrCat(R"(
      csv { columns { name: 'y' kind: LABEL } columns { name: 'x' kind: NUMERIC } }
      train_files: 'train.csv'
      numerics { name: 'x' )",
                                  numeric, "}"));
}

class ValueWatchTest : public testing::Test {
 protected:
  // Adds `rows` records in blocks of 100. Record i has the number x(i) and the label i mod 2.
  void Add(ValueWatch* watch, int rows, const std::function<float(int)>& x) {
    for (int from = 0; from < rows; from += 100) {
      block_.Clear();
      for (int i = from; i < std::min(rows, from + 100); ++i) {
        block_.BeginRow();
        block_.set_label(static_cast<float>(i % 2));
        block_.row_numerics()[0] = x(i);
        block_.CommitRow();
      }
      watch->Add(block_, "day.csv");
    }
  }
  // Makes `rows` records as Add does, lets a watch read them, and returns its warnings.
  std::vector<std::string> WarningsOf(const JobConfig& job, int rows,
                                      const std::function<float(int)>& x) {
    ValueWatch watch(job, TRAIN_STREAM);
    watch.AddReader();
    Add(&watch, rows, x);
    watch.EndReader();
    return WarningsOf(watch);
  }
  std::vector<std::string> WarningsOf(const ValueWatch& watch) {
    LoaderProgress progress;
    watch.Report(&progress);
    return {progress.warnings().begin(), progress.warnings().end()};
  }

  RecordBlock block_{SchemaOf(Job().data())};
};

// A number in [-1, 1].
float Usual(int i) { return static_cast<float>(i % 201 - 100) / 100; }

TEST_F(ValueWatchTest, ANumberFarFromAllOthersIsNamedWithItsColumn) {
  const auto warnings = WarningsOf(Job(), 3000, [](int i) { return i == 17 ? -1e6f : Usual(i); });
  ASSERT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("numeric x of the training data is -1e+06 in a record of "
                                          "day.csv, and 99.9 % of its values are within 1 of"),
                                HasSubstr("data.numerics.clamp"))));
}

TEST_F(ValueWatchTest, HeavyTailsAndRareValuesAreUsual) {
  EXPECT_THAT(WarningsOf(Job(), 3000, Usual), IsEmpty());
  // One number in 100 is 1,000 times as large as the others.
  EXPECT_THAT(WarningsOf(Job(), 3000, [](int i) { return i % 100 == 0 ? 1e6f : 1e3f * Usual(i); }),
              IsEmpty());
  EXPECT_THAT(WarningsOf(Job(), 9000, [](int i) { return i == 77 ? 1.0f : 0.0f; }), IsEmpty())
      << "a flag that is seldom set";
  EXPECT_THAT(WarningsOf(Job(), 9000, [](int i) { return i == 77 ? 5000.0f : 0.0f; }).size(), 1);
}

TEST_F(ValueWatchTest, OfAFewRecordsNothingIsSaid) {
  EXPECT_THAT(WarningsOf(Job(), 999, [](int i) { return i == 17 ? 1e9f : Usual(i); }), IsEmpty());
}

TEST_F(ValueWatchTest, TransformClampAndMissingValuesAreTakenIntoAccount) {
  const auto far = [](int i) {
    return i == 17 ? 1e9f : i % 2 == 0 ? kMissingNumeric : 2 + Usual(i);
  };
  EXPECT_EQ(WarningsOf(Job(), 3000, far).size(), 1u);
  EXPECT_THAT(WarningsOf(Job("transform: LOG1P"), 3000, far), IsEmpty());
  EXPECT_THAT(WarningsOf(Job("clamp: 10"), 3000, far), IsEmpty());
}

TEST_F(ValueWatchTest, TheFewFarNumbersOfALongStreamAreSeenThoughTheSampleMissesThem) {
  const auto far = [](int i) { return i == 99999 ? 1e7f : Usual(i); };
  EXPECT_EQ(WarningsOf(Job(), 200000, far).size(), 1u);
}

TEST_F(ValueWatchTest, AStreamWithoutAnEndIsJudgedAsItGrows) {
  ValueWatch watch(Job(), TRAIN_STREAM);
  watch.AddReader();
  Add(&watch, 65500, [](int i) { return i == 17 ? 1e9f : Usual(i); });
  EXPECT_THAT(WarningsOf(watch), IsEmpty()) << "not yet";
  Add(&watch, 100, Usual);
  EXPECT_EQ(WarningsOf(watch).size(), 1u);
  Add(&watch, 200000, [](int i) { return i == 17 ? 1e12f : Usual(i); });
  EXPECT_EQ(WarningsOf(watch).size(), 1u) << "a column is named once";
}

TEST_F(ValueWatchTest, AValueThatIsOnlyBegunWithIsNoOutlier) {
  // The first 2,000 numbers are 0 and all later ones are near 1e5, so the first ones must not set
  // the scale.
  EXPECT_THAT(WarningsOf(Job(), 50000, [](int i) { return i < 2000 ? 0.0f : 1e5f + Usual(i); }),
              IsEmpty());
}

TEST_F(ValueWatchTest, TheLastReaderOfSeveralJudges) {
  ValueWatch watch(Job(), TEST_STREAM);
  watch.AddReader();
  watch.AddReader();
  Add(&watch, 3000, [](int i) { return i == 17 ? 1e9f : Usual(i); });
  watch.EndReader();
  EXPECT_THAT(WarningsOf(watch), IsEmpty());
  watch.EndReader();
  EXPECT_THAT(WarningsOf(watch), ElementsAre(HasSubstr("of the test data")));
}

TEST_F(ValueWatchTest, LabelsAndClampedNumbersAreCounted) {
  ValueWatch watch(Job("transform: MIN_MAX max: 0.5 clamp: 1"), TRAIN_STREAM);
  Add(&watch, 300, [](int i) { return i < 7 ? 3.0f : i < 9 ? kMissingNumeric : 0.5f; });
  LoaderProgress progress;
  watch.Report(&progress);
  EXPECT_EQ(progress.clamped(), 7u);
  ASSERT_EQ(progress.labels_size(), 1);
  EXPECT_EQ(progress.labels(0).count(), 300u);
  EXPECT_EQ(progress.labels(0).least(), 0);
  EXPECT_EQ(progress.labels(0).largest(), 1);
}

TEST_F(ValueWatchTest, TheFirstRefusedRecordOfEachKindIsToldOf) {
  ValueWatch watch(Job(), VALID_STREAM);
  watch.NoteRefused(RecordCheck::Fault::kLabel, "a.csv", "label y: 5 is not");
  watch.NoteRefused(RecordCheck::Fault::kLabel, "b.csv", "label y: 6 is not");
  watch.NoteRefused(RecordCheck::Fault::kNumber, "c.csv", "column 'x': 1e22");
  EXPECT_THAT(WarningsOf(watch),
              ElementsAre(AllOf(HasSubstr("validation data"), HasSubstr("a.csv: label y: 5")),
                          HasSubstr("c.csv: column 'x': 1e22")));
}

}  // namespace
}  // namespace satrap
