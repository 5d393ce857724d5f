// Disturbs a run in pods again and again: kills its processes and containers, deletes its pods,
// suspends processes, drains the node, uses up memory and restarts the kubelet (pod_chaos_plan.h).
// Then checks that
//
//   - each record was trained once;
//   - the model is, bit by bit, that of `satrap train` of the same job, which nobody has disturbed;
//   - no disturbance has cost more generations than it may.
//
// Prints a line for each disturbance and a table, and exits with 1 if a check fails. It needs root
// and a machine with cgroup v1.
//
//   ./setup kubernetes
//   export SATRAP_KUBERNETES="$(tests/pods/cluster/build --folder)"
//   bazel run //tests/pods:pod_chaos -- --seed=1

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/thread/clock.h"
#include "deploy/cli/bench/bench_job.h"
#include "gtest/gtest.h"
#include "tests/pods/pod_chaos_plan.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

struct Flags {
  int64_t records = 2000000;
  int kills = 75;
  uint64_t seed = 1;

  std::vector<Flag> Table() {
    return {
        NumberFlag("records", "N", "how many records are trained (default: 2000000)", &records, 1),
        NumberFlag("kills", "N",
                   "how many processes are killed, beside 25 other disturbances (default: 75)",
                   &kills, 0),
        NumberFlag("seed", "N", "of the order of disturbances (default: 1)", &seed, 0),
    };
  }
};

constexpr int64_t kBatchSize = 512;
// After the last disturbance the run must last long enough to recover and to be observed.
constexpr double kLastFraction = 0.95;
constexpr int kPauseMs = 5000;
constexpr double kTrainSeconds = 3600;
constexpr double kProgressSeconds = 600;
constexpr double kRecoverySeconds = 180;

// How far a run has come, according to its log.
struct Point {
  uint64_t generation = 0;      // the newest
  uint64_t cut_generation = 0;  // of the newest cut
  int64_t step = 0;             // of the newest cut
  bool has_ended = false;
};

struct Outcome {
  PodChaosEvent event;
  double seconds = 0;  // until the next cut of a generation that nothing has disturbed
  int generations = 0;
};

class PodChaos : public PodRunFixture {
 public:
  explicit PodChaos(const Flags& flags) : flags_(flags) {}

 protected:
  std::string WriteChaosJob() {
    return WriteFile("chaos.textproto",
                     ReadFile("deploy/jobs/chaos.textproto") + SectionOfPods("512Mi"));
  }

  std::vector<std::string> Sets() const {
    std::vector<std::string> args;
    for (const std::string& set :
         {std::string("mode=SYNC"), std::string("reproducible=true"),
          std::string("checkpoint.every_seconds=0"), std::string("checkpoint.every_steps=10"),
          absl::StrCat("global_batch_size=", kBatchSize),
          absl::StrCat("data.synthetic.train_samples=", flags_.records)}) {
      args.insert(args.end(), {"--set", set});
    }
    return args;
  }

  // Trains the job on this machine, outside the cluster, and returns the model's digest.
  std::string TrainUndisturbed(const std::string& job) {
    std::vector<std::string> args = {"train", job, "--run_dir", RunDir()};
    const std::vector<std::string> sets = Sets();
    args.insert(args.end(), sets.begin(), sets.end());
    const CommandEnd end = WaitFor(StartSatrap(args), kTrainSeconds);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    const std::string digest = ModelDigest();
    std::printf("undisturbed: %.0f s, digest %s\n", end.seconds, digest.c_str());
    fs::remove_all(RunDir());
    return digest;
  }

  Point Now() const {
    Point point;
    for (const RunLogEntry& entry : Log()) {
      if (entry.has_generation()) point.generation = entry.generation().generation();
      if (entry.has_end()) point.has_ended = true;
      if (!entry.has_cut()) continue;
      point.cut_generation = entry.cut().generation();
      point.step = static_cast<int64_t>(entry.cut().step());
    }
    return point;
  }

  // Waits until `done` returns true for the point that the run has reached. Returns false if the
  // run ends before that, or after `seconds`.
  bool Await(const std::function<bool(const Point&)>& done, double seconds) const {
    const double deadline = MonotonicSeconds() + seconds;
    while (MonotonicSeconds() < deadline) {
      const Point point = Now();
      if (done(point)) return true;
      if (point.has_ended) return false;
      poll(nullptr, 0, 100);
    }
    return false;
  }

  void Disturb(const PodChaosEvent& event) {
    switch (event.disturbance) {
      case Disturbance::kKill:
        return SignalRole(event.role, event.index, SIGKILL);
      case Disturbance::kDelete:
        return DeletePod(event.role, event.index);
      case Disturbance::kForceDelete:
        return ForceDeletePod(event.role, event.index);
      case Disturbance::kKillFirst:
        return KillFirstProcess(event.role, event.index);
      case Disturbance::kPause:
        SignalRole(event.role, event.index, SIGSTOP);
        poll(nullptr, 0, kPauseMs);
        return SignalRole(event.role, event.index, SIGCONT);
      case Disturbance::kStandStill:
        return SignalRole(event.role, event.index, SIGSTOP);
      case Disturbance::kDrain:
        return cluster().DrainNode();
      case Disturbance::kUseUpMemory:
        return UseUpMemory(event.role, event.index);
      case Disturbance::kRestartKubelet:
        return cluster().RestartKubelet();
    }
  }

  // Carries out the event, and waits until the run has another cut. If the event must cost a
  // generation, the cut must be of a generation that began after the event.
  void CarryOut(const PodChaosEvent& event) {
    const Point before = Now();
    outcomes_.push_back({event});
    begun_in_.push_back(before.generation);
    const double begin = MonotonicSeconds();
    ASSERT_NO_FATAL_FAILURE(Disturb(event)) << PodChaosText(event);
    const int64_t step = Now().step;
    const bool costs = MostGenerations(event.disturbance) > 0;
    ASSERT_TRUE(Await(
        [&](const Point& now) {
          if (!costs) return now.step > step;
          return now.generation > before.generation && now.cut_generation == now.generation;
        },
        kRecoverySeconds))
        << "the run does not go on, or has ended, after: " << PodChaosText(event);
    outcomes_.back().seconds = MonotonicSeconds() - begin;
    std::printf("%3zu, step %ld, generation %lu: %s: %.1f s\n", outcomes_.size(), before.step,
                before.generation, PodChaosText(event).c_str(), outcomes_.back().seconds);
    std::fflush(stdout);
  }

  // Counts for each event the generations that began after it and before the next event.
  void CountGenerations() {
    begun_in_.push_back(Now().generation);
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      Outcome& outcome = outcomes_[i];
      outcome.generations = static_cast<int>(begun_in_[i + 1] - begun_in_[i]);
      EXPECT_LE(outcome.generations, MostGenerations(outcome.event.disturbance))
          << i + 1 << ": " << PodChaosText(outcome.event);
    }
  }

  void PrintTable() const {
    std::printf(
        "| disturbance | times | generations | most for one | median, s | longest, s |\n"
        "|---|---|---|---|---|---|\n");
    for (const Disturbance disturbance : AllDisturbances()) {
      std::vector<double> seconds;
      int generations = 0;
      int most = 0;
      for (const Outcome& outcome : outcomes_) {
        if (outcome.event.disturbance != disturbance) continue;
        seconds.push_back(outcome.seconds);
        generations += outcome.generations;
        most = std::max(most, outcome.generations);
      }
      if (seconds.empty()) continue;
      std::printf("| %s | %zu | %d | %d | %.1f | %.1f |\n", DisturbanceName(disturbance).c_str(),
                  seconds.size(), generations, most, MedianOf(seconds),
                  *std::max_element(seconds.begin(), seconds.end()));
    }
  }

  // Each record is trained once, and the model is that of an undisturbed run.
  void TestBody() override;

  const Flags flags_;
  std::vector<Outcome> outcomes_;
  std::vector<uint64_t> begun_in_;  // the generation in which each of them was carried out
};

void PodChaos::TestBody() {
  const std::string job = WriteChaosJob();
  const std::string digest = TrainUndisturbed(job);
  ASSERT_NE(digest, "");
  const std::vector<PodChaosEvent> events = PlanPodChaos(flags_.kills, flags_.seed);
  const double begin = MonotonicSeconds();
  SubmitJob(job, Sets());
  const double steps = static_cast<double>(flags_.records) / kBatchSize;
  for (size_t i = 0; i < events.size(); ++i) {
    // The events come at fixed amounts of progress, so that the run trains between any two of them.
    const auto due = static_cast<int64_t>(kLastFraction * steps * static_cast<double>(i + 1) /
                                          static_cast<double>(events.size()));
    ASSERT_TRUE(Await([&](const Point& now) { return now.step >= due; }, kProgressSeconds))
        << "the run stands still, or was too short, before: " << PodChaosText(events[i]);
    ASSERT_NO_FATAL_FAILURE(CarryOut(events[i]));
  }
  ExpectFinishedInPods(flags_.records);
  CountGenerations();
  EXPECT_EQ(ModelDigest(), digest);
  PrintTable();
  std::printf("%zu disturbances with seed %lu in %.0f s: %d generations, digest %s (%s)\n",
              outcomes_.size(), flags_.seed, MonotonicSeconds() - begin, Generations(),
              ModelDigest().c_str(), CpuName().c_str());
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Flags flags;
  const auto code = TakeProgramFlags(argc, argv, "usage: pod_chaos [FLAGS]", flags.Table());
  if (code.has_value()) return *code;
  // Without this setting, a missing cluster would only skip the test, and the program would exit
  // with 0.
  if (setenv("SATRAP_REQUIRE_KUBERNETES", "1", 1) != 0) return 1;
  testing::RegisterTest("PodChaos", "EachRecordIsTrainedOnceAndTheModelIsThatOfAnUndisturbedRun",
                        nullptr, nullptr, __FILE__, __LINE__,
                        [&flags] { return new PodChaos(flags); });
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }
