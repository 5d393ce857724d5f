// The process of an NN worker: one rank of the dense network. It serves nothing.

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/role/role_runtime.h"
#include "common/thread/serial_executor.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/fork_join_pool.h"
#include "nn_worker/checkpoint/model_store.h"
#include "nn_worker/collective/gloo_collective.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/rank/rank_engine.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/report/metrics_file.h"
#include "nn_worker/report/progress.h"
#include "nn_worker/report/rank_metrics.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/part_layout.h"
#include "nn_worker/trainer/predictions.h"

namespace satrap {
namespace {

absl::StatusOr<std::unique_ptr<Collective>> MakeCollective(RoleRuntime& runtime) {
  const int size = runtime.job().nn_worker().replicas();
  if (size == 1) return std::move(NewLocalCollectives(1)[0]);
  GlooOptions options;
  options.rank = runtime.index();
  options.size = size;
  if (!runtime.flags().advertise.empty()) options.host = runtime.flags().advertise;
  options.prefix = absl::StrCat("collective/", runtime.envelope().generation());
  return NewGlooCollective(options, runtime.coordinator());
}

std::vector<rpc::Channel*> ChannelsTo(Role role, RoleRuntime& runtime) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < ReplicasOf(role, runtime.job()); ++i) {
    channels.push_back(runtime.ChannelTo(role, i));
  }
  return channels;
}

// A global batch is cut into parts that differ by one sample at most.
int64_t MaxSamplesOfPart(const JobConfig& job) {
  const int64_t ranks = job.nn_worker().replicas();
  return (job.global_batch_size() + ranks - 1) / ranks;
}

// The samples of the whole run, if the job alone determines them; 0 if not.
uint64_t ExpectedSamples(const JobConfig& job) {
  uint64_t samples = 0;
  if (job.data().has_synthetic()) {
    samples = static_cast<uint64_t>(job.epochs()) * job.data().synthetic().train_samples();
  }
  const uint64_t of_max_steps =
      static_cast<uint64_t>(job.max_steps()) * static_cast<uint64_t>(job.global_batch_size());
  if (of_max_steps == 0) return samples;
  return samples == 0 ? of_max_steps : std::min(samples, of_max_steps);
}

// Runs on rank 0 when its engine has finished: completes the result and ends the run.
absl::Status EndRun(RoleRuntime& runtime, ModelStore* store, RunResult result) {
  const JobConfig& job = runtime.job();
  if (job.action() == JobConfig::TRAIN && result.samples() == 0) {
    // The saved model is the one that the run began with: no result of this run.
    std::error_code error;
    std::filesystem::remove_all(job.run_dir() + "/models", error);
    return absl::FailedPreconditionError(
        "no training samples: the training data has no records, or none of them is good");
  }
  if (job.action() == JobConfig::PREDICT) {
    RETURN_IF_ERROR(WritePredictionsText(job.run_dir(), job.nn_worker().replicas(),
                                         job.data_loader().replicas(),
                                         runtime.envelope().generation()));
  }
  result.set_model_dir(store->last_saved());
  if (!result.model_dir().empty()) {
    ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(result.model_dir()));
    result.set_model_digest(ModelDigest(manifest));
  }
  ASSIGN_OR_RETURN(const std::vector<TableStats> tables, store->Stats());
  for (const TableStats& table : tables) *result.add_tables() = table;
  return runtime.Finish(result);
}

absl::Status RunRank(RoleRuntime& runtime, Collective* collective) {
  const JobConfig& job = runtime.job();
  const bool leads = runtime.index() == 0;
  ForkJoinPool pool(job.nn_worker().compute_threads());
  const std::unique_ptr<Backend> backend = NewCpuBackend(&pool);

  const PartLayout layout = MakePartLayout(job);
  NetworkOptions network_options;
  network_options.model = job.model();
  network_options.inputs = layout.inputs;
  network_options.optimizer = job.dense_optimizer();
  network_options.seed = job.seed();
  network_options.max_samples = MaxSamplesOfPart(job);
  network_options.backend = backend.get();
  network_options.collective = collective;
  ASSIGN_OR_RETURN(const std::unique_ptr<Network> network, Network::Create(network_options));

  ModelStore store(job, runtime.envelope(), ChannelsTo(EMBEDDING_PS, runtime));
  std::unique_ptr<PredictionWriter> predictions;
  if (job.action() == JobConfig::PREDICT) {
    ASSIGN_OR_RETURN(predictions, PredictionWriter::Create(job.run_dir(), runtime.index()));
  }
  NetworkTrainerOptions trainer_options;
  trainer_options.layout = &layout;
  trainer_options.max_samples = static_cast<size_t>(MaxSamplesOfPart(job));
  trainer_options.global_batch_size = job.global_batch_size();
  trainer_options.ordered = job.mode() == JobConfig::SYNC;
  trainer_options.network = network.get();
  trainer_options.collective = collective;
  trainer_options.pool = &pool;
  trainer_options.store = leads ? &store : nullptr;
  trainer_options.predictions = predictions.get();
  NetworkTrainer trainer(trainer_options);
  if (!job.init_from().empty()) RETURN_IF_ERROR(trainer.StartFrom(job.init_from()));

  std::unique_ptr<MetricsFile> metrics_file;
  if (leads) {
    ASSIGN_OR_RETURN(metrics_file, MetricsFile::Create(job.run_dir()));
  }
  Progress progress(
      runtime.executor(), [&trainer] { return trainer.RecentAuc(); },
      [&metrics_file](const std::string& line) {
        if (metrics_file != nullptr) metrics_file->Append(line);
      });
  progress.SetExpectedSamples(ExpectedSamples(job));
  RankMetrics metrics(runtime.metrics(), &progress);
  const auto registration =
      runtime.SetProgressSource([&progress, leads](HeartbeatRequest* heartbeat) {
        if (leads) *heartbeat->mutable_train() = progress.Snapshot();
      });

  SerialExecutor executor(runtime.executor());
  std::promise<RunResult> finished;
  RankEngine engine(MakeRankOptions(job, runtime.index(), runtime.envelope()), &executor,
                    ChannelsTo(EMBEDDING_WORKER, runtime), &trainer, &metrics,
                    runtime.failure_sink(),
                    [&finished](const RunResult& result) { finished.set_value(result); });
  engine.Start();
  if (leads) RETURN_IF_ERROR(EndRun(runtime, &store, finished.get_future().get()));
  runtime.WaitForFinish();
  return absl::OkStatus();
}

absl::Status RunNnWorker(RoleRuntime& runtime) {
  RETURN_IF_ERROR(runtime.Join());
  ASSIGN_OR_RETURN(const std::unique_ptr<Collective> collective, MakeCollective(runtime));
  // If this rank returned its error, its collective would be destroyed first, and the other ranks
  // would report a broken connection before this one reports the cause.
  runtime.ExitUnlessOk(RunRank(runtime, collective.get()));
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunRole(satrap::NN_WORKER, argc, argv, satrap::RunNnWorker);
}
