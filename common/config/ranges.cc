#include "common/config/ranges.h"

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

constexpr int kMaxDim = 4096;

void CheckSegmentLimits(const TableConfig& table, const SegmentConfig& segment,
                        const std::string& path, Problems* problems) {
  problems->NotNegative(path + "l2", segment.l2());
  problems->NotNegative(path + "gradient_clip_norm", segment.gradient_clip_norm());
  problems->NotNegative(path + "weight_bound", segment.weight_bound());
  if (segment.l2_mode() == SegmentConfig::DENSE && table.semantics() != TableConfig::GLOBAL) {
    problems->Add(path + "l2_mode", absl::StrCat("DENSE needs semantics GLOBAL, got ",
                                                 TableConfig::Semantics_Name(table.semantics())));
  }
  if (!segment.has_cow_clip()) return;
  problems->NotNegative(path + "cow_clip.ratio", segment.cow_clip().ratio());
  problems->Positive(path + "cow_clip.floor", segment.cow_clip().floor());
  if (segment.gradient_clip_norm() > 0) {
    problems->Add(path + "gradient_clip_norm",
                  absl::StrCat("must be 0 with cow_clip, got ", segment.gradient_clip_norm()));
  }
  // Its limit is for the mean over the batch.
  if (table.normalisation() != GLOBAL_BATCH) {
    problems->Add(path + "cow_clip", absl::StrCat("needs normalisation GLOBAL_BATCH, got ",
                                                  Normalisation_Name(table.normalisation())));
  }
}

void CheckSteps(const std::string& path, int64_t steps, int64_t least, Problems* problems) {
  problems->Range<int64_t>(path, steps, least, kMaxSteps);
}

void CheckFactor(const std::string& path, double factor, Problems* problems) {
  problems->Range<double>(path, factor, 0, 1);
}

}  // namespace

void CheckSchedule(const LearningRateSchedule& schedule, const std::string& prefix,
                   Problems* problems) {
  CheckSteps(prefix + "warmup_steps", schedule.warmup_steps(), 0, problems);
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kStep:
      CheckSteps(prefix + "step.every_steps", schedule.step().every_steps(), 1, problems);
      CheckFactor(prefix + "step.factor", schedule.step().factor(), problems);
      break;
    case LearningRateSchedule::kExponential:
      CheckSteps(prefix + "exponential.decay_steps", schedule.exponential().decay_steps(), 1,
                 problems);
      CheckFactor(prefix + "exponential.factor", schedule.exponential().factor(), problems);
      break;
    case LearningRateSchedule::kPolynomial:
      CheckSteps(prefix + "polynomial.start_step", schedule.polynomial().start_step(), 0, problems);
      CheckSteps(prefix + "polynomial.decay_steps", schedule.polynomial().decay_steps(), 1,
                 problems);
      problems->Positive(prefix + "polynomial.power", schedule.polynomial().power());
      CheckFactor(prefix + "polynomial.end_factor", schedule.polynomial().end_factor(), problems);
      break;
    case LearningRateSchedule::kCosine:
      CheckSteps(prefix + "cosine.start_step", schedule.cosine().start_step(), 0, problems);
      CheckSteps(prefix + "cosine.decay_steps", schedule.cosine().decay_steps(), 1, problems);
      CheckFactor(prefix + "cosine.end_factor", schedule.cosine().end_factor(), problems);
      break;
    case LearningRateSchedule::KIND_NOT_SET:
      break;
  }
  if (!schedule.has_cool_down()) return;
  CheckSteps(prefix + "cool_down.total_steps", schedule.cool_down().total_steps(), 1, problems);
  CheckFactor(prefix + "cool_down.share", schedule.cool_down().share(), problems);
  CheckFactor(prefix + "cool_down.end_factor", schedule.cool_down().end_factor(), problems);
}

void CheckTable(const TableConfig& table, const std::string& prefix, Problems* problems) {
  problems->Range<uint32_t>(prefix + "id", table.id(), 0, 65535);
  if (table.segments_size() == 0) problems->Add(prefix + "segments", "must not be empty");
  for (int i = 0; i < table.segments_size(); ++i) {
    const SegmentConfig& segment = table.segments(i);
    const std::string path = absl::StrCat(prefix, "segments[", i, "].");
    problems->Range(path + "dim", segment.dim(), 1, kMaxDim);
    CheckInitializer(segment.initializer(), path + "initializer.", problems);
    CheckSparseOptimizer(segment.optimizer(), path + "optimizer.", problems);
    CheckSegmentLimits(table, segment, path, problems);
  }
  CheckSchedule(table.learning_rate_schedule(), prefix + "learning_rate_schedule.", problems);
  problems->Range<int64_t>(prefix + "reserve_rows", table.reserve_rows(), 0, int64_t{1} << 40);
}

void CheckInitializer(const InitializerConfig& initializer, const std::string& prefix,
                      Problems* problems) {
  switch (initializer.kind_case()) {
    case InitializerConfig::kConstant:
      problems->Finite(prefix + "constant.value", initializer.constant().value());
      break;
    case InitializerConfig::kUniform: {
      const float low = initializer.uniform().low();
      const float high = initializer.uniform().high();
      problems->Finite(prefix + "uniform.low", low);
      problems->Finite(prefix + "uniform.high", high);
      if (low > high) {
        problems->Add(prefix + "uniform",
                      absl::StrCat("low must not be above high, got ", low, " and ", high));
      }
      break;
    }
    case InitializerConfig::kNormal:
      problems->Finite(prefix + "normal.mean", initializer.normal().mean());
      problems->NotNegative(prefix + "normal.stddev", initializer.normal().stddev());
      break;
    case InitializerConfig::KIND_NOT_SET:
      break;
  }
}

namespace {

template <typename Adagrad>
void CheckAdagrad(const Adagrad& adagrad, const std::string& prefix, Problems* problems) {
  problems->NotNegative(prefix + "initial_accumulator", adagrad.initial_accumulator());
  problems->Positive(prefix + "epsilon", adagrad.epsilon());
}

template <typename Adam>
void CheckAdamConstants(const Adam& adam, const std::string& prefix, Problems* problems) {
  problems->Decay(prefix + "beta1", adam.beta1());
  problems->Decay(prefix + "beta2", adam.beta2());
  problems->Positive(prefix + "epsilon", adam.epsilon());
}

template <typename Momentum>
void CheckMomentum(const Momentum& momentum, const std::string& prefix, Problems* problems) {
  problems->Decay(prefix + "mu", momentum.mu());
  problems->Decay(prefix + "dampening", momentum.dampening());
  if (momentum.dampening() > 0 && momentum.form() == Momentum::RATE_INSIDE) {
    problems->Add(prefix + "dampening", absl::StrCat("needs form RATE_OUTSIDE, got ",
                                                     momentum.dampening(), " with RATE_INSIDE"));
  }
}

// The kinds that tables and the dense network have in common, as far as one of them is set.
//
// An epsilon must be positive here and below: with 0, the first gradient that is zero would divide
// 0 by 0.
template <typename Config>
void CheckCommonKinds(const Config& optimizer, const std::string& prefix, Problems* problems) {
  if (optimizer.has_adagrad()) CheckAdagrad(optimizer.adagrad(), prefix + "adagrad.", problems);
  if (optimizer.has_adam()) CheckAdamConstants(optimizer.adam(), prefix + "adam.", problems);
  if (optimizer.has_momentum()) {
    CheckMomentum(optimizer.momentum(), prefix + "momentum.", problems);
  }
  if (optimizer.has_nesterov()) problems->Decay(prefix + "nesterov.mu", optimizer.nesterov().mu());
  if (optimizer.has_rmsprop()) {
    problems->Decay(prefix + "rmsprop.rho", optimizer.rmsprop().rho());
    problems->Positive(prefix + "rmsprop.epsilon", optimizer.rmsprop().epsilon());
    problems->Decay(prefix + "rmsprop.momentum", optimizer.rmsprop().momentum());
  }
  if (optimizer.has_adadelta()) {
    problems->Decay(prefix + "adadelta.rho", optimizer.adadelta().rho());
    problems->Positive(prefix + "adadelta.epsilon", optimizer.adadelta().epsilon());
  }
  if (optimizer.has_amsgrad()) {
    CheckAdamConstants(optimizer.amsgrad(), prefix + "amsgrad.", problems);
  }
  if (optimizer.has_adamw()) {
    CheckAdamConstants(optimizer.adamw(), prefix + "adamw.", problems);
    problems->NotNegative(prefix + "adamw.weight_decay", optimizer.adamw().weight_decay());
  }
  if (optimizer.has_ftrl()) {
    problems->Positive(prefix + "ftrl.beta", optimizer.ftrl().beta());
    problems->NotNegative(prefix + "ftrl.lambda1", optimizer.ftrl().lambda1());
    problems->NotNegative(prefix + "ftrl.lambda2", optimizer.ftrl().lambda2());
    problems->NotNegative(prefix + "ftrl.initial_accumulator",
                          optimizer.ftrl().initial_accumulator());
  }
  if (optimizer.has_ftml()) CheckAdamConstants(optimizer.ftml(), prefix + "ftml.", problems);
}

void CheckParameterSettings(const ParameterSettings& settings, const std::string& prefix,
                            Problems* problems) {
  if (settings.pattern().empty()) {
    problems->Add(prefix + "pattern", "is needed: the names of parameters, such as deep/*");
  }
  problems->NotNegative(prefix + "learning_rate_factor", settings.learning_rate_factor());
  problems->NotNegative(prefix + "l2", settings.l2());
  problems->NotNegative(prefix + "l1", settings.l1());
  problems->NotNegative(prefix + "weight_decay", settings.weight_decay());
}

}  // namespace

void CheckSparseOptimizer(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                          Problems* problems) {
  problems->Positive(prefix + "learning_rate", optimizer.learning_rate());
  CheckCommonKinds(optimizer, prefix, problems);
  if (optimizer.has_rowwise_adagrad()) {
    CheckAdagrad(optimizer.rowwise_adagrad(), prefix + "rowwise_adagrad.", problems);
  }
  if (optimizer.has_sgd_l1()) {
    problems->NotNegative(prefix + "sgd_l1.l1", optimizer.sgd_l1().l1());
  }
  if (optimizer.has_decayed_adagrad()) {
    CheckAdagrad(optimizer.decayed_adagrad(), prefix + "decayed_adagrad.", problems);
    problems->Decay(prefix + "decayed_adagrad.decay", optimizer.decayed_adagrad().decay());
  }
}

void CheckDenseOptimizer(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                         Problems* problems) {
  problems->Positive(prefix + "learning_rate", optimizer.learning_rate());
  problems->NotNegative(prefix + "l2", optimizer.l2());
  CheckSchedule(optimizer.learning_rate_schedule(), prefix + "learning_rate_schedule.", problems);
  CheckCommonKinds(optimizer, prefix, problems);
  for (int i = 0; i < optimizer.parameters_size(); ++i) {
    CheckParameterSettings(optimizer.parameters(i), absl::StrCat(prefix, "parameters[", i, "]."),
                           problems);
  }
  problems->Decay(prefix + "averaged_weights.decay", optimizer.averaged_weights().decay());
}

void CheckCheckpoint(const CheckpointConfig& checkpoint, const std::string& prefix,
                     Problems* problems) {
  problems->NotNegative(prefix + "every_seconds", checkpoint.every_seconds());
  problems->Range<int64_t>(prefix + "every_steps", checkpoint.every_steps(), 0, kMaxSteps);
  // The newest cut is never removed: a generation that begins may be reading it.
  problems->Range(prefix + "keep", checkpoint.keep(), 1, 1000000);
  problems->Range<int64_t>(prefix + "copy_bytes", checkpoint.copy_bytes(), 0, int64_t{1} << 50);
  problems->Range<double>(prefix + "limit_seconds", checkpoint.limit_seconds(), 1, 86400);
}

}  // namespace satrap
