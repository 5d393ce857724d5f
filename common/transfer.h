// Where the rows of a feature are pooled: a function of the job alone, so that embedding worker and
// NN worker agree without asking each other, and never a matter of one batch.

#ifndef SATRAP_COMMON_TRANSFER_H_
#define SATRAP_COMMON_TRANSFER_H_

#include "proto/job.pb.h"

namespace satrap {

// ROWS or POOLED, never AUTO. What the job asks for, but for two cases:
//
//  - Pooling NONE is always ROWS: a sequence has nothing to pool.
//  - AUTO is ROWS for a feature with at most one id a sample. For others it is what is expected to
//    cost fewer bytes for a part of B samples: B rows when pooled; min(vocabulary, 3 B / 2) rows
//    and 3 B indices of four bytes when not. That assumes three ids a sample, half of them met
//    before; where the data is known to be otherwise, the job says ROWS or POOLED.
//
// REQUIRES: a validated job (common/config/validate_job.h).
FeatureConfig::Transfer TransferOf(const FeatureConfig& feature, const JobConfig& job);

// True if a sample can have more than one id of the feature.
bool IsMultiValued(const FeatureConfig& feature, const DataConfig& data);

}  // namespace satrap

#endif  // SATRAP_COMMON_TRANSFER_H_
