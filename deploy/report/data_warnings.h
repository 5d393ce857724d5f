// Collects what the loaders of a run have reported about its data, in all generations: in those
// that this command has seen, and in those whose reports earlier commands have saved in the run's
// folder.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_
#define SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class DataWarnings {
 public:
  // `since_begin`: whether this command and the commands before it have together seen the run from
  // its beginning. If not, there are no warnings about labels, because these need all labels.
  explicit DataWarnings(bool since_begin = true) : since_begin_(since_begin) {}

  // Continues from what an earlier command has saved. If `kept` has no labels, the commands so far
  // have not seen the run from its beginning to its end. Then this object does not know all labels.
  void Restore(const LoaderProgress& kept);
  // What to save now in case this command is killed: only the warnings. Labels are left out,
  // because loaders may read further labels that a later command would not know.
  LoaderProgress Kept() const;
  // What to save when no loader reads any more: the warnings and, if the run was seen from its
  // beginning, the range of all labels of each LABEL column. If there are no such ranges, one empty
  // range is saved in their place.
  LoaderProgress KeptAtEnd() const;

  // The loaders' warnings in `status` that no earlier status had.
  std::vector<std::string> TakeNew(const StatusAnswer& status);

  // All warnings so far. If the run was seen from its beginning, also warnings about training
  // labels from which nothing can be learned. REQUIRES: the job is validated
  std::vector<std::string> All(const JobConfig& job) const;

 private:
  std::vector<LabelRange> AllLabels() const;
  std::vector<std::string> EqualLabels(const JobConfig& job) const;

  bool since_begin_;
  std::vector<std::string> warnings_;
  // The ranges that each loader has reported last, one for each LABEL column, by generation and
  // loader. Generation 0 has the ranges that an earlier command saved.
  std::map<std::pair<uint64_t, uint32_t>, std::vector<LabelRange>> labels_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_
