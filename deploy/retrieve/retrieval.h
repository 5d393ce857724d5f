// The computation of `satrap retrieve`: ranks all items for each user by their vectors, and
// compares the best items with those that were held out for the user.
//
// Holds in memory the vectors of all items, and the pairs of the users that count. Reads users in
// blocks. Thread-safe: a function of its arguments and the disk.

#ifndef SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_
#define SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/retrieve/retrieval_metrics.h"

namespace satrap {

// The paths of files (deploy/retrieve/text_lines.h), and what to compute.
struct RetrievalOptions {
  std::string user_vectors, item_vectors;  // one vector per line
  std::string users, items;                // names, in the first field of each line
  std::string relevant;                    // pairs that were held out
  std::string seen;                        // pairs that are not ranked; empty: none
  std::string popularity;  // pairs; an item is ranked by how many it has; empty: no baseline
  std::string output;      // written: per user a line of its name and best items; empty: nowhere
  std::vector<int> ks;     // each >= 1
  int threads = 1;
  int64_t block_users = 4096;  // users in memory at once
};

struct RetrievalResult {
  int64_t items = 0;  // items that have a vector
  int64_t dim = 0;
  int64_t users = 0;  // users with a vector and relevant items; metrics are their means
  std::vector<RetrievalValues> by_vectors;     // by k
  std::vector<RetrievalValues> by_popularity;  // also by k; empty: no baseline
  // Counts that may surprise the user of the command.
  int64_t users_without_vector = 0;  // users with relevant items; they do not count
  int64_t items_without_vector = 0;  // their vectors are nan; they are not ranked
  int64_t unknown_relevant = 0;      // pairs whose item has no vector: they count as not found
  int64_t seen_relevant = 0;         // pairs that are also seen: they count as not found
};

// Of items with equal scores or counts, the one that comes first in `items` ranks first.
// INVALID_ARGUMENT, naming file and line: a line is malformed, an item or a user with relevant
// items occurs twice, the numbers of names and vectors differ, the vectors of users and items have
// different numbers of values, or the output is one of the files to read. FAILED_PRECONDITION if no
// item has a vector, or if no user has both a vector and relevant items. Also errors of reading and
// writing.
absl::StatusOr<RetrievalResult> Retrieve(const RetrievalOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_
