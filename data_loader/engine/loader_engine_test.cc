#include "data_loader/engine/loader_engine.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/testing/manual_executor.h"

namespace satrap {
namespace {

// Gives one part of zero samples in each epoch.
class OnePart final : public PartSource {
 public:
  explicit OnePart(Stream stream) : stream_(stream) {}
  void Next(Callback done) override {
    given_ = !given_;
    if (!given_) {
      ++epoch_;
      return done(absl::optional<Part>());
    }
    Part part;
    part.header.set_stream(stream_);
    part.header.set_epoch(epoch_);
    part.header.mutable_part()->mutable_id()->set_epoch(epoch_);
    done(absl::optional<Part>(std::move(part)));
  }

 private:
  const Stream stream_;
  bool given_ = false;
  uint32_t epoch_ = 0;
};

// Accepts every part until it has received `limit` calls.
class GenerousWorker final : public rpc::Channel {
 public:
  void Call(const rpc::Method&, rpc::Message request, int64_t, rpc::Callback done) override {
    PutBatchHeader header;
    EXPECT_TRUE(header.ParseFromString(request.header));
    headers.push_back(std::move(header));
    if (headers.size() > limit) return;
    done(rpc::Message{PutBatchAnswerHeader().SerializeAsString(), Buffer()});
  }
  size_t limit = 20;
  std::vector<PutBatchHeader> headers;
};

TEST(LoaderEngineTest, StreamsDoNotWaitForEachOtherAndEvaluationGoesOn) {
  ManualExecutor executor;
  GenerousWorker worker;
  OnePart train(TRAIN_STREAM), valid(VALID_STREAM);
  LoaderEngine::Options options;
  options.loader_index = 3;
  options.envelope.set_job_fingerprint(77);
  std::vector<absl::Status> failures;
  LoaderEngine engine(
      options, {{{TRAIN_STREAM, true, 2}, {&train}}, {{VALID_STREAM, false, 0}, {&valid}}},
      {&worker}, &executor, [&](const absl::Status& status) { failures.push_back(status); });
  engine.Start();
  executor.RunReady();
  std::vector<uint32_t> train_epochs, valid_epochs;
  uint64_t numbers[2] = {0, 0};
  for (const PutBatchHeader& header : worker.headers) {
    const bool is_train = header.stream() == TRAIN_STREAM;
    (is_train ? train_epochs : valid_epochs).push_back(header.epoch());
    EXPECT_EQ(header.call().sender(), 3u);
    EXPECT_EQ(header.call().number(), ++numbers[is_train ? 0 : 1]) << "numbers are a stream's own";
    EXPECT_EQ(header.envelope().job_fingerprint(), 77u);
  }
  EXPECT_EQ(train_epochs, (std::vector<uint32_t>{0, 0, 1, 1}));
  EXPECT_GE(valid_epochs.size(), 16u);
  EXPECT_GE(valid_epochs.back(), 7u);
  engine.Stop();
  executor.RunReady();
  EXPECT_TRUE(failures.empty());
}

}  // namespace
}  // namespace satrap
