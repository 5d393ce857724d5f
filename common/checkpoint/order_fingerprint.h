// A fingerprint of everything that fixes the order of a run's samples, and so the meaning of a
// cut's ledger: mode, seed, lanes, batch size, blocks, the parser and its filters, and the streams'
// files or topics. If topics end, it also covers the offsets of their partitions. A run continues
// from a cut only if its own fingerprint equals the cut's. Numbers of processes, learning rates and
// the way in which a cluster is reached are not part of it.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_
#define SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// The XXH64 of a text that states everything listed at the top of this file. Paths are left out:
// files may move, but their content must not change. The partitions of a stream that never ends are
// left out, too, because some may be added.
uint64_t OrderFingerprint(const JobConfig& job, const SplitList& splits);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_
