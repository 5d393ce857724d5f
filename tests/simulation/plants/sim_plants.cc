#include "tests/simulation/plants/sim_plants.h"

#include <utility>

#include "tests/simulation/plants/sim_plants_rank.h"

namespace satrap::simulation {

Planting::Planting(const Fault* fault, const WorldShape& shape, SimLoop* loop, LifeMemory* memory)
    : fault_(fault == nullptr ? Fault() : *fault), shape_(shape), loop_(loop), memory_(memory) {}

Site Planting::At(Role role, int index) {
  Site site;
  site.shape = &shape_;
  site.loop = loop_;
  site.memory = memory_;
  site.envelope = &envelope_;
  site.ledger = &forgetful_ledger_;
  site.role = role;
  site.index = index;
  site.is_last = index + 1 == (role == EMBEDDING_PS ? shape_.ps : shape_.ranks);
  return site;
}

rpc::Handler* Planting::Before(const HandlerHook& hook, const Site& site, rpc::Handler* next) {
  auto planted = hook == nullptr ? nullptr : hook(site, next);
  if (planted == nullptr) return next;
  handlers_.push_back(std::move(planted));
  return handlers_.back().get();
}

JobConfig Planting::JobOf(Role role, const JobConfig& job) {
  JobConfig changed = job;
  if (fault_.job != nullptr) fault_.job(At(role), &changed);
  return changed;
}

RunPosition Planting::PositionOf(Role role, RunPosition position) {
  if (fault_.position != nullptr) fault_.position(At(role), &position);
  return position;
}

LedgerState Planting::LedgerOf(Role role, LedgerState ledger) {
  // The ledger is started for every fault, although only a planted trainer and a planted disk use
  // it.
  if (role == NN_WORKER) forgetful_ledger_.Start(ledger);
  return role == DATA_LOADER && fault_.ledger_ignored ? LedgerState() : ledger;
}

std::unique_ptr<FileSystem> Planting::DiskOf(Role role, std::unique_ptr<FileSystem> disk) {
  return fault_.disk == nullptr ? std::move(disk) : fault_.disk(At(role), std::move(disk));
}

rpc::Handler* Planting::BeforePs(int ps, rpc::Handler* engine, FileSystem* disk) {
  Site site = At(EMBEDDING_PS, ps);
  site.disk = disk;
  return Before(fault_.before_ps, site, engine);
}

rpc::Handler* Planting::BeforeWorker(rpc::Handler* engine) {
  return Before(fault_.before_worker, At(EMBEDDING_WORKER), engine);
}

rpc::Handler* Planting::BeforeCoordinator(rpc::Handler* engine, const std::string& run_dir,
                                          FileSystem* disk) {
  Site site = At(COORDINATOR);
  site.disk = disk;
  site.run_dir = run_dir;
  return Before(fault_.before_coordinator, site, engine);
}

rpc::Handler* Planting::BeforeChunks(rpc::Handler* chunks, std::shared_ptr<bool> in_chunk) {
  Site site = At(COORDINATOR);
  site.in_chunk = std::move(in_chunk);
  return Before(fault_.before_chunks, site, chunks);
}

rpc::Handler* Planting::AfterChunks(rpc::Handler* engine, std::shared_ptr<bool> in_chunk) {
  Site site = At(COORDINATOR);
  site.in_chunk = std::move(in_chunk);
  return Before(fault_.after_chunks, site, engine);
}

std::vector<rpc::Channel*> Planting::ChannelsOf(int rank, std::vector<rpc::Channel*> channels) {
  if (fault_.channels == nullptr) return channels;
  auto planted = fault_.channels(At(NN_WORKER, rank), channels);
  for (size_t i = 0; i < channels.size(); ++i) {
    channels[i] = planted[i].get();
    channels_.push_back(std::move(planted[i]));
  }
  return channels;
}

void Planting::ChangeOptions(RankOptions* options) {
  if (fault_.options != nullptr) fault_.options(At(NN_WORKER, options->rank), options);
  options->epochs += fault_.epochs_too_many;
}

StepTrainer* Planting::TrainerOf(int rank, StepTrainer* trainer) {
  const Site site = At(NN_WORKER, rank);
  std::unique_ptr<StepTrainer> planted;
  if (fault_.trainer != nullptr) planted = fault_.trainer(site, trainer);
  if (fault_.disguise != nullptr) planted = NewDisguisedTrainer(site, trainer, fault_.disguise);
  if (planted == nullptr) return trainer;
  trainers_.push_back(std::move(planted));
  return trainers_.back().get();
}

RankObserver* Planting::ObserverOf(RankObserver* observer) {
  if (fault_.disguise == nullptr) return observer;
  observers_.push_back(NewUndisguisedObserver(observer));
  return observers_.back().get();
}

RunResult Planting::ResultOf(RunResult result) const {
  // The rank reports the metrics that it was shown. The checks get the true ones: they must find
  // the wrong decision of the rank, not the falsified metrics.
  if (fault_.disguise == nullptr) return result;
  if (result.has_valid()) *result.mutable_valid() = Undisguised(result.valid());
  if (result.has_test()) *result.mutable_test() = Undisguised(result.test());
  return result;
}

std::vector<LoaderEngine::StreamSources> Planting::SourcesOf(
    std::vector<LoaderEngine::StreamSources> streams) {
  for (LoaderEngine::StreamSources& stream : streams) {
    if (stream.epochs > 0) stream.epochs += fault_.epochs_too_many;
    if (fault_.source == nullptr) continue;
    for (PartSource*& source : stream.sources) {
      auto planted = fault_.source(At(DATA_LOADER), stream.stream, source);
      if (planted == nullptr) continue;
      sources_.push_back(std::move(planted));
      source = sources_.back().get();
    }
  }
  return streams;
}

}  // namespace satrap::simulation
