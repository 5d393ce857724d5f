// A RecordFilter decides which records of a file belong to a stream: all of them, or, if the stream
// is made by DataConfig.seeded_split, a fraction chosen by a hash of (seed, split, position of the
// record).
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

  // `position` counts the split's good records.
  bool Keeps(uint32_t split, uint64_t position) const {
    return keeps_all_ || KeepsByHash(split, position);
  }

 private:
  bool KeepsByHash(uint32_t split, uint64_t position) const;

  const uint64_t seed_;
  bool keeps_all_ = false;
  // A record belongs to the stream if its hash, a number in [0, 1), lies in [from_, to_).
  double from_ = 0;
  double to_ = 1;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_RECORD_FILTER_H_
