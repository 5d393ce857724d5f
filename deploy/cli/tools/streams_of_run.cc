#include "deploy/cli/tools/streams_of_run.h"

#include "common/base/status_macros.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "deploy/coordinator/dealt_topics.h"

namespace satrap {

absl::StatusOr<std::map<Stream, StreamOfRun>> StreamsOfRun(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  std::map<Stream, StreamOfRun> streams;
  for (const StreamTopics& topics : log.topics()) {
    streams[static_cast<Stream>(topics.stream())].topics = topics;
  }
  const auto train = streams.find(TRAIN_STREAM);
  if (train == streams.end()) return streams;
  CheckpointManifest manifest;
  if (const std::string cut = log.next_start(); !cut.empty()) {
    ASSIGN_OR_RETURN(manifest, ReadManifest(FolderOfCut(run_dir, cut)));
  }
  ASSIGN_OR_RETURN(const Ledger ledger, Ledger::FromState(manifest.ledger()));
  train->second.in_cut = ConsumedOffsets(train->second.topics, manifest.position(), ledger);
  return streams;
}

}  // namespace satrap
