// A split is a piece of a stream that one loader reads from its beginning to its end. It is a byte
// range of a plain file, a whole file that is compressed or whose records may span lines
// (csv.multiline), or a range of rows of a synthetic stream. The list of splits is a function of
// the job and of the streams' files. The files are fixed when a run begins (run_files.h), so every
// loader makes the same list in every generation of the run.
//
// A record belongs to the split that contains its first byte (line_reader.h).

#ifndef SATRAP_DATA_LOADER_SOURCE_SPLIT_LIST_H_
#define SATRAP_DATA_LOADER_SOURCE_SPLIT_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data_loader/source/file_kind.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

struct Split {
  std::string path;  // empty: rows of the synthetic stream
  Compression compression = Compression::kNone;
  // The range [from, to): bytes of the file as it is on disk, or rows.
  uint64_t from = 0;
  uint64_t to = 0;
  // The size on disk of the whole file when the list was made. 0 for rows, or if it is not known.
  uint64_t file_bytes = 0;
};

// A glob that matches only `name`, even if that has special characters.
std::string GlobOf(const std::string& name);

// Whether `stream` gets its records from the train files because of DataConfig.seeded_split.
bool IsSeededStream(const DataConfig& data, Stream stream);

// The files of a stream that exist now, with their sizes but without hashes of their content. The
// files of each glob are sorted by name, globs keep their order, and a file that two globs match
// counts once. A stream may have no files. NOT_FOUND, naming the glob, if a glob matches nothing;
// INVALID_ARGUMENT if a match is not a regular file; PERMISSION_DENIED if a match cannot be read.
absl::StatusOr<StreamFiles> ListFiles(const JobConfig& job, Stream stream);

// The path by which a file is opened.
std::string PathOf(const JobConfig& job, const FileIdentity& file);

// The splits of a stream with these files, in order; element j is split j in the wire messages.
// Reads the first bytes of each file. Errors are those of ListFiles and SniffFile.
absl::StatusOr<std::vector<Split>> SplitsOf(const JobConfig& job, Stream stream,
                                            const StreamFiles& files);

// Lists the splits of the files that exist now.
absl::StatusOr<std::vector<Split>> ListSplits(const JobConfig& job, Stream stream);

// Checks that the files of all streams that the job reads exist now and can be read. NOT_FOUND,
// with a line for each problem, if ListSplits fails with NOT_FOUND, INVALID_ARGUMENT or
// PERMISSION_DENIED. Other errors of ListSplits, such as those of a disk, are returned unchanged.
absl::Status CheckFilesOfJob(const JobConfig& job);

// The number of rows of a synthetic stream.
uint64_t SyntheticRows(const SyntheticFormat& synthetic, Stream stream);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_SPLIT_LIST_H_
