// The largest part for which memory is set aside at the start, in the form in which a rank receives
// it: as the answer to a NextBatch. It has as many samples, ids and rows as a part of the job can
// be expected to have. The part is for training if the job trains, and otherwise for scoring.
//
//   samples  those of the largest part (MaxSamplesOfPart), or as many as are asked for
//   ids      one per sample; for a feature with several ids, max_length if it is a sequence and
//            otherwise kExpectedIds (common/batch/transfer.h), although a part may have more
//   rows     one for each id, but no more than a message has room for (kLargestMessageBytes);
//            max_message_bytes is no limit here, because larger parts travel in chunks
//
// Labels are 0 and 1 in turn; values, indices and all else are 0.

#ifndef SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_LARGEST_PART_H_
#define SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_LARGEST_PART_H_

#include <cstdint>
#include <memory>

#include "common/base/buffer.h"
#include "common/chunk/chunk.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "proto/job.pb.h"

namespace satrap {

// `allocator` is that of the payload; may be null. REQUIRES: a validated job, and its layout
PartInput LargestPart(const JobConfig& job, const PartLayout& layout,
                      std::shared_ptr<BufferAllocator> allocator);
// The part with the most ids and rows among those with `part_samples` samples. It has only as many
// rows as its payload of `largest_bytes` bytes has room for, but at least one row of each table
// that sends rows.
PartInput LargestPartOf(int64_t part_samples, const JobConfig& job, const PartLayout& layout,
                        std::shared_ptr<BufferAllocator> allocator,
                        int64_t largest_bytes = rpc::kLargestMessageBytes);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_LARGEST_PART_H_
