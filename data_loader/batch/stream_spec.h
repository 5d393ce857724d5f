// A StreamSpec is shared by the batch makers of one stream: it has the job, its splits, and how
// records are read, filtered, shuffled and encoded. CutBatch uses it to make the parts of a batch.

#ifndef SATRAP_DATA_LOADER_BATCH_STREAM_SPEC_H_
#define SATRAP_DATA_LOADER_BATCH_STREAM_SPEC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/ledger/ledger.h"
#include "data_loader/batch/block.h"
#include "data_loader/batch/part_encoder.h"
#include "data_loader/batch/provenance.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/record_filter.h"
#include "data_loader/check/record_check.h"
#include "data_loader/check/value_watch.h"
#include "data_loader/engine/part.h"
#include "data_loader/source/split_list.h"
#include "data_loader/synthetic/click_log.h"
#include "proto/job.pb.h"

namespace satrap {

// Where a stream begins in this generation of the run (docs/consistency.md, "Cuts").
struct StreamBegin {
  uint32_t epoch = 0;
  Ledger consumed;  // batch makers leave this out
};

// Immutable except for `progress` and `watch`, which are thread-safe.
struct StreamSpec {
  // Lists the splits and makes the spec. `progress` is not owned and must outlive it. Fails as
  // ListSplits does.
  static absl::StatusOr<std::shared_ptr<const StreamSpec>> Make(const JobConfig& job, Stream stream,
                                                                ReadProgress* progress,
                                                                StreamBegin begin = {});
  StreamSpec(const JobConfig& job, Stream stream, std::vector<Split> splits, ReadProgress* progress,
             StreamBegin begin = {});

  const JobConfig job;
  const Stream stream;
  const std::vector<Split> splits;
  const RecordSchema schema;
  const PartEncoder encoder;
  const RecordFilter filter;
  const bool ordered;  // the train stream in sync mode
  const bool shuffled;
  const uint64_t block_rows;
  // Whether this stream counts the bad records of its files. If streams of a seeded split read the
  // same files, only one of them counts.
  const bool reports_bad;
  const StreamBegin begin;
  const std::unique_ptr<const ClickLog> click_log;  // null: a text format
  const RecordCheck check;
  const std::unique_ptr<ValueWatch> watch;
  ReadProgress* const progress;

  // Call AddReader when a batch maker begins the first epoch or pass, and EndReader when it has
  // read its share of that epoch. EndReader fails as ReadProgress::EndReader does.
  void AddReader() const;
  absl::Status EndReader() const;
};

// Cuts a batch into one part per NN worker; the sizes differ by at most one. Sets stream, epoch and
// part in each part, and last_of_lane if the stream is ordered. Includes parts of zero samples only
// if the stream is ordered. The last part carries `riders` (provenance without samples); if there
// would be no part, an empty part 0 carries them.
std::vector<Part> CutBatch(const StreamSpec& spec, absl::Span<const BlockRange> batch,
                           absl::Span<const ProvenanceRange> riders, uint32_t epoch, bool last);
// Part 0, without samples.
Part EmptyPart(const StreamSpec& spec, uint32_t epoch);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_STREAM_SPEC_H_
