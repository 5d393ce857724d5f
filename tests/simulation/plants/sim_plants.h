// Faults that are planted into a world, to show that the simulation finds them. Each is planted
// from outside the engines: a handler, channel, trainer, observer or part source that is put
// between two of them and breaks one promise, or an engine that is given another job or other
// options. The single exception is kCapacityPerWorker, which uses StreamQueue::CapacityScope.

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
#include "tests/simulation/plants/sim_plant_list.h"
#include "tests/simulation/plants/sim_plants_cuts.h"
#include "tests/simulation/plants/sim_plants_lives.h"

namespace satrap::simulation {

// Replaces those of a world's surroundings that a plant changes. A method returns its argument as
// it is if the plant has nothing to do with it. Owns what it makes; the handlers, channels,
// trainers, observers and sources that it is given must outlive the loop's events.
class Planting {
 public:
  // `loop` and `memory`, which all lives share, are not owned.
  Planting(Plant plant, const WorldShape& shape, SimLoop* loop, LifeMemory* memory);
  ~Planting();

  Plant plant() const { return plant_; }
  // The envelope of the calls of this life.
  void SetEnvelope(const Envelope& envelope) { envelope_ = envelope; }
  // The job that the engines of a role are made of.
  JobConfig JobOf(Role role, const JobConfig& job) const;
  // The position that the engines of a role begin with, and the ledger of loaders and of rank 0.
  RunPosition PositionOf(Role role, RunPosition position) const;
  LedgerState LedgerOf(Role role, LedgerState ledger);
  // The disk of a process.
  std::unique_ptr<FileSystem> DiskOf(Role role, std::unique_ptr<FileSystem> disk) const;
  // `disk` is the PS's.
  rpc::Handler* BeforePs(int ps, rpc::Handler* engine, FileSystem* disk);
  rpc::Handler* BeforeWorker(rpc::Handler* engine);
  // `disk` is the coordinator's, `run_dir` the run's folder.
  rpc::Handler* BeforeCoordinator(rpc::Handler* engine, const std::string& run_dir,
                                  FileSystem* disk);
  // The channels of a rank to the embedding workers.
  std::vector<rpc::Channel*> ChannelsOf(int rank, std::vector<rpc::Channel*> channels);
  void ChangeOptions(RankOptions* options) const;
  StepTrainer* TrainerOf(int rank, StepTrainer* trainer);
  RankObserver* ObserverOf(RankObserver* observer);
  RunResult ResultOf(RunResult result) const;
  std::vector<LoaderEngine::StreamSources> SourcesOf(
      std::vector<LoaderEngine::StreamSources> streams);

 private:
  rpc::Handler* Keep(std::unique_ptr<rpc::Handler> handler);

  const Plant plant_;
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
