// A coordinator for tests of CutEngine.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_FAKE_COMMITTER_H_
#define SATRAP_NN_WORKER_CHECKPOINT_FAKE_COMMITTER_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/role/coordinator_client.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/fake_cut_peer.h"

namespace satrap {

// A coordinator that expects all files of a cut to exist when it commits the cut.
class FakeCommitter final : public rpc::Handler {
 public:
  FakeCommitter(ManualExecutor* executor, std::string run)
      : commit_(NewFakeReceiver(executor)), run_(std::move(run)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    EXPECT_TRUE(method == kCommitCut);
    commit_.Receive<CommitCutRequest>(
        std::move(request), std::move(respond),
        [this](const rpc::PendingAnswer& call, const CommitCutRequest& commit, const Buffer&) {
          if (!fails.ok()) return call.Finish(fails);
          const auto manifest = ReadManifest(CheckpointsDir(run_) + "/" + commit.cut());
          EXPECT_TRUE(manifest.ok()) << manifest.status();
          for (const SavedFile& file : manifest->table_files()) {
            EXPECT_TRUE(std::filesystem::exists(CheckpointsDir(run_) + "/" + commit.cut() + "/" +
                                                file.name()));
          }
          CommitCutAnswer answer;
          if (!abandons.empty()) {
            answer.set_abandoned(abandons);
          } else {
            commits.push_back(commit);
          }
          if (!hangs) call.Finish(rpc::MessageOf(answer));
        });
  }

  std::vector<CommitCutRequest> commits;
  std::string abandons;  // why no entry can be written into the log; empty: all can
  bool hangs = false;    // no answer comes
  absl::Status fails;

 private:
  rpc::CallReceiver commit_;
  const std::string run_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_FAKE_COMMITTER_H_
