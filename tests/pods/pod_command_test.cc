// Tests on a real Kubernetes that a command that is killed half-way is completed by the same
// command, and that a run whose objects somebody deletes continues, or says what it lacks.

#include <poll.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kManyRecords = 10000000;  // more than a run trains before a test stops it

// A kubectl that kills the program that has called it. $0: the call's first word that is no flag;
// $1: which of these calls; $2: "before" or "after" the call is carried out.
constexpr char kKillingKubectl[] = R"sh(#!/bin/bash
dir="$$(dirname "$$0")"
PATH="$${PATH#"$$dir:"}"
for verb; do [[ "$$verb" == -* ]] || break; done
kills=false
if [[ "$$verb" == "$0" ]]; then
  echo >>"$$dir/calls"
  [[ "$$(wc -l <"$$dir/calls")" != "$1" ]] || kills=true
fi
if [[ "$$kills" == true && "$2" == before ]]; then kill -KILL "$$PPID"; exit 1; fi
kubectl "$$@"
code=$$?
[[ "$$kills" == false ]] || kill -KILL "$$PPID"
exit "$$code"
)sh";

// Puts such a kubectl first on the PATH for as long as the object exists.
class KillingKubectl {
 public:
  KillingKubectl(const std::string& dir, const std::string& verb, int call, const std::string& when)
      : path_before_(getenv("PATH")) {
    mkdir(dir.c_str(), 0755);
    std::ofstream(dir + "/calls") << "";
    const std::string program = dir + "/kubectl";
    std::ofstream(program) << absl::Substitute(kKillingKubectl, verb, call, when);
    chmod(program.c_str(), 0755);
    setenv("PATH", absl::StrCat(dir, ":", path_before_).c_str(), /*overwrite=*/1);
  }
  ~KillingKubectl() { setenv("PATH", path_before_.c_str(), /*overwrite=*/1); }
  KillingKubectl(const KillingKubectl&) = delete;
  KillingKubectl& operator=(const KillingKubectl&) = delete;

 private:
  const std::string path_before_;
};

class PodCommandTest : public PodRunFixture {
 protected:
  // Runs the command until kubectl has carried out call number `call` with that verb, and then
  // kills it; if `when` is "before", it is killed instead of the call.
  void Break(const std::vector<std::string>& command, const std::string& verb, int call = 1,
             const std::string& when = "after") {
    const KillingKubectl killing(Path("killing"), verb, call, when);
    const CommandEnd end = Satrap(command);
    EXPECT_EQ(end.exit_code, -1) << "it was not killed: " << end.out << end.err;
  }
  std::vector<std::string> SubmitArgs() const {
    return {"submit", Path("job.textproto"), "--name=counting", "--image", cluster().image()};
  }
  // The command for the run in its namespace.
  std::vector<std::string> OfRun(const std::string& command,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {command, "counting", "--namespace", space_};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // Makes the objects that are missing by the command that submitted the run.
  void SubmitAgain() {
    std::vector<std::string> again = SubmitArgs();
    again.emplace_back("--detach");
    const CommandEnd end = Satrap(again);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr("completes the submission of counting that was broken off"));
  }
  std::string Status() { return Satrap(OfRun("status")).out; }
  // Waits for two cuts, of which the second one was certainly begun after this call.
  bool GoesOn() { return WaitForCuts(Cuts() + 2, 120); }
  void ExpectNothingLeft() const {
    for (const char* const kind : {"jobs", "statefulsets", "services", "configmaps", "pods"}) {
      Kubectl({"wait", "--for=delete", kind, "--selector=app.kubernetes.io/instance=counting",
               "--timeout=60s"});
    }
  }
};

TEST_F(PodCommandTest, ASubmissionThatIsKilledAfterEachObjectIsCompletedByTheSameCommand) {
  constexpr int64_t kRecords = 100000;
  constexpr int kObjects = 9;
  WriteJobInPods(kRecords);
  Break(SubmitArgs(), "create", 1, "before");
  EXPECT_THAT(Satrap({"list"}).err, HasSubstr("there are no runs"));
  for (int made = 1; made < kObjects; ++made) {
    Break(SubmitArgs(), "create");
    EXPECT_THAT(Satrap({"list"}).out, HasSubstr("is incomplete")) << made;
  }
  Submit(kRecords);
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(PodCommandTest, AResumeThatIsKilledAfterEachObjectIsCompletedByTheSameCommand) {
  constexpr int64_t kRecords = 300000;
  constexpr int kObjects = 9;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  StopRun();
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  const std::vector<std::string> changes = {"--set", "checkpoint.keep=50"};
  Break(OfRun("resume", changes), "create", 1, "before");
  for (int made = 1; made < kObjects; ++made) Break(OfRun("resume", changes), "create");
  Break(OfRun("resume", changes), "delete");  // of the earlier Job RUN
  ASSERT_NO_FATAL_FAILURE(ResumeInPods(changes));
  ExpectFinishedInPods(kRecords);
  std::vector<GenerationEntry> generations;
  for (const RunLogEntry& entry : Log()) {
    if (entry.has_generation()) generations.push_back(entry.generation());
  }
  ASSERT_EQ(generations.size(), 2u);
  EXPECT_EQ(generations[1].submission(), 2u);
  EXPECT_EQ(generations[1].job().checkpoint().keep(), 50);
}

TEST_F(PodCommandTest, ADeletionThatIsKilledAtAnyPointIsCompletedByTheSameCommand) {
  Submit(kManyRecords);
  ASSERT_TRUE(WaitForCuts(1));
  Break(OfRun("delete"), "exec", 1, "before");
  ASSERT_TRUE(GoesOn()) << "nothing was stopped";
  Break(OfRun("delete"), "exec", 1, "after");
  EXPECT_EQ(Log().back().end().state(), STOPPED);
  Break(OfRun("delete"), "delete", 1, "before");
  EXPECT_THAT(Satrap({"list"}).out, HasSubstr("was stopped"));
  Break(OfRun("delete"), "delete", 1, "after");
  const CommandEnd last = Satrap(OfRun("delete"));
  EXPECT_THAT(last.out + last.err, AnyOf(HasSubstr("is being removed from the cluster"),
                                         HasSubstr("there is no run counting")));
  AwaitSubmit();
  ExpectNothingLeft();
  EXPECT_EQ(Generations(), 1);
  EXPECT_FALSE(NewestCut().empty()) << "the run's folder stays";
}

TEST_F(PodCommandTest, WishesThatAreKilledHalfWayAreGrantedToTheSameCommand) {
  Submit(kManyRecords);
  ASSERT_TRUE(WaitForCuts(1));
  const std::vector<std::string> three = {"embedding_ps.replicas=3"};
  Break(OfRun("scale", three), "scale", 1, "before");
  Break(OfRun("scale", three), "scale", 1, "after");
  EXPECT_EQ(ReplicasOfSet(EMBEDDING_PS), "3");
  Break(OfRun("scale", three), "annotate", 1, "before");
  CommandEnd end = Satrap(OfRun("scale", three));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const std::vector<std::string> one = {"embedding_ps.replicas=1"};
  Break(OfRun("scale", one), "annotate", 1, "after");
  EXPECT_EQ(ReplicasOfSet(EMBEDDING_PS), "3") << "pods are removed last";
  end = Satrap(OfRun("scale", one));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(ReplicasOfSet(EMBEDDING_PS), "1");
  ASSERT_TRUE(GoesOn());
  Kubectl({"wait", "--for=delete", absl::StrCat("pod/", PodOf(EMBEDDING_PS, 2)), "--timeout=60s"});
  EXPECT_THAT(Satrap({"logs", "counting", "embedding_ps", "2", "--namespace", space_}).out,
              HasSubstr("registered"))
      << "the log of a pod that is gone";
  for (const char* const wish : {"checkpoint", "stop"}) {
    const Command command = StartSatrap(OfRun(wish));
    poll(nullptr, 0, 700);
    SendSignal(command.pid, SIGKILL);
    WaitFor(command);
    end = Satrap(OfRun(wish));
    EXPECT_THAT(end.out + end.err, AnyOf(HasSubstr("written in"), HasSubstr("the run has stopped"),
                                         HasSubstr("the run had stopped already"),
                                         HasSubstr("the run counting has ended")))
        << wish;
  }
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  EXPECT_EQ(Log().back().end().state(), STOPPED);
  AwaitPodsGone();
  EXPECT_THAT(Satrap({"logs", "counting", "embedding_ps", "0", "--namespace", space_}).out,
              HasSubstr("registered"))
      << "the log of a run that has no pods";
}

TEST_F(PodCommandTest, ARunSaysWhichOfItsObjectsSomebodyHasDeletedAndGetsThemBack) {
  Submit(kManyRecords);
  ASSERT_TRUE(WaitForCuts(1));
  Kubectl({"delete", "job", "counting", "--cascade=foreground", "--timeout=60s"});
  ASSERT_TRUE(GoesOn()) << "Job RUN only tells what happens";
  EXPECT_THAT(Status(), HasSubstr("Job counting is missing: to make it again, repeat the command"));
  SubmitAgain();
  for (const char* const object :
       {"service/counting-coordinator", "configmap/counting-job",
        "statefulset/counting-coordinator", "statefulset/counting-embedding-ps",
        "statefulset/counting-embedding-worker", "statefulset/counting-data-loader",
        "statefulset/counting-nn-worker"}) {
    const std::string name(absl::string_view(object).substr(std::string(object).find('/') + 1));
    Kubectl({"delete", object, "--cascade=foreground", "--timeout=120s"});
    const std::string status = Status();
    EXPECT_THAT(status, AllOf(HasSubstr(absl::StrCat(" ", name, " is missing: to make it again, ")),
                              HasSubstr("`kubectl delete job counting --namespace")));
    Kubectl({"delete", "job", "counting", "--cascade=foreground", "--timeout=60s"});
    SubmitAgain();
    EXPECT_THAT(Status(), Not(HasSubstr("is missing"))) << object;
    ASSERT_TRUE(GoesOn()) << object;
  }
  // All processes find the coordinator at its new address.
  const int generations = Generations();
  SignalRole(COORDINATOR, 0, SIGKILL);
  ASSERT_TRUE(WaitForGenerations(generations + 1));
  ASSERT_TRUE(GoesOn());
  StopRun();
  Kubectl({"wait", "job/counting", "--for=condition=Complete", "--timeout=60s"});
}

TEST_F(PodCommandTest, ARunWithoutTheOwnerOfItsPodsIsResumedFromItsNewestCut) {
  constexpr int64_t kRecords = 500000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  Kubectl({"delete", "job", "counting-members", "--cascade=foreground", "--timeout=120s"});
  EXPECT_THAT(Status(),
              AllOf(HasSubstr("Job counting-members is missing, and with it the run's pods"),
                    HasSubstr("`kubectl delete job counting --namespace"),
                    HasSubstr("`satrap resume counting --namespace")));
  Kubectl({"delete", "job", "counting", "--cascade=foreground", "--timeout=60s"});
  EXPECT_EQ(AwaitSubmit().exit_code, 1) << "somebody has deleted the run that it follows";
  ASSERT_NO_FATAL_FAILURE(ResumeInPods());
  ExpectFinishedInPods(kRecords);
  EXPECT_EQ(Log().back().end().submission(), 2u);
}

TEST_F(PodCommandTest, PodsOfAnotherBuildNeverTrainWithTheOthers) {
  constexpr int64_t kRecords = 1000000;
  Submit(kRecords);
  ASSERT_TRUE(WaitForCuts(1));
  const std::string other = cluster().LoadOtherImage();
  ASSERT_NE(other, cluster().image());
  const std::string set = "statefulset/counting-embedding-ps";
  Kubectl({"set", "image", set, "satrap=" + other});
  const auto refused = [&] {
    return CountOf(LogOf(EMBEDDING_PS, 1), "was built from other sources than the coordinator");
  };
  ASSERT_TRUE(WaitUntil([&] { return refused() > 0; }, 120));
  const int cuts = Cuts();
  poll(nullptr, 0, 10000);
  EXPECT_EQ(Cuts(), cuts) << "nothing is trained with it";
  EXPECT_THAT(Status(), HasSubstr("was built from other sources than the coordinator"));
  Kubectl({"set", "image", set, "satrap=" + cluster().image()});
  DeletePod(EMBEDDING_PS, 1);
  ASSERT_TRUE(GoesOn());
  StopRun();
  EXPECT_EQ(AwaitSubmit().exit_code, 0);
  // All of the other build train together.
  ASSERT_NO_FATAL_FAILURE(ResumeInPods({"--image", other}));
  ASSERT_TRUE(GoesOn());
  EXPECT_THAT(Kubectl({"get", "pods", "--selector=app.kubernetes.io/instance=counting",
                       "--output=jsonpath={.items[*].spec.containers[*].image}"}),
              Not(HasSubstr(cluster().image())));
  ExpectFinishedInPods(kRecords);
}

}  // namespace
}  // namespace satrap
