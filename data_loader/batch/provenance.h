// Makes the provenance of a part's contents (ProvenanceRange in proto/hot.proto).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DATA_LOADER_BATCH_PROVENANCE_H_
#define SATRAP_DATA_LOADER_BATCH_PROVENANCE_H_

#include <cstdint>

#include "data_loader/batch/block.h"
#include "proto/hot.pb.h"

namespace satrap {

// The provenance of a range's records. If the range begins its block, the provenance also has the
// block's counts of bad records and empty lines. A range of a topic partition may have no records;
// it then only consumes slots.
ProvenanceRange ProvenanceOf(const BlockRange& range);

// The end of split number `split`, a piece of a file.
ProvenanceRange EndOfSplit(uint32_t split, const SplitEnd& end);
// The end of a topic partition that has the offsets [start, end) in this run.
ProvenanceRange EndOfPartition(uint32_t split, uint64_t start, uint64_t end);
// A whole block [first, end) of a topic partition, in which no offset has a message.
ProvenanceRange EmptyOffsets(uint32_t split, uint64_t first, uint64_t end);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_PROVENANCE_H_
