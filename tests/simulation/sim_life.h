// A life: the processes of all roles of one generation, with the real engines in them. A world is
// one life or several, one after another; processes of an earlier one may still live beside it.
//
// How a life is built. It is given the coordinator's process, which has claimed a generation, and
// makes one for each member of the job, each a SimProcess, the executor of everything in it, with a
// SimMember that registers over the network. A role makes its engine in two moments, as its main does:
//     registered   the coordinator has told envelope, job and position: PSs make their engine, load
//                  and listen (MakePs), loaders have their files fixed (FixFiles); then they are ready
//     joined       all members are ready: embedding workers listen (MakeWorker), loaders and ranks
//                  begin (MakeLoader, MakeRank)
// Each role listens at the address of its index, which all lives share, and every channel belongs to
// a process. What the life begins with, as the checks know it, is the History's state of its cut.
//
// How it ends. Kill or StandStill any of its processes(), at any event; nothing else is needed. A
// member that fails or exits after Doom was called takes its process along; before, that is a broken
// promise. A life must outlive the loop's tasks, dead or not.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_LIFE_H_
#define SATRAP_TESTS_SIMULATION_SIM_LIFE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/checkpoint/file_system.h"
#include "common/role/kill_points.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "data_loader/loader_streams.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/generation_claim.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/rank/rank_engine.h"
#include "tests/simulation/sim_checks.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_history.h"
#include "tests/simulation/sim_loop.h"
#include "tests/simulation/sim_member.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_plants.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_trainer.h"

namespace satrap::simulation {

constexpr int64_t kTimeLimitUs = int64_t{600} * 1000 * 1000;

// Where the roles of every life listen, by index.
struct SimAddresses {
  explicit SimAddresses(SimNetwork* network);

  SimNetwork::Address coordinator;
  std::vector<SimNetwork::Address> workers;
  std::vector<SimNetwork::Address> ps;
};

class Life {
 public:
  // What all lives of a world share. Nothing is owned.
  struct Surroundings {
    SimLoop* loop = nullptr;
    SimNetwork* network = nullptr;
    const SimAddresses* addresses = nullptr;
    SimDisk* disk = nullptr;
    History* history = nullptr;
    Plant plant = Plant::kNone;
    LifeMemory* memory = nullptr;
    // Called when the coordinator answers for its log; with a cut that it says is committed.
    std::function<void(const std::string& cut)> acknowledged;
    std::function<void(std::string)> violated;  // called for each broken promise
  };
  // The coordinator's process with its disk; it has claimed `claimed`.
  struct Start {
    int number = 1;  // of this life
    WorldShape shape;
    std::unique_ptr<SimProcess> coordinator;
    std::unique_ptr<FileSystem> disk;
    ClaimedGeneration claimed;
  };

  Life(const Surroundings& surroundings, Start start);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void Begin();

  // All of them, dead or alive: the coordinator, PSs, embedding workers, loaders, ranks.
  const std::vector<std::unique_ptr<SimProcess>>& processes() const { return processes_; }
  // From now on the life is not expected to succeed.
  void Doom() { doomed_ = true; }

  size_t ranks_finished() const { return results_.size(); }
  bool finished() const { return results_.size() == ranks_.size(); }
  // Whether a process that has not exited with 0 is dead.
  bool has_dead() const;
  // The first exit of a member that nobody had killed, before Doom.
  struct Exited {
    Exit exit;
    std::string why;
  };
  const absl::optional<Exited>& exited() const { return exited_; }
  // As the command line asks the coordinator; does nothing if that is dead.
  void Wish(const WishRequest& wish);
  // REQUIRES: finished
  void CheckEnd();

  const WorldShape& shape() const { return shape_; }
  const SimTraining& training() const { return *training_; }
  const std::vector<RecordingObserver>& observers() const { return observers_; }
  const std::vector<RunResult>& results() const { return results_; }

 private:
  // A member of the run.
  struct Seat {
    SimProcess* process;
    std::unique_ptr<FileSystem> disk;
    std::unique_ptr<KillPoints> kill_points;
    std::unique_ptr<SimMember> member;
    RegisterAnswer begin;  // what it registered for
  };

  SimProcess* NewProcess(const char* role, int index);
  void NewSeat(Role role, int index, std::function<void()> load, std::function<void()> begin);
  SimProcess* ProcessOf(Role role, int index) const;
  SimMember* MemberOf(Role role, int index) const;
  rpc::Handler* Keep(std::unique_ptr<rpc::Handler> handler);
  rpc::Channel* Connect(SimNetwork::Address to, SimProcess* from);
  std::vector<rpc::Channel*> ChannelsToWorkers(SimProcess* from);
  std::function<void(absl::Status)> FailureSinkOf(Role role, int index);

  void MakeCoordinator();
  void MakePs(int i);
  void ServePs(int i);
  void MakeWorker(int i);
  void FixFiles(int i);
  void AskForFiles(int i, const SplitList& listed);
  void ListFiles(int i, const SplitList& fixed);
  void MakeLoader(int i);
  void MakeRank(int i);
  bool MakeCutEngine();

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
  const std::string cut_;  // that it begins from; empty: from nothing
  const uint64_t generation_;
  const SimTraining::State& from_;
  Envelope envelope_;
  Planting planting_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  SimProcess* coordinator_process_ = nullptr;
  std::unique_ptr<FileSystem> coordinator_disk_;
  absl::optional<ClaimedGeneration> claimed_;
  std::unique_ptr<KillPoints> coordinator_kill_points_;
  std::map<std::pair<Role, int>, Seat> seats_;  // by role and index
  std::unique_ptr<SimTraining> training_;
  std::vector<RecordingObserver> observers_;  // by rank
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;  // before engines
  std::map<Stream, uint32_t> last_epochs_;               // of PutBatches
  // By index; null as long as the process has not come so far.
  std::unique_ptr<CoordinatorEngine> coordinator_;
  std::vector<std::unique_ptr<PsEngine>> pss_;
  std::vector<std::unique_ptr<EmbeddingWorkerEngine>> workers_;
  std::vector<std::unique_ptr<SplitSupply>> leases_;
  std::vector<std::unique_ptr<LoaderStreams>> streams_;
  std::vector<std::unique_ptr<LoaderEngine>> loaders_;
  std::unique_ptr<CutEngine> cuts_;
  std::vector<std::unique_ptr<RankEngine>> ranks_;
  std::vector<RunResult> results_;
  uint64_t rows_read_ = 0;  // by ReadRow
  bool doomed_ = false;
  absl::optional<Exited> exited_;
  absl::optional<uint64_t> stop_wished_at_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_LIFE_H_
