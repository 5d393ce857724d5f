// The base of tests of a role's process: a fake coordinator, and cases that each run in a separate
// process, so that the test sees from outside how it ends.

#ifndef SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_
#define SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/role/ending.h"
#include "common/role/role_runtime.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"

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
  // Sets a failure that came before the role's.
  void SetFirstCause(const Ending& cause) {
    MutexLock lock(&mutex_);
    first_cause_ = cause;
  }
  // From now on the run is starting, until a heartbeat says that the role is ready.
  void StartWhenReady() {
    MutexLock lock(&mutex_);
    state_ = STARTING;
    starts_when_ready_ = true;
  }
  // Call before the role starts.
  void RefuseRegister(const absl::Status& error) { register_error_ = error; }
  // Call before the role starts. This many times it gets the answer that its generation is over and
  // the next one is not there yet.
  void LetWait(int times) {
    MutexLock lock(&mutex_);
    waits_left_ = times;
  }
  int waits_left() {
    MutexLock lock(&mutex_);
    return waits_left_;
  }
  // How many heartbeats said that their sender knows the members, and got an answer without them.
  int heartbeats_with_members() {
    MutexLock lock(&mutex_);
    return heartbeats_with_members_;
  }
  void SetJob(const JobConfig& job) { job_ = job; }
  // Deals the partitions of these splits to loader 1, unless a heartbeat says that they are known.
  void Deal(const std::vector<uint32_t>& splits) {
    MutexLock lock(&mutex_);
    dealt_ = splits;
  }
  void RefuseHeartbeats() {
    MutexLock lock(&mutex_);
    refuses_heartbeats_ = true;
  }
  void AwaitHeartbeats(int count) {
    MutexLock lock(&mutex_);
    const int enough = heartbeats_ + count;
    while (heartbeats_ < enough) changed_.Wait(&mutex_);
  }
  RunState state() {
    MutexLock lock(&mutex_);
    return state_;
  }
  void FallSilent() {
    MutexLock lock(&mutex_);
    silent_ = true;
  }
  // Waits until `count` heartbeats have been left unanswered.
  void AwaitUnanswered(size_t count) {
    MutexLock lock(&mutex_);
    while (unanswered_.size() < count) changed_.Wait(&mutex_);
  }

 private:
  bool silent() {
    MutexLock lock(&mutex_);
    return silent_;
  }
  void KeepUnanswered(rpc::Callback respond) {
    MutexLock lock(&mutex_);
    unanswered_.push_back(std::move(respond));
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<rpc::Callback> unanswered_ GUARDED_BY(mutex_);
  bool silent_ GUARDED_BY(mutex_) = false;
  bool refuses_heartbeats_ GUARDED_BY(mutex_) = false;
  bool starts_when_ready_ GUARDED_BY(mutex_) = false;
  absl::optional<absl::Status> register_error_;
  JobConfig job_;
  int heartbeats_ GUARDED_BY(mutex_) = 0;
  int heartbeats_with_members_ GUARDED_BY(mutex_) = 0;
  int waits_left_ GUARDED_BY(mutex_) = 0;
  std::vector<uint32_t> dealt_ GUARDED_BY(mutex_);
  uint64_t incarnation_ GUARDED_BY(mutex_) = 0;
  RunState state_ GUARDED_BY(mutex_) = RUNNING;
  absl::optional<Ending> first_cause_ GUARDED_BY(mutex_);
  Member member_ GUARDED_BY(mutex_);
};

using Body = std::function<absl::Status(RoleRuntime&, FakeCoordinator&)>;
using Prepare = std::function<void(FakeCoordinator&)>;

// Where the role of the running test leaves its Ending; the same path in the process of its case.
std::string EndingPathOfTest();

// Runs a coordinator, which `prepare` may change first, and a role with `body`, in the process of
// the test case. Exits with the role's code.
[[noreturn]] void RunCase(const Body& body, const Prepare& prepare = nullptr);

class RoleRuntimeTest : public ::testing::Test {
 protected:
  RoleRuntimeTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  ~RoleRuntimeTest() override { std::remove(EndingPathOfTest().c_str()); }
  // What the role of the last case has left; empty if it left nothing.
  static Ending Left() { return ReadEnding(EndingPathOfTest()).value_or(Ending()); }
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_
