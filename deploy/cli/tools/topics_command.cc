// The command `topics`: shows the Kafka topics of a run, or of a cluster.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_connection.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/tools/streams_of_run.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/topics_table.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"

namespace satrap {
namespace {

// The status of a run in progress; absent if the run has no processes or its coordinator does not
// answer.
absl::optional<StatusAnswer> StatusOf(const std::string& run_dir) {
  const auto connection = RunConnection::Open(run_dir);
  if (!connection.ok()) return absl::nullopt;
  absl::StatusOr<StatusAnswer> status = (*connection)->Status();
  if (!status.ok()) return absl::nullopt;
  return *std::move(status);
}

absl::StatusOr<std::string> TopicsOfRun(const std::string& run) {
  ASSIGN_OR_RETURN(const std::string run_dir, FindRun(run, kRunsDir));
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.job.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("run ", run_dir, " never began"));
  }
  const DataConfig& data = progress.job->data();
  ASSIGN_OR_RETURN(auto streams, StreamsOfRun(run_dir));
  const absl::optional<StatusAnswer> status = StatusOf(run_dir);
  if (const auto train = streams.find(TRAIN_STREAM);
      train != streams.end() && status.has_value() && status->has_topics()) {
    train->second.status = status->topics();
  }
  std::string text;
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    const KafkaConfig* const kafka = TopicsOf(data, stream);
    if (kafka == nullptr) continue;
    const char* const name = stream == TRAIN_STREAM   ? "train"
                             : stream == VALID_STREAM ? "valid"
                                                      : "test";
    absl::StrAppend(&text, text.empty() ? "" : "\n", name, " stream of ", run_dir, ", ");
    const auto known = streams.find(stream);
    if (known == streams.end()) {
      absl::StrAppend(&text, "whose partitions are not known yet\n");
      continue;
    }
    ASSIGN_OR_RETURN(const std::string table, StreamText(*kafka, known->second));
    text += table;
  }
  if (text.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "run ", run_dir, " reads no topics; --brokers HOST:PORT shows those of a cluster"));
  }
  return text;
}

}  // namespace

int RunTopicsCommand(const CommandCall& call) {
  const bool names_flags =
      std::any_of(call.args.begin(), call.args.end(),
                  [](const std::string& argument) { return absl::StartsWith(argument, "--"); });
  if (names_flags) return TopicsCommand(call.args);
  if (call.args.size() > 1) {
    return PrintError(absl::InvalidArgumentError(
        "usage: satrap topics [RUN | TOPIC... --brokers HOST:PORT[,...]]"));
  }
  const absl::StatusOr<std::string> text = TopicsOfRun(call.args.empty() ? "" : call.args[0]);
  if (!text.ok()) return PrintError(text.status());
  printf("%s", text->c_str());
  return 0;
}

}  // namespace satrap
