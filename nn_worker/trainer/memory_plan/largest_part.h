// The largest part that memory is set aside for at the start, in the form in which a rank receives
// it: the answer to a NextBatch with as many samples, ids and rows as a part of the job can be
// expected to have. The part is for training if the job trains, and otherwise for scoring.
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
// The part with the most ids and rows among those with `part_samples` samples. Its payload has at
// most `largest_bytes` bytes.
PartInput LargestPartOf(int64_t part_samples, const JobConfig& job, const PartLayout& layout,
                        std::shared_ptr<BufferAllocator> allocator,
                        int64_t largest_bytes = rpc::kLargestMessageBytes);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_LARGEST_PART_H_
