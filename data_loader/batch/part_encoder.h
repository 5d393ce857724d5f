// A PartEncoder writes records of blocks as the payload of a PutBatch: the ids of each feature, the
// numerics, the labels, a mask if the part lacks some labels, and weights, groups and times if the
// format has them. Each value is copied once, from the block to the buffer that is sent.
//
// Thread-safe: const and without state of its own.

#ifndef SATRAP_DATA_LOADER_BATCH_PART_ENCODER_H_
#define SATRAP_DATA_LOADER_BATCH_PART_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/rpc/payload.h"
#include "data_loader/batch/block.h"
#include "data_loader/engine/part.h"
#include "data_loader/transform/numeric_transform.h"
#include "proto/data.pb.h"

namespace satrap {

class PartEncoder {
 public:
  // REQUIRES: `data` comes from a valid job
  explicit PartEncoder(const DataConfig& data);

  // Encodes the records of `ranges`, in order, as a part; without ranges the part has zero samples.
  // `first_sample` is the position of its first sample in the global batch. Its provenance has an
  // element for each of `ranges` that has records; if the range begins at 0, the element has the
  // counts of the block. The caller sets the ids and last_of_lane.
  Part Encode(absl::Span<const BlockRange> ranges, uint64_t first_sample) const;

 private:
  struct Feature {
    enum Kind { kId, kIdOrNone, kList, kNumeric, kNumericOrNone, kCross, kCrossOrNone };
    Kind kind;
    size_t column;
    bool weighted;
    size_t to_id;                 // kNumeric, kNumericOrNone: index in to_ids_
    std::vector<size_t> crossed;  // kCross, kCrossOrNone: the columns
  };
  struct Dense {
    size_t column;
    NumericTransform transform;
  };
  // One record of the part.
  struct Row {
    const RecordBlock* block;
    uint32_t row;
  };
  using Rows = std::vector<Row>;

  Feature FeatureOf(const FeatureConfig& config);
  // Reserves the sections of the part's payload in the order of the format.
  void Reserve(const Rows& rows, Part* part, rpc::PayloadBuilder* builder) const;
  // These two fill the sections of features, and the sections with one or more values per sample.
  void FillFeatures(const Rows& rows, const Part& part, rpc::PayloadBuilder* builder) const;
  void FillSamples(const Rows& rows, const Part& part, rpc::PayloadBuilder* builder) const;
  size_t CountIds(const Feature& feature, const Rows& rows) const;
  void PrefetchIds(const Row& row) const;
  void FillSingleIds(const Rows& rows, absl::Span<const absl::Span<uint64_t>> ids) const;
  void FillJagged(const Feature& feature, const Rows& rows, absl::Span<uint64_t> ids,
                  absl::Span<uint32_t> offsets, absl::Span<float> values) const;
  bool MissesLabels(const Rows& rows) const;
  // `mask` is empty if no label is missing.
  void FillLabels(const Rows& rows, absl::Span<float> labels, absl::Span<uint8_t> mask) const;
  uint64_t NumericId(const Feature& feature, const Row& row, bool* missing) const;
  static uint64_t CrossIdOf(const Feature& feature, const Row& row);
  // Whether one of the feature's columns is missing in the row.
  static bool CrossMisses(const Feature& feature, const Row& row);

  const RecordSchema schema_;
  std::vector<Feature> features_;
  std::vector<Dense> dense_;
  std::vector<NumericToId> to_ids_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_PART_ENCODER_H_
