// The files of a run are fixed when it begins: their order, their sizes and their contents. Every
// loader lists them (ListRunFiles), and the coordinator gives the first list of the run to all
// loaders, even in later generations. A loader reads exactly these files. CheckRunFiles refuses a
// file that has changed, because positions and the ledger of a run refer to the records of these
// files.
//
// A file may grow; what was appended is not read in this run. Therefore the hash of a file covers
// its first 64 KiB, and the last 64 KiB of the size that it had when the run began. A change
// between these that keeps the size is not noticed. New files that match a glob do not become part
// of the run.
//
// Thread-safe: the functions depend only on their arguments and on the disk. Calls wait for the
// disk.

#ifndef SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_
#define SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// Let n be `bytes`. Returns the XXH64 of the file's bytes [0, min(n, 65536)), followed by its bytes
// [max(n - 65536, 65536), n) if there are any. OUT_OF_RANGE if the file is shorter than n; errors
// name the file.
absl::StatusOr<uint64_t> ContentHash(const std::string& path, uint64_t bytes);

// The streams that a job with this action reads, with their files as they are now. Reads at most
// 128 KiB of each file, and only once if several streams use it. Errors are those of ListFiles and
// ContentHash. If the job draws candidates from a file of items, reads all of that file. If that
// file cannot be read, it is left out: the loader that makes the list of candidates reports that.
absl::StatusOr<SplitList> ListRunFiles(const JobConfig& job);

// Checks that the files of `fixed` are still as they were when `fixed` was made. `listed` is a
// recent result of ListRunFiles: a file that is equal in both is not read again.
// FAILED_PRECONDITION names the first file that has shrunk, has other contents or is missing, and
// says what the file was, what it is, and what to do.
absl::Status CheckRunFiles(const JobConfig& job, const SplitList& fixed, const SplitList& listed);

// Checks that the file of items is still as `was` describes it. If not, fails with
// FAILED_PRECONDITION as CheckRunFiles does.
absl::Status CheckItemFile(const JobConfig& job, const FileIdentity& was);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_RUN_FILES_H_
