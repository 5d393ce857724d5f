#include "embedding_ps/checkpoint/row_conversion.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "embedding_ps/optimizer/row_step.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace satrap {
namespace {

// With more segments than this, there are too many combinations of optimizers to try.
constexpr int kMostSegmentsOfAnyOptimizer = 3;

// All combinations of optimizer and L2 mode that the fingerprint of a segment distinguishes.
std::vector<SegmentConfig> Variants() {
  std::vector<SegmentConfig> variants(1);  // no kind: the default
  const google::protobuf::OneofDescriptor* kinds =
      SparseOptimizerConfig::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) {
    SparseOptimizerConfig* optimizer = variants.emplace_back().mutable_optimizer();
    optimizer->GetReflection()->MutableMessage(optimizer, kinds->field(i));
    if (!optimizer->has_rmsprop()) continue;
    SegmentConfig rmsprop = variants.back();
    rmsprop.mutable_optimizer()->mutable_rmsprop()->set_momentum(0.5f);
    variants.push_back(rmsprop);
    rmsprop.mutable_optimizer()->mutable_rmsprop()->set_centred(true);
    variants.push_back(rmsprop);
    rmsprop.mutable_optimizer()->mutable_rmsprop()->clear_momentum();
    variants.push_back(rmsprop);
  }
  const size_t without_l2_step = variants.size();
  for (size_t i = 0; i < without_l2_step; ++i) {
    variants.push_back(variants[i]);
    variants.back().set_l2_mode(SegmentConfig::TOUCHED);
  }
  return variants;
}

void SetOptimizer(const SegmentConfig& variant, SegmentConfig* segment) {
  *segment->mutable_optimizer() = variant.optimizer();
  segment->set_l2_mode(variant.l2_mode());
}

// Whether `fingerprint` is the table's fingerprint, with rows in the form that this build uses or
// in that of older builds.
bool HasFingerprint(const TableConfig& table, uint64_t fingerprint) {
  return TableFingerprint(table) == fingerprint ||
         TableFingerprint(table, RowForm::kFirst) == fingerprint;
}

// Tries all variants for the segments of `*table` from `first` on; the segments before it are
// already set. Returns whether some combination gives the fingerprint.
bool FindOptimizers(const std::vector<SegmentConfig>& variants, uint64_t fingerprint, int first,
                    TableConfig* table) {
  if (first == table->segments_size()) return HasFingerprint(*table, fingerprint);
  return std::any_of(variants.begin(), variants.end(), [&](const SegmentConfig& variant) {
    SetOptimizer(variant, table->mutable_segments(first));
    return FindOptimizers(variants, fingerprint, first + 1, table);
  });
}

// The configuration of the saved table whose rows have `fingerprint`. nullopt if no choice of
// optimizers for its segments gives this fingerprint. `saved` is this run's table, but with the
// saved table's id and semantics.
absl::optional<TableConfig> SavedTableOf(TableConfig saved, uint64_t fingerprint) {
  if (HasFingerprint(saved, fingerprint)) return saved;
  const std::vector<SegmentConfig> variants = Variants();
  for (const SegmentConfig& variant : variants) {
    for (SegmentConfig& segment : *saved.mutable_segments()) SetOptimizer(variant, &segment);
    if (HasFingerprint(saved, fingerprint)) return saved;
  }
  if (saved.segments_size() > kMostSegmentsOfAnyOptimizer ||
      !FindOptimizers(variants, fingerprint, 0, &saved)) {
    return absl::nullopt;
  }
  return saved;
}

absl::optional<TableConfig> SavedTableOf(const TableConfig& config, uint32_t saved_id,
                                         uint64_t fingerprint) {
  TableConfig saved = config;
  saved.set_id(saved_id);
  if (auto found = SavedTableOf(saved, fingerprint); found.has_value()) return found;
  const bool was_global = config.semantics() != TableConfig::GLOBAL;
  saved.set_semantics(was_global ? TableConfig::GLOBAL : TableConfig::LAZY);
  for (SegmentConfig& segment : *saved.mutable_segments()) {
    // Semantics LAZY does not allow DENSE, but OCCURRENCE gives rows of the same form.
    if (segment.l2_mode() == SegmentConfig::DENSE) segment.set_l2_mode(SegmentConfig::OCCURRENCE);
  }
  return SavedTableOf(std::move(saved), fingerprint);
}

// Whether both segments keep the same state. The fingerprint of a table with one segment covers
// only that segment's state, so equal fingerprints mean equal states.
bool KeepStatesAlike(const SegmentConfig& a, const SegmentConfig& b) {
  TableConfig of_a, of_b;
  *of_a.add_segments() = a;
  *of_b.add_segments() = b;
  return TableFingerprint(of_a) == TableFingerprint(of_b);
}

// Renumbers the last step of a row for this run, whose step 0 comes right after the `steps` steps
// of the other run. A row without a last step gets the step before the other run's step 0
// (row_step.h).
float CountedAnew(float encoded, int64_t steps) {
  const int64_t last = (encoded == 0 ? -1 : DecodedStep(encoded)) - steps;
  return EncodedStep((last % kRowStepPeriod + kRowStepPeriod) % kRowStepPeriod);
}

}  // namespace

bool RowConversion::IsNeeded(const EmbeddingTable& table, uint64_t fingerprint) {
  if (TableFingerprint(table.config()) != fingerprint) return true;
  for (int i = 0; i < table.config().segments_size(); ++i) {
    const SegmentConfig& segment = table.config().segments(i);
    const StateFloats floats = StateFloatsOf(segment, table.layout().segments()[i]);
    if (floats.has_l2_step || floats.has_last_step || floats.optimizer_has_last_step) return true;
  }
  return false;
}

absl::optional<RowConversion> RowConversion::Find(const EmbeddingTable& table, uint32_t saved_id,
                                                  uint64_t fingerprint, uint64_t steps) {
  const TableConfig& config = table.config();
  const absl::optional<TableConfig> saved = SavedTableOf(config, saved_id, fingerprint);
  if (!saved.has_value()) return absl::nullopt;
  auto saved_table = RowUpdater::Create(*saved, /*seed=*/1, NewSparseOptimizer);
  auto new_table = RowUpdater::Create(config, /*seed=*/1, NewSparseOptimizer);
  if (!saved_table.ok() || !new_table.ok()) return absl::nullopt;
  const RowLayout& from = saved_table->layout();
  const RowLayout& to = new_table->layout();
  RowConversion conversion;
  conversion.SetFormat(*saved, from, fingerprint, steps);
  conversion.steps_ = static_cast<int64_t>(steps);
  conversion.initial_.resize(to.num_floats());
  new_table->InitRow(/*key=*/0, conversion.initial_.data());
  conversion.copies_.push_back({0, 0, static_cast<size_t>(to.num_values())});
  for (int i = 0; i < config.segments_size(); ++i) {
    if (!KeepStatesAlike(config.segments(i), saved->segments(i))) continue;
    const RowLayout::Segment& state = from.segments()[i];
    conversion.CopyState(config.segments(i), state,
                         StateFloatsOf(saved->segments(i), state).has_last_step, to.segments()[i]);
  }
  return conversion;
}

absl::optional<RowConversion> RowConversion::OfFirstForm(const EmbeddingTable& table,
                                                         uint64_t fingerprint, uint64_t steps) {
  if (TableFingerprint(table.config(), RowForm::kFirst) != fingerprint) return absl::nullopt;
  RowConversion conversion;
  conversion.SetFormat(table.config(), table.layout(), fingerprint, steps);
  const auto floats = static_cast<size_t>(table.layout().num_floats());
  conversion.initial_.resize(floats);
  conversion.copies_.push_back({0, 0, floats});
  return conversion;
}

void RowConversion::SetFormat(const TableConfig& saved, const RowLayout& layout,
                              uint64_t fingerprint, uint64_t steps) {
  from_floats_ = static_cast<size_t>(layout.num_floats());
  format_ = {fingerprint, from_floats_};
  if (TableFingerprint(saved) == fingerprint) return;
  upgrade_.emplace(saved, layout, static_cast<int64_t>(steps));
  format_.num_floats = upgrade_->first_floats();
}

void RowConversion::CopyState(const SegmentConfig& segment, const RowLayout::Segment& from,
                              bool from_has_last_step, const RowLayout::Segment& to) {
  const StateFloats floats = StateFloatsOf(segment, to);
  const auto from_state = static_cast<size_t>(from.state_offset);
  const auto to_state = static_cast<size_t>(to.state_offset);
  const auto of_optimizer = static_cast<size_t>(floats.optimizer);
  copies_.push_back({from_state, to_state, of_optimizer});
  if (floats.optimizer_has_last_step) last_steps_.push_back(to_state + of_optimizer - 1);
  // If the saved rows keep no last step, their state is assumed to be up to date at the end of the
  // other run.
  if (!from_has_last_step) return;
  const size_t from_last_step = from_state + from.state_size - 1;
  if (!floats.has_last_step) {
    auto optimizer = NewSparseOptimizer(segment.optimizer());
    CHECK_OK(optimizer.status());  // a table was made with it
    ageing_.push_back({*std::move(optimizer), from_last_step, to_state, of_optimizer});
    return;
  }
  last_steps_.push_back(to_state + to.state_size - 1);
  copies_.push_back({from_last_step, last_steps_.back(), 1});
}

std::vector<float> RowConversion::Convert(absl::Span<const float> saved) const {
  const size_t rows = saved.size() / format_.num_floats;
  std::vector<float> converted(rows * initial_.size());
  std::vector<float> upgraded(upgrade_.has_value() ? from_floats_ : 0);
  for (size_t row = 0; row < rows; ++row) {
    const float* from = saved.data() + row * format_.num_floats;
    if (upgrade_.has_value()) {
      upgrade_->Upgrade(from, upgraded.data());
      from = upgraded.data();
    }
    float* const to = converted.data() + row * initial_.size();
    std::copy(initial_.begin(), initial_.end(), to);
    for (const Copy& copy : copies_) std::copy_n(from + copy.from, copy.floats, to + copy.to);
    for (const Ageing& ageing : ageing_) {
      const int64_t missed = steps_ == 0 ? 0 : StepsPassed(from[ageing.last_step], steps_ - 1);
      if (missed == 0) continue;
      ageing.optimizer->AgeState(missed, absl::MakeSpan(to + ageing.state, ageing.floats));
    }
    for (const size_t at : last_steps_) to[at] = CountedAnew(to[at], steps_);
  }
  return converted;
}

}  // namespace satrap
