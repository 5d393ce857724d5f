// Plants one fault (sim_fault.h) into a life.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "data_loader/engine/loader_engine.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/plants/sim_fault.h"
#include "tests/simulation/plants/sim_plants_cuts.h"

namespace satrap::simulation {

// Replaces what a fault changes in the surroundings of a life. A method returns its argument
// unchanged if the fault does not concern it. Owns what it makes; the handlers, channels, trainers,
// observers and sources that it is given must outlive the loop's events.
class Planting {
 public:
  // If `fault` is null, no fault is planted. Nothing is owned; all lives share `loop` and `memory`.
  Planting(const Fault* fault, const WorldShape& shape, SimLoop* loop, LifeMemory* memory);

  const Fault& fault() const { return fault_; }
  // The envelope of the calls of this life.
  void SetEnvelope(const Envelope& envelope) { envelope_ = envelope; }
  // The job that the engines of a role are made from.
  JobConfig JobOf(Role role, const JobConfig& job);
  // The position that the engines of a role begin with, and the ledger of loaders and of rank 0.
  RunPosition PositionOf(Role role, RunPosition position);
  LedgerState LedgerOf(Role role, LedgerState ledger);
  // The disk of a process.
  std::unique_ptr<FileSystem> DiskOf(Role role, std::unique_ptr<FileSystem> disk);
  // `disk` is that of the PS.
  rpc::Handler* BeforePs(int ps, rpc::Handler* engine, FileSystem* disk);
  rpc::Handler* BeforeWorker(rpc::Handler* engine);
  // `disk` is that of the coordinator, `run_dir` the run's folder.
  rpc::Handler* BeforeCoordinator(rpc::Handler* engine, const std::string& run_dir,
                                  FileSystem* disk);
  // The plants before a ChunkedHandler and after it. The two share `in_chunk`, which is true while
  // a chunk is being handed to the ChunkedHandler.
  rpc::Handler* BeforeChunks(rpc::Handler* chunks, std::shared_ptr<bool> in_chunk);
  rpc::Handler* AfterChunks(rpc::Handler* engine, std::shared_ptr<bool> in_chunk);
  // The channels of a rank to the embedding workers.
  std::vector<rpc::Channel*> ChannelsOf(int rank, std::vector<rpc::Channel*> channels);
  void ChangeOptions(RankOptions* options);
  StepTrainer* TrainerOf(int rank, StepTrainer* trainer);
  RankObserver* ObserverOf(RankObserver* observer);
  RunResult ResultOf(RunResult result) const;
  std::vector<LoaderEngine::StreamSources> SourcesOf(
      std::vector<LoaderEngine::StreamSources> streams);

 private:
  Site At(Role role, int index = 0);
  rpc::Handler* Before(const HandlerHook& hook, const Site& site, rpc::Handler* next);

  const Fault fault_;
  const WorldShape shape_;
  SimLoop* const loop_;
  LifeMemory* const memory_;
  Envelope envelope_;
  ForgetfulLedger forgetful_ledger_;
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::vector<std::unique_ptr<StepTrainer>> trainers_;
  std::vector<std::unique_ptr<RankObserver>> observers_;
  std::vector<std::unique_ptr<PartSource>> sources_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_H_
