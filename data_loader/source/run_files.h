// The files of a run are fixed when it begins: their order, their sizes and what they hold. Every
// loader lists them (ListRunFiles), and the coordinator gives all of them the first list of the
// run, in later generations too. A loader reads exactly those files, and CheckRunFiles refuses one
// that has changed, because positions and the ledger of a run refer to the records of these files.
//
// A file may grow: what was appended is not read in this run. So the hash of a file covers its
// first 64 KiB and the 64 KiB before the size that it had when the run began. A change in between
// that keeps the size goes unnoticed. New files that match a glob do not become part of the run.
//
// Thread-safe: functions of their arguments and of the disk. Calls wait for the disk.

#ifndef SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_
#define SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// XXH64 of bytes [0, min(n, 65536)) of the file, followed by those of its bytes
// [max(n - 65536, 65536), n), if there are any, where n is `bytes`. OUT_OF_RANGE if the file is
// shorter than `bytes`; errors name the file.
absl::StatusOr<uint64_t> ContentHash(const std::string& path, uint64_t bytes);

// The streams that a job of this action reads, with their files as they are now. Reads at most 128
// KiB of a file, and only once if several streams use it. Errors as ListFiles. The file of items
// that the job's candidates are drawn from is read whole. It is left out if it cannot be read: the
// loader that makes the list of candidates reports that.
absl::StatusOr<SplitList> ListRunFiles(const JobConfig& job);

// Checks that the files of `fixed` are what they were when it was made. `listed` is a recent
// ListRunFiles: a file that is the same in both is not read again. FAILED_PRECONDITION names the
// first file that has shrunk, holds something else or is gone, says what it was and what it is, and
// what to do.
absl::Status CheckRunFiles(const JobConfig& job, const SplitList& fixed, const SplitList& listed);

// Checks that the file of items is still `was`. FAILED_PRECONDITION, as above, if it is not.
absl::Status CheckItemFile(const JobConfig& job, const FileIdentity& was);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_
