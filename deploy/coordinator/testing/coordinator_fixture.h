// Base class of tests of a coordinator's engine: a run in memory, its engine on executors that the
// test advances, and the calls that members make.

#ifndef SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_
#define SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/config/job_config.h"
#include "common/file/testing/memory_file_system.h"
#include "common/role/coordinator_client.h"
#include "common/role/protocol_fingerprint.h"
#include "common/testing/manual_executor.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "gtest/gtest.h"

namespace satrap {

class CoordinatorFixture : public ::testing::Test {
 protected:
  static constexpr char kRun[] = "/runs/small";
  // The incarnation of each member's first process.
  static constexpr uint64_t kFirst = 0xabc;
  static constexpr uint64_t kRunId = 0x1234567812345678;

  CoordinatorFixture();

  // Claims the next generation as another process would, and serves it instead of the current one.
  void Begin(const std::string& cause = "");
  // Like Begin, after a generation that ended with `ended`.
  void BeginAfter(const Ending& ended);
  // Begins a generation as `satrap resume` does, from the newest cut or from the cut named `from`.
  void Resume(const std::string& from = "");
  // Begins a generation as a coordinator in a pod does, for submission `submission`, after a
  // generation that ended with `ended`. From then on, all coordinators of this test are in pods.
  void BeginInPods(int submission, const Ending& ended = Ending());
  // Like BeginInPods, but in an empty folder.
  void BeginNewRunInPods();
  // Begins a run with the current `job_` in an empty folder.
  void BeginNewRun();
  // Makes another coordinator claim the next generation, which begins from `cut`.
  void Supersede(const std::string& cut = "");

  // Sends a request; `*result` is set when it is answered.
  template <typename Answer, typename Request>
  void Send(const rpc::Method& method, const Request& request, absl::StatusOr<Answer>* result) {
    rpc::Message message;
    message.header = request.SerializeAsString();
    *result = absl::UnknownError("not answered");
    engine_->Handle(method, std::move(message), [result](absl::StatusOr<rpc::Message> reply) {
      if (!reply.ok()) {
        *result = reply.status();
        return;
      }
      Answer answer;
      EXPECT_TRUE(answer.ParseFromString(reply->header));
      *result = answer;
    });
  }
  // Like Send, but then also runs all file work.
  template <typename Answer, typename Request>
  absl::StatusOr<Answer> Call(const rpc::Method& method, const Request& request) {
    absl::StatusOr<Answer> result = absl::UnknownError("");
    Send(method, request, &result);
    disk_executor_.RunReady();
    return result;
  }

  Envelope ThisRun() const;
  Envelope AnotherRun() const;

  RegisterRequest RegisterOf(Role role, int index, uint64_t incarnation = kFirst,
                             int64_t pid = 1) const;
  absl::Status Register(Role role, int index, uint64_t incarnation = kFirst, int64_t pid = 1);
  static std::string MemberAddress(Role role, int index);
  void RegisterAll();
  HeartbeatRequest HeartbeatOf(Role role, int index, uint64_t incarnation = kFirst) const;
  absl::StatusOr<HeartbeatAnswer> Heartbeat(Role role, int index, uint64_t incarnation = kFirst);
  // Registers all members and reports them as ready.
  void StartRun();
  void BeatAll();
  // Sends heartbeats of all members except those of the role `silent`, once a second, for
  // `seconds`.
  void Beat(int seconds, Role silent);
  // The request with which a member's first process reports a failure.
  FailRequest FailOf(Role role, int index, const std::string& reason, absl::StatusCode code) const;
  // Registers that process, unless it has registered, and reports its failure.
  FailAnswer Fail(Role role, int index, const std::string& reason,
                  absl::StatusCode code = absl::StatusCode::kNotFound);
  // Sends the heartbeat of a member that leaves its machine.
  absl::StatusOr<HeartbeatAnswer> SayLeaving(Role role, int index, uint64_t incarnation = kFirst);
  // Rank 0 reports a failure in the middle of another call's file work. Returns the answer.
  FailAnswer FailMeanwhile(absl::StatusCode code = absl::StatusCode::kUnavailable);
  FinishRequest FinishOf() const;
  void Finish() { EXPECT_TRUE(Call<FinishAnswer>(kFinish, FinishOf()).ok()); }

  std::string Folder(uint64_t cut) const { return FolderOfCut(kRun, CutName(generation_, cut)); }
  // Writes the files of cut number `cut` of this generation, at step 10 * cut.
  void MakeCut(uint64_t cut, uint64_t order = 0);
  // The request by which rank 0 commits cut number `cut`. It is numbered like rank 0's calls: `cut`
  // is also the call's number.
  CommitCutRequest CommitOf(uint64_t cut) const;
  // Makes the call. RESOURCE_EXHAUSTED if the answer is `abandoned`, UNAVAILABLE if it is WAIT.
  absl::Status Commit(const CommitCutRequest& request);
  absl::Status MakeAndCommit(uint64_t cut);
  absl::StatusOr<uint64_t> Wish(WishRequest::Kind kind, const JobConfig& job = JobConfig());
  // Commits a last cut, after which the ranks leave because of the wish `wish`.
  absl::Status Leave(uint64_t cut, uint64_t wish);
  // Makes disk operations that begin with `prefix` fail, as on a full disk.
  void Break(const std::string& prefix);
  // Runs `work` in the middle of the next append to the log, before its link.
  void WhileLinking(std::function<void()> work);
  RunState state() const { return engine_->Status().state(); }
  Ending ending() const { return engine_->Status().ending(); }
  std::string reason() const { return ending().text(); }
  RunLog Log();

 private:
  void Serve(ClaimRequest request);

 protected:
  JobConfig job_;
  uint64_t generation_ = 0;
  MemoryFileSystem disk_;
  ManualExecutor executor_;
  ManualExecutor disk_executor_;
  CoordinatorOptions options_;
  std::unique_ptr<CoordinatorEngine> engine_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_
