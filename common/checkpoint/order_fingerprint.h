// What fixes the order of a run's samples, and so what the ledger of a cut means: mode, seed,
// lanes, batch size, blocks, the parser and its filters, the streams' files, or their topics and,
// if these end, the offsets of their partitions. A run goes on from a cut only if its own
// fingerprint is the cut's. Numbers of processes are no part of it, nor are learning rates, nor how
// a cluster is reached.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_
#define SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// XXH64 of a text of the above. Paths are left out: files may move, their content may not change.
// So are the partitions of a stream that never ends, because they may be added to.
uint64_t OrderFingerprint(const JobConfig& job, const SplitList& splits);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ORDER_FINGERPRINT_H_
