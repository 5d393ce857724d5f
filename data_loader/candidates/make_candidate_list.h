// Makes the list of items from which a run draws candidates (CandidatesConfig.list). The list is
// read from the file that the job names. Without such a file, the items of the train stream are
// counted, so all of its files are read once more before the run begins. Memory is bounded by the
// number of distinct items (kMostListedItems).
//
// Thread-safe: the functions depend only on their arguments and on the disk. Calls wait for the
// disk.

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

// Reads a file with one item per line: the item as it is in the data, optionally followed by a tab
// and its count. The list is sorted by decreasing count; items with equal counts, or without
// counts, keep the order of the file. An item becomes the id that the feature makes of it
// (docs/formats.md, "Candidate list"). Errors name file and line: INVALID_ARGUMENT for a count that
// is not a whole number, an item that occurs twice or is not an id of the feature, counts on only
// some of the lines, or no counts although FIXED_UNIGRAM needs them; RESOURCE_EXHAUSTED for more
// than `most_items`. REQUIRES: a validated job with model.candidates
absl::StatusOr<CandidateList> ReadItemFile(const JobConfig& job, const std::string& path,
                                           size_t most_items = kMostListedItems);

// Counts the items of all records of a stream. The list is sorted by decreasing count, then by id.
// Bad records are left out, as in training. Fails as reading does; RESOURCE_EXHAUSTED as above.
absl::StatusOr<CandidateList> CountItems(const StreamSpec& train,
                                         size_t most_items = kMostListedItems);

// Makes the list of the run and writes it to CandidateListPath, unless it exists there. `train` may
// be null if nothing is left to train; then the list can only be made from a file. `item_file`
// describes that file as it was when the run began, if known. FAILED_PRECONDITION if the file has
// changed since, or if the list, found or newly made, is not the one that RUN/splits/candidates
// describes. If there is no such description, the call writes it.
absl::Status MakeCandidateList(const JobConfig& job, const StreamSpec* train,
                               const absl::optional<FileIdentity>& item_file = absl::nullopt);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CANDIDATES_MAKE_CANDIDATE_LIST_H_
