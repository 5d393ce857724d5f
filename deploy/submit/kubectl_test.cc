#include "deploy/submit/kubectl.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include "deploy/submit/fake_kubectl.h"
#include "gmock/gmock.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using KubectlTest = FakeKubectlTest;

TEST_F(KubectlTest, RunsTheCommandInTheNamespaceWithItsInput) {
  On("*create*", "made\n");
  Kubectl kubectl("ml", program());
  const auto printed = kubectl.Run({"create", "--filename=-"}, "kind: Pod\n");
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "made\n");
  EXPECT_THAT(Calls(), ElementsAre("--namespace=ml --request-timeout=20s create --filename=-"));
  EXPECT_EQ(Input(0), "kind: Pod\n");
}

TEST_F(KubectlTest, WithoutANamespaceTheUsersContextDecides) {
  On("*", "");
  ASSERT_TRUE(Kubectl("", program()).Run({"get", "pods"}).ok());
  EXPECT_THAT(Calls(), ElementsAre("--request-timeout=20s get pods"));
}

TEST_F(KubectlTest, ReadsAndWritesMoreThanAPipeHolds) {
  const std::string large(1 << 20, 'x');
  On("*", large);
  const auto printed = Kubectl("", program()).Run({"create", "--filename=-"}, large);
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, large);
  EXPECT_EQ(Input(0), large);
}

TEST_F(KubectlTest, AProgramThatReadsNoInputMayAnswerAllTheSame) {
  signal(SIGPIPE, SIG_IGN);
  On("*", "done");
  const auto printed = Kubectl("", program()).Run({"create"}, std::string(1 << 20, 'x'));
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "done");
}

TEST_F(KubectlTest, AFailureSaysWhatKubectlSaysWithoutItsLog) {
  On("*", {"", 1,
           "E1127 04:10:36.010199   25439 memcache.go:265] \"Unhandled Error\"\n"
           "The connection to the server localhost:8080 was refused\n\n",
           false});
  const absl::Status status = Kubectl("", program()).Run({"get", "pods"}).status();
  EXPECT_EQ(status, absl::FailedPreconditionError("kubectl get has failed: The connection to the "
                                                  "server localhost:8080 was refused"));
}

TEST_F(KubectlTest, WithoutKubectlOneLineSaysSo) {
  Kubectl kubectl("", "no-such-kubectl");
  const absl::Status status = kubectl.Run({"get", "pods"}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("there is no no-such-kubectl on the PATH"), Not(HasSubstr("\n"))));
  EXPECT_TRUE(absl::IsNotFound(kubectl.Become({"get"})));
}

TEST_F(KubectlTest, IsFoundOnThePath) {
  On("*", "mine");
  const std::string path = dir_ + ":/usr/bin:/bin";
  setenv("PATH", path.c_str(), /*overwrite=*/1);
  const auto printed = Kubectl("").Run({"get"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "mine");
}

TEST_F(KubectlTest, ReadsObjects) {
  On("*get pod a*", R"({"kind":"Pod","metadata":{"name":"a","labels":{"x.y/z":"1"},"uid":"u"},
                       "spec":{"containers":[{"name":"c"}]}})");
  On("*get pod none*", "");
  On("*get pod odd*", "{");
  Kubectl kubectl("", program());
  KubectlObject pod;
  ASSERT_TRUE(kubectl.Ask({"get", "pod", "a"}, &pod).ok());
  EXPECT_EQ(pod.metadata().uid(), "u");
  EXPECT_EQ(pod.metadata().labels(0).name(), "x.y/z");
  ASSERT_TRUE(kubectl.Ask({"get", "pod", "none"}, &pod).ok());
  EXPECT_FALSE(pod.has_metadata());
  EXPECT_EQ(kubectl.Ask({"get", "pod", "odd"}, &pod).code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Calls()[0], HasSubstr("--output=json"));
}

TEST_F(KubectlTest, AStreamEndsWithTheProgramOrWithASignal) {
  BlockSignalsOfStream();
  On("logs*", "a line of the log\n");
  Kubectl kubectl("", program());
  const auto ended = kubectl.Stream({"logs", "job/demo"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, 0);
  raise(SIGINT);
  // It would not end by itself.
  Kubectl endless("", "tail");
  const auto stopped = endless.Stream({"--follow", "/dev/null"});
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, SIGINT);
  raise(SIGTERM);
  EXPECT_EQ(WaitForSignal(60000), SIGTERM);
  EXPECT_EQ(WaitForSignal(0), 0);
}

}  // namespace
}  // namespace satrap
