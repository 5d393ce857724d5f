#include "nn_worker/rank_process.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/checkpoint/saved_features.h"
#include "common/metrics/refresh.h"
#include "common/role/process_end.h"
#include "common/role/role_runtime.h"
#include "common/thread/fork_join_pool.h"
#include "common/thread/serial_executor.h"
#include "common/thread/thread_pool_executor.h"
#include "nn_worker/backend/job_backend.h"
#include "nn_worker/card_flag.h"
#include "nn_worker/checkpoint/cut_engine.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "nn_worker/collective/gloo_collective.h"
#include "nn_worker/collective/job_reduction.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/collective/own_address.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/metrics/score_windows.h"
#include "nn_worker/rank/rank_engine.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_watch.h"
#include "nn_worker/rank_backend.h"
#include "nn_worker/report/device_metrics.h"
#include "nn_worker/report/metrics_file.h"
#include "nn_worker/report/progress.h"
#include "nn_worker/report/rank_metrics.h"
#include "nn_worker/report/score_report.h"
#include "nn_worker/report/step_times.h"
#include "nn_worker/report/warm_start_report.h"
#include "nn_worker/trainer/memory_plan/largest_part.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/predictions.h"
#include "nn_worker/trainer/warm_start.h"

namespace satrap {
namespace {

// The prefix of the keys by which the ranks of a generation find one another.
std::string CollectivePrefix(const RoleRuntime& runtime) {
  return absl::StrCat("collective/", runtime.envelope().generation());
}

absl::StatusOr<std::unique_ptr<Collective>> MakeCollective(RoleRuntime& runtime) {
  const int size = runtime.job().nn_worker().replicas();
  if (size == 1) return std::move(NewLocalCollectives(1)[0]);
  GlooOptions options;
  options.rank = runtime.index();
  options.size = size;
  if (!runtime.flags().advertise.empty()) options.host = runtime.flags().advertise;
  options.prefix = CollectivePrefix(runtime);
  return NewGlooCollective(options, runtime.coordinator());
}

// The objects with which this rank works together with the others.
struct Ranks {
  std::unique_ptr<Collective> collective;
  std::unique_ptr<DeviceReduction> reduction;  // null: the collective adds up the gradients
};

// Waits until all ranks have connected their cards, if the job adds up gradients on them.
absl::Status ConnectCards(RoleRuntime& runtime, const DeviceProgram* devices, int card,
                          Ranks* ranks) {
  if (!SumsOnDevices(runtime.job())) return absl::OkStatus();
  // If `devices` is null, MakeRankBackend has refused every job that needs a device.
  CHECK(devices != nullptr);
  NcclOptions options;
  options.rank = runtime.index();
  options.size = runtime.job().nn_worker().replicas();
  options.card = card;
  options.prefix = CollectivePrefix(runtime);
  auto made = devices->NewReduction(options, runtime.coordinator(),
                                    [&] { return !ranks->collective->status().ok(); });
  if (!made.ok()) return SuggestGloo(made.status());
  ranks->reduction = *std::move(made);
  runtime.logger().Info("adds up gradients by NCCL", {{"ranks", options.size}, {"card", card}});
  return absl::OkStatus();
}

std::vector<rpc::Channel*> ChannelsTo(Role role, RoleRuntime& runtime,
                                      const std::shared_ptr<BufferAllocator>& allocator = nullptr) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < ReplicasOf(role, runtime.job()); ++i) {
    channels.push_back(runtime.ChannelTo(role, i, allocator));
  }
  return channels;
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

bool IsEndless(const JobConfig& job) {
  return job.data().has_kafka() && job.data().kafka().end().at() == KafkaEnd::NEVER;
}

absl::StatusOr<std::vector<TableStats>> StatsOf(PsControlClient* embedding_ps) {
  std::promise<absl::StatusOr<std::vector<TableStats>>> stats;
  embedding_ps->TableStats([&stats](auto result) { stats.set_value(std::move(result)); });
  return stats.get_future().get();
}

// Runs on rank 0 when its engine has finished: completes the result and ends the run.
// `prediction_values`: the number of values in a record's prediction.
absl::Status EndRun(RoleRuntime& runtime, CutEngine* cuts, const TailCalibration::Value& tail,
                    size_t prediction_values, RunResult result) {
  const JobConfig& job = runtime.job();
  if (std::isfinite(tail.calibration)) {
    result.set_tail_calibration(tail.calibration);
    result.set_tail_calibration_samples(tail.samples);
  }
  if (job.action() == JobConfig::TRAIN && result.samples() == 0) {
    return absl::FailedPreconditionError(
        "no training samples: the training data has no records, or none of them is good");
  }
  if (job.action() == JobConfig::PREDICT) {
    RETURN_IF_ERROR(WritePredictionsText(job.run_dir(), job.nn_worker().replicas(),
                                         job.data_loader().replicas(),
                                         runtime.envelope().generation(), prediction_values));
  }
  if (job.action() == JobConfig::TRAIN) {
    const Ledger::Totals consumed = cuts->consumed();
    result.set_bad_records(consumed.bad_records);
    result.set_empty_lines(consumed.empty_lines);
    // A generation that only evaluated the test stream has no cut of its own.
    result.set_model_dir(result.model_dir().empty() ? runtime.cut_folder()
                                                    : absl::StrCat(CheckpointsDir(job.run_dir()),
                                                                   "/", result.model_dir()));
  }
  if (!result.model_dir().empty()) {
    ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(result.model_dir()));
    result.set_model_digest(ModelDigest(manifest));
  }
  ASSIGN_OR_RETURN(const std::vector<TableStats> tables, StatsOf(cuts->embedding_ps()));
  for (const TableStats& table : tables) *result.add_tables() = table;
  return runtime.Finish(result);
}

CutEngine::Options MakeCutOptions(RoleRuntime& runtime, Executor* executor,
                                  Executor* disk_executor) {
  CutEngine::Options options;
  options.job = runtime.job();
  options.envelope = runtime.envelope();
  options.order_fingerprint = runtime.order_fingerprint();
  options.ledger = runtime.ledger();
  options.executor = executor;
  options.disk_executor = disk_executor;
  options.kill_points = runtime.kill_points();
  options.embedding_ps = ChannelsTo(EMBEDDING_PS, runtime);
  options.coordinator = runtime.coordinator_channel();
  return options;
}

// Call before the first step of a run that starts from a model, or scores with it.
absl::Status BeginFromModel(RoleRuntime& runtime, StartModel* model, Network* network,
                            Collective* collective, CutEngine* cuts, NetworkTrainer* trainer) {
  const JobConfig& job = runtime.job();
  const bool leads = runtime.index() == 0;
  // A run that only scores must take the whole model.
  if (job.action() != JobConfig::TRAIN) {
    RETURN_IF_ERROR(trainer->StartFromModel(model));
    if (!leads) return absl::OkStatus();
    ReportScoring(model->directory, model->step, IdWarnings(model->manifest, job),
                  runtime.logger());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const WarmStartReport report, WarmStart(model, job, network, collective,
                                                           leads ? cuts->embedding_ps() : nullptr));
  if (!leads) return absl::OkStatus();
  return ReportWarmStart(report.result, job.run_dir(), runtime.logger());
}

// The number of values in a record's prediction: one for each task or, if the job asks for other
// outputs instead, all values of those.
size_t PredictionValues(const JobConfig& job, const PartLayout& layout, const Network& network) {
  if (job.predict_outputs().empty()) return layout.tasks.size();
  int64_t values = 0;
  for (int output = 0; output < network.num_tasks(); ++output) {
    values += network.num_outputs(output);
  }
  return static_cast<size_t>(values);
}

// The position that is shown. It lacks figures of features that a changed job no longer uses.
RunPosition ShownPosition(const JobConfig& job, RunPosition position) {
  if (job.gradient_clip_norm() == 0) position.clear_gradient_norms();
  if (!job.evaluation().has_reduce_on_plateau()) position.clear_plateau();
  return position;
}

void DescribeJobTo(RoleRuntime& runtime, bool leads, Progress* progress) {
  progress->SetExpectedSamples(ExpectedSamples(runtime.job()));
  if (IsEndless(runtime.job())) progress->SetEndless();
  if (!leads) return;
  progress->SetReductionSink([&runtime](const EvaluationEvent& event) {
    runtime.logger().Info("lowers the learning rates: validation did not improve",
                          {{"step", event.steps}, {"factor", *event.learning_rate_factor}});
  });
}

// Adds trouble with the metrics file to the progress that is sent to the launcher. It is sent and
// not only logged, because the log usually lies on the same disk that hangs.
void AddFileTrouble(const LineWriter::Trouble& trouble, TrainProgress* progress) {
  if (trouble.hangs_seconds > 0) progress->set_metrics_file_hangs_seconds(trouble.hangs_seconds);
  if (trouble.dropped > 0) progress->set_metrics_lines_dropped(trouble.dropped);
}

// Exports a device's metrics. Returns the callback that receives step times; null on the CPU.
std::function<void(double)> StepSinkOf(RoleRuntime& runtime, std::shared_ptr<DeviceMeter> meter) {
  if (meter == nullptr) return nullptr;
  const auto metrics = std::make_shared<DeviceMetrics>(runtime.metrics(), std::move(meter));
  RefreshEachSecond(runtime.executor(), [metrics] { metrics->Refresh(); });
  return [metrics](double seconds) { metrics->ObserveStep(seconds); };
}

// Logs whether the host launches full training passes as graphs or kernel by kernel.
void LogGraphs(const RoleRuntime& runtime, const Network& network) {
  const JobConfig& job = runtime.job();
  if (job.action() != JobConfig::TRAIN || job.nn_worker().device() == NnWorkerConfig::CPU) return;
  const std::string why_not = network.WhyNoGraphs();
  if (why_not.empty()) {
    runtime.logger().Info("runs full training passes from captured graphs");
  } else {
    runtime.logger().Info("enqueues each kernel of training passes", {{"no_graphs", why_not}});
  }
}

absl::StatusOr<std::unique_ptr<Network>> MakeNetwork(const RoleRuntime& runtime,
                                                     const PartLayout& layout, const Ranks& ranks,
                                                     const JobBackend& made) {
  NetworkOptions options = NetworkOptionsOf(runtime.job(), layout, runtime.position());
  NowDoing("makes its network");
  options.on_graph_refusal = [&logger = runtime.logger()](const absl::Status& error) {
    logger.Warning(error.message());
  };
  options.backend = made.backend.get();
  options.collective = ranks.collective.get();
  options.reduction = ranks.reduction.get();
  ASSIGN_OR_RETURN(std::unique_ptr<Network> network, Network::Create(options));
  LogGraphs(runtime, *network);
  NowDoing("takes part in the run");
  return network;
}

// The options that follow from the job.
NetworkTrainerOptions TrainerOptionsOf(const JobConfig& job, const PartLayout& layout) {
  NetworkTrainerOptions options;
  options.layout = &layout;
  options.max_samples = static_cast<size_t>(MaxSamplesOfPart(job));
  options.global_batch_size = job.global_batch_size();
  options.trains = job.action() == JobConfig::TRAIN;
  options.ordered = job.mode() == JobConfig::SYNC;
  options.gradient_clip_norm = job.gradient_clip_norm();
  options.has_loss_scale = job.nn_worker().precision() == NnWorkerConfig::F16;
  options.run_dir = job.run_dir();
  options.writes_outputs = job.predict_outputs_size() > 0;
  return options;
}

std::unique_ptr<StepWatch> WatchSteps(RoleRuntime& runtime, StepTrainer* trainer,
                                      const StepWatch::Activity* activity) {
  return std::make_unique<StepWatch>(
      trainer, activity, runtime.executor(),
      [&logger = runtime.logger()](const std::string& doing, int64_t seconds) {
        logger.Warning("has not finished a step for a while",
                       {{"seconds", seconds}, {"doing", doing}});
      });
}

// The files that a rank writes while it runs.
struct RankFiles {
  std::unique_ptr<PredictionWriter> predictions;  // null if the job does not predict
  std::unique_ptr<MetricsFile> metrics;           // null except on rank 0
};

absl::StatusOr<RankFiles> OpenRankFiles(const RoleRuntime& runtime, size_t prediction_values) {
  const JobConfig& job = runtime.job();
  RankFiles files;
  if (job.action() == JobConfig::PREDICT) {
    ASSIGN_OR_RETURN(files.predictions,
                     PredictionWriter::Create(job.run_dir(), runtime.index(), prediction_values));
  }
  if (runtime.index() == 0) {
    ASSIGN_OR_RETURN(files.metrics, MetricsFile::Create(job.run_dir()));
  }
  return files;
}

// Sets the network to the model that the generation begins from. Until the run has a cut, that is
// the other run's model (init_from); later it is the run's own cut.
absl::Status LoadModel(RoleRuntime& runtime, StartModel* model, Network* network,
                       Collective* collective, CutEngine* cuts, NetworkTrainer* trainer) {
  if (!runtime.cut_folder().empty()) return trainer->StartFromCut(*model);
  if (runtime.job().init_from().empty()) return absl::OkStatus();
  return BeginFromModel(runtime, model, network, collective, cuts, trainer);
}

// Takes part in the run's steps until the runtime ends the generation. `complete`: completes the
// result and ends the run; called on rank 0, unless the ranks leave the generation with a cut.
absl::Status TakeSteps(RoleRuntime& runtime, const JobBackend& made, NetworkTrainer* trainer,
                       const StepWatch::Activity* activity, RankMetrics* metrics,
                       const std::function<absl::Status(const RunResult&)>& complete) {
  const bool leads = runtime.index() == 0;
  SerialExecutor executor(runtime.executor());
  const auto watch = WatchSteps(runtime, trainer, activity);
  std::promise<RunResult> finished;
  RankEngine engine(
      MakeRankOptions(runtime.job(), runtime.index(), runtime.envelope(), runtime.position()),
      &executor, ChannelsTo(EMBEDDING_WORKER, runtime, made.backend->PinnedBuffers()), watch.get(),
      metrics, runtime.failure_sink(),
      [&finished, &watch](const RunResult& result) {
        watch->Stop();
        finished.set_value(result);
      },
      runtime.kill_points());
  if (leads) runtime.SetWishSink([&engine](const CutWish& wish) { engine.RequestCut(wish); });
  // The engine is destroyed before the runtime, so the runtime must not use it any more.
  const auto no_more_wishes = absl::MakeCleanup([&runtime] { runtime.SetWishSink(nullptr); });
  runtime.logger().Info("begins to train");
  engine.Start();
  // After a cut with which the ranks leave the generation, the engine never finishes: the runtime
  // ends this process when the coordinator says so.
  if (leads) RETURN_IF_ERROR(complete(finished.get_future().get()));
  runtime.WaitForFinish();
  return absl::OkStatus();
}

absl::Status RunRank(RoleRuntime& runtime, StartModel start, const Ranks& ranks, ForkJoinPool* pool,
                     const JobBackend& made) {
  const JobConfig& job = runtime.job();
  const bool leads = runtime.index() == 0;

  const PartLayout layout = MakePartLayout(job);
  ASSIGN_OR_RETURN(const std::unique_ptr<Network> network,
                   MakeNetwork(runtime, layout, ranks, made));

  SerialExecutor cut_executor(runtime.executor());
  ThreadPoolExecutor disk_executor(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<CutEngine> cuts,
                   CutEngine::Create(MakeCutOptions(runtime, &cut_executor, &disk_executor)));
  // The disk executor's tasks use the cut engine, so this executor stops before the engine is
  // destroyed.
  const auto no_more_files = absl::MakeCleanup([&disk_executor] { disk_executor.Stop(); });
  const size_t prediction_values = PredictionValues(job, layout, *network);
  ASSIGN_OR_RETURN(const RankFiles files, OpenRankFiles(runtime, prediction_values));
  const auto write_line = [&files](const std::string& line) {
    if (files.metrics != nullptr) files.metrics->Append(line);
  };
  ScoreReport score_report(runtime.metrics(), runtime.envelope().generation(), write_line);
  ScoreWindows scores(job.evaluation(), runtime.position().samples(),
                      [&score_report](const ScoreWindow& window) { score_report.Report(window); });
  StepWatch::Activity activity{nullptr};
  NetworkTrainerOptions trainer_options = TrainerOptionsOf(job, layout);
  trainer_options.activity = &activity;
  trainer_options.network = network.get();
  trainer_options.collective = ranks.collective.get();
  trainer_options.pool = pool;
  trainer_options.cuts = leads ? cuts.get() : nullptr;
  trainer_options.scores = &scores;
  trainer_options.predictions = files.predictions.get();
  trainer_options.on_device_step = StepSinkOf(runtime, made.meter);
  NetworkTrainer trainer(trainer_options);
  if (made.meter != nullptr) {
    RETURN_IF_ERROR(trainer.Reserve(LargestPart(job, layout, made.backend->PinnedBuffers())));
  }
  RETURN_IF_ERROR(
      LoadModel(runtime, &start, network.get(), ranks.collective.get(), cuts.get(), &trainer));
  start = StartModel();  // all roles have loaded it: its run may remove it, and its memory is freed
  Progress progress(
      runtime.executor(), [&trainer] { return trainer.RecentAuc(); }, write_line,
      runtime.envelope().generation(), ShownPosition(job, runtime.position()));
  DescribeJobTo(runtime, leads, &progress);
  StepTimes step_times(
      runtime.executor(), runtime.envelope().generation(),
      [&runtime](uint64_t step) {
        runtime.logger().Info("has made the first step of the generation", {{"step", step}});
      },
      write_line, &progress);
  RankMetrics metrics(runtime.metrics(), runtime.executor(), &step_times);
  const auto registration =
      runtime.SetProgressSource([&progress, &metrics, &files](HeartbeatRequest* heartbeat) {
        if (files.metrics == nullptr) return;  // not rank 0
        metrics.UpdateAges();
        *heartbeat->mutable_train() = progress.Snapshot();
        AddFileTrouble(files.metrics->trouble(), heartbeat->mutable_train());
        *heartbeat->mutable_cuts() = progress.Cuts();
      });

  return TakeSteps(runtime, made, &trainer, &activity, &metrics, [&](const RunResult& result) {
    return EndRun(runtime, cuts.get(), scores.Tail(), prediction_values, result);
  });
}

absl::Status RunNnWorker(RoleRuntime& runtime, const DeviceProgram* devices,
                         absl::optional<int> card_flag) {
  // Read the model before this rank is ready, so that no rank trains a step in a generation that
  // cannot begin. The other ranks may not see rank 0's disk; they get the network from rank 0
  // later, in a call that needs all ranks.
  StartModel start;
  if (runtime.index() == 0) {
    ASSIGN_OR_RETURN(start, ReadStartModel(runtime.cut_folder(), runtime.job().init_from()));
  }
  const NnWorkerConfig& config = runtime.job().nn_worker();
  ASSIGN_OR_RETURN(const int card, CardOfRank(card_flag, config));
  ForkJoinPool pool(config.compute_threads());
  ASSIGN_OR_RETURN(const JobBackend made, MakeRankBackend(runtime, devices, card, &pool));
  LogProducts(runtime);
  if (config.replicas() > 1 && !runtime.flags().advertise.empty()) {
    RETURN_IF_ERROR(OwnAddressOf(runtime.flags().advertise).status());
  }
  RETURN_IF_ERROR(runtime.Join());
  Ranks ranks;
  ASSIGN_OR_RETURN(ranks.collective, MakeCollective(runtime));
  // If this rank returned its error, its collective would be destroyed first, and the other ranks
  // would report a broken connection before this rank reports the cause.
  runtime.ExitUnlessOk(ConnectCards(runtime, devices, card, &ranks));
  runtime.ExitUnlessOk(RunRank(runtime, std::move(start), ranks, &pool, made));
  return absl::OkStatus();
}

}  // namespace

int RunRankProcess(int argc, char** argv, const DeviceProgram* devices) {
  absl::optional<int> card;
  return RunRole(
      NN_WORKER, argc, argv,
      [devices, &card](RoleRuntime& runtime) { return RunNnWorker(runtime, devices, card); },
      {CardFlag(devices != nullptr && devices->has_cards(), &card)});
}

}  // namespace satrap
