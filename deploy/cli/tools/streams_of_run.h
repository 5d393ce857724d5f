// What `satrap topics RUN` knows without the coordinator: the topic partitions that the run reads,
// according to its log, and how far its newest cut has come.

#ifndef SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_
#define SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/kafka/topics_table.h"
#include "proto/hot.pb.h"

namespace satrap {

// The streams that read topics, without a status; streams whose partitions are not in the log yet
// are left out. The newest cut is the one that the next generation would begin from; without a cut
// nothing is consumed. DATA_LOSS as RunLog::Open; errors of ReadManifest name the cut.
absl::StatusOr<std::map<Stream, StreamOfRun>> StreamsOfRun(const std::string& run_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_TOOLS_STREAMS_OF_RUN_H_
