// A RecordFilter says which records of the train files belong to a stream: all of them, or, under
// DataConfig.seeded_split, the stream's share by a hash of (seed, split, position of the record).
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_BATCH_RECORD_FILTER_H_
#define SATRAP_DATA_LOADER_BATCH_RECORD_FILTER_H_

#include <cstdint>

#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class RecordFilter {
 public:
  RecordFilter(const JobConfig& job, Stream stream);

  // `position` counts the good records of the split.
  bool Keeps(uint32_t split, uint64_t position) const {
    return keeps_all_ || KeepsByHash(split, position);
  }

 private:
  bool KeepsByHash(uint32_t split, uint64_t position) const;

  const uint64_t seed_;
  bool keeps_all_ = false;
  // The stream's records are those whose hash, in [0, 1), lies in [from_, to_).
  double from_ = 0;
  double to_ = 1;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_RECORD_FILTER_H_
