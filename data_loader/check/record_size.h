// A RecordSize says which records alone are too large for a message: one whose ids, rows or
// gradients need more than max_message_bytes could never be trained, in whatever part it comes.
//
// Thread-safe: const.

#ifndef SATRAP_DATA_LOADER_CHECK_RECORD_SIZE_H_
#define SATRAP_DATA_LOADER_CHECK_RECORD_SIZE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data_loader/parser/record_block.h"
#include "data_loader/parser/record_schema.h"
#include "proto/job.pb.h"

namespace satrap {

class RecordSize {
 public:
  // REQUIRES: a validated job
  RecordSize(const JobConfig& job, const RecordSchema& schema);

  // Whether a part of the last row alone has a message over max_message_bytes; `*reason` then names
  // the column with the most ids, and says what would do. Keys are taken to spread evenly over
  // embedding PSs. Takes time for records that are near the limit alone. REQUIRES: rows() > 0
  bool IsTooLarge(const RecordBlock& records, std::string* reason) const;

 private:
  // A feature that reads a list.
  struct List {
    size_t column;
    std::string name;
    double id_bytes;      // of an id on the way to an embedding worker, weight and offset included
    double sent_bytes;    // of an id on the way to an NN worker
    double row_bytes;     // of a row on that way; 0: it is pooled before
    double lookup_bytes;  // of a key and its row on the way to an embedding PS, a share of all
    size_t most_ids;      // that rows are looked up for: max_length of a sequence
  };
  // The largest message of a part of this row; by the numbers of ids, or of different ids.
  double LargestMessage(const RecordBlock& records, size_t row, bool exact) const;

  const double limit_;
  std::vector<List> lists_;
  // What single-valued features and numbers add to each of the messages.
  double put_bytes_ = 0;
  double part_bytes_ = 0;
  double lookup_bytes_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CHECK_RECORD_SIZE_H_
