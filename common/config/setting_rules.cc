#include "common/config/setting_rules.h"

#include "absl/strings/str_cat.h"
#include "proto/optimizer.pb.h"

namespace satrap {
namespace {

void CheckOrder(const InitializerConfig::Uniform& uniform, const std::string& prefix,
                Problems* problems) {
  if (!(uniform.low() > uniform.high())) return;  // NaN is out of range already
  problems->Add(prefix + "uniform", absl::StrCat("low must not be above high, got ", uniform.low(),
                                                 " and ", uniform.high()));
}

void CheckForm(const OptimizerConfig::Momentum& momentum, const std::string& prefix,
               Problems* problems) {
  if (momentum.dampening() > 0 && momentum.form() == OptimizerConfig::Momentum::RATE_INSIDE) {
    problems->Add(
        prefix + "momentum.dampening",
        absl::StrCat("needs form RATE_OUTSIDE, got ", momentum.dampening(), " with RATE_INSIDE"));
  }
}

void CheckSegment(const TableConfig& table, const SegmentConfig& segment, const std::string& path,
                  Problems* problems) {
  CheckOrder(segment.initializer().uniform(), path + "initializer.", problems);
  CheckForm(segment.optimizer().momentum(), path + "optimizer.", problems);
  if (segment.l2_mode() == SegmentConfig::DENSE && table.semantics() != TableConfig::GLOBAL) {
    problems->Add(path + "l2_mode", absl::StrCat("DENSE needs semantics GLOBAL, got ",
                                                 TableConfig::Semantics_Name(table.semantics())));
  }
  if (!segment.has_cow_clip()) return;
  if (segment.gradient_clip_norm() > 0) {
    problems->Add(path + "gradient_clip_norm",
                  absl::StrCat("must be 0 with cow_clip, got ", segment.gradient_clip_norm()));
  }
  // CowClip's limit assumes that gradients are means over the batch.
  if (table.normalisation() != GLOBAL_BATCH) {
    problems->Add(path + "cow_clip", absl::StrCat("needs normalisation GLOBAL_BATCH, got ",
                                                  Normalisation_Name(table.normalisation())));
  }
}

}  // namespace

void CheckRules(const TableConfig& table, const std::string& prefix, Problems* problems) {
  if (table.segments_size() == 0) problems->Add(prefix + "segments", "must not be empty");
  for (int i = 0; i < table.segments_size(); ++i) {
    CheckSegment(table, table.segments(i), absl::StrCat(prefix, "segments[", i, "]."), problems);
  }
}

void CheckRules(const InitializerConfig& initializer, const std::string& prefix,
                Problems* problems) {
  CheckOrder(initializer.uniform(), prefix, problems);
}

void CheckRules(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                Problems* problems) {
  CheckForm(optimizer.momentum(), prefix, problems);
}

void CheckRules(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                Problems* problems) {
  CheckForm(optimizer.momentum(), prefix, problems);
  for (int i = 0; i < optimizer.parameters_size(); ++i) {
    if (!optimizer.parameters(i).pattern().empty()) continue;
    problems->Add(absl::StrCat(prefix, "parameters[", i, "].pattern"),
                  "is needed: it names the parameters, such as deep/*");
  }
}

}  // namespace satrap
