#include "deploy/submit/kubectl/kubectl.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gmock/gmock.h"
#include "proto/kubectl.pb.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KubectlTest : public FakeKubectlTest {
 protected:
  // Replaces the program by a shell script.
  void Become(const std::string& script) {
    std::ofstream(program()) << "#!/bin/sh\n" << script << "\n";
  }
};

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
           "The connection to the server localhost:8080 was refused\n\nDid you name it?\n",
           false});
  const absl::Status status = Kubectl("", program()).Run({"get", "pods"}).status();
  EXPECT_EQ(status, absl::FailedPreconditionError("kubectl get has failed: The connection to the "
                                                  "server localhost:8080 was refused; Did you "
                                                  "name it?"));
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

TEST_F(KubectlTest, WhatAProgramThatTakesItsTimeSaysIsShownAsItComes) {
  const std::string shown = dir_ + "/shown";
  // The script ends once its text has been shown.
  Become("echo 'open https://login and enter ABCD' >&2\nuntil grep -q ABCD '" + shown +
         "'; do sleep 0.05; done\necho done");
  const int file = open(shown.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int own = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  const auto printed = Kubectl("", program()).Run({"get"});
  dup2(own, STDERR_FILENO);
  close(own);
  close(file);
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "done\n");
}

TEST_F(KubectlTest, ACallEndsWithTheProgramAlsoIfWhatItHasStartedGoesOn) {
  Become("sleep 1000 & echo $! >'" + dir_ + "/plugin'\necho done");
  const auto printed = Kubectl("", program()).Run({"get"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "done\n");
  int plugin = 0;
  std::ifstream(dir_ + "/plugin") >> plugin;
  ASSERT_GT(plugin, 0);
  kill(plugin, SIGKILL);
}

TEST_F(KubectlTest, AStreamEndsWithTheProgramOrWithASignal) {
  BlockSignalsOfStream();
  On("logs*", {"a line of the log\nand half a", 3, "", false});
  Kubectl kubectl("", program());
  std::vector<std::string> lines;
  const auto show = [&lines](absl::string_view line) { lines.emplace_back(line); };
  const auto ended = kubectl.Stream({"logs", "job/demo"}, show);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->signal, 0);
  EXPECT_EQ(ended->code, 3);
  EXPECT_THAT(lines, ElementsAre("a line of the log\n", "and half a"));
  raise(SIGINT);
  // This program would not end by itself.
  Kubectl endless("", "tail");
  const auto stopped = endless.Stream({"--follow", "/dev/null"}, show);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->signal, SIGINT);
  raise(SIGTERM);
  EXPECT_EQ(WaitForSignal(60000), SIGTERM);
  EXPECT_EQ(WaitForSignal(0), 0);
}

}  // namespace
}  // namespace satrap
