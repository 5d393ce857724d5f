// A fake coordinator for tests of one role's process. It answers like a coordinator whose run is in
// a state that the test sets, and it can also lose, refuse and garble answers.
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_TESTING_FAKE_COORDINATOR_H_
#define SATRAP_COMMON_ROLE_TESTING_FAKE_COORDINATOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr uint64_t kRunId = 0x1234567812345678;

// Answers like a coordinator whose run is in `state`.
class FakeCoordinator final : public rpc::Handler {
 public:
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;
  void SetState(RunState state) {
    MutexLock lock(&mutex_);
    state_ = state;
  }
  // Sets a failure that was reported to the coordinator before the role's own failure.
  void SetFirstCause(const Ending& cause) {
    MutexLock lock(&mutex_);
    first_cause_ = cause;
  }
  // Puts the run into STARTING until a heartbeat says that the role is ready.
  void StartWhenReady();
  // Call before the role starts.
  void RefuseRegister(const absl::Status& error) { register_error_ = error; }
  // Call before the role starts. The first `times` attempts to register are answered with the
  // request to wait, as if the generation were over and the next one had not begun yet.
  void LetWait(int times) {
    MutexLock lock(&mutex_);
    waits_left_ = times;
  }
  // From now on the answers to heartbeats say that another process has the place.
  void TellThatAnotherHasThePlace() {
    MutexLock lock(&mutex_);
    place_is_taken_ = true;
  }
  // The last request by which the role registered.
  RegisterRequest registration() {
    MutexLock lock(&mutex_);
    return registration_;
  }
  int waits_left() {
    MutexLock lock(&mutex_);
    return waits_left_;
  }
  // The number of heartbeats whose sender said that it knows the members, so that the answer left
  // the members out.
  int heartbeats_with_members() {
    MutexLock lock(&mutex_);
    return heartbeats_with_members_;
  }
  void SetJob(const JobConfig& job) { job_ = job; }
  // Call before the role starts. The answer to Register tells the role that a SIGTERM asks it to
  // move, not to stop the run.
  void LetLeave() { lets_leave_ = true; }
  int AwaitLeaving();  // a heartbeat that says so; returns how many wishes have come
  // Deals the partitions of these splits to loader 1, except those that a heartbeat reports as
  // known.
  void Deal(const std::vector<uint32_t>& splits) {
    MutexLock lock(&mutex_);
    dealt_ = splits;
  }
  void RefuseHeartbeats(
      const absl::Status& error = absl::FailedPreconditionError("the call belongs to another run"));
  // Answers heartbeats with bytes that are not a message.
  void GarbleHeartbeats() {
    MutexLock lock(&mutex_);
    garbles_heartbeats_ = true;
  }
  // Leaves Fail unanswered.
  void IgnoreFailures() {
    MutexLock lock(&mutex_);
    ignores_failures_ = true;
  }
  // Answers the first `count` wishes with this error.
  void RefuseWishes(int count, const absl::Status& error);
  // Waits until at least `count` wishes have come. Returns the number of wishes so far.
  int AwaitWishes(int count);
  // Waits for `count` more heartbeats. Heartbeats that are answered with an error or with garbage
  // count, too; those that are left unanswered after FallSilent do not.
  void AwaitHeartbeats(int count);
  RunState state() {
    MutexLock lock(&mutex_);
    return state_;
  }
  // From now on Register and heartbeats are left unanswered.
  void FallSilent() {
    MutexLock lock(&mutex_);
    silent_ = true;
  }
  // Waits until `count` calls were left unanswered.
  void AwaitUnanswered(size_t count);

 private:
  // Each of these functions returns the answer to the call that it is named after.
  absl::StatusOr<rpc::Message> Register(const rpc::Message& request);
  absl::StatusOr<rpc::Message> Heartbeat(const rpc::Message& request);
  absl::StatusOr<rpc::Message> Wish(const rpc::Message& request);
  // Answers the call, or leaves it unanswered.
  void Fail(const rpc::Message& request, rpc::Callback respond);

  bool silent() {
    MutexLock lock(&mutex_);
    return silent_;
  }
  void KeepUnanswered(rpc::Callback respond);

  Mutex mutex_;
  CondVar changed_;
  std::vector<rpc::Callback> unanswered_ GUARDED_BY(mutex_);
  bool silent_ GUARDED_BY(mutex_) = false;
  absl::Status heartbeat_error_ GUARDED_BY(mutex_);
  bool garbles_heartbeats_ GUARDED_BY(mutex_) = false;
  bool ignores_failures_ GUARDED_BY(mutex_) = false;
  int wishes_ GUARDED_BY(mutex_) = 0;
  int wishes_to_refuse_ GUARDED_BY(mutex_) = 0;
  absl::Status wish_error_ GUARDED_BY(mutex_);
  bool starts_when_ready_ GUARDED_BY(mutex_) = false;
  absl::optional<absl::Status> register_error_;
  JobConfig job_;
  bool lets_leave_ = false;
  bool leaving_ GUARDED_BY(mutex_) = false;
  int heartbeats_ GUARDED_BY(mutex_) = 0;
  int heartbeats_with_members_ GUARDED_BY(mutex_) = 0;
  int waits_left_ GUARDED_BY(mutex_) = 0;
  std::vector<uint32_t> dealt_ GUARDED_BY(mutex_);
  uint64_t incarnation_ GUARDED_BY(mutex_) = 0;
  RunState state_ GUARDED_BY(mutex_) = RUNNING;
  absl::optional<Ending> first_cause_ GUARDED_BY(mutex_);
  RegisterRequest registration_ GUARDED_BY(mutex_);
  bool place_is_taken_ GUARDED_BY(mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_TESTING_FAKE_COORDINATOR_H_
