// The items that candidates are drawn from (CandidatesConfig), in order of decreasing count. A run
// has one list: the first loader makes it before the run begins (data_loader/candidates), and every
// embedding worker of every generation reads it. docs/formats.md, "Candidate list".
//
// Thread-safe: the functions depend only on their arguments and on the disk. They block on the
// disk.

#ifndef SATRAP_COMMON_CANDIDATES_CANDIDATE_LIST_H_
#define SATRAP_COMMON_CANDIDATES_CANDIDATE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

// A longer list is refused: reading it would take more than a gigabyte at each embedding worker.
inline constexpr size_t kMostListedItems = size_t{1} << 25;

struct CandidateList {
  std::vector<uint64_t> ids;     // of the feature's id space; each once
  std::vector<uint64_t> counts;  // counts[i] is that of ids[i]

  size_t size() const { return ids.size(); }
  // Sorts by decreasing count; items of equal count keep their order.
  void Sort();
};

// The last eight bytes of the list's file: the XXH64 of all bytes before them.
uint64_t CandidateListHash(const CandidateList& list);

// Errors are those of DurableFile.
absl::Status WriteCandidateList(const std::string& path, const CandidateList& list);
// NOT_FOUND if there is no such file; DATA_LOSS, naming the file, if it is damaged.
absl::StatusOr<CandidateList> ReadCandidateList(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_COMMON_CANDIDATES_CANDIDATE_LIST_H_
