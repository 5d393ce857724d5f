// Makes the list of items that a run draws candidates from (CandidatesConfig.list): from the file
// that the job names, or by counting the items of the train stream. Counting reads all files once
// more before the run begins. Memory is bounded by the number of distinct items (kMostListedItems).
//
// Thread-safe: functions of their arguments and of the disk. Calls wait for the disk.

#ifndef SATRAP_DATA_LOADER_CANDIDATES_MAKE_CANDIDATE_LIST_H_
#define SATRAP_DATA_LOADER_CANDIDATES_MAKE_CANDIDATE_LIST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/candidates/candidate_list.h"
#include "data_loader/batch/stream_spec.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// The items of a file with one item per line: the item as in the data, then, after a tab, its
// count. Sorted by decreasing count; items of equal count, or without counts, keep the order of the
// file. An item becomes the id that the feature makes of it (docs/formats.md, "Candidate list").
// Errors name file and line: INVALID_ARGUMENT for a count that is not a whole number, an item that
// occurs twice or is not an id of the feature, counts on only some of the lines, or no counts where
// FIXED_UNIGRAM needs them; RESOURCE_EXHAUSTED for more than `most_items`. REQUIRES: a validated
// job with model.candidates
absl::StatusOr<CandidateList> ReadItemFile(const JobConfig& job, const std::string& path,
                                           size_t most_items = kMostListedItems);

// Counts the items of all records of a stream, sorted by decreasing count, then by id. Bad records
// are left out, as they are in training. Fails as reading does; RESOURCE_EXHAUSTED as above.
absl::StatusOr<CandidateList> CountItems(const StreamSpec& train,
                                         size_t most_items = kMostListedItems);

// Makes the list of the run and writes it to CandidateListPath, unless it is there. `train` may be
// null if nothing is left to be trained; then the list can only be made from a file. `item_file` is
// that file as it was when the run began, if known. FAILED_PRECONDITION if it has changed since, or
// if the list, found or made anew, is not the one that RUN/splits/candidates describes. The call
// that makes the list, or that finds one without this description, writes the description.
absl::Status MakeCandidateList(const JobConfig& job, const StreamSpec* train,
                               const absl::optional<FileIdentity>& item_file = absl::nullopt);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CANDIDATES_MAKE_CANDIDATE_LIST_H_
