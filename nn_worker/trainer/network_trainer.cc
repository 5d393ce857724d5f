#include "nn_worker/trainer/network_trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/run_log.h"
#include "common/numeric/clip_factor.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "nn_worker/metrics/recent_auc.h"
#include "nn_worker/metrics/task_metrics.h"
#include "nn_worker/trainer/cut_watch.h"
#include "nn_worker/trainer/embedding_exchange.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/step_sums.h"
#include "nn_worker/trainer/task_batch.h"
#include "nn_worker/trainer/task_scores.h"
#include "nn_worker/trainer/work_thread.h"

namespace satrap {
namespace {

// The AUC of the progress line covers this many of this rank's last samples.
constexpr int64_t kRecentSamples = 65536;

std::vector<int64_t> OutputsOf(const Network& network) {
  std::vector<int64_t> outputs;
  for (int t = 0; t < network.num_tasks(); ++t) outputs.push_back(network.num_outputs(t));
  return outputs;
}

}  // namespace

// A part on its way to its step. The first thread that claims it prepares it.
class NetworkTrainer::Preparation {
 public:
  Preparation(PartInput input, int buffer) : input(std::move(input)), buffer(buffer) {}

  const PartInput input;
  const int buffer;  // of the exchange, in which it is prepared
  // Valid once the part is prepared.
  PartView view;

  bool Claim() { return !claimed_.exchange(true); }
  void End(absl::Status status) {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
    ended_.NotifyAll();
  }
  // Waits until the thread that claimed the part has prepared it.
  absl::Status Await() {
    MutexLock lock(&mutex_);
    while (!status_.has_value()) ended_.Wait(&mutex_);
    return *status_;
  }

 private:
  std::atomic<bool> claimed_{false};
  Mutex mutex_;
  CondVar ended_;
  absl::optional<absl::Status> status_ GUARDED_BY(mutex_);
};

struct NetworkTrainer::Rep {
  // The handle that the engine holds. The engine may drop it while the part is still in
  // preparation.
  struct Prepared final : PreparedPart {
    std::shared_ptr<Preparation> part;
  };

  explicit Rep(const NetworkTrainerOptions& options)
      : options(options),
        exchange(options.layout, options.network, options.pool, options.collective),
        batch(options.layout->tasks,
              options.writes_outputs ? std::vector<int64_t>(options.layout->tasks.size(), 1)
                                     : OutputsOf(*options.network),
              options.layout->labels),
        evaluation(*options.layout) {}

  void PrepareIfNobodyDoes(Preparation* part, ForkJoinPool* pool);
  absl::Status PrepareOn(ForkJoinPool* pool, Preparation* part);
  absl::StatusOr<StepResult> Step(uint64_t step, Preparation* part, StepFlags flags);
  absl::StatusOr<StepResult> Reduce(uint64_t step, const RankSums& own);
  absl::StatusOr<StepEnd> EndStep(double squares);
  absl::optional<LossScaleState> LossScale() const;
  absl::Status Score(const PartInput& part);
  // The network's outputs for the part, [samples, values of all outputs].
  std::vector<double> Outputs(size_t samples);
  absl::StatusOr<MetricValues> Merge();
  absl::StatusOr<CutMarked> BeginCut(CutPlan plan, CutEngine::Ended ended);
  absl::StatusOr<bool> AwaitCut();
  absl::Status LoadTables(const std::string& directory);
  absl::Status LoadFromRank0(const std::string& dense, Network::LoadScope scope);
  absl::StatusOr<std::string> FromRank0(absl::string_view bytes);
  void Doing(const char* what) const {
    if (options.activity != nullptr) options.activity->store(what);
  }
  bool leads() const { return options.collective->rank() == 0; }
  absl::StatusOr<PartView> Read(const PartInput& part);
  int64_t FirstSampleOfStep(const PartView& view) const;

  const NetworkTrainerOptions options;
  EmbeddingExchange exchange;
  TaskBatch batch;
  TaskScores evaluation;

  Mutex recent_mutex;
  satrap::RecentAuc recent GUARDED_BY(recent_mutex){kRecentSamples};

  // A step that waits for EndStep: the arguments that Network::Step will get.
  struct WaitingStep {
    DenseStep step;
    StepTotals totals;
  };
  absl::optional<WaitingStep> waiting;

  std::shared_ptr<CutWatch> cut;  // rank 0: the one that was begun last

  uint64_t prepared = 0;              // parts, so far; on the engine's executor
  std::atomic<bool> stepping{false};  // a step runs, or is about to

  // The threads come last, so that they end first: their tasks use the other members, and a step
  // may wait for a preparation.
  WorkThread preparing;
  WorkThread thread;
};

absl::StatusOr<PartView> NetworkTrainer::Rep::Read(const PartInput& part) {
  return ReadPart(*options.layout, options.max_samples, part);
}

// In hybrid mode the parts of a step come from different global batches, and two parts may begin at
// the same index, each in its own batch. So samples are numbered by rank instead: no two samples of
// a step then have the same number, nor the same dropout mask.
int64_t NetworkTrainer::Rep::FirstSampleOfStep(const PartView& view) const {
  if (options.ordered) return static_cast<int64_t>(view.first_sample);
  return static_cast<int64_t>(options.max_samples) * options.collective->rank();
}

void NetworkTrainer::Rep::PrepareIfNobodyDoes(Preparation* part, ForkJoinPool* pool) {
  if (part->Claim()) part->End(PrepareOn(pool, part));
}

absl::Status NetworkTrainer::Rep::PrepareOn(ForkJoinPool* pool, Preparation* part) {
  ASSIGN_OR_RETURN(part->view, Read(part->input));
  return exchange.Prepare(part->view, part->buffer, pool);
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Step(uint64_t step, Preparation* part,
                                                     StepFlags flags) {
  Network* const network = options.network;
  const PartView without_part;
  double begin_s = 0;
  if (part != nullptr) {
    Doing("prepares the part");
    PrepareIfNobodyDoes(part, options.pool);
    RETURN_IF_ERROR(part->Await());
    if (options.on_device_step != nullptr) begin_s = MonotonicSeconds();
    exchange.WriteInputs(part->buffer);
  }
  const PartView& view = part != nullptr ? part->view : without_part;
  const PassContext pass =
      PassContext::Training(static_cast<int64_t>(step), FirstSampleOfStep(view),
                            static_cast<int64_t>(view.candidates.indices.samples));
  RETURN_IF_ERROR(batch.Set(view));
  Doing("computes the network");
  RETURN_IF_ERROR(network->Train(static_cast<int64_t>(view.samples), pass, batch.targets()));
  RETURN_IF_ERROR(network->StartReduce());
  // While the dense gradients are being summed, this rank does what it can do alone.
  RankSums own;
  own.samples = view.samples;
  own.flags = flags;
  PartGradients gradients;
  if (part != nullptr) {
    Doing("reads the gradients of the embeddings");
    ASSIGN_OR_RETURN(gradients, exchange.ReadGradients(part->buffer, &own.finite));
    own.large = gradients.large;
    if (options.on_device_step != nullptr) options.on_device_step(MonotonicSeconds() - begin_s);
  }
  // The scores that are watched during training are the logits of the judged task.
  const size_t main_task = options.layout->main_task;
  const bool is_binary = options.layout->tasks[main_task].loss == TaskConfig::BCE;
  LossTargets watched;
  std::vector<float> logits;
  if (view.samples > 0 && is_binary) {
    watched = batch.targets()[main_task];
    logits = network->ReadLogits(static_cast<int>(main_task));
    MutexLock lock(&recent_mutex);
    recent.Add(logits, watched.labels, watched.weights, watched.mask);
  }
  Doing("adds up the gradients of all ranks");
  RETURN_IF_ERROR(network->FinishReduce());
  // Only this rank sees the gradients of its part's embeddings. So they are checked before the
  // second reduction, which tells all ranks whether any value was large or not finite. A value that
  // is not finite counts as large, too. In most steps no value is large.
  if (network->CountGradientsBeyond(kLargeGradient * network->gradient_scale().scale) > 0) {
    own.large = true;
    if (network->CountNonFiniteGradients() > 0) own.finite = false;
  }
  if (view.samples > 0 && HasTwoClasses(options.layout->tasks[main_task].loss)) {
    own.labels = CountLabels(batch.targets()[main_task]);
  }
  own.loss = network->ReadLoss();
  ASSIGN_OR_RETURN(StepResult result, Reduce(step, own));
  if (options.scores != nullptr && is_binary && result.weight > 0) {
    const uint32_t epoch = part != nullptr ? part->input.header.part().id().epoch() : 0;
    options.scores->AddStep(
        step + 1, result.samples,
        {logits, watched.labels, watched.weights, watched.mask, view.times, epoch});
  }
  if (result.weight > 0 && result.finite) result.gradients = std::move(gradients);
  return result;
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Reduce(uint64_t step, const RankSums& own) {
  Doing("adds up the samples and losses of all ranks");
  ASSIGN_OR_RETURN(SummedStep summed,
                   SumStepOfRanks(own, options.global_batch_size, options.collective));
  Doing("steps the optimizer");
  StepResult& result = summed.result;
  // Every rank has the same sums, so either all of them step or none does, and their weights stay
  // equal.
  DenseStep dense;
  dense.step = static_cast<int64_t>(step);
  dense.global_batch_size = options.global_batch_size;
  dense.learning_rate_factor = result.learning_rate_factor;
  const StepTotals& totals = summed.totals;
  if (options.gradient_clip_norm > 0 && result.weight > 0 && result.finite) {
    result.dense_squares = options.network->GradientSquares(dense, totals);
    waiting = WaitingStep{dense, totals};
  } else {
    RETURN_IF_ERROR(options.network->Step(dense, totals));
  }
  result.loss_scale = LossScale();
  return std::move(result);
}

absl::StatusOr<StepEnd> NetworkTrainer::Rep::EndStep(double squares) {
  CHECK(waiting.has_value()) << "EndStep was called, but no step waits for it";
  StepEnd end;
  end.clip_factor = ClipFactor(options.gradient_clip_norm, squares);
  RETURN_IF_ERROR(options.network->Step(waiting->step, waiting->totals, end.clip_factor));
  waiting.reset();
  end.loss_scale = LossScale();
  return end;
}

absl::optional<LossScaleState> NetworkTrainer::Rep::LossScale() const {
  if (!options.has_loss_scale) return absl::nullopt;
  return LossScaleStateOf(options.network->gradient_scale(), options.global_batch_size);
}

absl::Status NetworkTrainer::Rep::Score(const PartInput& part) {
  ASSIGN_OR_RETURN(const PartView view, Read(part));
  // No part of the train stream is prepared while an evaluation runs, so any buffer is free.
  RETURN_IF_ERROR(exchange.Prepare(view, /*buffer=*/0, options.pool, PartUse::kScoring));
  exchange.WriteInputs(/*buffer=*/0);
  RETURN_IF_ERROR(
      options.network->Forward(static_cast<int64_t>(view.samples), PassContext::Evaluation()));
  const PartDescription& description = part.header.part();
  if (options.writes_outputs) {
    const std::vector<double> outputs = Outputs(view.samples);
    return options.predictions == nullptr ? absl::OkStatus()
                                          : options.predictions->Add(description, outputs);
  }
  RETURN_IF_ERROR(batch.Set(view));
  for (int t = 0; t < options.network->num_tasks(); ++t) {
    evaluation.Add(t, options.network->ReadLogits(t), batch.targets()[t]);
  }
  if (options.predictions != nullptr && description.id().stream() == TEST_STREAM) {
    return options.predictions->Add(description, evaluation.Predictions());
  }
  return absl::OkStatus();
}

std::vector<double> NetworkTrainer::Rep::Outputs(size_t samples) {
  const std::vector<int64_t> widths = OutputsOf(*options.network);
  const auto all = static_cast<size_t>(std::accumulate(widths.begin(), widths.end(), int64_t{0}));
  std::vector<double> values(samples * all);
  size_t column = 0;
  for (size_t output = 0; output < widths.size(); ++output) {
    const std::vector<float> read = options.network->ReadLogits(static_cast<int>(output));
    const auto width = static_cast<size_t>(widths[output]);
    for (size_t i = 0; i < samples; ++i) {
      std::copy_n(read.data() + i * width, width, values.data() + i * all + column);
    }
    column += width;
  }
  return values;
}

absl::StatusOr<MetricValues> NetworkTrainer::Rep::Merge() {
  // The file is closed before the barrier, so that every rank's file is whole when rank 0 has the
  // metrics.
  if (options.predictions != nullptr) RETURN_IF_ERROR(options.predictions->Close());
  return evaluation.Merge(options.collective);
}

// Only rank 0 talks to the embedding PSs about cuts, so a second collective sends the others the
// fields of CutMarked, as bytes.
absl::StatusOr<CutMarked> NetworkTrainer::Rep::BeginCut(CutPlan plan, CutEngine::Ended ended) {
  ASSIGN_OR_RETURN(const std::vector<std::string> released,
                   options.collective->AllGatherBytes(plan.released.SerializeAsString()));
  std::string marked_bytes;
  if (leads()) {
    std::vector<LedgerState> states(released.size());
    for (size_t rank = 0; rank < released.size(); ++rank) {
      if (!states[rank].ParseFromString(released[rank])) {
        return absl::DataLossError(
            absl::StrCat("the ledger of nn_worker ", rank, " cannot be parsed"));
      }
    }
    marked_bytes = {IsWaitedFor(plan) ? '1' : '0', plan.leave ? '1' : '0'};
    cut = std::make_shared<CutWatch>();
    options.cuts->Begin(
        std::move(plan), std::move(states), options.network->Save(), [cut = cut] { cut->Mark(); },
        [cut = cut, ended = std::move(ended)](absl::StatusOr<CutOutcome> outcome) mutable {
          const bool ok = outcome.ok();
          absl::StatusOr<bool> committed = ok && outcome->committed;
          if (!ok) committed = outcome.status();
          // RankEngine must be notified of the end before AwaitCut is answered.
          ended(std::move(outcome));
          cut->End(std::move(committed));
        });
    RETURN_IF_ERROR(cut->AwaitMark());
  }
  ASSIGN_OR_RETURN(const std::string told, FromRank0(marked_bytes));
  if (told.size() != 2) return absl::InternalError("rank 0 sent a malformed cut plan");
  return CutMarked{told[0] == '1', told[1] == '1'};
}

absl::StatusOr<bool> NetworkTrainer::Rep::AwaitCut() {
  bool committed = false;
  if (leads()) {
    ASSIGN_OR_RETURN(committed, cut->AwaitEnd());
  }
  ASSIGN_OR_RETURN(const std::string told, FromRank0(committed ? "1" : ""));
  return !told.empty();
}

absl::StatusOr<std::string> NetworkTrainer::Rep::FromRank0(absl::string_view bytes) {
  ASSIGN_OR_RETURN(std::vector<std::string> from_ranks, options.collective->AllGatherBytes(bytes));
  return std::move(from_ranks[0]);
}

absl::Status NetworkTrainer::Rep::LoadTables(const std::string& directory) {
  std::promise<absl::Status> loaded;
  options.cuts->embedding_ps()->LoadTables(
      directory, [&loaded](absl::Status status) { loaded.set_value(std::move(status)); });
  return loaded.get_future().get();
}

absl::Status NetworkTrainer::Rep::LoadFromRank0(const std::string& dense,
                                                Network::LoadScope scope) {
  ASSIGN_OR_RETURN(const std::string from_rank_0, FromRank0(dense));
  return options.network->Load(from_rank_0, scope);
}

NetworkTrainer::NetworkTrainer(const NetworkTrainerOptions& options)
    : rep_(std::make_unique<Rep>(options)) {}
NetworkTrainer::~NetworkTrainer() = default;

absl::Status NetworkTrainer::Reserve(const PartInput& largest) {
  ASSIGN_OR_RETURN(const PartView view, rep_->Read(largest));
  return rep_->exchange.Reserve(view,
                                rep_->options.trains ? PartUse::kTraining : PartUse::kScoring);
}

absl::Status NetworkTrainer::StartFromModel(StartModel* model) {
  if (rep_->leads()) {
    RETURN_IF_ERROR(LoadOrLookAgain(
        model, [this](const StartModel& found) { return rep_->LoadTables(found.directory); }));
  }
  return rep_->LoadFromRank0(model->dense, Network::LoadScope::kModel);
}

absl::Status NetworkTrainer::StartFromCut(const StartModel& model) {
  return rep_->LoadFromRank0(model.dense, Network::LoadScope::kAll);
}

// Buffers are used in turn. When the engine prepares a part, the step of the part that used the
// same buffer before has ended.
std::unique_ptr<PreparedPart> NetworkTrainer::Prepare(PartInput part) {
  static_assert(kPreparedParts == EmbeddingExchange::kBuffers);
  const int buffer = static_cast<int>(rep_->prepared++ % EmbeddingExchange::kBuffers);
  auto prepared = std::make_unique<Rep::Prepared>();
  prepared->part = std::make_shared<Preparation>(std::move(part), buffer);
  // When no step is running, the part is joined at once. Then it is fastest to let the step's own
  // thread prepare it.
  if (rep_->stepping.load()) {
    // Prepares without the pool, which is busy with the step.
    rep_->preparing.Post([rep = rep_.get(), part = prepared->part] {
      rep->PrepareIfNobodyDoes(part.get(), /*pool=*/nullptr);
    });
  }
  return prepared;
}

void NetworkTrainer::JoinStep(uint64_t step, std::unique_ptr<PreparedPart> part, StepFlags flags,
                              absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  std::shared_ptr<Preparation> joined;
  if (part != nullptr) joined = std::move(static_cast<Rep::Prepared*>(part.get())->part);
  rep_->stepping.store(true);
  rep_->thread.Post([rep = rep_.get(), step, joined = std::move(joined), flags,
                     done = std::move(done)]() mutable {
    absl::StatusOr<StepResult> result = rep->Step(step, joined.get(), flags);
    rep->stepping.store(false);
    done(std::move(result));
  });
}

void NetworkTrainer::EndStep(double squares,
                             absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) {
  rep_->thread.Post([rep = rep_.get(), squares, done = std::move(done)]() mutable {
    done(rep->EndStep(squares));
  });
}

void NetworkTrainer::Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) {
  rep_->thread.Post([rep = rep_.get(), part = std::move(part), done = std::move(done)]() mutable {
    done(rep->Score(part));
  });
}

void NetworkTrainer::MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) {
  rep_->thread.Post([rep = rep_.get(), done = std::move(done)]() mutable { done(rep->Merge()); });
}

void NetworkTrainer::BeginCut(CutPlan plan,
                              absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                              absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) {
  rep_->thread.Post([rep = rep_.get(), plan = std::move(plan), done = std::move(done),
                     ended = std::move(ended)]() mutable {
    done(rep->BeginCut(std::move(plan), std::move(ended)));
  });
}

void NetworkTrainer::AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  rep_->thread.Post(
      [rep = rep_.get(), done = std::move(done)]() mutable { done(rep->AwaitCut()); });
}

void NetworkTrainer::RestoreModel(const std::string& cut,
                                  absl::AnyInvocable<void(absl::Status)> done) {
  rep_->thread.Post([this, cut, done = std::move(done)]() mutable {
    StartModel model;
    if (rep_->leads()) {
      const std::string path = absl::StrCat(CheckpointsDir(rep_->options.run_dir), "/", cut);
      absl::StatusOr<StartModel> read = ReadStartModel("", path);
      if (!read.ok()) return done(read.status());
      model = *std::move(read);
    }
    done(StartFromModel(&model));
  });
}

double NetworkTrainer::RecentAuc() const {
  MutexLock lock(&rep_->recent_mutex);
  return rep_->recent.Compute().value;
}

}  // namespace satrap
