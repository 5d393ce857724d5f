// What the loaders of a run have told about its data, over all generations: those that this command
// has seen, and what commands before it have kept in the run's folder.
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
  // `since_begin`: this command, or it and those before it, have seen the run from its beginning.
  // Only then is something said of all labels.
  explicit DataWarnings(bool since_begin = true) : since_begin_(since_begin) {}

  // Goes on from what an earlier command has kept.
  void Restore(const LoaderProgress& kept);
  // What a later command needs: warnings and, of each LABEL column, the range of all its labels.
  LoaderProgress Kept() const;
  // Whether there is something to keep that there was not at the last call, or at Restore: more
  // labels alone are no news.
  bool HasNews();

  // The warnings of loaders that no status before has had.
  std::vector<std::string> TakeNew(const StatusAnswer& status);

  // All so far and, of a run that has been seen from its beginning, what its training labels give
  // nothing to learn. REQUIRES: the job is validated
  std::vector<std::string> All(const JobConfig& job) const;

 private:
  std::vector<LabelRange> AllLabels() const;
  std::vector<std::string> EqualLabels(const JobConfig& job) const;

  bool since_begin_;
  std::vector<std::string> warnings_;
  // By generation and loader: what it told last, for each LABEL column.
  // Generation 0 is that of what was kept.
  std::map<std::pair<uint64_t, uint32_t>, std::vector<LabelRange>> labels_;
  std::string last_kept_;  // serialized, without counts
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_DATA_WARNINGS_H_
