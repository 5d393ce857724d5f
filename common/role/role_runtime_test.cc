// A role's process against a fake coordinator. Each case runs in a process of its own, and the test
// checks from outside how it ends.

#include "common/role/role_runtime.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/config/text_format.h"
#include "common/role/protocol_fingerprint.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/header.h"
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
      if (register_error_.has_value()) return respond(*register_error_);
      if (call.protocol() != ProtocolFingerprint()) abort();
      registered.mutable_envelope()->set_run_id(kRunId);
      registered.mutable_envelope()->set_generation(3);
      *registered.mutable_job() = job_;
      registered.set_cut("/run/checkpoints/cut_0002_000004");
      registered.mutable_position()->set_step(40);
      registered.mutable_ledger()->add_epochs()->set_rows(5);
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
      beat.set_order_fingerprint(99);
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
      const bool cured =
          static_cast<absl::StatusCode>(call.code()) == absl::StatusCode::kUnavailable;
      told.set_state(cured ? RESTARTING : FAILED);
      answer.header = told.SerializeAsString();
    } else if (method == kFinish) {
      SetState(FINISHED);
    } else if (method == kWish) {
      WishRequest call;
      call.ParseFromString(request.header);
      if (call.kind() != WishRequest::STOP || call.run_id() != kRunId) abort();
      fprintf(stderr, "coordinator was asked to stop\n");
      answer.header = WishAnswer().SerializeAsString();
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
  // Before the role starts.
  void RefuseRegister(const absl::Status& error) { register_error_ = error; }
  void SetJob(const JobConfig& job) { job_ = job; }
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
using Prepare = std::function<void(FakeCoordinator&)>;

// Runs a coordinator and a role with `body` in the process of the test case. Exits with the role's
// code.
[[noreturn]] void RunCase(const Body& body, const Prepare& prepare = nullptr) {
  std::string dir = ::testing::TempDir() + "role_runtime_test.XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) abort();
  // A relative path, because a socket's path must not exceed 107 bytes and the folder's may.
  if (chdir(dir.c_str()) != 0) abort();
  const std::string address = "unix:coordinator";
  FakeCoordinator coordinator;
  JobConfig job;
  if (!ParseText(kJob, "job", &job).ok()) abort();
  coordinator.SetJob(job);
  if (prepare) prepare(coordinator);
  // The server's threads start before the role and must not take its signals, so block them here.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const rpc::Method methods[] = {kRegister, kHeartbeat, kFail, kFinish, kWish};
  auto server = rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{methods, &coordinator}});
  if (!server.ok()) abort();
  std::vector<std::string> args = {"nn_worker", "--coordinator=" + address,
                                   "--advertise=127.0.0.1"};
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
                  [](FakeCoordinator& coordinator) { coordinator.StartWhenReady(); }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, HasWhatTheCoordinatorSaysOfTheJobAndTheCut) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                if (runtime.job().name() != "tiny") abort();
                if (runtime.cut_folder() != "/run/checkpoints/cut_0002_000004") abort();
                if (runtime.position().step() != 40) abort();
                if (runtime.ledger().epochs(0).rows() != 5) abort();
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                if (runtime.order_fingerprint() != 99) abort();
                const absl::Status finished = runtime.Finish(RunResult());
                runtime.WaitForFinish();
                return finished;
              }),
              ::testing::ExitedWithCode(0), "");
}

// The body is never called.
absl::Status NoBody(RoleRuntime&, FakeCoordinator&) { abort(); }

TEST_F(RoleRuntimeTest, ARoleThatTheGenerationHasNoPlaceForIsToBeStartedAgain) {
  EXPECT_EXIT(RunCase(NoBody,
                      [](FakeCoordinator& coordinator) {
                        coordinator.RefuseRegister(absl::FailedPreconditionError("has no place"));
                      }),
              ::testing::ExitedWithCode(kExitStartAgain), "error: nn_worker: .*has no place");
}

TEST_F(RoleRuntimeTest, ARoleOfAnotherBuildExits1) {
  EXPECT_EXIT(RunCase(NoBody,
                      [](FakeCoordinator& coordinator) {
                        coordinator.RefuseRegister(absl::InvalidArgumentError("other sources"));
                      }),
              ::testing::ExitedWithCode(1), "error: nn_worker: .*other sources");
}

TEST_F(RoleRuntimeTest, ARoleThatComesAfterTheEndExits0) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    const absl::Status joined = runtime.Join();
                    abort();
                    return joined;
                  },
                  [](FakeCoordinator& coordinator) { coordinator.SetState(FINISHED); }),
              ::testing::ExitedWithCode(0), "the run has finished already");
}

TEST_F(RoleRuntimeTest, TheEndOfTheGenerationExits75WhateverTheProcessIsDoing) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.SetState(RESTARTING);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitStartAgain),
              "this generation is over: somebody else broke");
}

TEST_F(RoleRuntimeTest, AStoppedRunExits0) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.SetState(STOPPED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "the run has stopped");
}

TEST_F(RoleRuntimeTest, AFailureThatARestartMayCureExits75) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                runtime.failure_sink()(absl::UnavailableError("the peer is away"));
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(kExitStartAgain), "coordinator was told: the peer is away");
}

TEST_F(RoleRuntimeTest, ARefusalByAPeerOfAnotherGenerationExits75AndIsNotTold) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
        const absl::Status joined = runtime.Join();
        if (!joined.ok()) return joined;
        coordinator.SetFirstCause("nobody asked");
        Envelope other = runtime.envelope();
        other.set_generation(4);
        runtime.failure_sink()(rpc::CheckEnvelope(runtime.envelope(), other, "embedding_ps 0"));
        runtime.WaitForFinish();
        return absl::OkStatus();
      }),
      ::testing::ExitedWithCode(kExitStartAgain), "^[^$]*belongs to another run[^\n]*\n$");
}

TEST_F(RoleRuntimeTest, ARoleThatIsRefusedAsOfAnotherRunExits75) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.RefuseHeartbeats();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitStartAgain),
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
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                coordinator.SetFirstCause("nn_worker 1: the model is damaged");
                return absl::DataLossError("a row is damaged");
              }),
              ::testing::ExitedWithCode(1),
              "a row is damaged.*\n.*the run has failed: nn_worker 1: the model is damaged");
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
              ::testing::ExitedWithCode(kExitStartAgain), "has not answered for 8 s");
}

TEST_F(RoleRuntimeTest, TheFirstSigtermIsAWishAndTheRoleServesUntilTheRunHasStopped) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                coordinator.SetState(STOPPED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "coordinator was asked to stop(.|\n)*has stopped");
}

TEST_F(RoleRuntimeTest, TheSecondSigtermIsTheEnd) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                kill(getpid(), SIGTERM);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Terminated");
}

TEST_F(RoleRuntimeTest, AnInterruptIsTheEndAtOnce) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGINT);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Interrupt");
}

TEST_F(RoleRuntimeTest, ARunThatDoesNotStopInTimeIsNotWaitedFor) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    const absl::Status joined = runtime.Join();
                    if (!joined.ok()) return joined;
                    kill(getpid(), SIGTERM);
                    while (true) pause();
                  },
                  [](FakeCoordinator& coordinator) {
                    JobConfig job;
                    job.set_stop_seconds(0.1);
                    coordinator.SetJob(job);
                  }),
              ::testing::ExitedWithCode(kExitStartAgain), "did not stop within stop_seconds");
}

// A process whose command line names no coordinator.
[[noreturn]] void RunWithoutCoordinator() {
  std::string args[] = {"nn_worker", "--role_index=0"};
  char* argv[] = {args[0].data(), args[1].data()};
  exit(RunRole(NN_WORKER, 2, argv, [](RoleRuntime&) { return absl::OkStatus(); }));
}

TEST_F(RoleRuntimeTest, AWrongCommandLineIsOneMessage) {
  EXPECT_EXIT(RunWithoutCoordinator(), ::testing::ExitedWithCode(1),
              "error: nn_worker: --coordinator is missing");
}

}  // namespace
}  // namespace satrap
