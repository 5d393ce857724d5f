#include "deploy/cli/bench/cut_figures.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

std::string Window(double seconds, double rate) {
  return absl::StrCat("{\"event\":\"train\",\"generation\":1,\"seconds\":", seconds,
                      ",\"samples_per_second\":", rate, ",\"loss\":null}\n");
}

const char kPause[] =
    "{\"event\":\"pause\",\"generation\":1,\"step\":9,\"seconds\":0.5,\"gap_seconds\":0.2,"
    "\"usual_seconds\":0.05}\n";
const char kCut[] =
    "{\"event\":\"cut\",\"generation\":1,\"cut\":\"cut_0001_000001\",\"committed\":true,"
    "\"seconds\":12.5,\"bytes\":100,\"copied_bytes\":7}\n";
const char kAbandoned[] =
    "{\"event\":\"cut\",\"generation\":1,\"cut\":\"cut_0001_000001\",\"committed\":false,"
    "\"seconds\":12.5,\"bytes\":100,\"copied_bytes\":7}\n";

TEST(CutFigures, TheRateIsThatOfTheTimeAfterTheWarmUp) {
  const CutFigures figures = ReadCutFigures(
      absl::StrCat(Window(1, 10), Window(1, 10), Window(1, 100), Window(3, 200), Window(1, 1000)),
      2, 4);
  EXPECT_DOUBLE_EQ(figures.seconds, 4);
  EXPECT_DOUBLE_EQ(figures.samples_per_second, 175);
}

TEST(CutFigures, CutsOfThatTimeCount) {
  const CutFigures figures =
      ReadCutFigures(absl::StrCat(kPause, kCut, Window(2, 10), kPause, Window(1, 10), kCut,
                                  kAbandoned, Window(1, 10), kPause, kCut),
                     2, 2);
  ASSERT_EQ(figures.pauses.size(), 1u);
  EXPECT_DOUBLE_EQ(figures.pauses[0].seconds, .15);
  EXPECT_DOUBLE_EQ(figures.pauses[0].usual_seconds, .05);
  EXPECT_EQ(figures.writing_seconds, std::vector<double>{12.5});
  EXPECT_EQ(figures.copied_bytes, std::vector<double>{7});
  EXPECT_EQ(figures.abandoned, 1);
}

TEST(CutFigures, AShortTrainingHasWhatThereIs) {
  EXPECT_EQ(ReadCutFigures("", 0, 10).samples_per_second, 0);
  EXPECT_DOUBLE_EQ(ReadCutFigures(Window(1, 10), 0, 10).seconds, 1);
}

TEST(CutFigures, ALineOfWhichOnlyTheBeginningIsWrittenIsLeftOut) {
  const std::string line = Window(1, 10);
  EXPECT_DOUBLE_EQ(ReadCutFigures(line + line.substr(0, line.size() - 3), 0, 10).seconds, 1);
}

}  // namespace
}  // namespace satrap
