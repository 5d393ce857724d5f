#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/sim_life.h"
#include "tests/simulation/sim_trainer.h"
#include "tests/simulation/sim_world.h"

namespace satrap::simulation {

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
  if (shape.global) kinds.push_back("with every row updated in every step");
  if (shape.frozen) kinds.push_back("with frozen rows");
  if (shape.gradient_clip_norm > 0) kinds.push_back("with gradient clipping");
  if (shape.step_clip_norm > 0) kinds.push_back("with clipping of whole steps");
  if (result.chunks > 0) kinds.push_back("with messages in chunks");
  if (result.validations > 1) kinds.push_back("validated more than once");
  if (result.non_finite_steps > 0) kinds.push_back("with steps that were not finite");
  if (shape.max_steps > 0) kinds.push_back("with max_steps");
  if (result.stopped_early) kinds.push_back("stopped early, out of patience");
  if (result.stopped_by_wish) kinds.push_back("stopped by RequestStop");
  if (result.restored) kinds.push_back("tested with an earlier, best model");
  if (result.lives > 1) kinds.push_back(absl::StrCat("of ", result.lives, " lives"));
  if (result.cuts > 0) kinds.push_back("with cuts");
  if (result.failed_writes > 0) kinds.push_back("with a failed write");
  if (result.failed_reads > 0) kinds.push_back("with a failed read");
  if (result.cuts_abandoned_at_log > 0) kinds.push_back("with cuts abandoned at the log");
  if (result.moves > 0) kinds.push_back("with processes that leave their machines");
  if (result.absences > 0) kinds.push_back("with a member that is missing");
  if (result.twins > 0) kinds.push_back("with a second process for a member's place");
  if (result.rival_claims > 0) kinds.push_back("with two claims at once");
  if (result.pinned_reads > 0) kinds.push_back("with cuts that another command has pinned");
  if (result.requests_to_the_next_life > 0) kinds.push_back("with requests to the next life");
  return kinds;
}

void AddTraining(const Life& last, WorldResult* result) {
  const SimTraining& training = last.training();
  result->validations = last.observers()[0].validations.size();
  result->non_finite_steps = training.non_finite_steps();
  result->stopped_early = last.results()[0].stopped_early();
  result->stopped_by_wish = training.stop_step().has_value();
  result->restored = training.restored();
  // This counts the samples of all lives: a life begins with those that its cut has seen.
  for (const auto& [pass, seen] : training.seen()) {
    if (pass.first != TRAIN_STREAM) continue;
    for (const auto& [id, times] : seen) result->trained_samples += times;
  }
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
    default:
      return "none";
  }
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
      shape.evaluate_every_seconds > 0 ? " and by the clock" : "",
      shape.evaluate_at_epoch_end ? " and epoch ends" : "",
      shape.has_valid ? "" : " without a validation set", ", patience ", shape.patience,
      shape.plateau_patience == 0 ? ""
                                  : absl::StrCat(", rates halve after ", shape.plateau_patience),
      ", ", shape.has_non_finite_steps ? "not all finite, " : "", "max_steps ", shape.max_steps,
      shape.stop_rank < 0 ? ""
                          : absl::StrCat(", rank ", shape.stop_rank, " stops after ",
                                         shape.stop_after_steps, " steps"),
      ", shuffle_rows ", shape.shuffle_rows, ", ", shape.parse_threads, " parsing, optimizers ",
      NameOf(shape.optimizers[0]), " and ", NameOf(shape.optimizers[1]),
      shape.global ? " in every row" : "", shape.frozen ? ", frozen" : "",
      shape.dense_l2 ? ", dense l2 " : ", l2 ", shape.l2, ", clip ", shape.gradient_clip_norm,
      ", of steps ", shape.step_clip_norm,
      shape.max_message_bytes == 0 ? "" : absl::StrCat(", frames of ", shape.max_message_bytes),
      ", bound ", shape.weight_bound, ", splits", splits);
}

}  // namespace satrap::simulation
