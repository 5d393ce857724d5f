// Test support: a run that seems to be in progress but does nothing. The test's process locks the
// run's folder, as a launcher does. It also serves as the coordinator; the test determines the
// coordinator's answers.

#ifndef SATRAP_DEPLOY_CLI_TESTING_FAKE_RUN_H_
#define SATRAP_DEPLOY_CLI_TESTING_FAKE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/testing/logged_run.h"
#include "proto/control.pb.h"

namespace satrap {

// Replaces a status in Script: the call is never answered.
inline constexpr char kSilent[] = "silent";
// Like kSilent, but the folder is also released, as if the run's process had ended.
inline constexpr char kGone[] = "gone";

// The folder of the run is dir_.
class FakeRunTest : public LoggedRunTest, private rpc::Handler {
 protected:
  static constexpr uint64_t kRunId = 77;

  // Starts the coordinator's server, with the status RUNNING in generation 1.
  void SetUp() override;
  void TearDown() override;

  // Sets the answers to the next calls of Status, one for each, in text format; the last one is
  // repeated.
  void Script(std::vector<std::string> statuses);
  // Answers each call of Wish with the wish's number or a refusal; calls come one at a time. The
  // function may call Script and change the run's log. By default a wish gets number 1.
  std::function<absl::StatusOr<uint64_t>(const WishRequest& wish)> on_wish_;
  // The number of wishes, counted from the first, that are never answered.
  int silent_wishes_ = 0;
  // Whether the run's folder is released when the coordinator answers STOPPED, as a launcher would
  // release it.
  bool is_released_ = true;
  // Wishes returns the wishes received so far, and StatusCalls the number of calls of Status.
  std::vector<WishRequest> Wishes();
  int StatusCalls();

  void StartCoordinator();
  void EndCoordinator() { server_.reset(); }
  // The address of the coordinator, whether it serves or not.
  const std::string& coordinator() const { return address_; }
  // Releases the run's folder, as if the process that runs the run had ended.
  void Release() { folder_.reset(); }

 private:
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;
  std::string NextStatus();
  void AnswerStatus(rpc::Callback respond);
  void AnswerWish(const rpc::Message& request, rpc::Callback respond);

  std::string address_;
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<rpc::GrpcServer> server_;
  Mutex calls_;  // held while a call is handled
  Mutex mutex_;
  std::vector<std::string> statuses_ GUARDED_BY(mutex_);
  int status_calls_ GUARDED_BY(mutex_) = 0;
  std::vector<WishRequest> wishes_ GUARDED_BY(mutex_);
  std::vector<rpc::Callback> unanswered_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TESTING_FAKE_RUN_H_
