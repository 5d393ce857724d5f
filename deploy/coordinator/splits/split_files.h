// The list of a run's files, RUN/splits/DIGEST. The first generation writes it once, and all
// generations read it. DIGEST is the XXH64 of the list, so two coordinators that write at the same
// time write either the same file or two different ones. The file is text with a checksum, like the
// log.
//
// Blocking. Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_FILES_H_
#define SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// Returns the list of the run in job.run_dir(). If the generation begins from a cut, `cut_order` is
// the cut's order fingerprint, and the result is the list in the folder that has this fingerprint,
// computed with `topics`. Without a cut, or if no list has the fingerprint, the result is
// `proposed` if the folder has that list, and otherwise the first list by name. If the folder has
// no list, writes `proposed`, which is durable when this returns. `writer` is a random number in
// the draft's name. DATA_LOSS, naming the file, for a damaged list.
absl::StatusOr<SplitList> FixSplitList(const JobConfig& job, const SplitList& proposed,
                                       const std::vector<StreamTopics>& topics,
                                       absl::optional<uint64_t> cut_order, uint64_t writer,
                                       FileSystem* file_system);

// The list `files`, with `topics` in place of its own topics.
SplitList WithTopics(SplitList files, const std::vector<StreamTopics>& topics);

// The name of the list's file: 16 hexadecimal digits.
std::string SplitListDigest(const SplitList& splits);

// The first difference of `b` from `a`, as a text that can follow "sees": "7 bytes in a.csv, not
// 5", "3 files of stream 0, not 4 of stream 0". Empty if they are equal.
std::string FirstDifference(const SplitList& a, const SplitList& b);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_FILES_H_
