// The data loader's process. It lists its files, receives the run's list of files and topic
// partitions, joins the run, and then reads and sends parts. It has no server.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "common/log/log.h"
#include "common/metrics/refresh.h"
#include "common/role/process_end.h"
#include "common/role/role_runtime.h"
#include "common/thread/thread_pool_executor.h"
#include "data_loader/candidates/make_candidate_list.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_lease_client.h"
#include "data_loader/first_labels_of_files.h"
#include "data_loader/kafka/topic_anchors.h"
#include "data_loader/kafka/topic_stream.h"
#include "data_loader/loader_metrics.h"
#include "data_loader/loader_streams.h"

namespace satrap {
namespace {

absl::StatusOr<LoaderStreams::Begin> BeginOf(RoleRuntime& runtime) {
  const JobConfig& job = runtime.job();
  LoaderStreams::Begin begin;
  begin.generation = runtime.envelope().generation();
  begin.position = runtime.position();
  begin.ledger = runtime.ledger();
  begin.fix_files = [&runtime](const SplitList& listed) {
    return runtime.coordinator()->FixSplits(runtime.index(), listed);
  };
  // If the run continues from a cut, do not check the first labels: the model has already learned
  // from earlier ones.
  begin.judges_first_labels = job.action() == JobConfig::TRAIN && runtime.cut_folder().empty();
  std::shared_ptr<TopicAnchors> anchors;
  if (job.data().has_kafka() || job.data().has_valid_kafka() || job.data().has_test_kafka()) {
    ASSIGN_OR_RETURN(anchors, TopicAnchors::Open(job.run_dir(), runtime.index(), runtime.logger()));
  }
  begin.topics = AccessToBrokers(runtime.logger(), std::move(anchors));
  return begin;
}

// What must be done before Join: embedding workers read the list of candidates as soon as all roles
// have joined, and the first step needs checked labels.
absl::Status PrepareData(const RoleRuntime& runtime, bool judges_first_labels,
                         const LoaderStreams& streams) {
  const JobConfig& job = runtime.job();
  if (runtime.index() == 0 && NeedsCandidateList(job)) {
    NowDoing("makes the list of candidates");
    RETURN_IF_ERROR(MakeCandidateList(job, streams.train_spec(), streams.item_file()));
  }
  if (judges_first_labels && streams.train_spec() != nullptr) {
    NowDoing("checks the first labels");
    RETURN_IF_ERROR(CheckFirstLabels(*streams.train_spec(), static_cast<uint32_t>(runtime.index()),
                                     static_cast<uint32_t>(job.data_loader().replicas())));
  }
  return absl::OkStatus();
}

absl::Status RunDataLoader(RoleRuntime& runtime) {
  const JobConfig& job = runtime.job();
  ASSIGN_OR_RETURN(const LoaderStreams::Begin begin, BeginOf(runtime));
  NowDoing("lists the files and topics of the run");
  ASSIGN_OR_RETURN(
      std::unique_ptr<LoaderStreams> streams,
      LoaderStreams::Make(
          job, runtime.index(),
          [logger = runtime.logger()](const std::string& line) { logger.Warning(line); }, begin));
  // Heartbeats have been sent since the role registered; from here on they include the progress.
  // `streams` outlives `progress`.
  const auto progress = runtime.SetProgressSource([&streams](HeartbeatRequest* heartbeat) {
    *heartbeat->mutable_loader() = streams->Progress();
    if (streams->topics() != nullptr) heartbeat->set_known_partitions(streams->known_partitions());
  });
  // Answers to heartbeats bring topic partitions that are found while the run trains. Set the sink
  // before Join, because the run may begin within Join.
  runtime.SetDealtSink([&streams](const DealtPartition& dealt) { streams->Deal(dealt); });
  const absl::Cleanup forget_sink = [&runtime] { runtime.SetDealtSink(nullptr); };
  RETURN_IF_ERROR(PrepareData(runtime, begin.judges_first_labels, *streams));
  RETURN_IF_ERROR(runtime.Join());
  // Parsing has its own threads, because it waits for the disk and takes milliseconds per batch.
  ThreadPoolExecutor parse_executor(std::max(1, job.data_loader().threads()));
  SplitLeaseClient::Options lease_options;
  lease_options.envelope = runtime.envelope();
  lease_options.loader_index = static_cast<uint32_t>(runtime.index());
  lease_options.num_splits = streams->num_train_splits();
  SplitLeaseClient lease(lease_options, runtime.executor(), runtime.coordinator_channel());
  streams->MakeSources(&parse_executor, &lease);
  std::vector<rpc::Channel*> workers;
  for (int worker = 0; worker < job.embedding_worker().replicas(); ++worker) {
    workers.push_back(runtime.ChannelTo(EMBEDDING_WORKER, worker));
  }
  LoaderEngine::Options options;
  options.loader_index = static_cast<uint32_t>(runtime.index());
  options.envelope = runtime.envelope();
  options.kill_points = runtime.kill_points();
  options.max_open_parts = static_cast<size_t>(
      std::max(2 * job.embedding_worker().replicas(), job.data_loader().prefetch_parts()));
  LoaderEngine engine(options, streams->sources(), workers, runtime.executor(),
                      runtime.failure_sink());
  engine.Start();
  RefreshEachSecond(runtime.executor(),
                    [&] { ExportLoaderMetrics(*streams, engine, runtime.metrics()); });
  // Stop the engine and the parsing threads before the channels are destroyed: parsing threads pass
  // parts to the engine, and the engine calls the workers.
  runtime.WaitForFinish([&] {
    engine.Stop();
    parse_executor.Stop();
  });
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunRole(satrap::DATA_LOADER, argc, argv, satrap::RunDataLoader);
}
