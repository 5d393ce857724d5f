// What the loaders of a run have told about its data, over the generations that one command has
// seen.
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
  // The warnings of loaders that no status before has had.
  std::vector<std::string> TakeNew(const StatusAnswer& status);

  // All so far and, of a run that has been seen from its beginning, what its training labels give
  // nothing to learn. REQUIRES: the job is validated
  std::vector<std::string> All(const JobConfig& job, bool from_its_beginning) const;

 private:
  std::vector<std::string> EqualLabels(const JobConfig& job) const;

  std::vector<std::string> warnings_;
  // By generation and loader: what it told last, for each LABEL column.
  std::map<std::pair<uint64_t, uint32_t>, std::vector<LabelRange>> labels_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_
