#include "embedding_worker/candidates/part_candidates.h"

#include <cmath>
#include <set>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig JobOf(const std::string& candidates, JobConfig::Mode mode = JobConfig::SYNC) {
  JobConfig job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      candidates, job.mutable_model()->mutable_candidates()));
  job.set_mode(mode);
  return job;
}

// `count` items with the ids 1000, 1001, ...; item i has the count 100 - i.
CandidateList Items(size_t count = 100) {
  CandidateList list;
  for (size_t i = 0; i < count; ++i) {
    list.ids.push_back(1000 + i);
    list.counts.push_back(count - i);
  }
  return list;
}

std::unique_ptr<const CandidateSource> SourceOf(const JobConfig& job,
                                                CandidateList list = Items()) {
  auto source = CandidateSource::Create(job, std::move(list));
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

PartId Part(uint32_t epoch, uint32_t lane, uint64_t seq, uint32_t part) {
  PartId id;
  id.set_epoch(epoch);
  id.set_lane(lane);
  id.set_seq(seq);
  id.set_part(part);
  return id;
}

TEST(PartCandidatesTest, InSyncAllPartsOfABatchHaveTheSameAndInHybridEachItsOwn) {
  const std::string config = "count: 20 sampler: UNIFORM";
  const auto sync = SourceOf(JobOf(config));
  const auto hybrid = SourceOf(JobOf(config, JobConfig::HYBRID));
  EXPECT_EQ(sync->Draw(Part(1, 2, 3, 0), {}).ids, sync->Draw(Part(1, 2, 3, 1), {}).ids);
  EXPECT_NE(hybrid->Draw(Part(1, 2, 3, 0), {}).ids, hybrid->Draw(Part(1, 2, 3, 1), {}).ids);
  EXPECT_EQ(hybrid->Draw(Part(1, 2, 3, 1), {}).ids, hybrid->Draw(Part(1, 2, 3, 1), {}).ids);
}

TEST(PartCandidatesTest, CandidatesThatPartsShareAreCountedOnce) {
  const auto sync = SourceOf(JobOf("count: 20"));
  EXPECT_TRUE(sync->CountsIn(Part(1, 2, 3, 0)));
  EXPECT_FALSE(sync->CountsIn(Part(1, 2, 3, 1)));
  EXPECT_TRUE(SourceOf(JobOf("count: 20", JobConfig::HYBRID))->CountsIn(Part(1, 2, 3, 1)));
}

TEST(PartCandidatesTest, AnotherEpochLaneBatchOrSeedDrawsOthers) {
  const auto source = SourceOf(JobOf("count: 20 sampler: UNIFORM"));
  std::set<std::vector<uint64_t>> draws;
  draws.insert(source->Draw(Part(1, 2, 3, 0), {}).ids);
  draws.insert(source->Draw(Part(2, 2, 3, 0), {}).ids);
  draws.insert(source->Draw(Part(1, 3, 3, 0), {}).ids);
  draws.insert(source->Draw(Part(1, 2, 4, 0), {}).ids);
  JobConfig job = JobOf("count: 20 sampler: UNIFORM");
  job.set_seed(99);
  draws.insert(SourceOf(job)->Draw(Part(1, 2, 3, 0), {}).ids);
  EXPECT_EQ(draws.size(), 5u);
}

TEST(PartCandidatesTest, LogQIsTheExpectedCountOfEachItem) {
  const auto source =
      SourceOf(JobOf("count: 10 sampler: FIXED_UNIGRAM distortion: 1 unique: false"));
  const PartCandidates drawn = source->Draw(Part(0, 0, 0, 0), {1000, 1099, 5});
  ASSERT_EQ(drawn.ids.size(), 10u);
  for (size_t j = 0; j < drawn.ids.size(); ++j) {
    const double count = 1100.0 - static_cast<double>(drawn.ids[j]);
    EXPECT_NEAR(drawn.log_q[j], std::log(10 * count / 5050), 1e-5) << j;
  }
  ASSERT_EQ(drawn.positive_log_q.size(), 3u);
  EXPECT_NEAR(drawn.positive_log_q[0], std::log(10 * 100.0 / 5050), 1e-5);
  EXPECT_NEAR(drawn.positive_log_q[1], std::log(10 * 1.0 / 5050), 1e-5);
  EXPECT_NEAR(drawn.positive_log_q[2], std::log(10 * 1.0 / 5050), 1e-5) << "not in the list";
}

TEST(PartCandidatesTest, AnItemThatIsNeverDrawnCountsAsTheRarest) {
  CandidateList list = Items(3);
  list.counts = {3, 1, 0};
  const auto source =
      SourceOf(JobOf("count: 0 sampler: FIXED_UNIGRAM distortion: 1"), std::move(list));
  const PartCandidates drawn = source->Draw(Part(0, 0, 0, 0), {1000, 1001, 1002});
  EXPECT_TRUE(drawn.ids.empty());
  EXPECT_NEAR(drawn.positive_log_q[0], std::log(.75), 1e-6) << "without draws, the probability";
  EXPECT_NEAR(drawn.positive_log_q[1], std::log(.25), 1e-6);
  EXPECT_NEAR(drawn.positive_log_q[2], std::log(.25), 1e-6);
}

TEST(PartCandidatesTest, WithoutSubtractionThereIsNoLogQ) {
  const auto source = SourceOf(JobOf("count: 10 subtract_log_q: false"));
  const PartCandidates drawn = source->Draw(Part(0, 0, 0, 0), {1000});
  EXPECT_EQ(drawn.ids.size(), 10u);
  EXPECT_TRUE(drawn.log_q.empty());
  EXPECT_TRUE(drawn.positive_log_q.empty());
}

TEST(PartCandidatesTest, UniqueCandidatesAreAllDifferent) {
  const auto source = SourceOf(JobOf("count: 60 sampler: UNIFORM"));
  const std::vector<uint64_t> ids = source->Draw(Part(0, 0, 0, 0), {}).ids;
  EXPECT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), 60u);
}

std::string RefusalOf(const std::string& candidates, CandidateList list) {
  return std::string(
      CandidateSource::Create(JobOf(candidates), std::move(list)).status().message());
}

TEST(PartCandidatesTest, ListsThatDoNotServeAreRefused) {
  EXPECT_EQ(RefusalOf("count: 1", {}),
            "model.candidates.list: needs at least two items to learn from, but has 0");
  EXPECT_EQ(RefusalOf("count: 1", Items(1)),
            "model.candidates.list: needs at least two items to learn from, but has 1");
  EXPECT_EQ(RefusalOf("count: 101", Items()),
            "model.candidates.count: must be at most 100, the number of items of the list, because "
            "`unique` draws no item twice, got 101");
  EXPECT_EQ(RefusalOf("count: 101 unique: false", Items()), "");
  CandidateList uncounted = Items(2);
  uncounted.counts = {0, 0};
  EXPECT_EQ(RefusalOf("count: 1 sampler: FIXED_UNIGRAM", uncounted),
            "model.candidates.list: all 2 candidates have a count of 0; expected one above 0");
}

TEST(PartCandidatesTest, WhereNoListIsNeededThereIsNoSource) {
  EXPECT_EQ(SourceOf(JobOf("count: 0 subtract_log_q: false"), {}), nullptr);
  EXPECT_EQ(SourceOf(JobConfig(), {}), nullptr);
}

}  // namespace
}  // namespace satrap
