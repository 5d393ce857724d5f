// Measures how soon a run in pods makes its next counted step after the death of a process or the
// loss of a pod. Prints the seconds of each of five recoveries, and their median.
//
//   ./setup kubernetes
//   SATRAP_KUBERNETES="$(tests/pods/cluster/build --folder)" bazel run //tests/pods:pod_benchmark

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <vector>

#include "common/base/cpu_name.h"
#include "common/thread/clock.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

constexpr int kTimes = 5;
// Enough for five recoveries on a fast machine.
constexpr int64_t kRecords = 20000000;

class PodBenchmark : public PodRunFixture {
 protected:
  void Measure(const char* what, const std::function<void()>& disturb) {
    Submit(kRecords);
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      ASSERT_TRUE(WaitForCuts(Cuts() + 1));
      const int steps = FirstSteps();
      const double begin = MonotonicSeconds();
      disturb();
      ASSERT_TRUE(WaitForFirstSteps(steps + 1));
      seconds.push_back(MonotonicSeconds() - begin);
      std::printf("%s: %.2f s\n", what, seconds.back());
    }
    std::sort(seconds.begin(), seconds.end());
    std::printf("%s: median of %d: %.2f s (%s)\n", what, kTimes, seconds[kTimes / 2],
                CpuName().c_str());
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
  Measure("process stopped", [this] { SignalRole(EMBEDDING_PS, 1, SIGSTOP); });
}

}  // namespace
}  // namespace satrap
