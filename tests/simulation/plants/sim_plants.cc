#include "tests/simulation/plants/sim_plants.h"

#include <utility>

#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "tests/simulation/plants/sim_plants_commits.h"
#include "tests/simulation/plants/sim_plants_disk.h"
#include "tests/simulation/plants/sim_plants_messages.h"
#include "tests/simulation/plants/sim_plants_parts.h"
#include "tests/simulation/plants/sim_plants_rank.h"

namespace satrap::simulation {
namespace {

void DoubleWeight(UpdateHeader* header) {
  StepHeader* step = header->mutable_step();
  step->set_normalizer(2 * step->normalizer());
}

}  // namespace

Planting::Planting(Plant plant, const WorldShape& shape, SimLoop* loop, LifeMemory* memory)
    : plant_(plant), shape_(shape), loop_(loop), memory_(memory) {}

Planting::~Planting() = default;

rpc::Handler* Planting::Keep(std::unique_ptr<rpc::Handler> handler) {
  handlers_.push_back(std::move(handler));
  return handlers_.back().get();
}

JobConfig Planting::JobOf(Role role, const JobConfig& job) const {
  JobConfig changed = job;
  // BeforeWorker makes the provenance look shuffled, so the ledger names other records than were
  // trained, and a loader that shuffles would continue wrongly from it.
  if (role == DATA_LOADER && plant_ == Plant::kIdentityShuffle) {
    changed.mutable_data()->set_shuffle_rows(0);
  } else if (role == DATA_LOADER && plant_ == Plant::kOtherShuffle) {
    changed.set_seed(job.seed() + 1);
  } else if (role == EMBEDDING_WORKER && plant_ == Plant::kNoCapacityLimit) {
    changed.mutable_embedding_worker()->set_queue_capacity_parts(1000);
  }
  if (role != EMBEDDING_PS) return changed;
  if (plant_ == Plant::kStaleJob) {
    // The number of replicas before any scale. After a scale such a PS owns other partitions than
    // those that workers send it.
    changed.mutable_embedding_ps()->set_replicas(WorldShape::Draw(shape_.seed).ps);
  }
  for (TableConfig& table : *changed.mutable_tables()) {
    if (plant_ == Plant::kThawed) table.clear_frozen();
    if (plant_ == Plant::kSweepForgotten) table.clear_semantics();
    for (SegmentConfig& segment : *table.mutable_segments()) {
      if (plant_ == Plant::kL2Forgotten) segment.clear_l2();
      if (plant_ == Plant::kSweepForgotten && segment.l2_mode() == SegmentConfig::DENSE) {
        // Otherwise the job would not be valid. Rows without L2 have the same layout.
        segment.clear_l2_mode();
        segment.clear_l2();
      }
      if (plant_ == Plant::kClipForgotten) segment.clear_gradient_clip_norm();
      if (plant_ == Plant::kBoundForgotten) segment.clear_weight_bound();
      if (plant_ != Plant::kOtherState) continue;
      SparseOptimizerConfig* optimizer = segment.mutable_optimizer();
      // Makes the steps larger. No message or count shows this, only the values of rows do.
      if (optimizer->has_adagrad()) optimizer->mutable_adagrad()->set_initial_accumulator(0);
    }
  }
  return changed;
}

RunPosition Planting::PositionOf(Role role, RunPosition position) const {
  if (plant_ == Plant::kFinishIgnored && role != EMBEDDING_PS) {
    // The cut says that training is over; a generation that trains on makes other steps than were
    // promised.
    position.set_next(RunPosition::RESUME);
  }
  if (plant_ == Plant::kLeftLanesSend && role == DATA_LOADER) {
    for (LanePosition& lane : *position.mutable_lanes()) lane.set_left(false);
  }
  return position;
}

LedgerState Planting::LedgerOf(Role role, LedgerState ledger) {
  // Started for every plant; only a planted trainer and a planted disk use it.
  if (role == NN_WORKER) forgetful_ledger_.Start(ledger);
  const bool is_ignored = role == DATA_LOADER && plant_ == Plant::kLedgerIgnored;
  return is_ignored ? LedgerState() : ledger;
}

std::unique_ptr<FileSystem> Planting::DiskOf(Role role, std::unique_ptr<FileSystem> disk) const {
  return NewPlantedDisk(plant_, role, std::move(disk), &forgetful_ledger_);
}

rpc::Handler* Planting::BeforePs(int ps, rpc::Handler* engine, FileSystem* disk) {
  // Some faults concern one PS alone. A check that looks at only one PS, or at all PSs as one,
  // would miss them.
  const bool is_last = ps + 1 == shape_.ps;
  switch (plant_) {
    case Plant::kUpdateAnsweredEarly:
      return Keep(NewEarlyAnswers(engine, rpc::kUpdate, loop_));
    case Plant::kApplyStepAnsweredEarly:
      return Keep(NewEarlyAnswers(engine, rpc::kApplyStep, loop_));
    case Plant::kClipFactorLostAtOne:
      return is_last ? Keep(NewEditor<ApplyStepHeader>(
                           engine, rpc::kApplyStep,
                           [](ApplyStepHeader* header) { header->set_clip_factor(1); }))
                     : engine;
    case Plant::kUpdatesLostAtOne:
      return is_last ? Keep(NewSwallower(engine, rpc::kUpdate)) : engine;
    case Plant::kOtherWeightAtOne:
      return is_last ? Keep(NewEditor<UpdateHeader>(engine, rpc::kUpdate, DoubleWeight)) : engine;
    case Plant::kForgetfulUpdates:
      // An Update whose answer was lost is repeated by its sender, and would be applied twice.
      return Keep(NewForgetfulWindow(engine, rpc::kUpdate));
    case Plant::kClosedCallsRun:
      return Keep(NewClosedCallsRun(engine));
    case Plant::kTrainingLookups:
    case Plant::kEvaluationLookups:
      return Keep(NewEditor<LookupHeader>(engine, rpc::kLookup, [this](LookupHeader* header) {
        header->set_training(plant_ == Plant::kTrainingLookups);
      }));
    case Plant::kLookupCreatesRows:
      return Keep(NewRowCreatingLookup(engine, shape_.ranks));
    case Plant::kBestNotRestored:
      // Rank 0 is told that the best model is loaded, but the test scores the last one.
      return Keep(NewSwallower(engine, rpc::kLoadTables));
    case Plant::kLaterRowsKept:
      return Keep(NewLaterRowsKept(engine, shape_.ranks));
    case Plant::kOtherKeys:
      return Keep(NewOtherKeys(engine));
    case Plant::kMarksLate:
      return Keep(NewLateMarks(engine, loop_));
    case Plant::kLateBeginCut:
      return Keep(NewLateBeginCuts(engine, loop_));
    case Plant::kCopyOutMissed:
      return Keep(NewMissedCopyOuts(engine, disk));
    case Plant::kWindowsKept:
      // Numbers begin at 1 in each generation, so new Updates would be mistaken for repeated ones.
      return Keep(NewKeptWindow(engine, &memory_->windows[ps]));
    case Plant::kZombiesUpdate:
      return Keep(NewForgedEnvelopes(engine, &envelope_));
    default:
      return engine;
  }
}

rpc::Handler* Planting::BeforeWorker(rpc::Handler* engine) {
  switch (plant_) {
    case Plant::kFiniteFlagLost:
      return Keep(NewEditor<PushGradientsHeader>(
          engine, rpc::kPushGradients,
          [](PushGradientsHeader* header) { header->mutable_step()->set_finite(true); }));
    case Plant::kDenseSquaresLost:
      return Keep(NewEditor<PushGradientsHeader>(
          engine, rpc::kPushGradients,
          [](PushGradientsHeader* header) { header->mutable_step()->clear_dense_squares(); }));
    case Plant::kForgetfulPuts:
      return Keep(NewForgetfulWindow(engine, rpc::kPutBatch));
    case Plant::kForgetfulRequests:
      return Keep(NewForgetfulWindow(engine, rpc::kNextBatch));
    case Plant::kForgetfulPushes:
      return Keep(NewForgetfulWindow(engine, rpc::kPushGradients));
    case Plant::kForgetfulAcks:
      return Keep(NewForgetfulWindow(engine, rpc::kAck));
    case Plant::kClosedCallsRun:
      return Keep(NewClosedCallsRun(engine));
    case Plant::kAcksLost:
      // Nobody would release the part: the worker fills up over many evaluations.
      return Keep(NewSwallower(engine, rpc::kAck));
    case Plant::kZombiesAsk:
      return Keep(NewForgedEnvelopes(engine, &envelope_));
    case Plant::kProvenanceOffByOne:
    case Plant::kOtherBlock:
    case Plant::kIdentityShuffle:
      return Keep(NewEditor<PutBatchHeader>(engine, rpc::kPutBatch, [this](PutBatchHeader* header) {
        if (header->has_part()) ChangeProvenance(plant_, shape_, header->mutable_part());
      }));
    case Plant::kEpochEndsEarly:
      return Keep(NewEarlyEpochEnds(engine, shape_.loaders));
    default:
      return engine;
  }
}

rpc::Handler* Planting::BeforeCoordinator(rpc::Handler* engine, const std::string& run_dir,
                                          FileSystem* disk) {
  // If the answer to a lease was lost, the lease would belong to nobody, and its split would never
  // be read.
  if (plant_ == Plant::kForgetfulLeases) return Keep(NewForgetfulWindow(engine, kLeaseSplitMethod));
  if (plant_ == Plant::kClosedCallsRun) return Keep(NewClosedCallsRun(engine));
  if (plant_ == Plant::kCommitAnsweredEarly) return Keep(NewEarlyCommitAnswers(engine, loop_));
  if (plant_ == Plant::kEndsInCommit) {
    return Keep(NewUnguardedCommits(engine, run_dir, disk, loop_));
  }
  if (plant_ == Plant::kMembersToldOnce) return Keep(NewMembersToldOnce(engine));
  if (plant_ == Plant::kEndedCallsAreOwn) return Keep(NewEndedRegistrations(engine));
  if (plant_ == Plant::kZombiesLease) {
    return Keep(NewForgedLeases(engine, &envelope_, memory_, loop_));
  }
  return engine;
}

std::vector<rpc::Channel*> Planting::ChannelsOf(int rank, std::vector<rpc::Channel*> channels) {
  std::vector<std::unique_ptr<rpc::Channel>> made;
  if (plant_ == Plant::kPermitBeforeAnswer || plant_ == Plant::kPermitsOutOfOrder) {
    made = NewMisansweredPushes(channels, plant_ == Plant::kPermitsOutOfOrder, loop_);
  } else if (plant_ == Plant::kOtherPart) {
    made = NewOtherPartRequests(channels, (rank + 1) % shape_.ranks);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    channels[i] = made[i].get();
    channels_.push_back(std::move(made[i]));
  }
  return channels;
}

void Planting::ChangeOptions(RankOptions* options) const {
  const bool is_last = options->rank + 1 == shape_.ranks;
  if (plant_ == Plant::kEndsLate && is_last && options->max_steps > 0) ++options->max_steps;
  if (plant_ == Plant::kNoPatienceAtOne && is_last) options->evaluation.clear_patience();
  if (plant_ == Plant::kNoPlateauAtOne && is_last) {
    options->evaluation.clear_reduce_on_plateau();
  }
  if (plant_ == Plant::kPermitTooMany) ++options->max_staleness;
  if (plant_ == Plant::kNoWarmup) options->staleness_warmup_steps = 0;
  // SourcesOf does the same for the loaders. If only one of the two did it, the world would just
  // stop.
  if (plant_ == Plant::kEpochTooMany) ++options->epochs;
}

StepTrainer* Planting::TrainerOf(int rank, StepTrainer* trainer) {
  auto planted = NewPlantedTrainer(plant_, shape_, rank, trainer, &forgetful_ledger_, loop_);
  if (planted == nullptr) return trainer;
  trainers_.push_back(std::move(planted));
  return trainers_.back().get();
}

RankObserver* Planting::ObserverOf(RankObserver* observer) {
  if (plant_ != Plant::kTieIsBest && plant_ != Plant::kNanIsBest) return observer;
  observers_.push_back(NewUndisguisedObserver(observer));
  return observers_.back().get();
}

RunResult Planting::ResultOf(RunResult result) const {
  // The rank was shown metrics that are not the true ones (sim_plants_rank.h), and reports those.
  // The checks get the true ones: they must find the wrong decisions of the rank, not the false
  // metrics.
  if (plant_ != Plant::kTieIsBest && plant_ != Plant::kNanIsBest) return result;
  if (result.has_valid()) *result.mutable_valid() = Undisguised(result.valid());
  if (result.has_test()) *result.mutable_test() = Undisguised(result.test());
  return result;
}

std::vector<LoaderEngine::StreamSources> Planting::SourcesOf(
    std::vector<LoaderEngine::StreamSources> streams) {
  for (LoaderEngine::StreamSources& stream : streams) {
    if (plant_ == Plant::kEpochTooMany && stream.epochs > 0) ++stream.epochs;
    for (PartSource*& source : stream.sources) {
      auto planted = NewPlantedSource(plant_, shape_, stream.stream, source);
      if (planted == nullptr) continue;
      sources_.push_back(std::move(planted));
      source = sources_.back().get();
    }
  }
  return streams;
}

}  // namespace satrap::simulation
