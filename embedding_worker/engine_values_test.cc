// Tests the values that the engine computes: rows and pooled values in answers, and sums by key in
// Updates.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "embedding_worker/testing/engine_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<float> Decoded(const Buffer& payload, const Section& section, WireDtype dtype) {
  const size_t count = section.size_bytes() / rpc::WireValueBytes(dtype);
  const auto values = rpc::WireView(payload, section, dtype, count, "values");
  EXPECT_TRUE(values.ok()) << values.status();
  std::vector<float> decoded(count);
  if (values.ok()) rpc::DecodeWire(*values, absl::MakeSpan(decoded));
  return decoded;
}

class EngineDtypeTest : public EngineTest,
                        public testing::WithParamInterface<std::pair<WireDtype, WireDtype>> {
 protected:
  void StartWithDtypes(int num_ps) {
    JobConfig job = TestJob();
    job.mutable_embedding_worker()->set_wire_dtype(GetParam().first);
    job.mutable_embedding_ps()->set_wire_dtype(GetParam().second);
    job.mutable_embedding_ps()->set_replicas(num_ps);
    Start(job);
  }
};

TEST_P(EngineDtypeTest, TheAnswerHoldsDenseValuesRowsAndPooledValues) {
  for (int num_ps : {1, 2}) {
    StartWithDtypes(num_ps);
    PutTwoSamples(1);
    const Reply reply = Next(1, 1);
    const auto header = HeaderOf<NextBatchAnswerHeader>(reply);
    const Buffer& payload = (**reply)->payload;
    const WireDtype dtype = GetParam().first;
    EXPECT_EQ(header.result(), NextBatchAnswerHeader::PART);
    EXPECT_EQ(header.dtype(), dtype);
    EXPECT_EQ(header.part().id().seq(), 1u);
    EXPECT_THAT(Decoded(payload, header.part().numeric_values(), F32), ElementsAre(10, 11));
    EXPECT_THAT(Decoded(payload, header.part().labels(), F32), ElementsAre(0, 1));

    // Table "t" has five keys, but only the two keys of feature "a" are sent as rows.
    ASSERT_EQ(header.tables_size(), 2);
    EXPECT_EQ(header.tables(0).num_rows(), 2u);
    const std::vector<float> rows = Decoded(payload, header.tables(0).values(), dtype);
    const auto indices =
        rpc::SectionView<uint32_t>(payload, header.features(0).indices(), 2, "indices");
    for (uint64_t s = 0; s < 2; ++s) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(rows[(*indices)[s] * 3 + c], TestValue(KeyIn("a", s + 1), c));
      }
    }
    EXPECT_EQ(header.tables(1).num_rows(), 1u);
    EXPECT_EQ(Decoded(payload, header.tables(1).values(), dtype)[0], TestValue(KeyIn("c", 5), 0));

    // Feature "bag" is a mean, of two ids for the first sample and of no ids for the second.
    // Feature "mix" is a sum, of one id for each sample.
    const std::vector<float> bag = Decoded(payload, header.features(1).pooled(), dtype);
    const std::vector<float> mix = Decoded(payload, header.features(2).pooled(), dtype);
    for (size_t c = 0; c < 3; ++c) {
      const float mean = (TestValue(KeyIn("bag", 7), c) + TestValue(KeyIn("bag", 8), c)) / 2;
      EXPECT_NEAR(bag[c], mean, mean / 200);
      EXPECT_EQ(bag[3 + c], 0);
      EXPECT_EQ(mix[c], TestValue(KeyIn("a", 1), c));
      EXPECT_EQ(mix[3 + c], TestValue(KeyIn("a", 3), c));
    }
    EXPECT_FALSE(header.features(1).has_indices());
    EXPECT_THAT(failures_, IsEmpty());
  }
}

TEST_P(EngineDtypeTest, GradientsOfRowsAndPooledFeaturesAreSummedByKey) {
  for (int num_ps : {1, 2}) {
    StartWithDtypes(num_ps);
    PutTwoSamples(1);
    const Reply reply = Next(1, 1);
    const auto part = HeaderOf<NextBatchAnswerHeader>(reply);
    EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(1, 1, PushOf(part))).outcome(),
              OUTCOME_DONE);
    // The gradients are: rows of "t" 1..3, 4..6; row of "u" 7; samples of "bag" 8..10, 11..13;
    // samples of "mix" 14..16, 17..19.
    const auto indices =
        rpc::SectionView<uint32_t>((**reply)->payload, part.features(0).indices(), 2, "indices");
    const float first = (*indices)[0] == 0 ? 1 : 4, second = 5 - first;
    const auto gradients = Gradients();
    EXPECT_EQ(gradients.size(), 6u);
    EXPECT_THAT(gradients.at({3, KeyIn("a", 1)}), ElementsAre(first + 14, first + 16, first + 18));
    EXPECT_THAT(gradients.at({3, KeyIn("a", 2)}), ElementsAre(second, second + 1, second + 2));
    EXPECT_THAT(gradients.at({3, KeyIn("a", 3)}), ElementsAre(17, 18, 19));
    EXPECT_THAT(gradients.at({3, KeyIn("bag", 7)}), ElementsAre(4, 4.5, 5));
    EXPECT_THAT(gradients.at({3, KeyIn("bag", 8)}), ElementsAre(4, 4.5, 5));
    EXPECT_THAT(gradients.at({9, KeyIn("c", 5)}), ElementsAre(7));
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EngineDtypeTest,
                         testing::Values(std::make_pair(F32, F32), std::make_pair(F16, F32),
                                         std::make_pair(F32, F16), std::make_pair(BF16, F16)));

TEST_F(EngineTest, RowsOfManyPssLieInTheOrderOfKeys) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_replicas(3);
  Start(job);
  std::vector<uint64_t> ids;
  for (uint64_t s = 0; s < 100; ++s) ids.push_back(s % 60);
  Put(1, MakePart(TRAIN_STREAM, 0, 0, 100, {ids, ids, ids, ids}, {{}, {}, {}, {}}));
  const Reply reply = Next(0, 1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(reply);
  const std::vector<float> rows = Decoded((**reply)->payload, part.tables(1).values(), F32);
  const auto indices =
      rpc::SectionView<uint32_t>((**reply)->payload, part.features(3).indices(), 100, "indices");
  for (size_t s = 0; s < 100; ++s) EXPECT_EQ(rows[(*indices)[s]], TestValue(KeyIn("c", ids[s]), 0));
  // In the push the gradients of the rows of "u" come after those of the rows of "t".
  Push(0, 1, PushOf(part));
  const float first = 1 + 3 * static_cast<float>(part.tables(0).num_rows());
  for (size_t s = 0; s < 100; ++s) {
    EXPECT_THAT(Gradients().at({9, KeyIn("c", ids[s])}),
                ElementsAre(first + static_cast<float>((*indices)[s])));
  }
}

TEST_F(EngineTest, AnF16UpdateHoldsGradientsOfAnySize) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_wire_dtype(F16);
  // Without a scale, F16 would turn the first number into -65504 and the second into 0.
  for (const float gradient : {-70016.0f, 3e-12f}) {
    Start(job);
    PutTwoSamples(1);
    auto push = PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)));
    push.second.MutableView<float>(push.first.tables(1).gradients().offset_bytes(), 1)[0] =
        gradient;
    EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, push)).outcome(), OUTCOME_DONE);
    EXPECT_THAT(Gradients().at({9, KeyIn("c", 5)}),
                ElementsAre(FloatNear(gradient, std::abs(gradient) * 0x1p-11f)));
    EXPECT_EQ(engine_->progress().gradient_values, 16u);  // five keys of 3 values, one of 1
    EXPECT_EQ(engine_->progress().losses.saturated, 0u);
    EXPECT_EQ(engine_->progress().losses.underflowed, 0u);
  }
}

TEST_F(EngineTest, WhatAnF16UpdateCannotHoldIsCounted) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_wire_dtype(F16);
  job.mutable_embedding_ps()->set_replicas(1);
  Start(job);
  PutTwoSamples(1);
  auto push = PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)));
  const absl::Span<float> rows =
      push.second.MutableView<float>(push.first.tables(1).gradients().offset_bytes(), 1);
  rows[0] = std::numeric_limits<float>::infinity();
  // The first value of sample 0 in feature "bag" is a gradient of two keys. It is about 2^-60 of
  // the other gradients of these keys, so it underflows in an F16 with the scale that they need.
  const absl::Span<float> bag =
      push.second.MutableView<float>(push.first.features(0).gradients().offset_bytes(), 3);
  bag[0] = 0x1p-58f;
  Push(0, 1, push);
  EXPECT_EQ(engine_->progress().losses.saturated, 1u);
  EXPECT_EQ(engine_->progress().losses.underflowed, 2u);
}

// Each PS chooses a scale by the largest value in its rows, but the answer must have one scale for
// all rows.
TEST_F(EngineTest, F16RowsOfSeveralPssArriveUnderOneScale) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_replicas(3);
  job.mutable_embedding_ps()->set_wire_dtype(F16);
  job.mutable_embedding_worker()->set_wire_dtype(F16);
  Start(job);
  std::vector<uint64_t> ids;
  for (uint64_t s = 0; s < 100; ++s) ids.push_back(s % 60);
  Put(1, MakePart(TRAIN_STREAM, 0, 0, 100, {ids, ids, ids, ids}, {{}, {}, {}, {}}));
  const Reply reply = Next(0, 1);
  const auto part = HeaderOf<NextBatchAnswerHeader>(reply);
  const std::vector<float> rows = Decoded((**reply)->payload, part.tables(1).values(), F16);
  const auto indices =
      rpc::SectionView<uint32_t>((**reply)->payload, part.features(3).indices(), 100, "indices");
  for (size_t s = 0; s < 100; ++s) EXPECT_EQ(rows[(*indices)[s]], TestValue(KeyIn("c", ids[s]), 0));
}

TEST_F(EngineTest, UpdatesCarryThePushesStepAndCallAndTheCounts) {
  Start(TestJob());
  PutTwoSamples(1);
  Push(1, 17, PushOf(HeaderOf<NextBatchAnswerHeader>(Next(1, 1))));
  ASSERT_THAT(Updates(), SizeIs(2));
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> counts;
  for (const FakePs::SeenUpdate& update : Updates()) {
    EXPECT_EQ(update.header.call().sender(), 1u);
    EXPECT_EQ(update.header.call().number(), 17u);
    EXPECT_EQ(update.header.call().oldest_open(), 1u);
    EXPECT_EQ(update.header.step().step(), 4u);
    EXPECT_EQ(update.header.step().normalizer(), 32);
    EXPECT_EQ(update.header.envelope().job_fingerprint(), kTestFingerprint);
    EXPECT_FALSE(update.header.ordered());
    EXPECT_EQ(update.header.weight(), 2) << "two samples without weights";
    counts.insert(update.counts.begin(), update.counts.end());
  }
  EXPECT_EQ(counts.at({3, KeyIn("a", 1)}), 1u);  // it is in a and in mix, but in one sample
  EXPECT_EQ(counts.at({9, KeyIn("c", 5)}), 2u);
}

TEST_F(EngineTest, APartWithoutIdsNeedsNoPs) {
  Start(TestJob());
  Put(1, MakePart(TRAIN_STREAM, 0, 0, 0, {{}, {}, {}, {}}, {{}, {}, {}, {}}));
  const auto part = HeaderOf<NextBatchAnswerHeader>(Next(0, 1));
  EXPECT_EQ(part.result(), NextBatchAnswerHeader::PART);
  EXPECT_EQ(part.tables(0).num_rows(), 0u);
  EXPECT_EQ(HeaderOf<PushGradientsAnswerHeader>(Push(0, 1, PushOf(part))).outcome(), OUTCOME_DONE);
  EXPECT_THAT(ps_[0]->lookups, IsEmpty());
  EXPECT_THAT(Updates(), IsEmpty());
  EXPECT_EQ(engine_->progress().outstanding_parts, 0u);
}

TEST_F(EngineTest, PssWithoutKeysOfThePartAreNotCalled) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_replicas(64);
  Start(job);
  PutTwoSamples(1);
  Push(0, 1, PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1))));
  size_t called = 0;
  for (const auto& ps : ps_) {
    EXPECT_EQ(ps->lookups.size(), ps->updates.size());
    called += ps->lookups.size();
  }
  EXPECT_GE(called, 2u);
  EXPECT_LE(called, 6u);  // there are six keys
}

TEST_F(EngineTest, OnlyTrainingRequestsInitialValues) {
  Start(TestJob());
  PutTwoSamples(1);
  Put(1, TwoSamples(VALID_STREAM, 0, 0));
  Next(0, 1);
  Next(0, 1, 0, 0, VALID_STREAM);
  ASSERT_THAT(ps_[0]->lookups, SizeIs(2));
  EXPECT_TRUE(ps_[0]->lookups[0].training());
  EXPECT_FALSE(ps_[0]->lookups[1].training());
  EXPECT_FALSE(ps_[0]->lookups[0].has_step());
}

TEST_F(EngineTest, ProgressCountsIdsAndUniqueKeys) {
  Start(TestJob());
  PutTwoSamples(1);
  const EmbeddingWorkerEngine::Progress progress = engine_->progress();
  EXPECT_EQ(progress.parts, 1u);
  EXPECT_EQ(progress.ids, 8u);
  EXPECT_EQ(progress.keys, 6u);
}

TEST_F(EngineTest, AnUpdateCarriesTheLatestTimeOfItsPartsRecords) {
  Start(TestJob());
  PutMessage part = TwoSamples(TRAIN_STREAM, 0, 1);
  const uint64_t times_at = (part.second.size() + 63) / 64 * 64;
  Buffer with_times(times_at + 16);
  std::memcpy(with_times.mutable_data(), part.second.data(), part.second.size());
  with_times.MutableView<int64_t>(times_at, 2)[0] = 900;
  with_times.MutableView<int64_t>(times_at, 2)[1] = 800;
  part.second = with_times;
  part.first.mutable_part()->mutable_times()->set_offset_bytes(times_at);
  part.first.mutable_part()->mutable_times()->set_size_bytes(16);
  Put(1, part);
  PutTwoSamples(2);
  Push(1, 1, PushOf(HeaderOf<NextBatchAnswerHeader>(Next(1, 1))));
  ASSERT_THAT(Updates(), Not(IsEmpty()));
  for (const FakePs::SeenUpdate& update : Updates()) {
    EXPECT_EQ(update.header.data_time_ms(), 900);
  }
  const size_t before = Updates().size();
  Push(1, 2, PushOf(HeaderOf<NextBatchAnswerHeader>(Next(1, 2))));
  ASSERT_GT(Updates().size(), before);
  int without = 0;
  for (const FakePs::SeenUpdate& update : Updates()) {
    without += update.header.has_data_time_ms() ? 0 : 1;
  }
  EXPECT_EQ(without, static_cast<int>(Updates().size() - before)) << "its records have no time";
}

// The items are the ids of feature "c", which is the only feature of table "u".
class CandidateEngineTest : public EngineTest {
 protected:
  JobConfig CandidateJob() {
    JobConfig job = TestJob();
    CandidatesConfig* const candidates = job.mutable_model()->mutable_candidates();
    candidates->set_feature("c");
    candidates->set_count(3);
    candidates->set_sampler(CandidatesConfig::UNIFORM);
    candidates_ = {{5, 100, 200}, {9, 5, 1}};
    return job;
  }
};

TEST_F(CandidateEngineTest, TheAnswerHoldsTheCandidatesAndTheirUpdatesAddUp) {
  Start(CandidateJob());
  PutTwoSamples(1);
  const Reply reply = Next(1, 1);
  const auto header = HeaderOf<NextBatchAnswerHeader>(reply);
  const Buffer& payload = (**reply)->payload;
  ASSERT_TRUE(header.has_candidates());
  const CandidateRows& candidates = header.candidates();
  ASSERT_EQ(candidates.num_candidates(), 3u);
  // Each of the three items is drawn once, in some order. Id 5 is the item of both samples, but has
  // only one row.
  const auto rows = rpc::SectionView<uint32_t>(payload, candidates.indices(), 3, "indices");
  ASSERT_TRUE(rows.ok());
  EXPECT_THAT(*rows, testing::UnorderedElementsAre(0, 1, 2));
  const TableRows& table = header.tables(1);
  EXPECT_EQ(table.num_rows(), 3u);
  // After three draws without repeats the expected count is 1; after more draws it is a little
  // less.
  EXPECT_THAT(Decoded(payload, candidates.log_q(), F32),
              testing::Each(testing::AllOf(testing::Gt(-1.0f), testing::Le(1e-6f))));
  EXPECT_EQ(Decoded(payload, candidates.positive_log_q(), F32).size(), 2u);
  const std::vector<float> values = Decoded(payload, table.values(), header.dtype());
  Push(1, 1, PushOf(header));
  ByKey<uint32_t> counts;
  for (const FakePs::SeenUpdate& update : Updates()) {
    counts.insert(update.counts.begin(), update.counts.end());
  }
  EXPECT_EQ((counts[{9, KeyIn("c", 5)}]), 3u) << "two samples and a candidate";
  EXPECT_EQ((counts[{9, KeyIn("c", 100)}]), 1u);
  EXPECT_EQ((counts[{9, KeyIn("c", 200)}]), 1u);
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(CandidateEngineTest, EvaluationsHaveNone) {
  Start(CandidateJob());
  Put(1, TwoSamples(VALID_STREAM, 0, 0));
  EXPECT_FALSE(HeaderOf<NextBatchAnswerHeader>(Next(1, 1, 0, 0, VALID_STREAM)).has_candidates());
}

TEST_F(CandidateEngineTest, ASampleWithoutExactlyOneItemIsRefused) {
  Start(CandidateJob());
  const Reply reply =
      Put(1, MakePart(TRAIN_STREAM, 0, 0, 1, {{1}, {7}, {1}, {5, 6}}, {{}, {}, {}, {0, 2}}));
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->status().message(),
            "features[3] (c): model.candidates needs one id per sample");
}

TEST_F(CandidateEngineTest, AListThatIsTooShortIsRefused) {
  const JobConfig job = CandidateJob();
  EmbeddingWorkerEngine::Options options;
  options.ps = {nullptr, nullptr};
  options.candidates = {{5, 100}, {1, 1}};
  EXPECT_EQ(EmbeddingWorkerEngine::Create(job, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
