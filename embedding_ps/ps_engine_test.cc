#include "embedding_ps/ps_engine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/hash.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr uint32_t kTable = 4;
constexpr size_t kValues = 3;

Envelope ThisRun() {
  Envelope envelope;
  envelope.set_job_fingerprint(77);
  envelope.set_generation(1);
  return envelope;
}

// One table of segments of dims 2 and 1 that begin at 1, plain SGD with rate 1: a row is 1 minus
// the sum of its normalised gradients.
JobConfig Job(JobConfig::Mode mode, int ranks, int num_ps) {
  JobConfig job;
  job.set_mode(mode);
  job.mutable_nn_worker()->set_replicas(ranks);
  job.mutable_embedding_ps()->set_replicas(num_ps);
  TableConfig* table = job.add_tables();
  table->set_name("ids");
  table->set_id(kTable);
  for (const int dim : {2, 1}) {
    SegmentConfig* segment = table->add_segments();
    segment->set_name(dim == 2 ? "embedding" : "linear");
    segment->set_dim(dim);
    segment->mutable_initializer()->mutable_constant()->set_value(1);
    segment->mutable_optimizer()->mutable_sgd();
    segment->mutable_optimizer()->set_learning_rate(1);
  }
  return job;
}

using Answers = std::vector<absl::StatusOr<rpc::Message>>;

// The embedding PSs of one job in one thread, and a caller of them.
class Pss {
 public:
  explicit Pss(const JobConfig& job) {
    for (int i = 0; i < job.embedding_ps().replicas(); ++i) {
      PsEngine::Options options;
      options.envelope = ThisRun();
      options.index = i;
      options.executor = &executor_;
      auto engine = PsEngine::Create(job, options);
      CHECK(engine.ok()) << engine.status().ToString();
      engines_.push_back(*std::move(engine));
    }
  }

  PsEngine& engine(int i = 0) { return *engines_[i]; }
  ManualExecutor& executor() { return executor_; }

  // Calls PS `ps`; the answer comes to `answers` when there is one.
  void Call(int ps, const rpc::Method& method, rpc::Message request, Answers* answers) {
    engines_[ps]->Handle(method, std::move(request), [answers](absl::StatusOr<rpc::Message> got) {
      answers->push_back(std::move(got));
    });
    executor_.RunReady();
  }
  absl::StatusOr<rpc::Message> CallAndWait(int ps, const rpc::Method& method,
                                           rpc::Message request) {
    Answers answers;
    Call(ps, method, std::move(request), &answers);
    CHECK(answers.size() == 1) << answers.size() << " answers";
    return answers[0];
  }

  // Values of `keys`, each asked of the PS that owns it.
  std::map<uint64_t, std::vector<float>> Rows(const std::vector<uint64_t>& keys,
                                              bool training = true) {
    std::map<uint64_t, std::vector<float>> rows;
    for (const uint64_t key : keys) {
      const int ps = PsOfPartition(PartitionOf(key), static_cast<int>(engines_.size()));
      rows[key] = *Values(CallAndWait(ps, rpc::kLookup, LookupOf({key}, training)));
    }
    return rows;
  }

  static rpc::Message LookupOf(const std::vector<uint64_t>& keys, bool training = true,
                               absl::optional<uint64_t> step = absl::nullopt) {
    LookupHeader header;
    *header.mutable_envelope() = ThisRun();
    header.set_training(training);
    if (step.has_value()) header.set_step(*step);
    TableKeys* table = header.add_tables();
    table->set_table(kTable);
    table->set_num_keys(keys.size());
    rpc::PayloadBuilder builder;
    builder.Reserve<uint64_t>(keys.size(), table->mutable_keys());
    builder.Allocate();
    std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(table->keys()).begin());
    return {header.SerializeAsString(), builder.Take()};
  }

  static absl::StatusOr<std::vector<float>> Values(const absl::StatusOr<rpc::Message>& answer) {
    if (!answer.ok()) return answer.status();
    LookupAnswerHeader header;
    CHECK(header.ParseFromString(answer->header));
    const auto wire =
        rpc::WireView(answer->payload, header.tables(0).values(), header.dtype(),
                      header.tables(0).num_keys() * header.tables(0).row_values(), "values");
    CHECK(wire.ok()) << wire.status().ToString();
    std::vector<float> values(wire->count);
    rpc::DecodeWire(*wire, absl::MakeSpan(values));
    return values;
  }

 private:
  ManualExecutor executor_;
  std::vector<std::unique_ptr<PsEngine>> engines_;
};

// An Update under construction, right in all points until a test makes it wrong.
struct UpdateCall {
  UpdateHeader header;
  Buffer payload;

  rpc::Message Message() const { return {header.SerializeAsString(), payload}; }
};

UpdateCall UpdateOf(JobConfig::Mode mode, uint32_t rank, uint64_t step,
                    const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                    WireDtype dtype = F32) {
  UpdateCall call;
  *call.header.mutable_envelope() = ThisRun();
  call.header.mutable_call()->set_sender(rank);
  call.header.mutable_call()->set_number(step + 1);
  call.header.mutable_call()->set_oldest_open(step + 1);
  call.header.mutable_step()->set_step(step);
  call.header.mutable_step()->set_global_weight(1);
  call.header.set_part(rank);
  call.header.set_ordered(mode == JobConfig::SYNC);
  call.header.set_dtype(dtype);
  if (keys.empty()) return call;
  TableUpdate* table = call.header.add_tables();
  table->set_table(kTable);
  table->set_num_keys(keys.size());
  table->set_row_values(kValues);
  rpc::PayloadBuilder builder;
  builder.Reserve<uint64_t>(keys.size(), table->mutable_keys());
  builder.Reserve(dtype, gradients.size(), table->mutable_gradients());
  builder.Allocate();
  std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(table->keys()).begin());
  rpc::EncodeWire(gradients, dtype, builder.Fill<uint8_t>(table->gradients()).data());
  call.payload = builder.Take();
  return call;
}

// Unordered, one rank, one PS.
class UnorderedPsEngineTest : public testing::Test {
 protected:
  UpdateCall GoodUpdate(uint64_t step = 0) {
    return UpdateOf(JobConfig::HYBRID, 0, step, {7, 9}, {1, 2, 3, 4, 5, 6});
  }
  absl::Status Send(const UpdateCall& call) {
    return pss_.CallAndWait(0, rpc::kUpdate, call.Message()).status();
  }
  std::vector<float> Row(uint64_t key) { return pss_.Rows({key})[key]; }
  int64_t NumRows() { return pss_.engine().Stats()[0].rows(); }

  // `call` is refused with `code` and applied nothing.
  void ExpectRefused(const UpdateCall& call, absl::StatusCode code, const std::string& field) {
    const absl::Status status = Send(call);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << status;
    EXPECT_EQ(NumRows(), 0) << status;
    EXPECT_EQ(Row(7), (std::vector<float>{1, 1, 1}));
  }

  Pss pss_{Job(JobConfig::HYBRID, 1, 1)};
};

TEST_F(UnorderedPsEngineTest, UpdateIsAppliedAsItComesAndThenAnswered) {
  ASSERT_TRUE(Send(GoodUpdate()).ok());
  EXPECT_EQ(Row(7), (std::vector<float>{0, -1, -2}));
  EXPECT_EQ(Row(9), (std::vector<float>{-3, -4, -5}));
  EXPECT_EQ(pss_.engine().counts().updates, 1u);
  EXPECT_EQ(pss_.engine().counts().rows_created, 2u);
}

TEST_F(UnorderedPsEngineTest, GradientsAreDividedByTheGlobalWeight) {
  UpdateCall call = GoodUpdate();
  call.header.mutable_step()->set_global_weight(4);
  ASSERT_TRUE(Send(call).ok());
  EXPECT_EQ(Row(9), (std::vector<float>{0, -0.25f, -0.5f}));
}

TEST_F(UnorderedPsEngineTest, ARepeatedUpdateIsAnsweredAgainButNotAppliedAgain) {
  ASSERT_TRUE(Send(GoodUpdate()).ok());
  ASSERT_TRUE(Send(GoodUpdate()).ok());
  EXPECT_EQ(Row(7), (std::vector<float>{0, -1, -2}));
}

TEST_F(UnorderedPsEngineTest, ANumberThatTheSenderClosedDoesNothing) {
  ASSERT_TRUE(Send(GoodUpdate(5)).ok());
  const auto answer = pss_.CallAndWait(0, rpc::kUpdate, GoodUpdate(0).Message());
  ASSERT_TRUE(answer.ok());
  UpdateAnswerHeader header;
  ASSERT_TRUE(header.ParseFromString(answer->header));
  EXPECT_EQ(header.outcome(), OLD);
  EXPECT_EQ(Row(7), (std::vector<float>{0, -1, -2}));
}

TEST_F(UnorderedPsEngineTest, AStepThatIsNotFiniteChangesNoValue) {
  UpdateCall call = GoodUpdate();
  call.header.mutable_step()->set_finite(false);
  ASSERT_TRUE(Send(call).ok());
  EXPECT_EQ(NumRows(), 0);
}

TEST_F(UnorderedPsEngineTest, LookupNeverCreatesRows) {
  EXPECT_EQ(Row(7), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(pss_.Rows({7}, /*training=*/false)[7], (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(NumRows(), 0);
  EXPECT_EQ(pss_.engine().counts().absent_keys, 2u);
}

TEST_F(UnorderedPsEngineTest, PresenceBitsSayWhichRowsExist) {
  ASSERT_TRUE(Send(GoodUpdate()).ok());
  const auto answer = pss_.CallAndWait(0, rpc::kLookup, Pss::LookupOf({1, 7, 2, 9}));
  ASSERT_TRUE(answer.ok());
  LookupAnswerHeader header;
  ASSERT_TRUE(header.ParseFromString(answer->header));
  EXPECT_EQ(header.outcome(), DONE);
  const auto presence =
      rpc::SectionView<uint8_t>(answer->payload, header.tables(0).presence(), 1, "presence");
  ASSERT_TRUE(presence.ok());
  EXPECT_EQ((*presence)[0], 0b1010);
}

TEST_F(UnorderedPsEngineTest, AnotherJobOrGenerationIsAFailedPrecondition) {
  UpdateCall call = GoodUpdate();
  call.header.mutable_envelope()->set_generation(2);
  ExpectRefused(call, absl::StatusCode::kFailedPrecondition, "generation");
  call = GoodUpdate();
  call.header.mutable_envelope()->set_job_fingerprint(78);
  ExpectRefused(call, absl::StatusCode::kFailedPrecondition, "job");
}

TEST_F(UnorderedPsEngineTest, EverySizeAndOffsetIsCheckedBeforeAnythingIsApplied) {
  const auto refuse = [&](uint64_t step, auto change, const std::string& field) {
    UpdateCall call = GoodUpdate(step);
    change(&call.header, call.header.mutable_tables(0));
    ExpectRefused(call, absl::StatusCode::kInvalidArgument, field);
  };
  using H = UpdateHeader*;
  using T = TableUpdate*;
  refuse(
      0, [](H, T t) { t->set_table(5); }, "table");
  refuse(
      1, [](H, T t) { t->set_row_values(2); }, "row_values");
  refuse(
      2, [](H, T t) { t->set_num_keys(3); }, "keys");
  refuse(
      3, [](H, T t) { t->set_num_keys(~uint64_t{0} / 8 + 3); }, "keys");
  refuse(
      4, [](H, T t) { t->mutable_keys()->set_offset_bytes(8); }, "keys");
  refuse(
      5, [](H, T t) { t->mutable_keys()->set_offset_bytes(1 << 20); }, "keys");
  refuse(
      6, [](H, T t) { t->mutable_gradients()->set_size_bytes(20); }, "gradients");
  refuse(
      7, [](H, T t) { t->mutable_gradients()->set_offset_bytes(~uint64_t{63}); }, "gradients");
  refuse(
      8, [](H, T t) { t->mutable_counts()->set_size_bytes(4); }, "counts");
  refuse(
      9, [](H h, T) { *h->add_tables() = h->tables(0); }, "table");
  refuse(
      10, [](H h, T) { h->set_dtype(BF16); }, "gradients");
  refuse(
      11, [](H h, T) { h->set_ordered(true); }, "ordered");
  refuse(
      12, [](H h, T) { h->mutable_call()->set_sender(1); }, "sender");
  refuse(
      13, [](H h, T) { h->mutable_step()->set_global_weight(0); }, "global_weight");
  refuse(
      14, [](H h, T) { h->mutable_step()->set_global_weight(NAN); }, "global_weight");
  refuse(
      15, [](H h, T) { h->mutable_step()->set_learning_rate_factor(-1); }, "factor");
  refuse(
      16, [](H h, T) { h->mutable_step()->set_learning_rate_factor(INFINITY); }, "factor");
}

// A second table that is wrong keeps the first from being applied.
TEST_F(UnorderedPsEngineTest, AnUpdateIsAppliedWholeOrNotAtAll) {
  UpdateCall call = GoodUpdate();
  TableUpdate* second = call.header.add_tables();
  second->set_table(99);
  ExpectRefused(call, absl::StatusCode::kInvalidArgument, "table");
}

TEST_F(UnorderedPsEngineTest, BytesThatAreNoHeaderAreRefused) {
  for (const rpc::Method& method : {rpc::kLookup, rpc::kUpdate, rpc::kTableStats}) {
    EXPECT_EQ(pss_.CallAndWait(0, method, {"\xff\xff", Buffer()}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(UnorderedPsEngineTest, AMethodThatIsNotItsIsUnimplemented) {
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kPutBatch, {}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(UnorderedPsEngineTest, LookupChecksItsSections) {
  LookupHeader header;
  rpc::Message message = Pss::LookupOf({7});
  ASSERT_TRUE(header.ParseFromString(message.header));
  header.mutable_tables(0)->set_num_keys(2);
  message.header = header.SerializeAsString();
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kLookup, message).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PsEngineTest, RefusesKeysOfPartitionsItDoesNotOwn) {
  Pss pss(Job(JobConfig::HYBRID, 1, 2));
  const uint64_t last = ~uint64_t{0};  // PS 1's
  const UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {last}, {1, 1, 1});
  EXPECT_EQ(pss.CallAndWait(0, rpc::kUpdate, call.Message()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(pss.CallAndWait(0, rpc::kLookup, Pss::LookupOf({last})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(pss.CallAndWait(1, rpc::kUpdate, call.Message()).ok());
  EXPECT_EQ(pss.engine(0).Stats()[0].rows(), 0u);
  EXPECT_EQ(pss.engine(1).Stats()[0].rows(), 1u);
}

TEST(PsEngineTest, SixteenBitValuesTravelBothWays) {
  for (const WireDtype dtype : {F16, BF16}) {
    JobConfig job = Job(JobConfig::HYBRID, 1, 1);
    job.mutable_embedding_ps()->set_wire_dtype(dtype);
    Pss pss(job);
    const UpdateCall call =
        UpdateOf(JobConfig::HYBRID, 0, 0, {7, 9}, {0.5f, 1, 0.25f, 2, 4, 8}, dtype);
    ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
    EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{0.5f, 0, 0.75f}));
    EXPECT_EQ(pss.Rows({9})[9], (std::vector<float>{-1, -3, -7}));
  }
}

TEST(PsEngineTest, RefusesAJobWhoseTableIsNotValid) {
  JobConfig job = Job(JobConfig::HYBRID, 1, 1);
  job.mutable_tables(0)->set_l2(-1);
  ManualExecutor executor;
  PsEngine::Options options;
  options.executor = &executor;
  EXPECT_EQ(PsEngine::Create(job, options).status().code(), absl::StatusCode::kInvalidArgument);
}

// Ordered, two ranks, one PS.
class OrderedPsEngineTest : public testing::Test {
 protected:
  static UpdateCall Part(uint32_t rank, uint64_t step, const std::vector<uint64_t>& keys,
                         const std::vector<float>& gradients) {
    return UpdateOf(JobConfig::SYNC, rank, step, keys, gradients);
  }
  void Send(const UpdateCall& call) { pss_.Call(0, rpc::kUpdate, call.Message(), &answers_); }
  absl::Status LookupOfStep(uint64_t step) {
    return pss_.CallAndWait(0, rpc::kLookup, Pss::LookupOf({7}, true, step)).status();
  }

  Pss pss_{Job(JobConfig::SYNC, 2, 1)};
  Answers answers_;
};

TEST_F(OrderedPsEngineTest, AppliesOneStepOfTheSumWhenAllPartsAreThereAndThenAnswersAll) {
  Send(Part(1, 0, {7, 9}, {1, 1, 1, 2, 2, 2}));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{1, 1, 1}));
  Send(Part(0, 0, {7}, {4, 4, 4}));
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{-4, -4, -4}));
  EXPECT_EQ(pss_.Rows({9})[9], (std::vector<float>{-1, -1, -1}));
}

TEST_F(OrderedPsEngineTest, EmptyPartsCount) {
  Send(Part(0, 0, {}, {}));
  Send(Part(1, 0, {}, {}));
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST_F(OrderedPsEngineTest, LookupFindsExactlyTheStepsBeforeIts) {
  EXPECT_TRUE(LookupOfStep(0).ok());
  EXPECT_EQ(LookupOfStep(1).code(), absl::StatusCode::kInvalidArgument);
  Send(Part(0, 0, {7}, {1, 1, 1}));
  EXPECT_TRUE(LookupOfStep(0).ok());
  Send(Part(1, 0, {}, {}));
  EXPECT_TRUE(LookupOfStep(1).ok());
  EXPECT_EQ(LookupOfStep(0).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OrderedPsEngineTest, RepeatsOfAWaitingPartAddNothing) {
  Send(Part(1, 0, {7}, {1, 1, 1}));
  Send(Part(1, 0, {7}, {1, 1, 1}));
  Send(Part(0, 0, {}, {}));
  EXPECT_EQ(answers_.size(), 3u);
  for (const auto& answer : answers_) EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{0, 0, 0}));
}

TEST_F(OrderedPsEngineTest, AWaitingPartIsToldToWaitAndStillCounts) {
  Send(Part(1, 0, {7}, {1, 1, 1}));
  pss_.executor().AdvanceBy(6000000);
  ASSERT_EQ(answers_.size(), 1u);
  UpdateAnswerHeader header;
  ASSERT_TRUE(header.ParseFromString(answers_[0]->header));
  EXPECT_EQ(header.outcome(), WAIT);
  Send(Part(0, 0, {}, {}));
  Send(Part(1, 0, {7}, {1, 1, 1}));
  EXPECT_EQ(answers_.size(), 3u);
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{0, 0, 0}));
}

TEST_F(OrderedPsEngineTest, PartsThatDisagreeAboutWeightFlagFactorOrStepAreRefused) {
  Send(Part(0, 0, {7}, {1, 1, 1}));
  uint64_t number = 1;
  const auto refuse = [&](auto change) {
    UpdateCall call = Part(1, 0, {7}, {1, 1, 1});
    call.header.mutable_call()->set_number(number++);
    change(call.header.mutable_step());
    Answers answers;
    pss_.Call(0, rpc::kUpdate, call.Message(), &answers);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].status().code(), absl::StatusCode::kInvalidArgument);
  };
  refuse([](StepHeader* step) { step->set_global_weight(2); });
  refuse([](StepHeader* step) { step->set_finite(false); });
  refuse([](StepHeader* step) { step->set_learning_rate_factor(2); });
  refuse([](StepHeader* step) { step->set_step(1); });
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(pss_.Rows({7})[7], (std::vector<float>{1, 1, 1}));
}

TEST_F(OrderedPsEngineTest, AStepThatIsNotFiniteCountsButChangesNothing) {
  for (const uint32_t rank : {0, 1}) {
    UpdateCall call = Part(rank, 0, {7}, {1, 1, 1});
    call.header.mutable_step()->set_finite(false);
    Send(call);
  }
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_EQ(pss_.engine().Stats()[0].rows(), 0u);
  EXPECT_TRUE(LookupOfStep(1).ok());
}

TEST_F(OrderedPsEngineTest, LoadIsRefusedWhileAStepIsCollected) {
  Send(Part(0, 0, {7}, {1, 1, 1}));
  LoadTablesRequest request;
  *request.mutable_envelope() = ThisRun();
  request.set_directory("nowhere");
  const auto answer =
      pss_.CallAndWait(0, rpc::kLoadTables, {request.SerializeAsString(), Buffer()});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
}

// Three ranks with random gradients of keys that all share, sent to `num_ps` PSs in the order of
// `order`, for three steps.
std::map<uint64_t, std::vector<float>> TrainOrdered(int num_ps,
                                                    const std::vector<uint32_t>& order) {
  JobConfig job = Job(JobConfig::SYNC, 3, num_ps);
  for (SegmentConfig& segment : *job.mutable_tables(0)->mutable_segments()) {
    segment.mutable_optimizer()->mutable_adagrad();
    segment.mutable_optimizer()->set_learning_rate(0.1f);
  }
  Pss pss(job);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 200; ++i) keys.push_back(Mix64(i));
  Answers answers;
  for (uint64_t step = 0; step < 3; ++step) {
    for (const uint32_t rank : order) {
      for (int ps = 0; ps < num_ps; ++ps) {
        std::vector<uint64_t> owned;
        std::vector<float> gradients;
        for (const uint64_t key : keys) {
          if (PsOfPartition(PartitionOf(key), num_ps) != ps || (key + rank) % 4 == 0) continue;
          owned.push_back(key);
          for (uint64_t d = 0; d < kValues; ++d) {
            const uint64_t bits = Mix64(key ^ (step * 64 + rank * 8 + d));
            gradients.push_back(static_cast<float>(bits >> 40) * 0x1p-20f - 8);
          }
        }
        UpdateCall call = UpdateOf(JobConfig::SYNC, rank, step, owned, gradients);
        call.header.mutable_step()->set_global_weight(7);
        pss.Call(ps, rpc::kUpdate, call.Message(), &answers);
      }
    }
  }
  EXPECT_EQ(answers.size(), 9u * num_ps);
  for (const auto& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status();
  return pss.Rows(keys);
}

TEST(PsEngineTest, OrderedStepsGiveTheSameBitsForAnyNumberOfPssAndOrderOfArrival) {
  const auto rows = TrainOrdered(1, {0, 1, 2});
  EXPECT_EQ(rows.size(), 200u);
  EXPECT_EQ(TrainOrdered(1, {2, 0, 1}), rows);
  EXPECT_EQ(TrainOrdered(2, {1, 2, 0}), rows);
  EXPECT_EQ(TrainOrdered(4, {2, 1, 0}), rows);
  EXPECT_EQ(TrainOrdered(7, {0, 2, 1}), rows);
}

}  // namespace
}  // namespace satrap
