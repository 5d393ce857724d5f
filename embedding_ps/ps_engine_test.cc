#include "embedding_ps/ps_engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/payload.h"
#include "common/testing/manual_executor.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// Hybrid mode, one rank, one PS.
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

  // Expects that `call` is refused with `code` and an error that names `field`, and that it changes
  // nothing.
  void ExpectRefused(const UpdateCall& call, absl::StatusCode code, const std::string& field) {
    const absl::Status status = Send(call);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << status;
    EXPECT_EQ(NumRows(), 0) << status;
    EXPECT_EQ(Row(7), (std::vector<float>{1, 1, 1}));
  }

  Pss pss_{PsTestJob(JobConfig::HYBRID, 1, 1)};
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
  call.header.mutable_step()->set_normalizer(4);
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
  EXPECT_EQ(header.outcome(), OUTCOME_OLD);
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
  EXPECT_EQ(header.outcome(), OUTCOME_DONE);
  const auto presence =
      rpc::SectionView<uint8_t>(answer->payload, header.tables(0).presence(), 1, "presence");
  ASSERT_TRUE(presence.ok());
  EXPECT_EQ((*presence)[0], 0b1010);
}

TEST_F(UnorderedPsEngineTest, AnotherRunJobOrGenerationIsAFailedPrecondition) {
  UpdateCall call = GoodUpdate();
  call.header.mutable_envelope()->set_generation(2);
  ExpectRefused(call, absl::StatusCode::kFailedPrecondition, "generation");
  call = GoodUpdate();
  call.header.mutable_envelope()->set_job_fingerprint(78);
  ExpectRefused(call, absl::StatusCode::kFailedPrecondition, "job");
  call = GoodUpdate();
  call.header.mutable_envelope()->set_run_id(6);
  ExpectRefused(call, absl::StatusCode::kFailedPrecondition, "run");
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
      13, [](H h, T) { h->mutable_step()->set_normalizer(0); }, "normalizer");
  refuse(
      14, [](H h, T) { h->mutable_step()->set_normalizer(NAN); }, "normalizer");
  refuse(
      15, [](H h, T) { h->mutable_step()->set_learning_rate_factor(-1); }, "factor");
  refuse(
      16, [](H h, T) { h->mutable_step()->set_learning_rate_factor(INFINITY); }, "factor");
  refuse(
      17, [](H, T t) { t->mutable_gradients()->set_offset_bytes(0); }, "overlaps tables");
}

// An error in the second table must keep the first table from being updated.
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
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 2));
  const uint64_t last = ~uint64_t{0};  // a key that PS 1 owns
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
    JobConfig job = PsTestJob(JobConfig::HYBRID, 1, 1);
    job.mutable_embedding_ps()->set_wire_dtype(dtype);
    Pss pss(job);
    const UpdateCall call =
        UpdateOf(JobConfig::HYBRID, 0, 0, {7, 9}, {0.5f, 1, 0.25f, 2, 4, 8}, dtype);
    ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
    EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{0.5f, 0, 0.75f}));
    EXPECT_EQ(pss.Rows({9})[9], (std::vector<float>{-1, -3, -7}));
  }
}

TEST(PsEngineTest, F16ValuesAndGradientsMayBeOfAnySize) {
  JobConfig job = PsTestJob(JobConfig::HYBRID, 1, 1);
  job.mutable_embedding_ps()->set_wire_dtype(F16);
  Pss pss(job);
  const auto update = [&](uint64_t step, uint64_t key, float g) {
    const UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, step, {key}, {g, g, g}, F16);
    EXPECT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  };
  update(0, 7, 70016);  // rows begin at 1, and each step subtracts the gradient
  EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>(3, -70016)));
  update(1, 9, 1);
  update(2, 9, 0x1p-40f);
  EXPECT_EQ(pss.Rows({9})[9], (std::vector<float>(3, -0x1p-40f)));
}

// An executor that runs each task `backlog_us` late, as if other tasks were queued before it.
// Timers run on time.
class BusyExecutor final : public Executor {
 public:
  BusyExecutor(ManualExecutor* clock, int64_t backlog_us)
      : clock_(clock), backlog_us_(backlog_us) {}

  void Post(Task task) override { clock_->PostAfter(backlog_us_, std::move(task)); }
  void PostAfter(int64_t delay_us, Task task) override {
    clock_->PostAfter(delay_us, std::move(task));
  }
  int64_t NowUs() const override { return clock_->NowUs(); }

 private:
  ManualExecutor* const clock_;
  const int64_t backlog_us_;
};

// Passes attempts to an engine without delay. An attempt that has no answer by its deadline fails.
class DirectChannel final : public rpc::Channel {
 public:
  DirectChannel(ManualExecutor* clock, PsEngine* engine) : clock_(clock), engine_(engine) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    ++attempts;
    payload_bytes += request.payload.size();
    auto once = std::make_shared<rpc::Callback>(std::move(done));
    const auto answer = [once](absl::StatusOr<rpc::Message> outcome) {
      if (*once != nullptr) std::exchange(*once, nullptr)(std::move(outcome));
    };
    clock_->PostAfter(timeout_ms * 1000,
                      [answer] { answer(absl::DeadlineExceededError("no answer")); });
    engine_->Handle(method, std::move(request), answer);
  }

  int attempts = 0;
  size_t payload_bytes = 0;

 private:
  ManualExecutor* const clock_;
  PsEngine* const engine_;
};

TEST(PsEngineTest, ALookupThatTakesLongIsHeldRunsOnceAndIsNotTakenForADeadPs) {
  // The first backlog is longer than one attempt. The second is also longer than the time after
  // which a silent peer counts as lost.
  for (const int64_t backlog_us : {12'000'000, 100'000'000}) {
    ManualExecutor clock;
    BusyExecutor executor(&clock, backlog_us);
    PsEngine::Options options;
    options.envelope = ThisRun();
    options.executor = &executor;
    options.disk_executor = &executor;
    const auto engine = PsEngine::Create(PsTestJob(JobConfig::HYBRID, 1, 1), options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    DirectChannel channel(&clock, engine->get());
    rpc::NumberedClient client({rpc::kLookup, ThisRun(), 0, rpc::RpcTimeouts()}, &clock,
                               {{"embedding_ps 0", &channel}});
    rpc::Message request = Pss::LookupOf({1, 7, 2});
    LookupHeader header;
    ASSERT_TRUE(header.ParseFromString(request.header));
    header.clear_envelope();
    header.clear_call();
    request.header = header.SerializeAsString();
    Answers answers;
    client.Call(0, request,
                [&](absl::StatusOr<rpc::Message> got) { answers.push_back(std::move(got)); });
    clock.AdvanceBy(backlog_us + 1);
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_TRUE(answers[0].ok()) << answers[0].status();
    EXPECT_EQ(Pss::Values(answers[0])->size(), 3 * kValues);
    EXPECT_EQ((*engine)->counts().lookup_keys, 3u) << "it ran once";
    EXPECT_EQ(channel.attempts, backlog_us / 5'000'000 + (backlog_us % 5'000'000 > 0 ? 1 : 0));
    EXPECT_EQ(channel.payload_bytes, request.payload.size()) << "the keys were sent once";
  }
}

// Answers to Lookups are large, so an answer is dropped once an attempt has received it.
TEST_F(UnorderedPsEngineTest, ARepeatedLookupWhoseAnswerWasLostRunsAgain) {
  const rpc::Message lookup = Pss::LookupOf({7});
  const auto lost = pss_.CallAndWait(0, rpc::kLookup, lookup);
  EXPECT_EQ(*Pss::Values(lost), (std::vector<float>{1, 1, 1}));
  const auto again = pss_.CallAndWait(0, rpc::kLookup, lookup);
  EXPECT_EQ(*Pss::Values(again), (std::vector<float>{1, 1, 1}));
  EXPECT_NE(again->payload.data(), lost->payload.data());
  EXPECT_EQ(pss_.engine().counts().lookup_keys, 2u);
}

TEST_F(UnorderedPsEngineTest, ALookupOfAnEmbeddingWorkerThatDoesNotExistIsRefused) {
  rpc::Message lookup = Pss::LookupOf({7});
  LookupHeader header;
  ASSERT_TRUE(header.ParseFromString(lookup.header));
  header.mutable_call()->set_sender(1);
  lookup.header = header.SerializeAsString();
  EXPECT_EQ(pss_.CallAndWait(0, rpc::kLookup, lookup).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Makes a message of rank 0 with call number `number`.
template <typename Request>
rpc::Message OfRank0(Request request, uint64_t number) {
  *request.mutable_envelope() = ThisRun();
  request.mutable_call()->set_sender(0);
  request.mutable_call()->set_number(number);
  request.mutable_call()->set_oldest_open(number);
  return rpc::MessageOf(request);
}

rpc::Message LoadOf(const std::string& directory, uint64_t number) {
  LoadTablesRequest load;
  load.set_directory(directory);
  return OfRank0(load, number);
}

// A cut is in progress, but the disk executor has not run its tasks. Other calls must not wait for
// them.
TEST(PsEngineTest, ASaveThatRunsDelaysNoLookupAndNoUpdate) {
  ManualExecutor disk_executor;
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1), &disk_executor);
  const UpdateCall before = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {0, 0, 0});
  EXPECT_TRUE(pss.CallAndWait(0, rpc::kUpdate, before.Message()).ok());
  BeginCutRequest begin;
  begin.set_cut(1);
  begin.set_directory(testing::TempDir());
  EXPECT_TRUE(pss.CallAndWait(0, rpc::kBeginCut, OfRank0(begin, 1)).ok());
  AwaitCutRequest await;
  await.set_cut(1);
  Answers saved;
  pss.Call(0, rpc::kAwaitCut, OfRank0(await, 1), &saved);
  const UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 1, {7}, {1, 2, 3});
  EXPECT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{0, -1, -2}));
  EXPECT_TRUE(saved.empty());
  disk_executor.RunReady();
  pss.executor().RunReady();
  ASSERT_EQ(saved.size(), 1u);
  AwaitCutAnswer answer;
  ASSERT_TRUE(saved[0].ok()) << saved[0].status();
  ASSERT_TRUE(answer.ParseFromString(saved[0]->header));
  EXPECT_EQ(answer.files_size(), 1);
}

TEST(PsEngineTest, ALoadIsRefusedWhileAnUpdateIsOutstandingAndNotAfterIt) {
  ManualExecutor disk_executor;
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1), &disk_executor);
  Answers updated, loaded;
  const auto keep = [](Answers* answers) {
    return [answers](absl::StatusOr<rpc::Message> got) { answers->push_back(std::move(got)); };
  };
  const UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {1, 2, 3});
  pss.engine().Handle(rpc::kUpdate, call.Message(), keep(&updated));  // it has not run
  pss.engine().Handle(rpc::kLoadTables, LoadOf("nowhere", 1), keep(&loaded));
  disk_executor.RunReady();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].status().code(), absl::StatusCode::kFailedPrecondition);

  pss.executor().RunReady();
  ASSERT_EQ(updated.size(), 1u);
  EXPECT_TRUE(updated[0].ok()) << updated[0].status();
  pss.engine().Handle(rpc::kLoadTables, LoadOf("nowhere", 2), keep(&loaded));
  disk_executor.RunReady();
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[1].status().code(), absl::StatusCode::kNotFound) << "it was tried";
}

TEST(PsEngineTest, AnUpdateIsRefusedWhileALoadRunsAndNotAfterOneThatFailedBeforeItBegan) {
  ManualExecutor disk_executor;
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1), &disk_executor);
  Answers loaded;
  pss.Call(0, rpc::kLoadTables, LoadOf("nowhere", 1), &loaded);  // it has not run
  UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {1, 2, 3});
  const absl::Status refused = pss.CallAndWait(0, rpc::kUpdate, call.Message()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_EQ(pss.engine().Stats()[0].rows(), 0u);
  disk_executor.RunReady();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].status().code(), absl::StatusCode::kNotFound);
  call.header.mutable_call()->set_number(2);
  EXPECT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
}

TEST(PsEngineTest, ALookupMayHaveAnAnswerLargerThanAMessage) {
  JobConfig job = PsTestJob(JobConfig::HYBRID, 1, 1);
  job.set_max_message_bytes(kValues * sizeof(float));
  Pss pss(job);
  const auto answer = pss.CallAndWait(0, rpc::kLookup, Pss::LookupOf({1, 2}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->payload.size(), 2 * kValues * sizeof(float)) << "it is cut where it is sent";
}

// An optimizer that adds the sample count of each key to its values.
class AddSampleCount final : public SparseOptimizer {
 public:
  int StateSize(int) const override { return 0; }
  bool IsElementwise() const override { return true; }
  bool NeedsSampleCount() const override { return true; }
  void InitState(absl::Span<float>) const override {}
  void Step(const StepContext& context, absl::Span<const float>, absl::Span<float> values,
            absl::Span<float>) const override {
    for (float& value : values) value += static_cast<float>(context.sample_count.value());
  }
};

absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewAddSampleCount(
    const SparseOptimizerConfig&) {
  return std::make_unique<AddSampleCount>();
}

TEST(PsEngineTest, ARuleThatNeedsSampleCountsGetsThoseOfTheUpdate) {
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1), nullptr, NewAddSampleCount);
  const UpdateCall call = UpdateWithCounts(JobConfig::HYBRID, 0, {7, 9}, {2, 5});
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
  EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(pss.Rows({9})[9], (std::vector<float>{6, 6, 6}));
}

TEST(PsEngineTest, ARuleThatNeedsSampleCountsGetsTheirSumsInOrderedSteps) {
  Pss pss(PsTestJob(JobConfig::SYNC, 2, 1), nullptr, NewAddSampleCount);
  Answers answers;
  for (const uint32_t rank : {1, 0}) {
    const UpdateCall call = UpdateWithCounts(JobConfig::SYNC, rank, {7}, {10 + rank});
    pss.Call(0, rpc::kUpdate, call.Message(), &answers);
  }
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(pss.Rows({7})[7], (std::vector<float>{22, 22, 22}));
}

TEST(PsEngineTest, AnUpdateWithoutTheSampleCountsThatARuleNeedsIsRefused) {
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1), nullptr, NewAddSampleCount);
  UpdateCall call = UpdateOf(JobConfig::HYBRID, 0, 0, {7}, {1, 2, 3});
  absl::Status status = pss.CallAndWait(0, rpc::kUpdate, call.Message()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("tables.counts"), absl::string_view::npos) << status;

  call = UpdateWithCounts(JobConfig::HYBRID, 0, {7}, {0});
  call.header.mutable_call()->set_number(2);
  status = pss.CallAndWait(0, rpc::kUpdate, call.Message()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("tables.counts"), absl::string_view::npos) << status;
  EXPECT_EQ(pss.engine().Stats()[0].rows(), 0);
}

TEST(PsEngineTest, RefusesAJobWhoseTableIsNotValid) {
  JobConfig job = PsTestJob(JobConfig::HYBRID, 1, 1);
  job.mutable_tables(0)->mutable_segments(0)->set_l2(-1);
  ManualExecutor executor;
  PsEngine::Options options;
  options.executor = &executor;
  options.disk_executor = &executor;
  EXPECT_EQ(PsEngine::Create(job, options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
