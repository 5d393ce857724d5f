#include "deploy/cli/tools/streams_of_run.h"

#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "deploy/coordinator/topics/dealt_topics.h"

namespace satrap {
namespace {

// NOT_FOUND if the newest cut that the log names does not exist, for example because it was
// removed.
absl::StatusOr<std::map<Stream, StreamOfRun>> ReadStreams(const std::string& run_dir) {
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

}  // namespace

// Tries again if the newest cut is gone: a run in training may replace it after its log was read.
absl::StatusOr<std::map<Stream, StreamOfRun>> StreamsOfRun(const std::string& run_dir) {
  for (int reads = 1;; ++reads) {
    absl::StatusOr<std::map<Stream, StreamOfRun>> streams = ReadStreams(run_dir);
    if (!absl::IsNotFound(streams.status()) || reads == kReadsOfVanishingCuts) return streams;
  }
}

}  // namespace satrap
