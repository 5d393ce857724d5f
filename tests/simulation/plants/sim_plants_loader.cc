// Faults in what loaders send: part sources that leave out or repeat parts, and wrong provenance,
// shuffles and queues.

#include <algorithm>
#include <set>
#include <utility>

#include "common/rpc/hot_methods.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

using IsLeftOut = bool (*)(const WorldShape&, const PartDescription&);

// Leaves parts out.
class MissingParts final : public PartSource {
 public:
  MissingParts(const Site& site, PartSource* source, IsLeftOut is_left_out)
      : site_(site), source_(source), is_left_out_(is_left_out) {}

  void Next(Callback done) override {
    source_->Next([this, done = std::move(done)](auto part) mutable {
      if (part.ok() && part->has_value() && is_left_out_(*site_.shape, (*part)->header.part())) {
        return Next(std::move(done));
      }
      done(std::move(part));
    });
  }

 private:
  const Site site_;
  PartSource* const source_;
  const IsLeftOut is_left_out_;
};

SourceHook LeaveOut(bool in_training, IsLeftOut is_left_out) {
  return [=](const Site& site, Stream stream, PartSource* source) {
    return (stream == TRAIN_STREAM) == in_training
               ? std::make_unique<MissingParts>(site, source, is_left_out)
               : nullptr;
  };
}

// Sends each part again, as a part of another batch.
class PartTwice final : public PartSource {
 public:
  explicit PartTwice(PartSource* source) : source_(source) {}

  void Next(Callback done) override {
    if (again_.has_value()) {
      absl::optional<Part> part;
      part.swap(again_);
      return done(std::move(part));
    }
    source_->Next([this, done = std::move(done)](auto part) mutable {
      if (part.ok() && part->has_value() && (*part)->header.part().samples() > 0) {
        again_ = **part;
        PartId* id = again_->header.mutable_part()->mutable_id();
        id->set_seq(id->seq() + 1000);
      }
      done(std::move(part));
    });
  }

 private:
  PartSource* const source_;
  absl::optional<Part> again_;
};

// Mistakes the first loader's end of an epoch for the end of the epoch at all loaders.
class EarlyEpochEnds final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    PutBatchHeader header;
    if (method == rpc::kPutBatch) header = HeaderOf<PutBatchHeader>(request);
    if (!(method == rpc::kPutBatch) || header.has_part()) {
      return Pass(method, std::move(request), std::move(respond));
    }
    // The engine now believes that all loaders have ended the epoch, but parts of slower loaders
    // still come.
    const bool is_first = ended_.emplace(header.stream(), header.epoch()).second;
    for (int loader = 0; is_first && loader < site_.shape->loaders; ++loader) {
      SetCall(header.mutable_call(), loader, kFirstPlantedNumber + count_++);
      Pass(method, {header.SerializeAsString(), Buffer()}, ExpectNoError);
    }
    respond(DoneMessage());
  }

 private:
  std::set<std::pair<int, uint32_t>> ended_;  // stream and epoch
  uint64_t count_ = 0;
};

HandlerHook ChangeParts(void (*change)(const WorldShape&, PartDescription*)) {
  return Before<Editor<PutBatchHeader>>(rpc::kPutBatch,
                                        [change](const Site& site, PutBatchHeader* header) {
                                          if (header->part().provenance_size() > 0)
                                            change(*site.shape, header->mutable_part());
                                        });
}

void EndBeforeLastRecord(const WorldShape& shape, PartDescription* part) {
  // After the records, the provenance of the last part may name ends of splits.
  int last = part->provenance_size() - 1;
  while (last > 0 && part->provenance(last).ends_split()) --last;
  ProvenanceRange* range = part->mutable_provenance(last);
  const bool is_last_part = part->id().part() + 1 == static_cast<uint32_t>(shape.ranks);
  if (is_last_part && range->to() > 0) range->set_to(range->to() - 1);
}

// Rewrites the provenance as if blocks were shuffled: row r of a split, which is not shuffled, is
// named as position r mod shuffle_rows of block r / shuffle_rows.
void PretendToShuffle(const WorldShape& shape, PartDescription* part) {
  if (part->id().stream() != TRAIN_STREAM || shape.shuffle_rows == 0) return;
  const auto rows = static_cast<uint32_t>(shape.shuffle_rows);
  PartDescription cut;
  for (const ProvenanceRange& range : part->provenance()) {
    if (range.ends_split()) *cut.add_provenance() = range;
    for (uint32_t from = range.from(); from < range.to();) {
      const uint32_t to = std::min(range.to(), (from / rows + 1) * rows);
      ProvenanceRange* piece = cut.add_provenance();
      piece->set_split(range.split());
      piece->set_block(from / rows);
      piece->set_from(from % rows);
      piece->set_to(from % rows + to - from);
      from = to;
    }
  }
  part->mutable_provenance()->Swap(cut.mutable_provenance());
}

bool IsOfWholeBatch(const WorldShape& shape, const PartDescription& part) {
  const uint64_t p = part.id().part(), batch = shape.global_batch_size, ranks = shape.ranks;
  const uint64_t from = p * batch / ranks, to = (p + 1) * batch / ranks;
  return part.first_sample() == from && part.samples() == to - from;
}

}  // namespace

std::vector<Fault> LoaderFaults() {
  return {
      {.says = "provenance is off by one in a batch's last part",
       .before_worker = ChangeParts(EndBeforeLastRecord)},
      {.says = "provenance names the block after the right one",
       .before_worker = ChangeParts([](const WorldShape&, PartDescription* part) {
         for (ProvenanceRange& range : *part->mutable_provenance()) {
           range.set_block(range.block() + 1);
         }
       })},
      {.says = "parts of the ragged last batch are left out",
       .worlds = Fault::kHybrid,
       .source = LeaveOut(/*in_training=*/true,
                          [](const WorldShape& shape, const PartDescription& part) {
                            return !IsOfWholeBatch(shape, part);
                          })},
      {.says = "the records of a part are in two batches",
       .worlds = Fault::kHybrid,
       .source = [](const Site&, Stream stream, PartSource* source) -> std::unique_ptr<PartSource> {
         if (stream != TRAIN_STREAM) return nullptr;
         return std::make_unique<PartTwice>(source);
       }},
      {.says = "an epoch ends when one of two loaders has ended it",
       .before_worker = Before<EarlyEpochEnds>()},
      {.says = "queues have no capacity limit",
       .job =
           [](const Site& site, JobConfig* job) {
             if (site.role != EMBEDDING_WORKER) return;
             job->mutable_embedding_worker()->set_queue_capacity_parts(1000);
           }},
      {.says = "all lanes and parts share one queue capacity",
       .worlds = Fault::kSync,
       .one_capacity = true},
      {.says = "a loader without records runs through all passes to come",
       .source = LeaveOut(
           /*in_training=*/false,
           [](const WorldShape&, const PartDescription& part) { return part.samples() == 0; })},
      // The ledger then names records other than the trained ones, and a loader that does shuffle
      // would continue wrongly from it.
      {.says = "loaders do not shuffle, and say that they do",
       .job =
           [](const Site& site, JobConfig* job) {
             if (site.role == DATA_LOADER) job->mutable_data()->set_shuffle_rows(0);
           },
       .before_worker = ChangeParts(PretendToShuffle)},
      {.says = "loaders shuffle consistently by another seed",
       .job =
           [](const Site& site, JobConfig* job) {
             if (site.role == DATA_LOADER) job->set_seed(job->seed() + 1);
           }},
      {.says = "loaders ignore the ledger",
       .worlds = Fault::kHybrid,
       .with_deaths = true,
       .ledger_ignored = true},
      {.says = "a lane that has left the epoch sends",
       .worlds = Fault::kSync,
       .with_deaths = true,
       .position =
           [](const Site& site, RunPosition* position) {
             if (site.role != DATA_LOADER) return;
             for (LanePosition& lane : *position->mutable_lanes()) lane.set_left(false);
           }},
  };
}

}  // namespace satrap::simulation
