// A life: the processes of all roles of one generation, with the real engines in them. A world has
// one life or several lives, one after another; processes of an earlier life may still run during a
// later one.
//
// How a life is built. A life is given the coordinator's process, which has claimed a generation.
// It makes a process for each member of the job (sim_crew.h). Each process is the executor of its
// engines, and registers over the network. A role makes its engine in two stages, as its main does:
//     registered   the coordinator has sent envelope, job and position: PSs make their engine, load
//                  and listen (MakePs), loaders have their files fixed (sim_loader.h); then they
//                  are ready
//     joined       all members are ready: embedding workers listen (MakeWorker), loaders and ranks
//                  begin (MakeRank)
// Each role listens at the address of its index, which all lives share, and every channel belongs
// to a process. The checks assume that the life begins with the state that the History has for the
// life's cut.
//
// How it ends. Call Kill or StandStill of any of its processes(), at any event; nothing else is
// needed. If a member fails or exits, its process dies; before Doom is called, that is also a
// broken promise. A life must outlive the loop's tasks, even when all its processes are dead. Not
// thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_LIFE_H_
#define SATRAP_TESTS_SIMULATION_SIM_LIFE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/rank/rank_engine.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/machine/sim_disk.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_network.h"
#include "tests/simulation/machine/sim_process.h"
#include "tests/simulation/plants/sim_plants.h"
#include "tests/simulation/sim_checks.h"
#include "tests/simulation/sim_crew.h"
#include "tests/simulation/sim_history.h"
#include "tests/simulation/sim_loader.h"
#include "tests/simulation/sim_trainer.h"
#include "tests/simulation/sim_watch.h"

namespace satrap::simulation {

class Life {
 public:
  // What all lives of a world share. Nothing is owned.
  struct Surroundings {
    SimLoop* loop = nullptr;
    SimNetwork* network = nullptr;
    const SimAddresses* addresses = nullptr;
    SimDisk* disk = nullptr;
    History* history = nullptr;
    const Fault* fault = nullptr;  // planted, unless null
    LifeMemory* memory = nullptr;
    CoordinatorWatch::Events told;              // what this life's coordinator tells
    std::function<void()> cannot_begin;         // a rank finds that it cannot run its job
    std::function<void(std::string)> violated;  // called for each broken promise
  };
  // The coordinator's process with its disk. The process has claimed the generation `claimed`.
  struct Start {
    int number = 1;  // of this life
    WorldShape shape;
    std::unique_ptr<SimProcess> coordinator;
    std::unique_ptr<FileSystem> disk;
    ClaimedGeneration claimed;
    bool in_pods = false;
    absl::optional<TwinPlan> twin;
    absl::optional<std::pair<Role, int>> absent;  // the member that nobody starts
  };

  Life(const Surroundings& surroundings, Start start);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void Begin();

  // All processes, dead or alive: the coordinator, PSs, embedding workers, loaders, ranks.
  const std::vector<std::unique_ptr<SimProcess>>& processes() const { return crew_.processes(); }
  // From now on the life is not expected to succeed.
  void Doom() { crew_.Doom(); }
  void ReportFailure(uint64_t any) { crew_.ReportFailure(any); }
  // Makes a process, chosen by `any`, leave its machine. Returns whether it is the coordinator;
  // then no heartbeat reports that.
  bool Leave(uint64_t any);

  size_t ranks_finished() const { return results_.size(); }
  bool finished() const { return results_.size() == ranks_.size(); }
  bool has_dead() const { return crew_.has_dead(); }
  bool is_doomed() const { return crew_.is_doomed(); }
  const absl::optional<SimCrew::Exited>& exited() const { return crew_.exited(); }
  // Whether a second process may have taken the place of a member.
  bool MayLosePlace() const { return twin_.has_value() && crew_.HasBeenSilent(); }
  // Sends a wish to the coordinator, as the command line does. Does nothing if the coordinator is
  // dead.
  void Wish(const WishRequest& wish);
  // REQUIRES: the life has finished
  void CheckEnd();

  const WorldShape& shape() const { return shape_; }
  const SimTraining& training() const { return *training_; }
  const std::vector<RecordingObserver>& observers() const { return observers_; }
  const std::vector<RunResult>& results() const { return results_; }

 private:
  void AddMembers();
  void MakeCoordinator();
  void MakePs(int i);
  void ServePs(int i);
  void MakeWorker(int i);
  void MakeRank(int i);
  bool MakeCutEngine();
  bool IsOver() const;
  void OnWaiting();

  SimTraining::Surroundings TrainingSurroundings();
  void CheckQueueCapacity();
  void WishForStop(uint64_t steps);
  void BeginCut(CutPlan plan, std::vector<LedgerState> released, std::function<void()> marked,
                std::function<void(absl::StatusOr<CutOutcome>)> ended);
  void Restore(const std::string& cut, std::function<void(absl::Status)> done);
  absl::optional<std::vector<float>> ReadRow(int ps, uint32_t table, uint64_t key);

  const Surroundings surroundings_;
  SimLoop* const loop_;
  const int number_;
  const WorldShape shape_;
  const JobConfig job_;
  const std::string cut_;  // the life begins from it; empty: from nothing
  const uint64_t generation_;
  const bool in_pods_;
  const absl::optional<TwinPlan> twin_;
  const absl::optional<std::pair<Role, int>> absent_;
  const SimTraining::State& from_;
  Planting planting_;
  SimCrew crew_;
  std::unique_ptr<FileSystem> coordinator_disk_;
  absl::optional<ClaimedGeneration> claimed_;
  std::unique_ptr<KillPoints> coordinator_kill_points_;
  std::unique_ptr<SimTraining> training_;
  std::vector<RecordingObserver> observers_;  // by rank
  std::map<Stream, uint32_t> last_epochs_;    // of PutBatches
  // The engines. Each is null until its process has made it; the lists are by index.
  std::unique_ptr<CoordinatorEngine> coordinator_;
  std::vector<std::unique_ptr<PsEngine>> pss_;
  std::vector<std::unique_ptr<EmbeddingWorkerEngine>> workers_;
  std::vector<std::unique_ptr<SimLoader>> loaders_;
  std::unique_ptr<CutEngine> cuts_;
  std::vector<std::unique_ptr<RankEngine>> ranks_;
  std::vector<RunResult> results_;
  uint64_t rows_read_ = 0;  // by ReadRow
  absl::optional<int64_t> over_since_us_;
  absl::optional<uint64_t> stop_wished_at_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_LIFE_H_
