// The data loader process: it lists the files, takes the run's list of files and topic partitions,
// joins the run, then reads and sends parts. It has no server.

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

absl::Status RunDataLoader(RoleRuntime& runtime) {
  const JobConfig& job = runtime.job();
  LoaderStreams::Begin begin;
  begin.generation = runtime.envelope().generation();
  begin.position = runtime.position();
  begin.ledger = runtime.ledger();
  begin.fix_files = [&runtime](const SplitList& listed) {
    return runtime.coordinator()->FixSplits(runtime.index(), listed);
  };
  // The first labels do not matter if the run continues from a cut, which holds what was learned.
  begin.judges_first_labels = job.action() == JobConfig::TRAIN && runtime.cut_folder().empty();
  std::shared_ptr<TopicAnchors> anchors;
  if (job.data().has_kafka() || job.data().has_valid_kafka() || job.data().has_test_kafka()) {
    ASSIGN_OR_RETURN(anchors, TopicAnchors::Open(job.run_dir(), runtime.index(), runtime.logger()));
  }
  begin.topics = AccessToBrokers(runtime.logger(), std::move(anchors));
  NowDoing("lists the files and topics of the run");
  ASSIGN_OR_RETURN(
      std::unique_ptr<LoaderStreams> streams,
      LoaderStreams::Make(
          job, runtime.index(),
          [logger = runtime.logger()](const std::string& line) { logger.Warning(line); }, begin));
  // Heartbeats run since the role registered; from here on they carry the progress. `streams`
  // outlives `progress`.
  const auto progress = runtime.SetProgressSource([&streams](HeartbeatRequest* heartbeat) {
    *heartbeat->mutable_loader() = streams->Progress();
    if (streams->topics() != nullptr) heartbeat->set_known_partitions(streams->known_partitions());
  });
  // Heartbeats bring the topic partitions that are found while the run trains. The sink is set
  // before Join, because the run may begin with Join.
  runtime.SetDealtSink([&streams](const DealtPartition& dealt) { streams->Deal(dealt); });
  const absl::Cleanup forget_sink = [&runtime] { runtime.SetDealtSink(nullptr); };
  // Done before the run begins, because embedding workers read the list when all have joined.
  if (runtime.index() == 0 && NeedsCandidateList(job)) {
    NowDoing("makes the list of candidates");
    RETURN_IF_ERROR(MakeCandidateList(job, streams->train_spec(), streams->item_file()));
  }
  // The first labels of files are checked before the first step.
  if (begin.judges_first_labels && streams->train_spec() != nullptr) {
    NowDoing("checks the first labels");
    RETURN_IF_ERROR(CheckFirstLabels(*streams->train_spec(), static_cast<uint32_t>(runtime.index()),
                                     static_cast<uint32_t>(job.data_loader().replicas())));
  }
  RETURN_IF_ERROR(runtime.Join());
  // Parsing waits for the disk and takes milliseconds per batch, so it has its own threads.
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
  // Parsing threads hand parts to the engine, and the engine calls the workers, so both must stop
  // before the channels are destroyed.
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
