#include "tests/simulation/sim_plants.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "tests/simulation/sim_plants_messages.h"
#include "tests/simulation/sim_plants_parts.h"
#include "tests/simulation/sim_plants_rank.h"

namespace satrap::simulation {
namespace {

constexpr Fault kFaults[] = {
    {Plant::kFiniteFlagLost, Fault::kAll, "a push of a step that is not finite is applied"},
    {Plant::kEndsLate, Fault::kAll, "one rank ends a step after `max_steps`"},
    {Plant::kOwnStopOnly, Fault::kAll, "one rank follows only its own wish to stop"},
    {Plant::kNoPatienceAtOne, Fault::kAll, "one rank never runs out of patience"},
    {Plant::kLateStopIgnored, Fault::kAll,
     "a wish to stop is not honoured in the allreduce in which all are idle"},
    {Plant::kEpochTooMany, Fault::kHybrid, "loaders and ranks make one epoch too many"},
    {Plant::kPermitBeforeAnswer, Fault::kHybrid, "a permit returns before the push is answered"},
    {Plant::kPermitTooMany, Fault::kHybrid, "a rank has one permit too many"},
    {Plant::kNoWarmup, Fault::kHybrid, "staleness begins at the first step, not after its warm-up"},
    {Plant::kPermitsOutOfOrder, Fault::kHybrid, "permits return out of order"},
    {Plant::kUpdateAnsweredEarly, Fault::kHybrid,
     "a PS answers an Update before it has applied it (hybrid)"},
    {Plant::kUpdateAnsweredEarly, Fault::kSync,
     "a PS answers an Update before it has applied it (sync)"},
    {Plant::kUpdatesLostAtOne, Fault::kAll, "an Update is left out at one of the PSs"},
    {Plant::kOtherWeightAtOne, Fault::kAll, "one of the PSs divides by another normalizer"},
    {Plant::kForgetfulPuts, Fault::kAll, "PutBatch runs once for each attempt"},
    {Plant::kForgetfulRequests, Fault::kAll, "NextBatch runs once for each attempt"},
    {Plant::kForgetfulPushes, Fault::kAll, "PushGradients runs once for each attempt"},
    {Plant::kForgetfulAcks, Fault::kAll, "Ack runs once for each attempt"},
    {Plant::kForgetfulUpdates, Fault::kAll, "Update runs once for each attempt"},
    {Plant::kForgetfulLeases, Fault::kHybrid, "LeaseSplit runs once for each attempt"},
    {Plant::kClosedCallsRun, Fault::kHybrid, "a call whose number is closed runs again"},
    {Plant::kAcksLost, Fault::kAll, "a part stays outstanding after its Ack"},
    {Plant::kTrainingLookups, Fault::kAll, "a Lookup of evaluation gives initial values"},
    {Plant::kEvaluationLookups, Fault::kAll, "a Lookup of training gives zeros"},
    {Plant::kLookupCreatesRows, Fault::kHybrid, "a Lookup creates rows"},
    {Plant::kBestNotRestored, Fault::kAll, "the best model is not loaded for the test"},
    {Plant::kLaterRowsKept, Fault::kHybrid, "rows made after the best model stay at its loading"},
    {Plant::kBestNotSaved, Fault::kAll, "only the first best model is saved"},
    {Plant::kTieIsBest, Fault::kAll, "a tie is taken for a new best"},
    {Plant::kNanIsBest, Fault::kAll, "NaN is taken for a new best"},
    {Plant::kOnWhileSaving, Fault::kAll, "rank 0 goes on while it saves"},
    {Plant::kProvenanceOffByOne, Fault::kAll, "provenance is off by one in a batch's last part"},
    {Plant::kOtherBlock, Fault::kAll, "provenance names the block after the right one"},
    {Plant::kOtherPart, Fault::kSync, "each rank asks for the next rank's part"},
    {Plant::kLastBatchLost, Fault::kHybrid, "parts of the ragged last batch are left out"},
    {Plant::kPartTwice, Fault::kHybrid, "the records of a part are in two batches"},
    {Plant::kEpochEndsEarly, Fault::kAll, "an epoch ends when one of two loaders has ended it"},
    {Plant::kNoCapacityLimit, Fault::kAll, "queues have no capacity limit"},
    {Plant::kCapacityPerWorker, Fault::kSync, "all lanes and parts share one queue capacity"},
    {Plant::kRunsThroughPasses, Fault::kAll,
     "a loader without records runs through all passes to come"},
    {Plant::kIdentityShuffle, Fault::kAll, "loaders do not shuffle, and say that they do"},
    {Plant::kOtherShuffle, Fault::kAll, "loaders shuffle consistently by another seed"},
    {Plant::kOtherKeys, Fault::kAll, "ids are mixed consistently into other keys"},
    {Plant::kL2Forgotten, Fault::kAll, "PSs leave L2 out"},
    {Plant::kClipForgotten, Fault::kAll, "PSs do not clip gradients"},
    {Plant::kBoundForgotten, Fault::kAll, "PSs do not bound weights"},
    {Plant::kOtherState, Fault::kAll, "Adagrad's accumulators begin at another value"},
    {Plant::kZombiesUpdate, Fault::kAll, "a PS takes calls of an earlier life", true},
    {Plant::kZombiesAsk, Fault::kAll, "an embedding worker takes calls of an earlier life", true},
    {Plant::kZombiesLease, Fault::kHybrid, "the coordinator leases splits to an earlier life",
     true},
    {Plant::kMarksLate, Fault::kAll, "a PS marks a cut after it has said so"},
    {Plant::kLateBeginCut, Fault::kAll, "a late copy of BeginCut is obeyed"},
    {Plant::kLedgerOfOneLost, Fault::kAll, "the ledger of one rank is left out of a cut"},
    {Plant::kWeightlessLost, Fault::kAll, "provenance of steps of weight 0 is left out of a cut"},
    {Plant::kCutInTest, Fault::kAll, "a cut is taken during the test pass"},
    {Plant::kLastCutSkipped, Fault::kAll, "the last cut is skipped"},
    {Plant::kFilesNotSynced, Fault::kAll, "a cut is committed before its files are synced", true},
    {Plant::kEntriesNotSynced, Fault::kAll, "an entry of the log is linked before it is synced",
     true},
    {Plant::kLateLink, Fault::kAll, "a second coordinator goes on in the log", true},
    {Plant::kCommitAnsweredEarly, Fault::kAll, "a commit is answered before its entry is linked",
     true},
    {Plant::kWindowsKept, Fault::kAll, "windows of calls are kept over a generation", true},
    {Plant::kLedgerIgnored, Fault::kHybrid, "loaders ignore the ledger", true},
    {Plant::kLeftLanesSend, Fault::kSync, "a lane that has left the epoch sends", true},
    {Plant::kFinishIgnored, Fault::kAll, "FINISH is not honoured at the start", true},
    {Plant::kStaleJob, Fault::kAll, "PSs have the job of before a scale", true},
};

// A disk whose files are never synced, or on which the next free name is linked.
class PlantedFile final : public WritableFile {
 public:
  explicit PlantedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes) override { return file_->Append(bytes); }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<WritableFile> file_;
};

class PlantedDisk final : public FileSystem {
 public:
  PlantedDisk(Plant plant, std::unique_ptr<FileSystem> disk)
      : plant_(plant), disk_(std::move(disk)) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return disk_->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk_->Create(path);
    if (!file.ok() || plant_ == Plant::kLateLink) return file;
    return std::make_unique<PlantedFile>(*std::move(file));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return disk_->Rename(from, to);
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const absl::Status status = disk_->HardLink(from, to);
    if (plant_ != Plant::kLateLink || !absl::IsAlreadyExists(status)) return status;
    const size_t slash = to.rfind('/') + 1;
    int64_t number = 0;
    CHECK(absl::SimpleAtoi(to.substr(slash), &number));
    return HardLink(from,
                    absl::StrCat(to.substr(0, slash), absl::Dec(number + 1, absl::kZeroPad8)));
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    return disk_->CreateLink(target, path);
  }
  absl::Status CreateFolders(const std::string& path) override {
    return disk_->CreateFolders(path);
  }
  absl::Status Remove(const std::string& path) override { return disk_->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return disk_->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override { return disk_->SyncFolder(folder); }

 private:
  const Plant plant_;
  const std::unique_ptr<FileSystem> disk_;
};

void DoubleWeight(UpdateHeader* header) {
  StepHeader* step = header->mutable_step();
  step->set_normalizer(2 * step->normalizer());
}

}  // namespace

absl::Span<const Fault> AllFaults() { return kFaults; }

Planting::Planting(Plant plant, const WorldShape& shape, SimLoop* loop, Windows* windows)
    : plant_(plant), shape_(shape), loop_(loop), windows_(windows) {}

Planting::~Planting() = default;

rpc::Handler* Planting::Keep(std::unique_ptr<rpc::Handler> handler) {
  handlers_.push_back(std::move(handler));
  return handlers_.back().get();
}

JobConfig Planting::JobOf(Role role, const JobConfig& job) const {
  JobConfig changed = job;
  if (role == DATA_LOADER && plant_ == Plant::kIdentityShuffle) {
    changed.mutable_data()->set_shuffle_rows(0);
  } else if (role == DATA_LOADER && plant_ == Plant::kOtherShuffle) {
    changed.set_seed(job.seed() + 1);
  } else if (role == EMBEDDING_WORKER && plant_ == Plant::kNoCapacityLimit) {
    changed.mutable_embedding_worker()->set_queue_capacity_parts(1000);
  }
  if (role != EMBEDDING_PS) return changed;
  if (plant_ == Plant::kStaleJob) {
    changed.mutable_embedding_ps()->set_replicas(WorldShape::Draw(shape_.seed).ps);
  }
  for (TableConfig& table : *changed.mutable_tables()) {
    if (plant_ == Plant::kL2Forgotten) table.clear_l2();
    if (plant_ == Plant::kClipForgotten) table.clear_gradient_clip_norm();
    if (plant_ == Plant::kBoundForgotten) table.clear_weight_bound();
    if (plant_ != Plant::kOtherState) continue;
    for (SegmentConfig& segment : *table.mutable_segments()) {
      SparseOptimizerConfig* optimizer = segment.mutable_optimizer();
      if (optimizer->has_adagrad()) optimizer->mutable_adagrad()->set_initial_accumulator(0);
    }
  }
  return changed;
}

RunPosition Planting::PositionOf(Role role, RunPosition position) const {
  if (plant_ == Plant::kFinishIgnored && role != EMBEDDING_PS) {
    position.set_next(RunPosition::RESUME);
  }
  if (plant_ == Plant::kLeftLanesSend && role == DATA_LOADER) {
    for (LanePosition& lane : *position.mutable_lanes()) lane.set_left(false);
  }
  return position;
}

LedgerState Planting::LedgerOf(LedgerState ledger) const {
  return plant_ == Plant::kLedgerIgnored ? LedgerState() : ledger;
}

std::unique_ptr<FileSystem> Planting::DiskOf(Role role, std::unique_ptr<FileSystem> disk) const {
  const bool is_planted = role == COORDINATOR
                              ? plant_ == Plant::kLateLink || plant_ == Plant::kEntriesNotSynced
                              : plant_ == Plant::kFilesNotSynced;
  if (!is_planted) return disk;
  return std::make_unique<PlantedDisk>(plant_, std::move(disk));
}

rpc::Handler* Planting::BeforePs(int ps, rpc::Handler* engine) {
  const bool is_last = ps + 1 == shape_.ps;
  switch (plant_) {
    case Plant::kUpdateAnsweredEarly:
      return Keep(NewEarlyUpdateAnswers(engine, loop_));
    case Plant::kUpdatesLostAtOne:
      return is_last ? Keep(NewSwallower(engine, rpc::kUpdate)) : engine;
    case Plant::kOtherWeightAtOne:
      return is_last ? Keep(NewEditor<UpdateHeader>(engine, rpc::kUpdate, DoubleWeight)) : engine;
    case Plant::kForgetfulUpdates:
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
      return Keep(NewSwallower(engine, rpc::kLoadTables));
    case Plant::kLaterRowsKept:
      return Keep(NewLaterRowsKept(engine, shape_.ranks));
    case Plant::kOtherKeys:
      return Keep(NewOtherKeys(engine));
    case Plant::kMarksLate:
      return Keep(NewLateMarks(engine, loop_));
    case Plant::kLateBeginCut:
      return Keep(NewLateBeginCuts(engine));
    case Plant::kWindowsKept:
      return Keep(NewKeptWindow(engine, &(*windows_)[ps]));
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

rpc::Handler* Planting::BeforeCoordinator(rpc::Handler* engine) {
  if (plant_ == Plant::kForgetfulLeases) return Keep(NewForgetfulWindow(engine, kLeaseSplitMethod));
  if (plant_ == Plant::kClosedCallsRun) return Keep(NewClosedCallsRun(engine));
  if (plant_ == Plant::kCommitAnsweredEarly) return Keep(NewEarlyCommitAnswers(engine, loop_));
  if (plant_ == Plant::kZombiesLease) return Keep(NewForgedEnvelopes(engine, &envelope_));
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
  if (plant_ == Plant::kPermitTooMany) ++options->max_staleness;
  if (plant_ == Plant::kNoWarmup) options->staleness_warmup_steps = 0;
  if (plant_ == Plant::kEpochTooMany) ++options->epochs;
}

StepTrainer* Planting::TrainerOf(int rank, StepTrainer* trainer) {
  auto planted = NewPlantedTrainer(plant_, shape_, rank, trainer, loop_);
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
