#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/config/validate_job.h"

namespace satrap {
namespace {

void ValidateOptimizer(const SparseOptimizerConfig& optimizer, const std::string& path,
                       Problems* problems) {
  problems->Positive(absl::StrCat(path, ".learning_rate"), optimizer.learning_rate());
  switch (optimizer.kind_case()) {
    case SparseOptimizerConfig::kAdagrad:
      problems->NotNegative(absl::StrCat(path, ".adagrad.initial_accumulator"),
                            optimizer.adagrad().initial_accumulator());
      problems->Positive(absl::StrCat(path, ".adagrad.epsilon"), optimizer.adagrad().epsilon());
      break;
    case SparseOptimizerConfig::kRowwiseAdagrad:
      problems->NotNegative(absl::StrCat(path, ".rowwise_adagrad.initial_accumulator"),
                            optimizer.rowwise_adagrad().initial_accumulator());
      problems->Positive(absl::StrCat(path, ".rowwise_adagrad.epsilon"),
                         optimizer.rowwise_adagrad().epsilon());
      break;
    case SparseOptimizerConfig::kAdam:
      problems->Decay(absl::StrCat(path, ".adam.beta1"), optimizer.adam().beta1());
      problems->Decay(absl::StrCat(path, ".adam.beta2"), optimizer.adam().beta2());
      problems->Positive(absl::StrCat(path, ".adam.epsilon"), optimizer.adam().epsilon());
      break;
    case SparseOptimizerConfig::kSgd:
    case SparseOptimizerConfig::KIND_NOT_SET:
      break;
  }
}

void ValidateInitializer(const InitializerConfig& initializer, const std::string& path,
                         Problems* problems) {
  switch (initializer.kind_case()) {
    case InitializerConfig::kConstant:
      problems->Finite(absl::StrCat(path, ".constant.value"), initializer.constant().value());
      break;
    case InitializerConfig::kUniform: {
      const float low = initializer.uniform().low();
      const float high = initializer.uniform().high();
      problems->Finite(absl::StrCat(path, ".uniform.low"), low);
      problems->Finite(absl::StrCat(path, ".uniform.high"), high);
      if (low > high) {
        problems->Add(absl::StrCat(path, ".uniform"),
                      absl::StrCat("low must not be above high, got ", low, " and ", high));
      }
      break;
    }
    case InitializerConfig::kNormal:
      problems->Finite(absl::StrCat(path, ".normal.mean"), initializer.normal().mean());
      problems->NotNegative(absl::StrCat(path, ".normal.stddev"), initializer.normal().stddev());
      break;
    case InitializerConfig::KIND_NOT_SET:
      break;
  }
}

void ValidateSegments(const TableConfig& table, const std::string& path, Problems* problems) {
  if (table.segments_size() == 0) problems->Add(path, "needs at least one segment");
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < table.segments_size(); ++i) {
    const SegmentConfig& segment = table.segments(i);
    const std::string segment_path = absl::StrCat(path, ".segments[", i, "]");
    if (segment.name().empty() || !names.insert(segment.name()).second) {
      problems->Add(segment_path,
                    absl::StrCat("needs a name of its own, got '", segment.name(), "'"));
    }
    problems->Range(absl::StrCat(segment_path, ".dim"), segment.dim(), 1, 4096);
    ValidateInitializer(segment.initializer(), absl::StrCat(segment_path, ".initializer"),
                        problems);
    ValidateOptimizer(segment.optimizer(), absl::StrCat(segment_path, ".optimizer"), problems);
  }
}

}  // namespace

void ValidateTables(const JobConfig& job, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_set<uint32_t> ids;
  for (int i = 0; i < job.tables_size(); ++i) {
    const TableConfig& table = job.tables(i);
    const std::string path = absl::StrCat("tables[", i, "]");
    if (table.name().empty() || !names.insert(table.name()).second) {
      problems->Add(path, absl::StrCat("needs a name of its own, got '", table.name(), "'"));
    }
    if (!table.has_id()) problems->Add(absl::StrCat(path, ".id"), "must be given");
    problems->Range<uint32_t>(absl::StrCat(path, ".id"), table.id(), 0, 65535);
    if (!ids.insert(table.id()).second) {
      problems->Add(absl::StrCat(path, ".id"), absl::StrCat(table.id(), " is taken"));
    }
    ValidateSegments(table, path, problems);
    problems->NotNegative(absl::StrCat(path, ".l2"), table.l2());
    problems->NotNegative(absl::StrCat(path, ".gradient_clip_norm"), table.gradient_clip_norm());
    problems->NotNegative(absl::StrCat(path, ".weight_bound"), table.weight_bound());
    problems->Range<int64_t>(absl::StrCat(path, ".reserve_rows"), table.reserve_rows(), 0,
                             int64_t{1} << 40);
    problems->Range<int64_t>(absl::StrCat(path, ".learning_rate_schedule.warmup_steps"),
                             table.learning_rate_schedule().warmup_steps(), 0, int64_t{1} << 60);
  }
}

}  // namespace satrap
