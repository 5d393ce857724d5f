// Tests of a loader that reads topics and continues from a cut: what it sends, together with what
// was consumed before, must be what an undisturbed run sends, whatever has happened to the topics
// meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data_loader/topic_loader_testing.h"

namespace satrap {
namespace {

using testing::HasSubstr;

class TopicRestartTest : public TopicLoaderTest {
 protected:
  void CheckAnySubset(JobConfig job, uint32_t seed, bool with_changes);
};

TEST_F(TopicRestartTest, SyncGoesOnFromEveryPositionAsIfNothingHadHappened) {
  WriteTopic();
  const JobConfig job = Job(JobConfig::SYNC);
  const SplitList partitions = Partitions();
  const auto undisturbed = Begin(job, partitions);
  const std::vector<Parts> whole = ReadEpoch(undisturbed.get());
  const std::vector<Parts> second = ReadEpoch(undisturbed.get());
  ASSERT_EQ(whole.size(), 2u);
  Ledger all;
  for (const Parts& lane : whole) {
    for (const Part& part : lane) Consume(part, &all);
  }
  for (uint32_t split = 0; split < 5; ++split) EXPECT_TRUE(all.IsSplitDone(0, split)) << split;
  const size_t ranks = 3;
  for (size_t first = 0; first <= whole[0].size() / ranks; ++first) {
    for (size_t other = 0; other <= whole[1].size() / ranks; ++other) {
      SCOPED_TRACE(absl::StrCat("after ", first, " and ", other, " batches"));
      topics_.max_read = 1 + (first + other) % 9;
      Ledger ledger;
      LoaderStreams::Begin begin;
      for (size_t lane = 0; lane < 2; ++lane) {
        const size_t consumed = lane == 0 ? first : other;
        for (size_t i = 0; i < consumed * ranks; ++i) Consume(whole[lane][i], &ledger);
        LanePosition* const at = begin.position.add_lanes();
        at->set_next_seq(consumed);
        at->set_left(consumed == whole[lane].size() / ranks);
      }
      begin.ledger = ledger.ToState();
      const auto streams = Begin(job, partitions, begin);
      const std::vector<Parts> rest = ReadEpoch(streams.get());
      for (size_t lane = 0; lane < 2; ++lane) {
        const size_t consumed = (lane == 0 ? first : other) * ranks;
        ASSERT_EQ(rest[lane].size(), whole[lane].size() - consumed);
        for (size_t i = 0; i < rest[lane].size(); ++i) {
          ASSERT_EQ(BytesOf(rest[lane][i]), BytesOf(whole[lane][consumed + i]))
              << rest[lane][i].header.ShortDebugString() << "\nin place of\n"
              << whole[lane][consumed + i].header.ShortDebugString();
          Consume(rest[lane][i], &ledger);
        }
      }
      EXPECT_EQ(ledger.ToState().DebugString(), all.ToState().DebugString());
      const std::vector<Parts> next = ReadEpoch(streams.get());
      for (size_t lane = 0; lane < 2; ++lane) {
        ASSERT_EQ(next[lane].size(), second[lane].size());
        for (size_t i = 0; i < next[lane].size(); ++i) {
          ASSERT_EQ(BytesOf(next[lane][i]), BytesOf(second[lane][i]));
        }
      }
    }
  }
}

// Restarts until nothing is left. Each generation consumes a random subset of what it sends. The
// ledger refuses duplicates. `with_changes`: the topic is compacted between generations.
void TopicRestartTest::CheckAnySubset(JobConfig job, uint32_t seed, bool with_changes) {
  std::mt19937 random(seed);
  WriteTopic();
  const SplitList partitions = Partitions();
  std::multiset<float> expected, trained;
  for (const Part& part : ReadParts(Begin(job, partitions).get())) {
    for (const float x : NumbersOf(part)) expected.insert(x);
  }
  Ledger ledger;
  std::set<float> removed;
  for (int life = 0;; ++life) {
    ASSERT_LT(life, 200);
    job.mutable_nn_worker()->set_replicas(1 + static_cast<int>(random() % 4));
    topics_.max_read = 1 + random() % 20;
    const auto streams = Begin(job, partitions, At(ledger));
    const Parts rest = ReadParts(streams.get());
    Ledger filled = ledger;
    for (const Part& part : rest) {
      EXPECT_GT(part.header.part().provenance_size(), 0) << "a part that says nothing";
      Consume(part, &filled);
    }
    if (testing::Test::HasFailure()) return;
    for (uint32_t split = 0; split < 5; ++split) {
      ASSERT_TRUE(filled.IsSplitDone(0, split)) << "split " << split << " in life " << life;
    }
    if (rest.empty()) break;
    for (const Part& part : rest) {
      if (random() % 3 != 0) continue;
      Consume(part, &ledger);
      for (const float x : NumbersOf(part)) trained.insert(x);
    }
    if (!with_changes) continue;
    for (int i = 0; i < 3; ++i) {
      const std::string value = topics_.Remove({"clicks", static_cast<int>(random() % 3)},
                                               static_cast<int>(random() % 90));
      for (const absl::string_view line : absl::StrSplit(value, '\n')) {
        const std::pair<absl::string_view, absl::string_view> fields = absl::StrSplit(line, ',');
        float x;
        if (absl::SimpleAtof(fields.second, &x)) removed.insert(x);
      }
    }
  }
  if (!with_changes) {
    EXPECT_EQ(trained, expected);
    return;
  }
  for (const float x : trained) {
    EXPECT_EQ(trained.count(x), 1u) << x << " was trained twice";
    EXPECT_EQ(expected.count(x), 1u);
  }
  for (const float x : expected) {
    EXPECT_TRUE(trained.count(x) == 1 || removed.count(x) == 1) << x << " was lost";
  }
}

TEST_F(TopicRestartTest, HybridReadsEveryRecordOnceWhateverWasConsumed) {
  for (uint32_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    topics_ = FakeTopics();
    JobConfig job = Job(JobConfig::HYBRID);
    job.mutable_data_loader()->set_threads(1 + static_cast<int>(seed % 3));
    if (seed % 5 == 4) job.mutable_data()->set_shuffle_rows(0);
    CheckAnySubset(job, seed, false);
  }
}

TEST_F(TopicRestartTest, HybridGoesOnThoughCompactionHasRemovedMessages) {
  for (uint32_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    topics_ = FakeTopics();
    CheckAnySubset(Job(JobConfig::HYBRID), seed, true);
  }
}

// Consumes some parts of blocks that were closed early. After a restart the open blocks must be
// made again with the same bounds, which the ledger checks.
TEST_F(TopicRestartTest, BlocksThatWereClosedEarlyAreMadeAgainWithTheirBounds) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    topics_ = FakeTopics();
    for (int p = 0; p < 5; ++p) topics_.Skip({"clicks", p}, 3);
    const SplitList partitions = Partitions(false);
    const JobConfig job = Job(JobConfig::HYBRID);
    Ledger ledger;
    std::multiset<float> trained;
    int written = 0;
    for (int life = 0; life < 8; ++life) {
      const auto streams = Begin(job, partitions, At(ledger));
      PartSource* const source = streams->sources()[0].sources[0];
      for (int round = 0; round < 6; ++round) {
        const int count = 1 + static_cast<int>(random() % 12);
        for (int i = 0; i < count; ++i) {
          topics_.Write({"clicks", static_cast<int>(random() % 5)}, absl::StrCat("1,", written++));
        }
        const auto part = NextPart(source);
        ASSERT_TRUE(part.ok()) << part.status();
        if (random() % 3 == 0) continue;  // lost at the restart
        Consume(**part, &ledger);
        for (const float x : NumbersOf(**part)) trained.insert(x);
        if (HasFailure()) return;
      }
    }
    const auto last = Begin(job, partitions, At(ledger));
    for (;;) {
      const auto part = NextPart(last->sources()[0].sources[0]);
      if (!part.ok()) break;
      Consume(**part, &ledger);
      for (const float x : NumbersOf(**part)) trained.insert(x);
    }
    ASSERT_EQ(trained.size(), static_cast<size_t>(written));
    for (const float x : trained) ASSERT_EQ(trained.count(x), 1u);
    EXPECT_EQ(ledger.PiecesBehind(), 0u);
    for (int p = 0; p < 5; ++p) {
      EXPECT_EQ(ledger.ContiguousEnd(0, static_cast<uint32_t>(p), 3),
                static_cast<uint64_t>(topics_.end({"clicks", p})));
    }
  }
}

TEST_F(TopicRestartTest, PartitionsThatAreDoneAreNotOpened) {
  WriteTopic();
  const SplitList partitions = Partitions();
  const JobConfig job = Job(JobConfig::HYBRID);
  Ledger ledger;
  for (const Part& part : ReadParts(Begin(job, partitions).get())) Consume(part, &ledger);
  topics_.opened.clear();
  EXPECT_TRUE(ReadParts(Begin(job, partitions, At(ledger)).get()).empty());
  EXPECT_TRUE(topics_.opened.empty());
}

TEST_F(TopicRestartTest, ATopicThatWasMadeAnewIsRefused) {
  WriteTopic();
  const SplitList partitions = Partitions();
  const JobConfig job = Job(JobConfig::HYBRID);
  Ledger ledger;
  const Parts parts = ReadParts(Begin(job, partitions).get());
  for (size_t i = 0; i < 6; ++i) Consume(parts[i], &ledger);
  topics_.Delete({"clicks", 0});
  for (int i = 0; i < 100; ++i) topics_.Write({"clicks", 0}, "1,5");
  const auto streams = Begin(job, partitions, At(ledger));
  const absl::Status status = ReadToError(streams.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("clicks/0, offset "));
}

TEST_F(TopicRestartTest, LostOffsetsEndTheRunUnlessTheyAreToBeSkipped) {
  WriteTopic();
  const SplitList partitions = Partitions();
  JobConfig job = Job(JobConfig::HYBRID);
  topics_.Expire({"clicks", 1}, 20);
  {
    const auto streams = Begin(job, partitions);
    const absl::Status status = ReadToError(streams.get());
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("clicks/1"));
  }
  job.mutable_data()->mutable_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  const auto streams = Begin(job, partitions);
  Ledger ledger;
  for (const Part& part : ReadParts(streams.get())) Consume(part, &ledger);
  EXPECT_TRUE(ledger.IsSplitDone(0, 1)) << "what is lost is consumed without records";
  EXPECT_EQ(streams->Progress().lost_messages(), 17u);
}

// The loader begins to read at the last trained message, in order to compare it, but the error must
// name the first offset that is not trained.
TEST_F(TopicRestartTest, TheErrorOfLostOffsetsNamesTheFirstThatIsNotTrained) {
  SplitList list = Partitions(false);
  list.mutable_topics(0)->mutable_partitions()->DeleteSubrange(1, 4);
  list.mutable_topics(0)->mutable_partitions(0)->set_start(0);
  const JobConfig job = Job(JobConfig::HYBRID);
  for (int i = 0; i < 14; ++i) topics_.Write({"clicks", 0}, absl::StrCat("1,", i));
  Ledger ledger;
  {
    const auto streams = Begin(job, list);
    for (uint64_t records = 0; records < 14;) {
      const auto part = NextPart(streams->sources()[0].sources[0]);
      ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
      Consume(**part, &ledger);
      records += (*part)->header.part().samples();
    }
  }
  for (int i = 14; i < 21; ++i) topics_.Write({"clicks", 0}, absl::StrCat("1,", i));
  topics_.Expire({"clicks", 0}, 18);
  const auto streams = Begin(job, list, At(ledger));
  const absl::Status status = ReadToError(streams.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("offset 14 of clicks/0"), HasSubstr("still has is 18")));
}

TEST_F(TopicRestartTest, APartitionThatEndsBeforeWhatIsWantedIsNeverSkipped) {
  topics_.Write({"clicks", 0}, "1,1");
  SplitList partitions = Partitions(false);
  JobConfig job = Job(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  const auto streams = Begin(job, partitions);
  EXPECT_EQ(ReadToError(streams.get()).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace satrap
