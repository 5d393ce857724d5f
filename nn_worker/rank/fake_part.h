// A part in tests of RankEngines, which has no payload: only what the protocol looks at.
// Part i of a lane is block i of a split of its own, so a ledger names parts.

#ifndef SATRAP_NN_WORKER_RANK_FAKE_PART_H_
#define SATRAP_NN_WORKER_RANK_FAKE_PART_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/hot.pb.h"

namespace satrap {

struct FakePart {
  PartId id;
  uint32_t samples = 1;
  double weight = 1;
  bool last_of_lane = false;
};

// "EPOCH.LANE.SEQ.PART", with the stream before it unless it is that of training.
inline std::string NameOf(const PartId& id) {
  return absl::StrCat(id.stream() == TRAIN_STREAM ? "" : Stream_Name(id.stream()) + ":", id.epoch(),
                      ".", id.lane(), ".", id.seq(), ".", id.part());
}

inline ProvenanceRange ProvenanceOf(const FakePart& part) {
  ProvenanceRange range;
  range.set_split(part.id.lane() * 100 + part.id.part());
  range.set_block(part.id.seq());
  range.set_to(part.samples);
  range.set_block_rows(part.samples);
  return range;
}

// As an embedding worker describes it to a rank.
inline PartDescription DescriptionOf(const FakePart& part) {
  PartDescription description;
  *description.mutable_id() = part.id;
  description.set_samples(part.samples);
  description.set_last_of_lane(part.last_of_lane);
  // The weight rides where a real part has the position of its batch.
  description.set_first_sample(static_cast<uint64_t>(part.weight * 1000));
  if (part.samples > 0) *description.add_provenance() = ProvenanceOf(part);
  return description;
}
inline double WeightOf(const PartDescription& description) {
  return static_cast<double>(description.first_sample()) / 1000;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_FAKE_PART_H_
