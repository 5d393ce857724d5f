#include "data_loader/batch/parsed_part_source.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/manual_executor.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

// Keeps each request for a split until the test answers it.
class SlowSupply final : public SplitSupply {
 public:
  void NextSplit(uint32_t epoch, Callback done) override {
    epochs.push_back(epoch);
    open.push_back(std::move(done));
  }
  std::vector<uint32_t> epochs;
  std::vector<Callback> open;
};

// Returns the given results, one per call, and appends its name to `calls` at each call. Its
// batches have one part without samples.
class ScriptedMaker final : public BatchMaker {
 public:
  ScriptedMaker(char name, std::vector<Result> results, std::string* calls)
      : name_(name), results_(std::move(results)), calls_(calls) {}

  void BeginEpoch(uint32_t) override { next_ = 0; }
  void AddSplit(uint32_t) override {}
  void EndSplits() override {}
  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    *calls_ += name_;
    parts->assign(1, Part());
    return results_.at(next_++);
  }

 private:
  const char name_;
  const std::vector<Result> results_;
  std::string* const calls_;
  size_t next_ = 0;
};

class ParsedPartSourceTest : public testing::Test {
 protected:
  void Make(int rows, Stream stream, SplitSupply* supply, size_t capacity_parts = 4,
            int num_makers = 1, StreamBegin begin = {}) {
    JobConfig job;
    if (ordered_) job.set_mode(JobConfig::SYNC);
    SyntheticFormat* synthetic = job.mutable_data()->mutable_synthetic();
    synthetic->set_train_samples(rows);
    synthetic->set_valid_samples(rows);
    synthetic->set_numeric_features(0);
    synthetic->add_vocabulary_sizes(10);
    synthetic->set_interacting_features(0);
    job.mutable_data()->add_features()->set_name("C1");
    job.mutable_data()->set_split_rows(10);
    job.set_global_batch_size(10);
    job.mutable_nn_worker()->set_replicas(2);
    spec_ = *StreamSpec::Make(job, stream, &progress_, std::move(begin));
    ParsedPartSource::Options options;
    options.lane = 6;
    options.capacity_parts = capacity_parts;
    options.num_makers = num_makers;
    options.first_seq = first_seq_;
    options.has_left = has_left_;
    options.new_maker = new_maker_;
    source_ = std::make_unique<ParsedPartSource>(spec_, options, &executor_, supply);
  }
  // Calls Next. Returns "e0 s1 p0 n5" (epoch, seq, part, samples), "end", "error: ..." or "nothing
  // yet".
  std::string Next() {
    if (!asked_) {
      asked_ = true;
      source_->Next([this](absl::StatusOr<absl::optional<Part>> part) {
        asked_ = false;
        answer_ = Describe(part);
      });
    }
    executor_.RunReady();
    return asked_ ? "nothing yet" : answer_;
  }
  static std::string Describe(const absl::StatusOr<absl::optional<Part>>& part) {
    if (!part.ok()) return absl::StrCat("error: ", part.status().message());
    if (!part->has_value()) return "end";
    const PartDescription& description = (*part)->header.part();
    EXPECT_EQ(description.id().lane(), 6u);
    return absl::StrCat("e", description.id().epoch(), " s", description.id().seq(), " p",
                        description.id().part(), " n", description.samples());
  }

  bool ordered_ = false;
  uint64_t first_seq_ = 0;
  bool has_left_ = false;
  std::function<std::unique_ptr<BatchMaker>(int)> new_maker_;
  ManualExecutor executor_;
  ReadProgress progress_{ReadProgress::Options()};
  std::shared_ptr<const StreamSpec> spec_;
  std::unique_ptr<ParsedPartSource> source_;
  bool asked_ = false;
  std::string answer_;
};

TEST_F(ParsedPartSourceTest, GivesTheBatchesOfEachEpochAndItsEnd) {
  StaticSplits splits(0, 1, 2);
  Make(15, TRAIN_STREAM, &splits);
  for (int e = 0; e < 2; ++e) {
    EXPECT_EQ(Next(), absl::StrCat("e", e, " s0 p0 n5"));
    EXPECT_EQ(Next(), absl::StrCat("e", e, " s0 p1 n5"));
    EXPECT_EQ(Next(), absl::StrCat("e", e, " s1 p0 n2"));
    EXPECT_EQ(Next(), absl::StrCat("e", e, " s1 p1 n3"));
    EXPECT_EQ(Next(), "end");
  }
}

TEST_F(ParsedPartSourceTest, BeginsAtItsEpochAndSeq) {
  StaticSplits splits(0, 1, 1);
  StreamBegin begin;
  begin.epoch = 3;
  first_seq_ = 7;
  Make(10, TRAIN_STREAM, &splits, 4, 1, begin);
  EXPECT_EQ(Next(), "e3 s7 p0 n5");
  EXPECT_EQ(Next(), "e3 s7 p1 n5");
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(Next(), "e4 s0 p0 n5");
}

TEST_F(ParsedPartSourceTest, ALaneThatHasLeftSendsNothingInThatEpoch) {
  StaticSplits splits(0, 1, 0);
  ordered_ = true;
  has_left_ = true;
  first_seq_ = 1;
  Make(10, TRAIN_STREAM, &splits);
  EXPECT_EQ(Next(), "end") << "not even its batch of no samples";
  EXPECT_EQ(Next(), "e1 s0 p0 n0");
}

TEST_F(ParsedPartSourceTest, ReadsAheadUpToItsCapacity) {
  StaticSplits splits(0, 1, 100);
  Make(1000, TRAIN_STREAM, &splits, 4);
  EXPECT_EQ(Next(), "e0 s0 p0 n5");
  // Two batches gave four parts. One part was taken, so only three were left in the queue, and a
  // third batch was made.
  EXPECT_EQ(progress_.Snapshot().records(), 30u);
  EXPECT_EQ(source_->ready_parts(), 5u);
}

TEST_F(ParsedPartSourceTest, WaitsForTheSupplyWithoutHoldingAThread) {
  SlowSupply supply;
  Make(20, TRAIN_STREAM, &supply);
  EXPECT_EQ(Next(), "nothing yet");
  ASSERT_EQ(supply.open.size(), 1u);
  supply.open[0](absl::optional<uint32_t>(1));
  EXPECT_EQ(Next(), "e0 s0 p0 n5");
  EXPECT_EQ(Next(), "e0 s0 p1 n5");
  EXPECT_EQ(Next(), "nothing yet");
  supply.open.back()(absl::optional<uint32_t>());
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(supply.open.size(), 2u);
  EXPECT_EQ(Next(), "nothing yet");
  EXPECT_EQ(supply.epochs.back(), 1u);
}

TEST_F(ParsedPartSourceTest, SeveralMakersShareTheSplits) {
  StaticSplits splits(0, 1, 5);
  Make(50, TRAIN_STREAM, &splits, 100, 3);
  int samples = 0;
  int parts = 0;
  for (std::string text = Next(); text != "end"; text = Next()) {
    ASSERT_NE(text, "nothing yet");
    samples += std::stoi(text.substr(text.find('n') + 1));
    ++parts;
  }
  EXPECT_EQ(samples, 50);
  EXPECT_EQ(parts, 10);
}

TEST_F(ParsedPartSourceTest, APassWithoutRecordsHasOnePartOfNoSamples) {
  StaticSplits splits(1, 2, 1);
  Make(10, VALID_STREAM, &splits, 4, 2);
  EXPECT_EQ(Next(), "e0 s0 p0 n0");
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(Next(), "e1 s0 p0 n0");
}

TEST_F(ParsedPartSourceTest, AnErrorOfTheSupplyIsTheAnswer) {
  SlowSupply supply;
  Make(20, TRAIN_STREAM, &supply);
  Next();
  supply.open[0](absl::UnavailableError("no coordinator"));
  EXPECT_EQ(Next(), "error: no coordinator");
}

TEST_F(ParsedPartSourceTest, AMakerThatHasNothingYetIsAskedAgainAfterTheOthers) {
  constexpr auto kNothing = BatchMaker::Result::kNothingYet;
  constexpr auto kBatch = BatchMaker::Result::kBatch;
  constexpr auto kEnd = BatchMaker::Result::kEnd;
  std::string calls;
  const std::vector<std::vector<BatchMaker::Result>> scripts = {
      {kNothing, kNothing, kNothing, kNothing, kBatch, kEnd},
      {kNothing, kBatch, kBatch, kEnd},
      {kBatch, kNothing, kBatch, kEnd}};
  new_maker_ = [&](int maker) {
    return std::make_unique<ScriptedMaker>(static_cast<char>('a' + maker),
                                           scripts[static_cast<size_t>(maker)], &calls);
  };
  StaticSplits splits(0, 1, 0);
  Make(10, TRAIN_STREAM, &splits, 100, 3);
  for (int seq = 0; seq < 5; ++seq) EXPECT_EQ(Next(), absl::StrCat("e0 s", seq, " p0 n0"));
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(calls, "abcabcabcabcaa") << "no maker is asked twice while another one waits";
}

TEST_F(ParsedPartSourceTest, AStreamThatIsQuietIsNotAskedWhileItsQueueIsFull) {
  constexpr auto kNothing = BatchMaker::Result::kNothingYet;
  constexpr auto kBatch = BatchMaker::Result::kBatch;
  std::string calls;
  new_maker_ = [&](int) {
    return std::make_unique<ScriptedMaker>(
        'a', std::vector{kNothing, kBatch, kBatch, kNothing, kBatch, kBatch, kBatch}, &calls);
  };
  StaticSplits splits(0, 1, 0);
  Make(10, TRAIN_STREAM, &splits, 2);
  EXPECT_EQ(Next(), "e0 s0 p0 n0");
  EXPECT_EQ(calls.size(), 5u) << "two parts wait";
  EXPECT_EQ(source_->ready_parts(), 2u);
  EXPECT_EQ(executor_.num_ready(), 0u) << "the thread is free";
}

TEST_F(ParsedPartSourceTest, NothingIsAnsweredAfterItIsGone) {
  SlowSupply supply;
  Make(20, TRAIN_STREAM, &supply);
  EXPECT_EQ(Next(), "nothing yet");
  source_ = nullptr;
  supply.open[0](absl::optional<uint32_t>(1));
  executor_.RunReady();
  EXPECT_TRUE(asked_);
}

}  // namespace
}  // namespace satrap
