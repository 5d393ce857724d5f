// The list of a run's files, RUN/splits/DIGEST: written once, by the first generation, and read by
// all. DIGEST is the XXH64 of the list, so two coordinators that write at the same time write
// either the same file or two different ones. Text with a checksum, like the log.
//
// Blocking. Thread-safe: functions of their arguments.

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

// The list of the run in job.run_dir(): the list that gives, with `topics`, the order fingerprint
// `cut_order` (of the cut that the generation begins from); else `proposed` if the folder holds it;
// else the first by name. If the folder holds none, `proposed` is written and is durable when this
// returns. `writer` is random and names the draft. DATA_LOSS, naming the file, for a damaged list.
absl::StatusOr<SplitList> FixSplitList(const JobConfig& job, const SplitList& proposed,
                                       const std::vector<StreamTopics>& topics,
                                       absl::optional<uint64_t> cut_order, uint64_t writer,
                                       FileSystem* file_system);

// A list with the files of `files` and with `topics`.
SplitList WithTopics(SplitList files, const std::vector<StreamTopics>& topics);

// The file name of the list: 16 hexadecimal digits.
std::string SplitListDigest(const SplitList& splits);

// "the file a.csv has 7 bytes", "... 3 train files, not 4": the first way in which `b` differs
// from `a`, to follow "sees". Empty if they are equal.
std::string FirstDifference(const SplitList& a, const SplitList& b);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_SPLITS_SPLIT_FILES_H_
