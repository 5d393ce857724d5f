// A life: the processes of all roles of one generation, with the real engines in them. A world is
// one life or several, one after another; processes of an earlier one may still live beside it.
//
// How a life is built. Begin starts the coordinator's process and one for each member of the job,
// each a SimProcess, the executor of everything in it, with a SimMember that registers over the
// network. A role makes its engine in two moments, as its main does:
//     registered   the coordinator has told envelope, job and position: PSs make their engine, load
//                  and listen (MakePs), loaders list their files (ListFiles); then they are ready
//     joined       all members are ready: embedding workers listen (MakeWorker), loaders and ranks
//                  begin (MakeLoader, MakeRank)
// Each role listens at the address of its index, which all lives share, and every channel belongs to
// a process. What the life begins with, as the checks know it, stands in Start.
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
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "data_loader/loader_streams.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/rank/rank_engine.h"
#include "tests/simulation/sim_checks.h"
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
    std::string folder;  // of saved models
    Plant plant = Plant::kNone;
    std::function<void(std::string)> violated;  // called for each broken promise
  };
  struct Start {
    int number = 1;  // of this life
    WorldShape shape;
    JobConfig job;  // with its files
    uint64_t run_id = 0;
    SimTraining::State state;  // of the cut that it begins from
  };

  Life(const Surroundings& surroundings, const Start& start);
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
    std::unique_ptr<SimMember> member;
  };

  SimProcess* NewProcess(const char* role, int index);
  void NewSeat(Role role, int index, std::function<void()> load, std::function<void()> begin);
  SimProcess* ProcessOf(Role role, int index) const;
  rpc::Handler* Keep(std::unique_ptr<rpc::Handler> handler);
  rpc::Channel* Connect(SimNetwork::Address to, SimProcess* from);
  std::vector<rpc::Channel*> ChannelsToWorkers(SimProcess* from);
  std::function<void(absl::Status)> FailureSinkOf(Role role, int index);

  void MakeCoordinator();
  void MakePs(int i);
  void MakeWorker(int i);
  void ListFiles(int i);
  void MakeLoader(int i);
  void MakeRank(int i);

  SimTraining::Surroundings TrainingSurroundings();
  void CheckQueueCapacity();
  void WishForStop(uint64_t steps);
  std::string ModelFolder() const;
  void SaveTables(std::function<void()> done);
  void LoadTables(const std::function<void()>& done);
  void CallPss(const rpc::Method& method, const rpc::Message& request,
               const std::function<void(const rpc::Message&)>& answered,
               const std::function<void()>& done);
  absl::optional<std::vector<float>> ReadRow(int ps, uint32_t table, uint64_t key);

  const Surroundings surroundings_;
  SimLoop* const loop_;
  const int number_;
  const WorldShape shape_;
  const JobConfig job_;
  const uint64_t run_id_;
  const uint64_t steps_before_;  // of this life; so are the validations
  const size_t validations_before_;
  // Where the members of this life reach the coordinator. Not at the shared address, because a
  // coordinator takes a late Register of an earlier life for a second process.
  const SimNetwork::Address members_address_;
  Envelope envelope_;
  Planting planting_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  SimProcess* coordinator_process_ = nullptr;
  std::map<std::pair<Role, int>, Seat> seats_;  // by role and index
  std::unique_ptr<SimTraining> training_;
  std::vector<RecordingObserver> observers_;  // by rank
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;  // before engines
  std::map<Stream, uint32_t> last_epochs_;               // of PutBatches
  // By index; null as long as the process has not come so far.
  std::unique_ptr<CoordinatorEngine> coordinator_;
  std::vector<std::unique_ptr<PsEngine>> pss_;
  std::vector<rpc::Handler*> ps_handlers_;
  std::vector<std::unique_ptr<EmbeddingWorkerEngine>> workers_;
  std::vector<std::unique_ptr<SplitSupply>> leases_;
  std::vector<std::unique_ptr<LoaderStreams>> streams_;
  std::vector<std::unique_ptr<LoaderEngine>> loaders_;
  std::vector<std::unique_ptr<RankEngine>> ranks_;
  std::vector<RunResult> results_;
  uint64_t rows_read_ = 0;  // by ReadRow
  int saves_ = 0;
  bool doomed_ = false;
  absl::optional<uint64_t> stop_wished_at_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_LIFE_H_
