// Measures runs in pods, five times each, and prints each figure and the medians:
//
//   - how soon a run makes its next counted step after the death of a process or the loss of a pod,
//     and where that time goes. The run is that of `./satrap bench recovery`, with 1 M rows.
//   - how soon a run that is submitted makes its first step, and how soon after its end no pod of
//     it is left that holds resources.
//
//   ./setup kubernetes
//   export SATRAP_KUBERNETES="$(tests/pods/cluster/build --folder)"
//   SATRAP_REQUIRE_KUBERNETES=1 bazel run //tests/pods:pod_benchmark

#include <poll.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/config/job_config.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "common/thread/wall_clock.h"
#include "deploy/cli/bench/bench_job.h"
#include "deploy/submit/manifests.h"
#include "tests/pods/pod_recovery.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

constexpr int kTimes = 5;
constexpr int64_t kRows = 1000000;
constexpr int64_t kRecords = 20000000;
constexpr double kSecondsToGo = 120;
constexpr Role kRoles[] = {COORDINATOR, DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER};

class PodBenchmark : public PodRunFixture {
 protected:
  // The job of `./satrap bench recovery`, as text that can be submitted.
  std::string WriteRecoveryJob() {
    const auto job = JobOfTwos(/*install_dir=*/".", {"checkpoint.every_seconds=2"}, kRows);
    CHECK(job.ok()) << job.status();
    return WriteFile("recovery.textproto", ResolvedJobText(*job) + SectionOfPods("1200Mi"));
  }

  std::vector<std::pair<Role, std::string>> Logs() const {
    std::vector<std::pair<Role, std::string>> logs;
    for (const Role role : kRoles) {
      for (int i = 0; i < (role == COORDINATOR ? 1 : 2); ++i)
        logs.emplace_back(role, LogOf(role, i));
    }
    return logs;
  }

  void Measure(const std::string& what, const std::function<void()>& disturb) {
    SubmitJob(WriteRecoveryJob());
    std::vector<RecoveryTimes> all;
    std::vector<double> totals;
    for (int i = 0; i < kTimes; ++i) {
      ASSERT_TRUE(WaitForCuts(Cuts() + 1, kSecondsToGo));
      const int steps = FirstSteps();
      const int64_t begin_ms = UnixMs();
      disturb();
      ASSERT_TRUE(WaitForFirstSteps(steps + 1));
      const auto times = ReadRecoveryInPods(Logs(), begin_ms);
      ASSERT_TRUE(times.ok()) << times.status();
      all.push_back(*times);
      totals.push_back(
          static_cast<double>(std::accumulate(times->begin(), times->end(), int64_t{0})) * 1e-3);
      std::printf("%s: %.2f s\n", what.c_str(), totals.back());
    }
    for (size_t phase = 0; phase < kNumRecoveryPhases; ++phase) {
      std::vector<double> ms;
      for (const RecoveryTimes& times : all) ms.push_back(static_cast<double>(times[phase]));
      std::printf("%s: %s: %.0f ms\n", what.c_str(), kRecoveryPhaseNames[phase], MedianOf(ms));
    }
    PrintMedian(what, totals);
  }

  static void PrintMedian(const std::string& what, const std::vector<double>& seconds) {
    std::printf("%s: median of %zu: %.2f s (%s)\n", what.c_str(), seconds.size(), MedianOf(seconds),
                CpuName().c_str());
    std::fflush(stdout);
  }

  // Waits until only the pod of the Job RUN is left.
  void AwaitNoPods() const {
    const std::string pods = absl::StrCat(kPartLabel, "!=story");
    const double deadline = MonotonicSeconds() + kSecondsToGo;
    while (!Kubectl({"get", "pods", "--selector", pods, "--output=name"}).empty()) {
      ASSERT_LT(MonotonicSeconds(), deadline) << "pods are left";
      poll(nullptr, 0, 50);
    }
  }
};

TEST_F(PodBenchmark, Process) {
  Measure("process killed", [this] { SignalRole(EMBEDDING_PS, 1, SIGKILL); });
}

TEST_F(PodBenchmark, Coordinator) {
  Measure("coordinator killed", [this] { SignalRole(COORDINATOR, 0, SIGKILL); });
}

TEST_F(PodBenchmark, Pod) {
  Measure("pod lost", [this] { LosePod(EMBEDDING_PS, 1); });
}

TEST_F(PodBenchmark, DeletedPod) {
  Measure("pod deleted", [this] { DeletePod(EMBEDDING_PS, 1); });
}

TEST_F(PodBenchmark, CoordinatorsPod) {
  Measure("coordinator's pod deleted", [this] { DeletePod(COORDINATOR, 0); });
}

TEST_F(PodBenchmark, Standstill) {
  Measure("process suspended", [this] { SignalRole(EMBEDDING_PS, 1, SIGSTOP); });
}

TEST_F(PodBenchmark, SubmitAndEnd) {
  std::vector<double> to_first_step;
  std::vector<double> to_no_pods;
  for (int i = 0; i < kTimes; ++i) {
    const double begin = MonotonicSeconds();
    Submit(kRecords);
    ASSERT_TRUE(WaitForFirstSteps(1));
    to_first_step.push_back(MonotonicSeconds() - begin);
    StopRun();
    ASSERT_NO_FATAL_FAILURE(AwaitNoPods());
    const int64_t end_ms = static_cast<int64_t>(Log().back().unix_ms());
    to_no_pods.push_back(static_cast<double>(UnixMs() - end_ms) * 1e-3);
    std::printf("submit to first step: %.2f s; end to no pods: %.2f s\n", to_first_step.back(),
                to_no_pods.back());
    EXPECT_EQ(AwaitSubmit().exit_code, 0);
    EXPECT_EQ(Satrap({"delete", "counting", "--namespace", space_}).exit_code, 0);
    Kubectl({"wait", "--for=delete", "job/counting", "configmap/counting-job", "--timeout=60s"});
  }
  PrintMedian("submit to first step", to_first_step);
  PrintMedian("end to no pods", to_no_pods);
}

}  // namespace
}  // namespace satrap
