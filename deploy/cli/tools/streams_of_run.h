// The part of `satrap topics RUN` that needs no coordinator: the topic partitions that the run
// reads according to its log, and how much of them its newest cut has consumed.

#ifndef SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_
#define SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/kafka/topics_table.h"
#include "proto/hot.pb.h"

namespace satrap {

// The streams that read topics; their `status` is not set. Leaves out streams whose partitions are
// not in the log yet. The newest cut is the one from which the next generation would begin; if
// there is none, nothing is consumed. DATA_LOSS as RunLog::Open returns it; errors of ReadManifest
// name the cut.
absl::StatusOr<std::map<Stream, StreamOfRun>> StreamsOfRun(const std::string& run_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_
