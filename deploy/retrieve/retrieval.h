// What `satrap retrieve` computes: ranks all items for each user by their vectors, and compares the
// best ones with those that were held out for the user.
//
// Holds the vectors of all items and the pairs of the users that count, and reads users in blocks.
// Thread-safe: a function of its arguments and the disk.

#ifndef SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_
#define SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/retrieve/retrieval_metrics.h"

namespace satrap {

// Paths of files (deploy/retrieve/text_lines.h).
struct RetrievalOptions {
  std::string user_vectors, item_vectors;  // a vector a line
  std::string users, items;                // the name of each, the first field of a line
  std::string relevant;                    // pairs: what was held out
  std::string seen;                        // pairs that are not ranked; empty: none
  std::string popularity;  // pairs, whose number for each item ranks it; empty: no baseline
  std::string output;      // written: a user a line, its name and its best items; empty: nowhere
  std::vector<int> ks;     // each >= 1
  int threads = 1;
  int64_t block_users = 4096;  // in memory at once
};

struct RetrievalResult {
  int64_t items = 0;  // that have a vector
  int64_t dim = 0;
  int64_t users = 0;  // that have a vector and relevant items: the metrics are their means
  std::vector<RetrievalValues> by_vectors;     // by k
  std::vector<RetrievalValues> by_popularity;  // likewise; empty: no baseline
  // What the user may not expect.
  int64_t users_without_vector = 0;  // with relevant items; they do not count
  int64_t items_without_vector = 0;  // of nan; they are not ranked
  int64_t unknown_relevant = 0;      // pairs whose item has no vector: they count as not found
  int64_t seen_relevant = 0;         // pairs that are seen, too: likewise
};

// An item of equal score or count comes before those further down in `items`. INVALID_ARGUMENT,
// naming file and line: a line that is not what it should be, an item or a user with relevant items
// that occurs twice, names and vectors of different numbers, vectors of users and items of
// different numbers of values; an output that is one of the files to read. FAILED_PRECONDITION if
// no item has a vector or no user counts; errors of reading and writing.
absl::StatusOr<RetrievalResult> Retrieve(const RetrievalOptions& options);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_H_
