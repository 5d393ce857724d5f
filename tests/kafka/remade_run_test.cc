// Whole runs whose topic is deleted and made again, while they are stopped or while they read it,
// and runs that have lost the records by which they would notice this (docs/kafka.md, "What is
// promised").

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/thread/clock.h"
#include "gmock/gmock.h"
#include "tests/kafka/topic_run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr double kSecondsToEnd = 180;
constexpr int kPartitions = 2;
constexpr int64_t kRecords = 6000;
constexpr int64_t kOthers = 1000000;  // the number of a new topic's first record

class RemadeRunTest : public TopicRunFixture {
 protected:
  // Starts an endless run, which lasts until the test stops it or it fails.
  Command StartEndless(const std::string& more = "") {
    return StartRun(
        WriteTopicJob(topic_, absl::StrCat("end { at: NEVER } max_wait_ms: 200 ", more)));
  }
  void MakeTopicWithRecords() {
    topic_ = broker_->NewTopic(kPartitions);
    Produce(topic_, kPartitions, 0, kRecords);
  }
  void Stop(const Command& run) {
    const CommandEnd stop = Satrap({"stop", RunDir()});
    EXPECT_EQ(stop.exit_code, 0) << stop.err;
    const CommandEnd end = WaitFor(run, kSecondsToEnd);
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  // Replaces the topic by one of the same name with `count` other records.
  void MakeAnew(int64_t count) {
    CHECK_OK(broker_->admin().DeleteTopic(topic_));
    const int64_t deadline_ms = MonotonicMs() + 60000;
    // The broker may still be removing the old topic.
    while (!broker_->admin().CreateTopic(topic_, kPartitions).ok()) {
      CHECK(MonotonicMs() < deadline_ms);
    }
    Produce(topic_, kPartitions, kOthers, kOthers + count);
  }
  // Expects that the run has ended with an error that names the topic partition which it cannot
  // continue to read.
  void ExpectRefused(const CommandEnd& end) {
    EXPECT_EQ(end.exit_code, 1) << end.err;
    const std::vector<std::string> causes = Lines(end.err, "the job failed");
    ASSERT_EQ(causes.size(), 1u) << end.err;
    EXPECT_THAT(causes[0],
                AllOf(HasSubstr(topic_ + "/"),
                      AnyOf(HasSubstr("the message is not the one that was there when the run"),
                            HasSubstr("the message is not the one that was trained"),
                            HasSubstr("the partition ends at"))));
    EXPECT_TRUE(NobodyIsLeft());
  }
  static std::vector<std::string> Lines(const std::string& text, const std::string& with) {
    std::vector<std::string> found;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StrContains(line, with)) found.emplace_back(line);
    }
    return found;
  }
  // The anchors that the loaders have saved, by which they recognise the topic.
  std::string Anchors() const {
    std::string all;
    for (const int loader : {0, 1}) {
      absl::StrAppend(&all, ReadFile(absl::StrCat(RunDir(), "/topic_anchors/loader-", loader)));
    }
    return all;
  }

  std::string topic_;
};

TEST_F(RemadeRunTest, ARunWhoseTopicWasMadeAnewWhileItWasStoppedIsRefused) {
  MakeTopicWithRecords();
  const Command run = StartEndless();
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(run.err_path);
  Stop(run);
  MakeAnew(2 * kRecords);
  ExpectRefused(Resume());
  ExpectRefused(Resume());
  ExpectEachRecordTrained(kRecords);
}

TEST_F(RemadeRunTest, SoItIsIfTheNewTopicIsShorter) {
  MakeTopicWithRecords();
  const Command run = StartEndless();
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(run.err_path);
  Stop(run);
  MakeAnew(kRecords / 4);
  ExpectRefused(Resume());
  ExpectEachRecordTrained(kRecords);
}

TEST_F(RemadeRunTest, SoItIsIfNothingOfTheTopicWasTrainedYet) {
  MakeTopicWithRecords();
  const Command run = StartEndless("start { at: LATEST }");
  const auto is_anchored = [&] {
    const std::string anchors = Anchors();
    return absl::StrContains(anchors, "partition: 0") && absl::StrContains(anchors, "partition: 1");
  };
  ASSERT_TRUE(WaitUntil(is_anchored, 60)) << ReadFile(run.err_path);
  Stop(run);
  MakeAnew(2 * kRecords);
  ExpectRefused(Resume());
}

TEST_F(RemadeRunTest, ARunWhoseTopicIsMadeAnewWhileItReadsEndsAndIsNotResumed) {
  MakeTopicWithRecords();
  const Command run = StartEndless();
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(run.err_path);
  // Waits until the loaders have checked the topic once, which they do in the first seconds of a
  // run.
  ASSERT_TRUE(WaitUntil([&] { return Anchors() != ""; }, 60));
  MakeAnew(2 * kRecords);
  ExpectRefused(WaitFor(run, kSecondsToEnd));
  ExpectRefused(Resume());
}

TEST_F(RemadeRunTest, WithoutWhatTellsTheRunGoesOnIfAPersonSaysSo) {
  MakeTopicWithRecords();
  const Command run = StartEndless();
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(run.err_path);
  ASSERT_TRUE(WaitUntil([&] { return Anchors() != ""; }, 60));
  Stop(run);
  const std::string folder = RunDir() + "/topic_anchors";
  std::string damaged;
  for (const auto& file : std::filesystem::directory_iterator(folder)) damaged = file.path();
  ASSERT_NE(damaged, "");
  const std::string text = ReadFile(damaged);
  std::ofstream(damaged) << text.substr(0, text.size() / 2);
  const CommandEnd refused = Resume();
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  const std::vector<std::string> causes = Lines(refused.err, damaged);
  ASSERT_EQ(causes.size(), 1u) << refused.err;
  EXPECT_THAT(causes[0], AllOf(HasSubstr("is damaged"), HasSubstr("move the file")));
  EXPECT_TRUE(NobodyIsLeft());

  std::filesystem::rename(damaged, Path("aside"));
  Produce(topic_, kPartitions, kRecords, 2 * kRecords);
  const Command resumed = StartSatrap({"resume", RunDir()});
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(resumed.err_path);
  Stop(resumed);
  ExpectEachRecordTrained(2 * kRecords);
}

}  // namespace
}  // namespace satrap
