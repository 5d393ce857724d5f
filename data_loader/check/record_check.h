// A RecordCheck finds parsed records that the job's losses or network cannot use: those with a
// label that its loss does not accept, or with a number beyond 1e15 after its transform. Such a
// record counts as bad, like one that cannot be parsed (docs/formats.md, "Bad records,
// everywhere"), so it does not end the run.
//
// A run that reads files and began before this check existed (data.record_rules 0) continues
// without it, because its ledger counts the records that were good then. For the same reason the
// check must depend on nothing that may change during a run. Records to predict are not checked for
// their labels.
//
// Thread-safe: const.

#ifndef SATRAP_DATA_LOADER_CHECK_RECORD_CHECK_H_
#define SATRAP_DATA_LOADER_CHECK_RECORD_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/config/label_targets.h"
#include "common/config/record_schema.h"
#include "data_loader/parser/record_block.h"
#include "data_loader/transform/numeric_transform.h"
#include "proto/job.pb.h"

namespace satrap {

class RecordCheck {
 public:
  enum class Fault { kNone, kLabel, kNumber };

  // REQUIRES: a validated, resolved job
  explicit RecordCheck(const JobConfig& job);

  // Checks the last row. Unless it is good, sets `*reason` to a text that names the column, the
  // value and what would be accepted. REQUIRES: rows() > 0, and `records` has the schema of the job
  Fault Check(const RecordBlock& records, std::string* reason) const;

  const std::vector<LabelTargets>& labels() const { return labels_; }

 private:
  struct Numeric {
    size_t column;
    std::string name;
    NumericTransform transform;
    // Numbers in this interval are certainly good, so most numbers need not be transformed here.
    float low;
    float high;
  };
  struct List {
    size_t column;
    std::string name;
  };
  void AddNumeric(const NumericConfig& config, const RecordSchema& schema);

  const bool applies_;
  const std::vector<LabelTargets> labels_;
  std::vector<Numeric> numerics_;
  std::vector<List> lists_;  // weighted lists that a feature reads
  bool has_weight_ = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CHECK_RECORD_CHECK_H_
