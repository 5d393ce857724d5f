// A part in tests of RankEngines. It has no payload, and only the fields that the protocol reads.
// Each (lane, part index) is a separate split, in which each batch is one block. So a ledger
// identifies parts.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_PART_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_PART_H_

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

// "EPOCH.LANE.SEQ.PART", with "STREAM:" before it unless the part is for training.
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

// The description that an embedding worker sends to a rank.
inline PartDescription DescriptionOf(const FakePart& part) {
  PartDescription description;
  *description.mutable_id() = part.id;
  description.set_samples(part.samples);
  description.set_last_of_lane(part.last_of_lane);
  // The weight is kept in the field that holds a real part's position in its batch.
  description.set_first_sample(static_cast<uint64_t>(part.weight * 1000));
  if (part.samples > 0) *description.add_provenance() = ProvenanceOf(part);
  return description;
}
inline double WeightOf(const PartDescription& description) {
  return static_cast<double>(description.first_sample()) / 1000;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_PART_H_
