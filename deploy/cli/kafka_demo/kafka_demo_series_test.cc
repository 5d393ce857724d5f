#include "deploy/cli/kafka_demo/kafka_demo_series.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The measurement at the given second of a run that trains 100 samples a second.
KafkaDemoLook Look(int second, uint64_t lag, uint64_t bytes) {
  KafkaDemoLook look;
  look.seconds = second;
  look.samples = static_cast<uint64_t>(second) * 100;
  look.lag_messages = lag;
  look.memory["data_loader 0"].resident = bytes;
  return look;
}

TEST(KafkaDemoSeries, ComparesTheHalvesAfterTheWarmUp) {
  KafkaDemoSeries series;
  // Memory and lag grow only in the first 10 of the 30 seconds, which are the warm-up.
  for (int second = 0; second <= 30; ++second) {
    series.Add(second < 10   ? Look(second, 1000000, 1000000)
               : second < 20 ? Look(second, 2000, 100000000)
                             : Look(second, 2500, 110000000));
  }
  const std::string text = series.Text();
  EXPECT_THAT(text, HasSubstr("after a warm-up of 10.0 s"));
  EXPECT_THAT(text, ContainsRegex("samples/s +100 +100"));
  EXPECT_THAT(text, ContainsRegex("lag, messages +2,000 +2,500"));
  EXPECT_THAT(text, ContainsRegex("data_loader 0 +100.0 MB +110.0 MB +\\+10.0 %"));
}

TEST(KafkaDemoSeries, AProcessThatWasStartedAnewIsLeftOut) {
  KafkaDemoSeries series;
  for (int second = 0; second <= 30; ++second) {
    KafkaDemoLook look = Look(second, 1, 1000);
    if (second == 15) look.memory.clear();
    if (second == 16) look.lag_messages.reset();
    series.Add(look);
  }
  EXPECT_THAT(series.Text(), Not(HasSubstr("data_loader")));
  EXPECT_THAT(series.Text(), Not(HasSubstr("lag")));
}

TEST(KafkaDemoSeries, EmbeddingRowsStandApartFromTheRestOfTheirProcess) {
  KafkaDemoSeries series;
  // The process's memory grows by 30 MB, 20 MB of it in its rows.
  for (int second = 0; second <= 30; ++second) {
    KafkaDemoLook look = Look(second, 1, 1000);
    ProcessMemory& ps = look.memory["embedding_ps 0"];
    ps.resident = second < 20 ? 160000000 : 190000000;
    ps.rows = second < 20 ? 60000000 : 80000000;
    // The metrics of the PS cannot be read in two of the measurements.
    if (second == 15 || second == 25) ps.rows.reset();
    series.Add(look);
  }
  const std::string text = series.Text();
  EXPECT_THAT(text, ContainsRegex("embedding_ps 0, other +100.0 MB +110.0 MB +\\+10.0 %"));
  EXPECT_THAT(text, ContainsRegex("embedding_ps 0, rows +60.0 MB +80.0 MB +\\+33.3 %"));
  EXPECT_THAT(text, Not(HasSubstr("data_loader 0,")));
}

TEST(KafkaDemoSeries, AProcessWhoseRowsAreNeverKnownIsLeftOut) {
  KafkaDemoSeries series;
  for (int second = 0; second <= 30; ++second) {
    KafkaDemoLook look = Look(second, 1, 1000);
    look.memory["embedding_ps 0"] = {1000, absl::nullopt};
    series.Add(look);
  }
  EXPECT_THAT(series.Text(), Not(HasSubstr("embedding_ps")));
}

TEST(KafkaDemoSeries, SaysWhenItIsTooShort) {
  KafkaDemoSeries series;
  EXPECT_THAT(series.Text(), HasSubstr("too short"));
  for (int second = 0; second < 5; ++second) series.Add(Look(second, 1, 1));
  EXPECT_THAT(series.Text(), HasSubstr("too short"));
}

}  // namespace
}  // namespace satrap
