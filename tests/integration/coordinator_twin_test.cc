// Tests coordinators of one run in two pods, as real processes.

#include <poll.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/role/coordinator_client.h"
#include "common/role/protocol_fingerprint.h"
#include "common/rpc/grpc_channel.h"
#include "common/thread/clock.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

class CoordinatorTwinTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    JobConfig job = SmallJob();
    job.set_run_dir(Path("run"));
    ResolveJob(&job);
    config_ = WriteFile("job.textproto", ResolvedJobText(job));
  }
  // Starts the run's coordinator in the pod `holder`.
  void StartIn(const std::string& holder) {
    coordinator_ = Start("deploy/coordinator/coordinator",
                         {absl::StrCat("--config=", config_), absl::StrCat("--listen=", Address()),
                          "--submission=1", absl::StrCat("--holder=", holder)});
  }
  void Kill() {
    SendSignal(coordinator_.pid, SIGKILL);
    WaitFor(coordinator_, 30);
  }
  // Asks for a place as a process of a pod does, over a new connection. Returns the answer.
  RegisterAnswer Ask() {
    auto channel = rpc::GrpcChannel::Create(Address(), rpc::EndpointOptions());
    EXPECT_TRUE(channel.ok()) << channel.status();
    RegisterRequest request;
    request.mutable_member()->set_role(EMBEDDING_PS);
    request.set_incarnation(1);
    request.set_protocol(ProtocolFingerprint());
    request.set_holder("a pod of a PS");
    const auto answer =
        CoordinatorClient(channel->get(), Envelope(), /*timeout_ms=*/30000).Register(request);
    EXPECT_TRUE(answer.ok()) << answer.status() << ReadFile(coordinator_.err_path);
    return answer.value_or(RegisterAnswer());
  }
  std::string Address() const { return absl::StrCat("unix:", Path("coordinator")); }

  std::string config_;
  Command coordinator_;
};

TEST_F(CoordinatorTwinTest, OneThatAnotherPodsHasFollowedClaimsOnlyWhenProcessesAskForIt) {
  StartIn("pod-1");
  EXPECT_EQ(Ask().envelope().generation(), 1u);
  Kill();
  StartIn("pod-2");
  EXPECT_EQ(Ask().envelope().generation(), 2u) << "it has begun none yet";
  Kill();
  StartIn("pod-1");
  RegisterAnswer told = Ask();
  EXPECT_TRUE(told.wait());
  EXPECT_THAT(told.why_wait(), HasSubstr("another pod has begun generation 2"));
  const int64_t deadline_ms = MonotonicMs() + 60000;
  while (told.wait() && MonotonicMs() < deadline_ms) {
    poll(nullptr, 0, 200);
    told = Ask();
  }
  EXPECT_EQ(told.envelope().generation(), 3u);
  Kill();
  StartIn("pod-2");
  EXPECT_TRUE(Ask().wait());
  SendSignal(coordinator_.pid, SIGTERM);
  const CommandEnd end = WaitFor(coordinator_, 30);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("another pod has begun generation 3"));
}

}  // namespace
}  // namespace satrap
