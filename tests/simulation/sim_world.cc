#include "tests/simulation/sim_world.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/sim_files.h"
#include "tests/simulation/sim_life.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kMaxEvents = 4000000;
constexpr uint64_t kRunId = 0x5a7a95a7a95a7a95;

class World {
 public:
  World(const WorldShape& shape, Plant plant, const NetworkFaults& faults, const DeathPlan& deaths)
      : shape_(shape),
        deaths_(deaths),
        plant_(plant),
        loop_(shape.seed),
        network_(&loop_, faults),
        addresses_(&network_) {
    WriteFiles(shape_, folder_, &files_);
  }

  // Queued tasks hold callbacks into the engines, so they go first.
  ~World() { loop_.DropTasks(); }

  WorldResult Run() {
    BeginLife();
    const auto ended = [this] {
      EndLifeIfDue();
      // The survivors of a death may finish before the next life begins: that is no end.
      return !result_.violations.empty() || (!next_life_due_ && life().finished());
    };
    if (!loop_.RunUntil(ended, kTimeLimitUs, kMaxEvents)) {
      Violate(absl::StrCat("stuck: ", life().ranks_finished(), " of ", life().shape().ranks,
                           " ranks have finished in life ", lives_.size()));
    }
    if (victim_ != nullptr) victim_->KillAtAct(0);  // it has outlived its end
    result_.events = loop_.events();
    result_.simulated_us = loop_.NowUs();
    result_.steps = life().training().counted_steps();
    result_.lives = static_cast<int>(lives_.size());
    result_.requests_to_the_next_life = network_.counts().to_the_next;
    if (result_.violations.empty()) CheckEnd();
    return result_;
  }

 private:
  Life& life() { return *lives_.back(); }  // the newest
  void Violate(std::string what) {
    if (result_.violations.size() < 20) result_.violations.push_back(std::move(what));
  }

  void BeginLife() {
    const int number = static_cast<int>(lives_.size()) + 1;
    Life::Surroundings surroundings;
    surroundings.loop = &loop_;
    surroundings.network = &network_;
    surroundings.addresses = &addresses_;
    surroundings.folder = folder_.path();
    surroundings.plant = plant_;
    surroundings.violated = [this](std::string what) { Violate(std::move(what)); };
    Life::Start start;
    start.number = number;
    start.shape = number > 1 && deaths_.ends[number - 2].other_replicas
                      ? shape_.WithOtherReplicas(number)
                      : shape_;
    start.job = MakeJob(start.shape);
    start.job.set_data_root(files_.data_root());
    *start.job.mutable_data()->mutable_train_files() = files_.data().train_files();
    *start.job.mutable_data()->mutable_valid_files() = files_.data().valid_files();
    *start.job.mutable_data()->mutable_test_files() = files_.data().test_files();
    // Each coordinator process is a run of its own: nothing is taken over.
    start.run_id = kRunId + number - 1;
    life_began_at_event_ = loop_.events();
    lives_.push_back(std::make_unique<Life>(surroundings, start));
    life().Begin();
  }

  // Asked before each event, so a death may come at any of them.
  void EndLifeIfDue() {
    if (next_life_due_ || lives_.size() > deaths_.ends.size()) return;
    const LifeEnd& end = deaths_.ends[lives_.size() - 1];
    if (victim_ == nullptr) {
      if (life().finished() || loop_.events() - life_began_at_event_ < end.after_events) return;
      victim_ = life().processes()[end.victim % life().processes().size()].get();
      if (end.at_act > 0) {
        victim_->KillAtAct(end.at_act);
      } else {
        victim_->Kill();
      }
    }
    // A life whose victim does too little to die finishes.
    if (!victim_->alive()) EndLife(end);
  }

  // The first death has come.
  void EndLife(const LifeEnd& end) {
    victim_ = nullptr;
    next_life_due_ = true;
    life().Doom();
    for (size_t i = 0; i < life().processes().size(); ++i) {
      SimProcess* process = life().processes()[i].get();
      if (end.all_at_once) process->Kill();
      const ProcessEnd fate = end.OfProcess(i);
      process->StandStill(fate.stands_still_us);
      if (fate.dies_after_us < 0) continue;
      loop_.PostAfter(fate.dies_after_us, [process] { process->Kill(); });
    }
    loop_.PostAfter(end.next_after_us, [this] {
      next_life_due_ = false;
      BeginLife();
    });
  }

  void CheckEnd() {
    life().CheckEnd();
    const SimTraining& training = life().training();
    result_.validations = life().observers()[0].validations.size();
    result_.non_finite_steps = training.non_finite_steps();
    result_.stopped_early = life().results()[0].stopped_early();
    result_.stopped_by_wish = training.stop_step().has_value();
    result_.restored = training.restored();
    for (const auto& [pass, seen] : training.seen()) {
      if (pass.first != TRAIN_STREAM) continue;
      for (const auto& [id, times] : seen) result_.trained_samples += times;
    }
  }

  const WorldShape shape_;
  const DeathPlan deaths_;
  const Plant plant_;
  const SimFolder folder_;
  JobConfig files_;  // where they are
  SimLoop loop_;
  SimNetwork network_;
  const SimAddresses addresses_;
  WorldResult result_;
  std::vector<std::unique_ptr<Life>> lives_;  // also those of the dead, until the world ends
  int64_t life_began_at_event_ = 0;
  SimProcess* victim_ = nullptr;  // dies next, and ends the newest life
  bool next_life_due_ = false;    // the newest life ends, and the next one has not begun
};

}  // namespace

WorldResult RunWorld(const WorldShape& shape, Plant plant, const NetworkFaults& faults,
                     const DeathPlan& deaths) {
  World world(shape, plant, faults, deaths);
  return world.Run();
}

std::vector<std::string> KindsOf(const WorldShape& shape, const WorldResult& result) {
  std::vector<std::string> kinds = {
      shape.ordered ? "sync" : "hybrid",
      absl::StrCat("with ", shape.ranks, " NN workers"),
      absl::StrCat("with ", shape.loaders, " loaders"),
      absl::StrCat("with ", shape.workers, " embedding workers"),
      absl::StrCat("with ", shape.ps, " PSs"),
  };
  if (!shape.ordered) kinds.push_back(absl::StrCat("with staleness ", shape.max_staleness));
  if (shape.ordered) kinds.push_back(absl::StrCat("with ", shape.lanes, " lanes"));
  if (shape.epochs > 1) kinds.push_back("of several epochs");
  if (shape.shuffle_rows > 0) kinds.push_back("shuffled");
  for (const auto optimizer : shape.optimizers) {
    if (optimizer != SparseOptimizerConfig::kSgd) {
      kinds.push_back("with optimizers that have state");
      break;
    }
  }
  if (shape.l2 > 0) kinds.push_back("with L2");
  if (shape.gradient_clip_norm > 0) kinds.push_back("with gradient clipping");
  if (result.validations > 1) kinds.push_back("validated more than once");
  if (result.non_finite_steps > 0) kinds.push_back("with steps that were not finite");
  if (shape.max_steps > 0) kinds.push_back("with max_steps");
  if (result.stopped_early) kinds.push_back("stopped early, out of patience");
  if (result.stopped_by_wish) kinds.push_back("stopped by RequestStop");
  if (result.restored) kinds.push_back("tested with an earlier, best model");
  if (result.lives > 1) kinds.push_back(absl::StrCat("of ", result.lives, " lives"));
  if (result.requests_to_the_next_life > 0) kinds.push_back("with requests to the next life");
  return kinds;
}

std::string ReplayCommand(uint64_t seed, bool with_deaths) {
  return absl::StrCat("bazel run //tests/simulation:simulate -- ", with_deaths ? "--deaths " : "",
                      seed);
}

namespace {

const char* NameOf(SparseOptimizerConfig::KindCase optimizer) {
  switch (optimizer) {
    case SparseOptimizerConfig::kSgd:
      return "SGD";
    case SparseOptimizerConfig::kAdagrad:
      return "Adagrad";
    case SparseOptimizerConfig::kRowwiseAdagrad:
      return "row-wise Adagrad";
    case SparseOptimizerConfig::kAdam:
      return "Adam";
    case SparseOptimizerConfig::KIND_NOT_SET:
      break;
  }
  return "none";
}

}  // namespace

std::string Describe(const WorldShape& shape) {
  std::string splits;
  for (const auto& rows : shape.split_rows)
    absl::StrAppend(&splits, " [", absl::StrJoin(rows, " "), "]");
  return absl::StrCat(
      "seed ", shape.seed, shape.ordered ? " sync" : " hybrid", ": ", shape.loaders, " loaders, ",
      shape.workers, " embedding workers, ", shape.ps, " PSs, ", shape.ranks, " ranks, ",
      shape.lanes, " lanes, staleness ", shape.max_staleness, " after ",
      shape.staleness_warmup_steps, " steps, ", shape.epochs, " epochs, batch ",
      shape.global_batch_size, ", queue capacity ", shape.queue_capacity_parts,
      ", evaluation every ", shape.evaluate_every_steps, " steps",
      shape.evaluate_at_epoch_end ? " and epoch ends" : "",
      shape.has_valid ? "" : " without a validation set", ", patience ", shape.patience, ", ",
      shape.has_non_finite_steps ? "not all finite, " : "", "max_steps ", shape.max_steps,
      shape.stop_rank < 0 ? ""
                          : absl::StrCat(", rank ", shape.stop_rank, " stops after ",
                                         shape.stop_after_steps, " steps"),
      ", shuffle_rows ", shape.shuffle_rows, ", ", shape.parse_threads, " parsing, optimizers ",
      NameOf(shape.optimizers[0]), " and ", NameOf(shape.optimizers[1]), ", l2 ", shape.l2,
      ", clip ", shape.gradient_clip_norm, ", bound ", shape.weight_bound, ", splits", splits);
}

}  // namespace satrap::simulation
