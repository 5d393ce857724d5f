// What the loaders of a run have reported about its data, over all generations: those that this
// command has seen, and those that earlier commands have saved in the run's folder.
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
  // `since_begin`: this command, together with those before it, has seen the run from its
  // beginning. Only then are there warnings about all labels.
  explicit DataWarnings(bool since_begin = true) : since_begin_(since_begin) {}

  // Continues from what an earlier command has saved. Without labels it is what was kept of a
  // command that did not see the run's end, so nothing is known of all labels.
  void Restore(const LoaderProgress& kept);
  // What a later command needs if this one is killed now: the warnings. Labels that loaders read
  // after this will not be known, so it gets none.
  LoaderProgress Kept() const;
  // What a later command needs if no loader reads on: the warnings and, if the run has been seen
  // from its beginning, the range of all labels of each LABEL column, or an empty one.
  LoaderProgress KeptAtEnd() const;

  // The warnings of loaders that no earlier status had.
  std::vector<std::string> TakeNew(const StatusAnswer& status);

  // All warnings so far and, if the run has been seen from its beginning, those about training
  // labels from which nothing can be learned. REQUIRES: the job is validated
  std::vector<std::string> All(const JobConfig& job) const;

 private:
  std::vector<LabelRange> AllLabels() const;
  std::vector<std::string> EqualLabels(const JobConfig& job) const;

  bool since_begin_;
  std::vector<std::string> warnings_;
  // The last ranges that each loader has reported, by generation and loader, one for each LABEL
  // column. Generation 0 stands for what was saved.
  std::map<std::pair<uint64_t, uint32_t>, std::vector<LabelRange>> labels_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_
