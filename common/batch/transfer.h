// Decides where the rows of a feature are pooled. It is a function of the job alone, never of a
// batch, so that embedding workers and NN workers agree without asking each other.

#ifndef SATRAP_COMMON_BATCH_TRANSFER_H_
#define SATRAP_COMMON_BATCH_TRANSFER_H_

#include "proto/job.pb.h"

namespace satrap {

// The number of ids per sample that is assumed for a feature that can have several, because the job
// does not state it.
inline constexpr int kExpectedIds = 3;

// ROWS or POOLED, never AUTO. It is what the job asks for, with two exceptions:
//
//  - Pooling NONE is always ROWS: a sequence has nothing to pool.
//  - AUTO is ROWS for a feature with at most one id a sample. For other features it is the choice
//    that is expected to cost fewer bytes for a part of B samples. POOLED costs B rows; ROWS costs
//    min(vocabulary, 3 B / 2) rows and 3 B indices of four bytes. This assumes kExpectedIds ids per
//    sample, half of which occur in the part already. If the data differ from that, the job should
//    say ROWS or POOLED.
//
// REQUIRES: a validated job (common/config/validate/validate_job.h)
FeatureConfig::Transfer TransferOf(const FeatureConfig& feature, const JobConfig& job);

// True if a sample can have more than one id of the feature.
bool IsMultiValued(const FeatureConfig& feature, const DataConfig& data);

}  // namespace satrap

#endif  // SATRAP_COMMON_BATCH_TRANSFER_H_
