// A role's process against a fake coordinator. Each case runs in a process of its own, and the test
// checks from outside how it ends.

#include "common/role/role_runtime.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/config/job_config.h"
#include "common/rpc/endpoints.h"
#include "common/testing/denormal_probe.h"
#include "common/thread/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr uint64_t kRunId = 0x1234567812345678;

// Answers as a coordinator whose run is in `state`.
class FakeCoordinator final : public rpc::Handler {
 public:
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    rpc::Message answer;
    if (method == kRegister) {
      RegisterRequest call;
      call.ParseFromString(request.header);
      MutexLock lock(&mutex_);
      member_ = call.member();
      incarnation_ = call.incarnation();
      if (incarnation_ == 0) abort();
      RegisterAnswer registered;
      registered.mutable_envelope()->set_run_id(kRunId);
      registered.mutable_envelope()->set_generation(3);
      answer.header = registered.SerializeAsString();
    } else if (method == kHeartbeat) {
      if (silent()) return KeepUnanswered(std::move(respond));
      HeartbeatRequest call;
      call.ParseFromString(request.header);
      HeartbeatAnswer beat;
      MutexLock lock(&mutex_);
      if (call.envelope().run_id() != kRunId || call.incarnation() != incarnation_) abort();
      if (refuses_heartbeats_) {
        respond(absl::FailedPreconditionError("the call belongs to another run"));
        return;
      }
      ++heartbeats_;
      if (state_ == STARTING && starts_when_ready_ && call.ready()) state_ = RUNNING;
      changed_.NotifyAll();
      beat.set_state(state_);
      beat.set_stop_reason("somebody else broke");
      *beat.add_members() = member_;
      answer.header = beat.SerializeAsString();
    } else if (method == kFail) {
      FailRequest call;
      call.ParseFromString(request.header);
      if (call.envelope().run_id() != kRunId) abort();
      fprintf(stderr, "coordinator was told: %s\n", call.reason().c_str());
      FailAnswer told;
      MutexLock lock(&mutex_);
      told.set_stop_reason(first_cause_.empty() ? "nn_worker 0: " + call.reason() : first_cause_);
      answer.header = told.SerializeAsString();
    } else if (method == kFinish) {
      SetState(FINISHED);
    }
    respond(std::move(answer));
  }
  void SetState(RunState state) {
    MutexLock lock(&mutex_);
    state_ = state;
  }
  void SetFirstCause(const std::string& cause) {
    MutexLock lock(&mutex_);
    first_cause_ = cause;
  }
  // From now on the run is starting until a heartbeat says that the role is ready.
  void StartWhenReady() {
    MutexLock lock(&mutex_);
    state_ = STARTING;
    starts_when_ready_ = true;
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
  int heartbeats_ GUARDED_BY(mutex_) = 0;
  uint64_t incarnation_ GUARDED_BY(mutex_) = 0;
  RunState state_ GUARDED_BY(mutex_) = RUNNING;
  std::string first_cause_ GUARDED_BY(mutex_);
  Member member_ GUARDED_BY(mutex_);
};

constexpr char kJob[] = R"(
  name: "tiny"
  data {
    synthetic {
      numeric_features: 1
      interacting_features: 0
    }
    numerics { name: "I1" }
  }
  model {
    layers { name: "logit" inputs: "numeric" linear { units: 1 } }
  }
)";

using Body = std::function<absl::Status(RoleRuntime&, FakeCoordinator&)>;

// Runs a coordinator and a role with `body` in the process of the test case. Exits with the role's
// code.
[[noreturn]] void RunCase(const Body& body, bool run_is_starting = false) {
  std::string dir = ::testing::TempDir() + "role_runtime_test.XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) abort();
  std::ofstream(dir + "/job.textproto") << kJob;
  // A relative path, because a socket's path must not exceed 107 bytes and the folder's may.
  if (chdir(dir.c_str()) != 0) abort();
  const std::string address = "unix:coordinator";
  FakeCoordinator coordinator;
  if (run_is_starting) coordinator.StartWhenReady();
  // The server's threads start before the role and must not take its signals, so block them here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const rpc::Method methods[] = {kRegister, kHeartbeat, kFail, kFinish};
  auto server = rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{methods, &coordinator}});
  if (!server.ok()) abort();
  std::vector<std::string> args = {"nn_worker", "--config=" + dir + "/job.textproto",
                                   "--coordinator=" + address, "--advertise=127.0.0.1"};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  const int code = RunRole(NN_WORKER, static_cast<int>(argv.size()), argv.data(),
                           [&](RoleRuntime& runtime) { return body(runtime, coordinator); });
  (*server)->Shutdown(0);
  exit(code);
}

class RoleRuntimeTest : public ::testing::Test {
 protected:
  RoleRuntimeTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(RoleRuntimeTest, ARunThatFinishesEndsTheProcessWell) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                if (runtime.AddressOf(NN_WORKER, 0) != "127.0.0.1") abort();
                const absl::Status finished = runtime.Finish(RunResult());
                runtime.WaitForFinish();
                return finished;
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, TheMainThreadFlushesDenormalsToZero) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                if (!FlushesToZeroHere()) abort();
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                const absl::Status finished = runtime.Finish(RunResult());
                runtime.WaitForFinish();
                return finished;
              }),
              ::testing::ExitedWithCode(0), "");
}

// What a role loads before it is ready may take longer than the coordinator waits for a heartbeat.
TEST_F(RoleRuntimeTest, ARoleHasItsRunAndSendsHeartbeatsBeforeItIsReady) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    if (runtime.envelope().run_id() != kRunId) abort();
                    if (runtime.envelope().generation() != 3) abort();
                    coordinator.AwaitHeartbeats(3);
                    if (coordinator.state() != STARTING) abort();
                    const absl::Status joined = runtime.Join();
                    if (!joined.ok()) return joined;
                    if (coordinator.state() != RUNNING) abort();
                    const absl::Status finished = runtime.Finish(RunResult());
                    runtime.WaitForFinish();
                    return finished;
                  },
                  /*run_is_starting=*/true),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, ARoleThatIsRefusedAsOfAnotherRunExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.RefuseHeartbeats();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(1),
              "the coordinator at unix:coordinator refuses nn_worker 0: .*another run");
}

TEST_F(RoleRuntimeTest, AFailureIsToldToTheCoordinatorAndExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                runtime.failure_sink()(absl::DataLossError("rows are gone"));
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1), "coordinator was told: rows are gone");
}

TEST_F(RoleRuntimeTest, AnErrorOfTheBodyIsAFailure) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime&, FakeCoordinator&) { return absl::NotFoundError("no such model"); }),
      ::testing::ExitedWithCode(1), "error +nn_worker/0 no such model");
}

// Ends the process with another code than the runtime does.
struct ExitsWhenItGoes {
  ~ExitsWhenItGoes() { _exit(7); }
};

TEST_F(RoleRuntimeTest, AFailureAfterAnothersIsLoggedAsItsEcho) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
        const absl::Status joined = runtime.Join();
        if (!joined.ok()) return joined;
        coordinator.SetFirstCause("nn_worker 1: the model is damaged");
        return absl::UnavailableError("connection closed by peer");
      }),
      ::testing::ExitedWithCode(1),
      "connection closed by peer.*\n.*the run has failed: nn_worker 1: the model is damaged");
}

TEST_F(RoleRuntimeTest, AnErrorIsToldBeforeAnythingOfTheBodyGoes) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                const ExitsWhenItGoes owned;
                runtime.ExitUnlessOk(absl::OkStatus());
                runtime.ExitUnlessOk(absl::DataLossError("the model is damaged"));
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1), "coordinator was told: the model is damaged");
}

TEST_F(RoleRuntimeTest, AnErrorAfterTheEndIsLoggedAndExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                const absl::Status finished = runtime.Finish(RunResult());
                if (!finished.ok()) return finished;
                runtime.WaitForFinish();
                return absl::DataLossError("the last file is not written");
              }),
              ::testing::ExitedWithCode(1), "error +nn_worker/0 the last file is not written");
}

TEST_F(RoleRuntimeTest, AProgressSourceIsNotCalledOnceItsRegistrationIsGone) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                {
                  const auto registration =
                      runtime.SetProgressSource([](HeartbeatRequest*) { abort(); });
                }
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.SetState(FINISHED);
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(0), "");
}

// How often the threads of this process go to sleep within 300 ms by the runtime's timer.
int64_t SleepsIn300Ms(RoleRuntime& runtime) {
  Mutex mutex;
  CondVar changed;
  bool over = false;
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  runtime.executor()->PostAfter(300 * 1000, [&] {
    MutexLock lock(&mutex);
    over = true;
    changed.NotifyAll();
  });
  MutexLock lock(&mutex);
  while (!over) changed.Wait(&mutex);
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

TEST_F(RoleRuntimeTest, NothingPollsBeforeTheRoleIsReady) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const int64_t sleeps = SleepsIn300Ms(runtime);
                fprintf(stderr, "%s sleeps: %d\n", sleeps < 100 ? "few" : "many",
                        static_cast<int>(sleeps));
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                const absl::Status finished = runtime.Finish(RunResult());
                runtime.WaitForFinish();
                return finished;
              }),
              ::testing::ExitedWithCode(0), "few sleeps");
}

TEST_F(RoleRuntimeTest, NothingPollsWhileTheCoordinatorIsSilent) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.FallSilent();
                coordinator.AwaitUnanswered(1);
                // Until the next heartbeat is overdue.
                for (int i = 0; i < 4; ++i) SleepsIn300Ms(runtime);
                const int64_t sleeps = SleepsIn300Ms(runtime);
                fprintf(stderr, "%s sleeps: %d\n", sleeps < 100 ? "few" : "many",
                        static_cast<int>(sleeps));
                _exit(0);
              }),
              ::testing::ExitedWithCode(0), "few sleeps");
}

TEST_F(RoleRuntimeTest, AFailedRunEndsWhateverTheProcessIsDoing) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.SetState(FAILED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(1), "somebody else broke");
}

TEST_F(RoleRuntimeTest, ASilentCoordinatorEndsTheProcess) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.FallSilent();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(1), "has not answered for 8 s");
}

TEST_F(RoleRuntimeTest, TerminationIsAnEndWithoutAnError) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGTERM);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Terminated");
}

// A process whose job file is not there.
[[noreturn]] void RunWithoutJob() {
  std::string args[] = {"nn_worker", "--config=/no/such/job", "--coordinator=unix:/c"};
  char* argv[] = {args[0].data(), args[1].data(), args[2].data()};
  exit(RunRole(NN_WORKER, 3, argv, [](RoleRuntime&) { return absl::OkStatus(); }));
}

TEST_F(RoleRuntimeTest, AWrongJobFileIsOneMessage) {
  EXPECT_EXIT(RunWithoutJob(), ::testing::ExitedWithCode(1), "error: nn_worker: .*/no/such/job");
}

}  // namespace
}  // namespace satrap
