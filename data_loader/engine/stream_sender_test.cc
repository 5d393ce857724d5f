#include "data_loader/engine/stream_sender.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/batch/part_placement.h"
#include "common/rpc/hot_methods.h"
#include "common/testing/manual_executor.h"

namespace satrap {
namespace {

// Provides `batches` batches of `num_parts` parts in each epoch, without delay.
class FakeSource final : public PartSource {
 public:
  FakeSource(uint32_t lane, uint64_t batches, uint32_t num_parts, uint32_t first_epoch = 0)
      : lane_(lane), batches_(batches), num_parts_(num_parts), epoch_(first_epoch) {}

  void Next(Callback done) override {
    ++requested;
    if (!error.ok()) return done(error);
    if (seq_ == batches_) {
      seq_ = 0;
      ++epoch_;
      return done(absl::optional<Part>());
    }
    Part part;
    part.header.set_epoch(epoch_);
    PartId* id = part.header.mutable_part()->mutable_id();
    id->set_epoch(epoch_);
    id->set_lane(lane_);
    id->set_seq(seq_);
    id->set_part(part_);
    if (++part_ == num_parts_) {
      part_ = 0;
      ++seq_;
    }
    done(absl::optional<Part>(std::move(part)));
  }

  absl::Status error;
  int requested = 0;

 private:
  const uint32_t lane_;
  const uint64_t batches_;
  const uint32_t num_parts_;
  uint32_t epoch_;
  uint64_t seq_ = 0;
  uint32_t part_ = 0;
};

// Keeps calls until the test answers them.
class FakeWorker final : public rpc::Channel {
 public:
  struct Pending {
    PutBatchHeader header;
    rpc::Callback done;
  };
  void Call(const rpc::Method& method, rpc::Message request, int64_t, rpc::Callback done) override {
    EXPECT_TRUE(method == rpc::kPutBatch);
    Pending call;
    EXPECT_TRUE(call.header.ParseFromString(request.header));
    call.done = std::move(done);
    calls.push_back(std::move(call));
  }
  void Answer(size_t call, Outcome outcome = OUTCOME_DONE) {
    PutBatchAnswerHeader answer;
    answer.set_outcome(outcome);
    rpc::Callback done = std::move(calls[call].done);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(call));
    done(rpc::Message{answer.SerializeAsString(), Buffer()});
  }

  std::deque<Pending> calls;
};

// Returns "e0 l1 s2 p0" for a part, or "end e0" for the end of an epoch.
std::string Describe(const PutBatchHeader& header) {
  if (!header.has_part()) return absl::StrCat("end e", header.epoch());
  const PartId& id = header.part().id();
  return absl::StrCat("e", id.epoch(), " l", id.lane(), " s", id.seq(), " p", id.part());
}

class StreamSenderTest : public testing::Test {
 protected:
  void Make(bool ordered, uint32_t epochs, size_t max_open_parts, size_t num_workers = 1) {
    StreamSender::Options options;
    options.stream = TRAIN_STREAM;
    options.ordered = ordered;
    options.epochs = epochs;
    options.max_open_parts = max_open_parts;
    options.timeouts.silence_timeout_ms = 3000;
    options.first_epoch = first_epoch_;
    options.kill_points = kill_points_;
    std::vector<rpc::Channel*> channels;
    workers_.resize(num_workers);
    for (FakeWorker& worker : workers_) channels.push_back(&worker);
    std::vector<PartSource*> sources;
    for (FakeSource& source : sources_) sources.push_back(&source);
    sender_ = std::make_shared<StreamSender>(
        options, &executor_, channels, sources,
        [this](const absl::Status& status) { failures_.push_back(status); });
    sender_->Start();
    executor_.RunReady();
  }
  std::vector<std::string> Open(size_t worker = 0) const {
    std::vector<std::string> open;
    for (const auto& call : workers_[worker].calls) open.push_back(Describe(call.header));
    return open;
  }
  void Answer(size_t call, Outcome outcome = OUTCOME_DONE, size_t worker = 0) {
    workers_[worker].Answer(call, outcome);
    executor_.RunReady();
  }

  using Texts = std::vector<std::string>;
  uint32_t first_epoch_ = 0;
  KillPoints* kill_points_ = nullptr;
  ManualExecutor executor_;
  std::deque<FakeSource> sources_;
  std::deque<FakeWorker> workers_;
  std::vector<absl::Status> failures_;
  std::shared_ptr<StreamSender> sender_;
};

TEST_F(StreamSenderTest, UnorderedPartsGoToTheWorkersInTurnUpToTheLimit) {
  sources_.emplace_back(0, 3, 2);
  Make(false, 1, 3, 2);
  EXPECT_EQ(Open(0), (Texts{"e0 l0 s0 p0", "e0 l0 s1 p0"}));
  EXPECT_EQ(Open(1), (Texts{"e0 l0 s0 p1"}));
  Answer(1);
  EXPECT_EQ(Open(1).back(), "e0 l0 s1 p1");
}

TEST_F(StreamSenderTest, AFullWorkerDoesNotHoldUpTheOthers) {
  sources_.emplace_back(0, 100, 1);
  Make(false, 1, 8, 4);
  // Worker 2 accepts nothing. The other workers accept all their parts, one after another.
  size_t accepted = 0;
  for (size_t turn = 0; accepted < 98 && turn < 1000; ++turn) {
    const size_t worker = turn % 4;
    if (worker == 2 || workers_[worker].calls.empty()) continue;
    Answer(0, OUTCOME_DONE, worker);
    ++accepted;
  }
  EXPECT_EQ(accepted, 98u) << "all but those that worker 2 holds";
  EXPECT_EQ(Open(2).size(), 2u) << "its share of the open parts, and no more";
  EXPECT_TRUE(Open(0).empty());
}

TEST_F(StreamSenderTest, AWorkerThatAcceptsAgainGetsPartsAgain) {
  sources_.emplace_back(0, 100, 1);
  Make(false, 1, 4, 2);
  for (int i = 0; i < 10; ++i) Answer(0, OUTCOME_DONE, 1);
  ASSERT_EQ(Open(0).size(), 2u);
  const std::string last = Open(0).back();
  Answer(0, OUTCOME_DONE, 0);
  Answer(0, OUTCOME_DONE, 0);
  EXPECT_EQ(Open(0).size(), 2u);
  EXPECT_NE(Open(0).back(), last);
}

TEST_F(StreamSenderTest, TheEndIsToldToEveryWorkerWhenAllPartsAreAccepted) {
  sources_.emplace_back(0, 1, 2);
  Make(false, 2, 8, 2);
  Answer(0, OUTCOME_DONE, 0);
  EXPECT_TRUE(Open(0).empty()) << "the other part is not accepted yet";
  Answer(0, OUTCOME_DONE, 1);
  EXPECT_EQ(Open(0), (Texts{"end e0"}));
  EXPECT_EQ(Open(1), (Texts{"end e0"}));
  Answer(0, OUTCOME_DONE, 0);
  EXPECT_TRUE(Open(0).empty()) << "one worker does not know of the end yet";
  Answer(0, OUTCOME_DONE, 1);
  EXPECT_EQ(Open(0), (Texts{"e1 l0 s0 p0"}));
  EXPECT_EQ(Open(1), (Texts{"e1 l0 s0 p1"}));
  Answer(0, OUTCOME_DONE, 0);
  Answer(0, OUTCOME_DONE, 1);
  Answer(0, OUTCOME_DONE, 0);
  Answer(0, OUTCOME_DONE, 1);
  EXPECT_TRUE(Open(0).empty()) << "two epochs, and no more";
  EXPECT_EQ(sender_->epochs_sent(), 2u);
  EXPECT_EQ(sender_->counts().parts, 4u) << "the ends are no parts";
  EXPECT_EQ(sender_->counts().open_parts, 0u);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(StreamSenderTest, OrderedTheNextPartOfALaneLeavesWhenTheLastWasAccepted) {
  sources_.emplace_back(0, 3, 2);
  sources_.emplace_back(1, 3, 2);
  Make(true, 1, 100);
  EXPECT_EQ(Open(), (Texts{"e0 l0 s0 p0", "e0 l1 s0 p0", "e0 l0 s0 p1", "e0 l1 s0 p1"}));
  Answer(2);  // lane 0 part 1
  EXPECT_EQ(Open().back(), "e0 l0 s1 p1");
  Answer(3);
  EXPECT_EQ(Open().back(), "e0 l0 s2 p1");
  EXPECT_EQ(Open().size(), 4u);
  EXPECT_EQ(sender_->counts().parts, 2u);
  EXPECT_EQ(sender_->counts().open_parts, 10u) << "those that wait for another one, too";
}

TEST_F(StreamSenderTest, OrderedPartsGoToTheWorkerOfTheirPlace) {
  sources_.emplace_back(5, 1, 8);
  Make(true, 1, 100, 3);
  for (size_t worker = 0; worker < 3; ++worker) {
    for (const auto& call : workers_[worker].calls) {
      const PartId& id = call.header.part().id();
      EXPECT_EQ(WorkerOfPart(id.lane(), id.seq(), id.part(), 3), static_cast<int>(worker));
    }
  }
  EXPECT_EQ(Open(0).size() + Open(1).size() + Open(2).size(), 8u);
}

TEST_F(StreamSenderTest, APartIsRepeatedUnderItsNumberAtItsWorker) {
  sources_.emplace_back(0, 1, 1);
  Make(false, 1, 8, 2);
  ASSERT_EQ(Open(0).size(), 1u);
  rpc::Callback lost = std::move(workers_[0].calls[0].done);
  workers_[0].calls.clear();
  lost(absl::UnavailableError("lost"));
  executor_.AdvanceBy(1000 * 1000);
  ASSERT_EQ(Open(0), (Texts{"e0 l0 s0 p0"}));
  EXPECT_EQ(workers_[0].calls[0].header.call().number(), 1u);
  Answer(0, OUTCOME_WAIT);
  EXPECT_EQ(Open(0), (Texts{"e0 l0 s0 p0"})) << "WAIT is repeated too";
  EXPECT_TRUE(Open(1).empty());
}

TEST_F(StreamSenderTest, ARefusalIsReportedOnceAndEndsTheStream) {
  sources_.emplace_back(0, 10, 1);
  Make(false, 1, 2);
  rpc::Callback refused = std::move(workers_[0].calls[0].done);
  refused(absl::InvalidArgumentError("features: 2 in place of 3"));
  executor_.RunReady();
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_NE(failures_[0].message().find("PutBatch to embedding_worker 0"), std::string::npos);
  const int requested = sources_[0].requested;
  Answer(1);
  EXPECT_EQ(sources_[0].requested, requested);
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(StreamSenderTest, AnErrorOfTheSourceIsReported) {
  sources_.emplace_back(0, 1, 1);
  sources_[0].error = absl::DataLossError("day_3.gz ends early");
  Make(false, 1, 2);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].code(), absl::StatusCode::kDataLoss);
}

TEST_F(StreamSenderTest, ALoaderWithoutLanesStillEndsItsEpochs) {
  Make(true, 2, 8);
  EXPECT_EQ(Open(), (Texts{"end e0"}));
  Answer(0);
  EXPECT_EQ(Open(), (Texts{"end e1"}));
  Answer(0);
  EXPECT_TRUE(Open().empty());
}

TEST_F(StreamSenderTest, AStreamThatGoesOnBeginsAtItsEpoch) {
  first_epoch_ = 2;
  sources_.emplace_back(0, 1, 1, 2);
  Make(false, 4, 8);
  EXPECT_EQ(Open(), (Texts{"e2 l0 s0 p0"}));
  EXPECT_EQ(sender_->epochs_sent(), 2u);
  Answer(0);
  EXPECT_EQ(Open(), (Texts{"end e2"}));
  Answer(0);
  EXPECT_EQ(Open(), (Texts{"e3 l0 s0 p0"}));
  Answer(0);
  Answer(0);
  EXPECT_TRUE(Open().empty());
}

TEST_F(StreamSenderTest, DiesWhenAPartIsAcceptedIfTheJobSaysSo) {
  JobConfig job;
  job.add_kill_points()->set_point(KillPoint::LOADER_AFTER_PUT);
  job.mutable_kill_points(0)->set_visit(2);
  int killed = 0;
  KillPoints kill_points(job, 0, 1, [&] { ++killed; });
  kill_points_ = &kill_points;
  sources_.emplace_back(0, 1, 1);
  Make(false, 2, 8);
  Answer(0, OUTCOME_WAIT);
  EXPECT_EQ(killed, 0);
  Answer(0);
  Answer(0);  // the epoch's end
  EXPECT_EQ(killed, 0);
  Answer(0);
  EXPECT_EQ(killed, 1);
}

TEST_F(StreamSenderTest, NothingIsSentAfterAStop) {
  sources_.emplace_back(0, 10, 1);
  Make(false, 1, 1);
  sender_->Stop();
  executor_.RunReady();
  Answer(0);
  EXPECT_TRUE(Open().empty());
  EXPECT_TRUE(failures_.empty());
}

}  // namespace
}  // namespace satrap
