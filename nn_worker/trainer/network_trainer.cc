#include "nn_worker/trainer/network_trainer.h"

#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/run_log.h"
#include "common/thread/mutex.h"
#include "nn_worker/metrics/binary_metrics.h"
#include "nn_worker/metrics/window_auc.h"
#include "nn_worker/rank/step_normalizer.h"
#include "nn_worker/trainer/embedding_exchange.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/work_thread.h"

namespace satrap {
namespace {

// The sums behind the dense gradient in a step's allreduce.
enum ExtraSum {
  kSamples,
  kWeight,
  kLoss,
  kIdle,
  kNotFinite,
  kStop,
  kCut,
  kValidation,
  kNumExtraSums
};
static_assert(kNumExtraSums <= Network::kExtraSums);

// The AUC of the progress line covers this many of this rank's last samples.
constexpr int64_t kWindowSamples = 65536;

std::vector<float> AsFloats(absl::Span<const uint8_t> mask) {
  return std::vector<float>(mask.begin(), mask.end());
}

}  // namespace

// How far a cut is, for the thread that waits for it.
class CutWatch {
 public:
  void Mark() {
    MutexLock lock(&mutex_);
    marked_ = true;
    changed_.NotifyAll();
  }
  void End(absl::StatusOr<bool> committed) {
    MutexLock lock(&mutex_);
    committed_ = std::move(committed);
    changed_.NotifyAll();
  }
  // Returns when the cut is marked or has ended. An error is the cut's.
  absl::Status AwaitMark() {
    MutexLock lock(&mutex_);
    while (!marked_ && !committed_.has_value()) changed_.Wait(&mutex_);
    return committed_.has_value() ? committed_->status() : absl::OkStatus();
  }
  // Whether the cut is committed.
  absl::StatusOr<bool> AwaitEnd() {
    MutexLock lock(&mutex_);
    while (!committed_.has_value()) changed_.Wait(&mutex_);
    return *committed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool marked_ GUARDED_BY(mutex_) = false;
  absl::optional<absl::StatusOr<bool>> committed_ GUARDED_BY(mutex_);
};

struct NetworkTrainer::Rep {
  explicit Rep(const NetworkTrainerOptions& options)
      : options(options), exchange(options.layout, options.network, options.pool) {}

  absl::StatusOr<StepResult> Step(uint64_t step, const absl::optional<PartInput>& part,
                                  StepFlags flags);
  absl::StatusOr<StepResult> Reduce(uint64_t step, size_t samples, StepFlags flags, bool finite);
  absl::Status Score(const PartInput& part);
  absl::StatusOr<MetricValues> Merge();
  absl::StatusOr<CutMarked> BeginCut(CutPlan plan, CutEngine::Ended ended);
  absl::StatusOr<bool> AwaitCut();
  absl::Status LoadTables(const std::string& directory);
  absl::Status LoadFromRank0(const std::string& dense, Network::LoadScope scope);
  absl::StatusOr<std::string> FromRank0(absl::string_view bytes);
  bool leads() const { return options.collective->rank() == 0; }
  absl::StatusOr<PartView> Read(const PartInput& part);
  int64_t FirstSampleOfStep(const PartView& view) const;

  const NetworkTrainerOptions options;
  EmbeddingExchange exchange;
  BinaryMetrics evaluation;

  Mutex window_mutex;
  WindowAuc window GUARDED_BY(window_mutex){kWindowSamples};

  std::shared_ptr<CutWatch> cut;  // rank 0: the one that was begun last

  WorkThread thread;  // last, so that it ends first: its tasks use the others
};

absl::StatusOr<PartView> NetworkTrainer::Rep::Read(const PartInput& part) {
  return ReadPart(*options.layout, options.max_samples, part);
}

// In hybrid mode the parts of a step come from different global batches, and two of them may begin
// at the same index, each in its own batch. So samples are numbered by rank instead: no two samples
// of a step then have the same number, nor the same dropout mask.
int64_t NetworkTrainer::Rep::FirstSampleOfStep(const PartView& view) const {
  if (options.ordered) return static_cast<int64_t>(view.first_sample);
  return static_cast<int64_t>(options.max_samples) * options.collective->rank();
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Step(uint64_t step,
                                                     const absl::optional<PartInput>& part,
                                                     StepFlags flags) {
  Network* const network = options.network;
  PartView view;
  if (part.has_value()) {
    ASSIGN_OR_RETURN(view, Read(*part));
    RETURN_IF_ERROR(exchange.WriteInputs(view));
  }
  const PassContext pass =
      PassContext::Training(static_cast<int64_t>(step), FirstSampleOfStep(view));
  RETURN_IF_ERROR(network->Forward(static_cast<int64_t>(view.samples), pass));
  const std::vector<float> mask = AsFloats(view.mask);
  network->Loss(view.labels, view.weights, mask);
  RETURN_IF_ERROR(network->Backward());
  // Before the allreduce, which carries the flag to all ranks: only this rank sees the gradients of
  // its part's embeddings.
  bool finite = network->CountNonFiniteGradients() == 0;
  PartGradients gradients;
  if (part.has_value()) {
    ASSIGN_OR_RETURN(gradients, exchange.ReadGradients(view, &finite));
  }
  std::vector<float> logits;
  if (view.samples > 0) {
    logits = network->ReadLogits();
    MutexLock lock(&window_mutex);
    window.Add(logits, view.labels, view.weights, mask);
  }
  ASSIGN_OR_RETURN(StepResult result, Reduce(step, view.samples, flags, finite));
  if (options.scores != nullptr && result.weight > 0) {
    const uint32_t epoch = part.has_value() ? part->header.part().id().epoch() : 0;
    options.scores->AddStep(step + 1, result.samples,
                            {logits, view.labels, view.weights, mask, view.times, epoch});
  }
  if (result.weight > 0 && result.finite) result.gradients = std::move(gradients);
  return result;
}

absl::StatusOr<StepResult> NetworkTrainer::Rep::Reduce(uint64_t step, size_t samples,
                                                       StepFlags flags, bool finite) {
  const LossSums loss = options.network->ReadLoss();
  float sums[kNumExtraSums];
  sums[kSamples] = static_cast<float>(samples);
  sums[kWeight] = static_cast<float>(loss.weight);
  sums[kLoss] = static_cast<float>(loss.loss);
  sums[kIdle] = flags.idle ? 1 : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kStop] = flags.stop ? 1 : 0;
  sums[kCut] = flags.cut ? 1 : 0;
  sums[kValidation] = flags.validation ? 1 : 0;
  RETURN_IF_ERROR(options.network->AllReduce(sums));
  StepResult result;
  result.samples = static_cast<uint64_t>(std::llround(sums[kSamples]));
  result.weight = sums[kWeight];
  result.loss = sums[kLoss];
  result.idle_ranks = static_cast<int>(std::lround(sums[kIdle]));
  result.finite = sums[kNotFinite] == 0;
  result.stop = sums[kStop] > 0;
  result.cut = sums[kCut] > 0;
  result.validation = sums[kValidation] > 0;
  if (result.weight > 0) {
    result.normalizer = StepNormalizer(result.weight, result.samples, options.global_batch_size);
  }
  // Every rank has the same sums, so all of them step or none does, and their weights stay equal.
  if (result.weight > 0 && result.finite) {
    DenseStep dense;
    dense.step = static_cast<int64_t>(step);
    dense.normalizer = result.normalizer;
    dense.learning_rate_factor = result.learning_rate_factor;
    RETURN_IF_ERROR(options.network->Step(dense));
  }
  return result;
}

absl::Status NetworkTrainer::Rep::Score(const PartInput& part) {
  ASSIGN_OR_RETURN(const PartView view, Read(part));
  RETURN_IF_ERROR(exchange.WriteInputs(view));
  RETURN_IF_ERROR(
      options.network->Forward(static_cast<int64_t>(view.samples), PassContext::Evaluation()));
  const std::vector<float> logits = options.network->ReadLogits();
  evaluation.Add(logits, view.labels, view.weights, AsFloats(view.mask));
  const PartDescription& description = part.header.part();
  if (options.predictions != nullptr && description.id().stream() == TEST_STREAM) {
    return options.predictions->Add(description, logits);
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricValues> NetworkTrainer::Rep::Merge() {
  // Before the barrier: when rank 0 has the metrics, every rank's file is whole.
  if (options.predictions != nullptr) RETURN_IF_ERROR(options.predictions->Close());
  ASSIGN_OR_RETURN(MetricValues values, evaluation.Merge(options.collective));
  evaluation = BinaryMetrics();
  return values;
}

// Only rank 0 knows how the embedding PSs fare, and the second collective tells the others. Its
// bytes are what CutMarked says.
absl::StatusOr<CutMarked> NetworkTrainer::Rep::BeginCut(CutPlan plan, CutEngine::Ended ended) {
  ASSIGN_OR_RETURN(const std::vector<std::string> released,
                   options.collective->AllGatherBytes(plan.released.SerializeAsString()));
  std::string marked_bytes;
  if (leads()) {
    std::vector<LedgerState> states(released.size());
    for (size_t rank = 0; rank < released.size(); ++rank) {
      if (!states[rank].ParseFromString(released[rank])) {
        return absl::DataLossError(
            absl::StrCat("the ledger of nn_worker ", rank, " is no message"));
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
          // The engine learns of the end before AwaitCut is answered.
          ended(std::move(outcome));
          cut->End(std::move(committed));
        });
    RETURN_IF_ERROR(cut->AwaitMark());
  }
  ASSIGN_OR_RETURN(const std::string told, FromRank0(marked_bytes));
  if (told.size() != 2) return absl::InternalError("rank 0 did not say what the cut is for");
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

absl::Status NetworkTrainer::StartFromModel(const StartModel& model) {
  if (rep_->leads()) RETURN_IF_ERROR(rep_->LoadTables(model.directory));
  return rep_->LoadFromRank0(model.dense, Network::LoadScope::kModel);
}

absl::Status NetworkTrainer::StartFromCut(const StartModel& model) {
  return rep_->LoadFromRank0(model.dense, Network::LoadScope::kAll);
}

void NetworkTrainer::JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                              absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) {
  rep_->thread.Post([rep = rep_.get(), step, part = std::move(part), flags,
                     done = std::move(done)]() mutable { done(rep->Step(step, part, flags)); });
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
    done(StartFromModel(model));
  });
}

double NetworkTrainer::RecentAuc() const {
  MutexLock lock(&rep_->window_mutex);
  return rep_->window.Compute().value;
}

}  // namespace satrap
