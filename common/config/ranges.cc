#include "common/config/ranges.h"

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

constexpr int kMaxDim = 4096;

}  // namespace

void CheckTable(const TableConfig& table, const std::string& prefix, Problems* problems) {
  problems->Range<uint32_t>(prefix + "id", table.id(), 0, 65535);
  if (table.segments_size() == 0) problems->Add(prefix + "segments", "must not be empty");
  for (int i = 0; i < table.segments_size(); ++i) {
    const SegmentConfig& segment = table.segments(i);
    const std::string path = absl::StrCat(prefix, "segments[", i, "].");
    problems->Range(path + "dim", segment.dim(), 1, kMaxDim);
    CheckInitializer(segment.initializer(), path + "initializer.", problems);
    CheckSparseOptimizer(segment.optimizer(), path + "optimizer.", problems);
  }
  problems->Range<int64_t>(prefix + "learning_rate_schedule.warmup_steps",
                           table.learning_rate_schedule().warmup_steps(), 0, kMaxSteps);
  problems->NotNegative(prefix + "l2", table.l2());
  problems->NotNegative(prefix + "gradient_clip_norm", table.gradient_clip_norm());
  problems->NotNegative(prefix + "weight_bound", table.weight_bound());
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

// An epsilon must be positive here and below: with 0, the first gradient that is zero would divide
// 0 by 0.
void CheckSparseOptimizer(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                          Problems* problems) {
  problems->Positive(prefix + "learning_rate", optimizer.learning_rate());
  switch (optimizer.kind_case()) {
    case SparseOptimizerConfig::kAdagrad:
      problems->NotNegative(prefix + "adagrad.initial_accumulator",
                            optimizer.adagrad().initial_accumulator());
      problems->Positive(prefix + "adagrad.epsilon", optimizer.adagrad().epsilon());
      break;
    case SparseOptimizerConfig::kRowwiseAdagrad:
      problems->NotNegative(prefix + "rowwise_adagrad.initial_accumulator",
                            optimizer.rowwise_adagrad().initial_accumulator());
      problems->Positive(prefix + "rowwise_adagrad.epsilon", optimizer.rowwise_adagrad().epsilon());
      break;
    case SparseOptimizerConfig::kAdam:
      problems->Decay(prefix + "adam.beta1", optimizer.adam().beta1());
      problems->Decay(prefix + "adam.beta2", optimizer.adam().beta2());
      problems->Positive(prefix + "adam.epsilon", optimizer.adam().epsilon());
      break;
    case SparseOptimizerConfig::kSgd:
    case SparseOptimizerConfig::KIND_NOT_SET:
      break;
  }
}

void CheckDenseOptimizer(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                         Problems* problems) {
  problems->Positive(prefix + "learning_rate", optimizer.learning_rate());
  problems->NotNegative(prefix + "l2", optimizer.l2());
  problems->Range<int64_t>(prefix + "warmup_steps", optimizer.warmup_steps(), 0, kMaxSteps);
  switch (optimizer.kind_case()) {
    case DenseOptimizerConfig::kAdagrad:
      problems->NotNegative(prefix + "adagrad.initial_accumulator",
                            optimizer.adagrad().initial_accumulator());
      problems->Positive(prefix + "adagrad.epsilon", optimizer.adagrad().epsilon());
      break;
    case DenseOptimizerConfig::kAdam:
      problems->Decay(prefix + "adam.beta1", optimizer.adam().beta1());
      problems->Decay(prefix + "adam.beta2", optimizer.adam().beta2());
      problems->Positive(prefix + "adam.epsilon", optimizer.adam().epsilon());
      break;
    case DenseOptimizerConfig::kSgd:
    case DenseOptimizerConfig::KIND_NOT_SET:
      break;
  }
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
