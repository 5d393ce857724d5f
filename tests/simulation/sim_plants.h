// Faults that are planted into a world, to show that the simulation finds them. Each is planted
// from outside the engines: a handler, channel, trainer, observer or part source that stands
// between two of them and breaks one promise, or an engine that is given another job or other
// options. The single exception is kCapacityPerWorker, which uses StreamQueue::CapacityScope.
//
// docs/consistency.md lists the faults with the first seed that finds each; `simulate -- --faults`
// makes that table.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_
#define SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/checkpoint/file_system.h"
#include "common/rpc/rpc.h"
#include "data_loader/engine/loader_engine.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/sim_data.h"
#include "tests/simulation/sim_loop.h"

namespace satrap::simulation {

// In the order of the table. What each one means stands in AllFaults (sim_plants.cc).
enum class Plant {
  kNone,
  kFiniteFlagLost,
  kEndsLate,
  kOwnStopOnly,
  kNoPatienceAtOne,
  kLateStopIgnored,
  kEpochTooMany,
  kPermitBeforeAnswer,
  kPermitTooMany,
  kNoWarmup,
  kPermitsOutOfOrder,
  kUpdateAnsweredEarly,
  kUpdatesLostAtOne,
  kOtherWeightAtOne,
  kForgetfulPuts,
  kForgetfulRequests,
  kForgetfulPushes,
  kForgetfulAcks,
  kForgetfulUpdates,
  kForgetfulLeases,
  kClosedCallsRun,
  kAcksLost,
  kTrainingLookups,
  kEvaluationLookups,
  kLookupCreatesRows,
  kBestNotRestored,
  kLaterRowsKept,
  kBestNotSaved,
  kTieIsBest,
  kNanIsBest,
  kOnWhileSaving,
  kProvenanceOffByOne,
  kOtherBlock,
  kOtherPart,
  kLastBatchLost,
  kPartTwice,
  kEpochEndsEarly,
  kNoCapacityLimit,
  kCapacityPerWorker,
  kRunsThroughPasses,
  kIdentityShuffle,
  kOtherShuffle,
  kOtherKeys,
  kL2Forgotten,
  kClipForgotten,
  kBoundForgotten,
  kOtherState,
  kZombiesUpdate,
  kZombiesAsk,
  kZombiesLease,
  kMarksLate,
  kLateBeginCut,
  kLedgerOfOneLost,
  kWeightlessLost,
  kCutInTest,
  kLastCutSkipped,
  kFilesNotSynced,
  kEntriesNotSynced,
  kLateLink,
  kCommitAnsweredEarly,
  kWindowsKept,
  kLedgerIgnored,
  kLeftLanesSend,
  kFinishIgnored,
  kStaleJob,
};

struct Fault {
  enum Worlds { kAll, kSync, kHybrid };
  Plant plant;
  Worlds worlds;             // in which it is looked for
  const char* says;          // what is wrong, for the table
  bool with_deaths = false;  // it is looked for in worlds with deaths
};
// A plant may stand here twice, for the worlds of either mode.
absl::Span<const Fault> AllFaults();

// What of a world's surroundings a plant replaces. Every method gives back what it is given where
// the plant has nothing to do with it. Owns what it makes; the handlers, channels, trainers,
// observers and sources that it is given must outlive the loop's events.
class Planting {
 public:
  // What calls of all lives of a world an embedding PS has run, by PS: sender and number.
  using Windows = std::map<int, std::set<std::pair<uint32_t, uint64_t>>>;

  // `loop` and `windows`, which all lives share, are not owned.
  Planting(Plant plant, const WorldShape& shape, SimLoop* loop, Windows* windows);
  ~Planting();

  Plant plant() const { return plant_; }
  // What the calls of this life carry.
  void SetEnvelope(const Envelope& envelope) { envelope_ = envelope; }
  // The job that the engines of a role are made of.
  JobConfig JobOf(Role role, const JobConfig& job) const;
  // The position that the engines of a role begin with, and the ledger of loaders.
  RunPosition PositionOf(Role role, RunPosition position) const;
  LedgerState LedgerOf(LedgerState ledger) const;
  // The disk of a process.
  std::unique_ptr<FileSystem> DiskOf(Role role, std::unique_ptr<FileSystem> disk) const;
  rpc::Handler* BeforePs(int ps, rpc::Handler* engine);
  rpc::Handler* BeforeWorker(rpc::Handler* engine);
  rpc::Handler* BeforeCoordinator(rpc::Handler* engine);
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
  Windows* const windows_;
  Envelope envelope_;
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::vector<std::unique_ptr<StepTrainer>> trainers_;
  std::vector<std::unique_ptr<RankObserver>> observers_;
  std::vector<std::unique_ptr<PartSource>> sources_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_
