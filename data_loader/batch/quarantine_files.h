// The quarantine files of a run (docs/formats.md). Each generation and loader has its own pair,
// quarantine/gNNNN-loader-I.{txt,tsv} (QuarantineName): the .txt holds bad lines as they were, and
// line n of the .tsv says where line n of the .txt was found and what is wrong with it.
//
// After a restart a loader reads again what was not trained, so a bad line may be in several pairs,
// or in a pair although no cut holds it. MergeQuarantine merges all pairs into one,
// quarantine/quarantine.{txt,tsv}, which has each line once.

#ifndef SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_
#define SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/ledger/ledger.h"

namespace satrap {

// Merges the pairs of all generations and loaders in run_dir/quarantine, by stream, split, offset
// and line, and returns the number of lines. Replaces an earlier merged pair, or only removes it if
// there is no line. The pairs stay, so this may be called again.
//
// With a ledger, lines of the train stream are kept only if what they belong to is consumed: the
// first record of their block, or the split as a whole. (A line after the last record of a split,
// or in a block in which a seeded split leaves no train record, belongs to the split as a whole.)
// Null: all lines are kept.
//
// Omits what a killed loader left incomplete at the end of a pair. Errors of the disk name the
// file. Keeps about 60 bytes per bad line in memory.
absl::StatusOr<uint64_t> MergeQuarantine(const std::string& run_dir, const Ledger* ledger);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_
