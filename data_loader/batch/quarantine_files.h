// The quarantine files of a run (docs/formats.md). Each loader has its own pair of files in each
// generation, quarantine/gNNNN-loader-I.{txt,tsv} (QuarantineName). The .txt holds bad lines as
// they were read; line n of the .tsv says where line n of the .txt was found and what is wrong with
// it.
//
// After a restart a loader reads again what was not trained. So a bad line may be in several pairs,
// and a pair may have lines that no cut includes. MergeQuarantine merges all pairs into one,
// quarantine/quarantine.{txt,tsv}, which has each line once.

#ifndef SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_
#define SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/ledger/ledger.h"

namespace satrap {

// Merges the pairs of all generations and loaders in run_dir/quarantine, sorted by stream, split,
// offset and line, and returns the number of lines. Replaces an earlier merged pair, or only
// removes it if there are no lines. The original pairs stay, so this may be called again.
//
// With a ledger, keeps a line of the train stream only if the ledger shows that the first record of
// the line's block is consumed. Two kinds of lines are kept only if the whole split is consumed:
// lines after the split's last record, and lines in a block in which a seeded split leaves no train
// record. If `ledger` is null, keeps all lines.
//
// Omits an incomplete end of a pair, which a killed loader has left. Errors of the disk name the
// file. Needs about 60 bytes of memory per bad line.
absl::StatusOr<uint64_t> MergeQuarantine(const std::string& run_dir, const Ledger* ledger);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_QUARANTINE_FILES_H_
