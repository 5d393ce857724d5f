#include "tests/simulation/plants/sim_plants_parts.h"

#include <algorithm>
#include <utility>

namespace satrap::simulation {
namespace {

class PlantedSource final : public PartSource {
 public:
  PlantedSource(Plant plant, const WorldShape& shape, PartSource* source)
      : plant_(plant), shape_(shape), source_(source) {}

  void Next(Callback done) override {
    if (again_.has_value()) {
      absl::optional<Part> part;
      part.swap(again_);
      done(std::move(part));
      return;
    }
    source_->Next(
        [this, done = std::move(done)](absl::StatusOr<absl::optional<Part>> part) mutable {
          if (part.ok() && part->has_value()) {
            const PartDescription& description = (*part)->header.part();
            if (IsLeftOut(description)) return Next(std::move(done));
            if (plant_ == Plant::kPartTwice && description.samples() > 0) {
              again_ = **part;
              PartId* id = again_->header.mutable_part()->mutable_id();
              id->set_seq(id->seq() + 1000);
            }
          }
          done(std::move(part));
        });
  }

 private:
  bool IsLeftOut(const PartDescription& part) const {
    if (plant_ == Plant::kRunsThroughPasses) return part.samples() == 0;
    if (plant_ != Plant::kLastBatchLost) return false;
    // A part of a whole batch has this place and size.
    const uint64_t p = part.id().part(), batch = shape_.global_batch_size, ranks = shape_.ranks;
    const uint64_t from = p * batch / ranks, to = (p + 1) * batch / ranks;
    return part.first_sample() != from || part.samples() != to - from;
  }

  const Plant plant_;
  const WorldShape shape_;
  PartSource* const source_;
  absl::optional<Part> again_;
};

}  // namespace

std::unique_ptr<PartSource> NewPlantedSource(Plant plant, const WorldShape& shape, Stream stream,
                                             PartSource* source) {
  const bool trains = stream == TRAIN_STREAM;
  const bool is_planted = trains ? plant == Plant::kLastBatchLost || plant == Plant::kPartTwice
                                 : plant == Plant::kRunsThroughPasses;
  return is_planted ? std::make_unique<PlantedSource>(plant, shape, source) : nullptr;
}

void ChangeProvenance(Plant plant, const WorldShape& shape, PartDescription* part) {
  if (part->provenance_size() == 0) return;
  if (plant == Plant::kProvenanceOffByOne) {
    // After its records, the last part may name ends of splits.
    int last = part->provenance_size() - 1;
    while (last > 0 && part->provenance(last).ends_split()) --last;
    ProvenanceRange* range = part->mutable_provenance(last);
    const bool is_last_part = part->id().part() + 1 == static_cast<uint32_t>(shape.ranks);
    if (is_last_part && range->to() > 0) range->set_to(range->to() - 1);
  } else if (plant == Plant::kOtherBlock) {
    for (ProvenanceRange& range : *part->mutable_provenance()) range.set_block(range.block() + 1);
  } else if (plant == Plant::kIdentityShuffle && part->id().stream() == TRAIN_STREAM &&
             shape.shuffle_rows > 0) {
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
}

}  // namespace satrap::simulation
