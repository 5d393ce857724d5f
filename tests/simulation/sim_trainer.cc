#include "tests/simulation/sim_trainer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/rpc/payload.h"

namespace satrap::simulation {
namespace {

enum Feature { kCounter = 0, kSingle = 1, kSeveral = 2, kNumFeatures = 3 };

constexpr double kInitialValue = 1;

template <typename T>
std::vector<T> Copy(const Buffer& payload, const Section& section, uint64_t count) {
  const auto view = rpc::SectionView<T>(payload, section, count, "simulation");
  CHECK_OK(view.status());
  return std::vector<T>(view->begin(), view->end());
}

std::vector<float> CopyWire(const Buffer& payload, const Section& section, WireDtype dtype,
                            uint64_t count) {
  const auto view = rpc::WireView(payload, section, dtype, count, "simulation");
  CHECK_OK(view.status());
  std::vector<float> values(count);
  rpc::DecodeWire(*view, absl::MakeSpan(values));
  return values;
}

// Which of the part's TableRows a feature's indices refer to: counters first, as in the job.
int TableRowsOf(int feature) { return feature == kCounter ? 0 : 1; }

}  // namespace

class SimTraining::Trainer final : public StepTrainer {
 public:
  Trainer(SimTraining* training, int rank) : training_(training), rank_(rank) {}

  void JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    Joiner joiner;
    joiner.there = true;
    joiner.step = step;
    joiner.part = std::move(part);
    joiner.flags = flags;
    joiner.done = std::move(done);
    training_->Join(rank_, std::move(joiner));
  }

  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override {
    const Decoded decoded = training_->Decode(part);
    training_->CheckCounters(rank_, decoded, /*exact=*/true);
    const PartId& id = part.header.part().id();
    for (const SimSample& sample : decoded.samples) {
      ++training_->scored_[{id.stream(), id.epoch()}][sample.id];
    }
    training_->loop_->Post([done = std::move(done)]() mutable { done(absl::OkStatus()); });
  }

  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    training_->Barrier(rank_, [done = std::move(done)]() mutable {
      MetricValues values;
      values.set_auc(0.5);
      values.set_logloss(0.7);
      done(values);
    });
  }

  void SaveModel(uint64_t, const MetricValues&,
                 absl::AnyInvocable<void(absl::Status)> done) override {
    training_->loop_->PostAfter(500,
                                [done = std::move(done)]() mutable { done(absl::OkStatus()); });
  }

  void RestoreModel(absl::AnyInvocable<void(absl::Status)> done) override {
    training_->Barrier(rank_, [done = std::move(done)]() mutable { done(absl::OkStatus()); });
  }

 private:
  SimTraining* const training_;
  const int rank_;
};

SimTraining::SimTraining(const WorldShape& shape, SimLoop* loop,
                         std::function<void(std::string)> violated)
    : shape_(shape),
      loop_(loop),
      violated_(std::move(violated)),
      joiners_(shape.ranks),
      barrier_(shape.ranks),
      at_barrier_(shape.ranks),
      pushes_(shape.ranks) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    trainers_.push_back(std::make_unique<Trainer>(this, rank));
  }
}

SimTraining::~SimTraining() = default;

StepTrainer* SimTraining::trainer(int rank) { return trainers_[rank].get(); }

void SimTraining::Join(int rank, Joiner joiner) {
  if (joiners_[rank].there) violated_(absl::StrCat("rank ", rank, " joined a step twice"));
  joiners_[rank] = std::move(joiner);
  for (const Joiner& other : joiners_) {
    if (!other.there) return;
    if (other.step != joiners_[rank].step) {
      violated_(absl::StrCat("ranks join steps ", other.step, " and ", joiners_[rank].step));
    }
  }
  FinishStep();
}

SimTraining::Decoded SimTraining::Decode(const PartInput& part) {
  const NextBatchAnswerHeader& header = part.header;
  const uint32_t samples = header.part().samples();
  Decoded decoded;
  const std::vector<float> ids = Copy<float>(part.payload, header.part().numeric_values(), samples);
  for (const float id : ids) {
    decoded.samples.push_back(SampleOfId(shape_, static_cast<uint64_t>(id)));
  }
  // "counters" and "rows" both have a ROWS feature, so both are there.
  CHECK(header.tables_size() == 2);
  for (const TableRows& table : header.tables()) {
    decoded.rows_of_table.push_back(CopyWire(part.payload, table.values(), header.dtype(),
                                             table.num_rows() * table.row_values()));
  }
  CHECK(header.features_size() == kNumFeatures);
  for (int f = 0; f < kNumFeatures; ++f) {
    const FeatureRows& feature = header.features(f);
    const int row_values = f == kCounter ? shape_.ranks : kRowValues;
    std::vector<float> pooled(samples * row_values);
    std::vector<uint32_t> indices, offsets;
    if (feature.has_pooled()) {
      pooled = CopyWire(part.payload, feature.pooled(), header.dtype(), samples * row_values);
    } else {
      indices = Copy<uint32_t>(part.payload, feature.indices(), feature.num_ids());
      if (feature.has_offsets()) {
        offsets = Copy<uint32_t>(part.payload, feature.offsets(), samples + 1);
      } else {
        for (uint32_t i = 0; i <= samples; ++i) offsets.push_back(i);
      }
      const std::vector<float>& rows = decoded.rows_of_table[TableRowsOf(f)];
      for (uint32_t s = 0; s < samples; ++s) {
        for (uint32_t i = offsets[s]; i < offsets[s + 1]; ++i) {
          for (int d = 0; d < row_values; ++d) {
            pooled[s * row_values + d] += rows[indices[i] * row_values + d];
          }
        }
      }
    }
    decoded.indices.push_back(std::move(indices));
    decoded.offsets.push_back(std::move(offsets));
    decoded.pooled.push_back(std::move(pooled));
  }
  return decoded;
}

// Every sample holds the counter row, whose value r is the number of rank r's pushes that had been
// applied when the part was looked up.
void SimTraining::CheckCounters(int rank, const Decoded& decoded, bool exact) {
  if (decoded.samples.empty()) return;
  for (int r = 0; r < shape_.ranks; ++r) {
    const double seen = decoded.pooled[kCounter][r];
    const auto made = static_cast<double>(pushes_[r]);
    if (exact && seen != made) {
      violated_(absl::StrCat("a lookup saw ", seen, " of ", made, " pushes of rank ", r));
    }
    if (seen > made) {
      violated_(absl::StrCat("a lookup saw ", seen, " pushes of rank ", r, ", which made ", made));
    }
    if (r == rank && seen < made - (shape_.max_staleness - 1)) {
      violated_(absl::StrCat("a lookup of rank ", r, " saw ", seen, " of its ", made,
                             " pushes, with max_staleness ", shape_.max_staleness));
    }
  }
}

PartGradients SimTraining::MakeGradients(int rank, const PartInput& part, const Decoded& decoded,
                                         float weight) {
  const NextBatchAnswerHeader& header = part.header;
  const size_t samples = decoded.samples.size();
  std::vector<std::vector<float>> row_gradients;
  for (const auto& rows : decoded.rows_of_table) row_gradients.emplace_back(rows.size());
  std::vector<float> pooled_gradient;
  // One more applied push of this rank: learning rate 1, normalised by the global weight.
  if (samples > 0) row_gradients[0][decoded.indices[kCounter][0] * shape_.ranks + rank] = -weight;
  for (int f = kSingle; f <= kSeveral; ++f) {
    const bool rows_feature = !header.features(f).has_pooled();
    if (!rows_feature) pooled_gradient.assign(samples * kRowValues, 0);
    for (size_t s = 0; s < samples; ++s) {
      for (int d = 0; d < kRowValues; ++d) {
        const float gradient = SampleGradient(decoded.samples[s], f - kSingle, d, PullOf(shape_),
                                              decoded.pooled[f][s * kRowValues + d]);
        if (!rows_feature) {
          pooled_gradient[s * kRowValues + d] = gradient;
          continue;
        }
        for (uint32_t i = decoded.offsets[f][s]; i < decoded.offsets[f][s + 1]; ++i) {
          row_gradients[1][decoded.indices[f][i] * kRowValues + d] += gradient;
        }
      }
    }
  }
  PartGradients gradients;
  gradients.header.set_dtype(F32);
  rpc::PayloadBuilder builder;
  for (int t = 0; t < header.tables_size(); ++t) {
    TableGradients* table = gradients.header.add_tables();
    table->set_table(header.tables(t).table());
    table->set_num_rows(header.tables(t).num_rows());
    table->set_row_values(header.tables(t).row_values());
    builder.Reserve(F32, row_gradients[t].size(), table->mutable_gradients());
  }
  if (header.features(kSeveral).has_pooled()) {
    FeatureGradients* feature = gradients.header.add_features();
    feature->set_feature(kSeveral);
    builder.Reserve(F32, pooled_gradient.size(), feature->mutable_gradients());
  }
  builder.Allocate();
  for (int t = 0; t < header.tables_size(); ++t) {
    const auto to = builder.Fill<float>(gradients.header.tables(t).gradients());
    std::copy(row_gradients[t].begin(), row_gradients[t].end(), to.begin());
  }
  if (gradients.header.features_size() > 0) {
    const auto to = builder.Fill<float>(gradients.header.features(0).gradients());
    std::copy(pooled_gradient.begin(), pooled_gradient.end(), to.begin());
  }
  gradients.payload = builder.Take();
  return gradients;
}

void SimTraining::FinishStep() {
  StepResult shared;
  std::vector<Decoded> decoded(shape_.ranks);
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    const Joiner& joiner = joiners_[rank];
    shared.idle_ranks += joiner.flags.idle ? 1 : 0;
    shared.stop = shared.stop || joiner.flags.stop;
    if (!joiner.part.has_value()) continue;
    decoded[rank] = Decode(*joiner.part);
    CheckCounters(rank, decoded[rank], shape_.ordered);
    for (const SimSample& sample : decoded[rank].samples) {
      shared.samples += 1;
      shared.weight += sample.weight;
      ++trained_[sample.id];
    }
  }
  std::vector<Joiner> joiners(shape_.ranks);
  joiners.swap(joiners_);
  const bool counts = shared.weight > 0;
  const bool finite = !counts || IsFiniteStep(shape_, counted_steps_);
  counted_steps_ += counts ? 1 : 0;
  non_finite_steps_ += finite ? 0 : 1;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    StepResult result;
    result.samples = shared.samples;
    result.weight = shared.weight;
    result.idle_ranks = shared.idle_ranks;
    result.stop = shared.stop;
    result.finite = finite;
    if (counts && finite && joiners[rank].part.has_value()) {
      result.gradients = MakeGradients(rank, *joiners[rank].part, decoded[rank], shared.weight);
      if (!decoded[rank].samples.empty()) ++pushes_[rank];
      if (!shape_.ordered) ExpectRows(decoded[rank], shared.weight);
    }
    loop_->PostAfter(static_cast<int64_t>(loop_->random()->Below(300)),
                     [done = std::move(joiners[rank].done), result = std::move(result)]() mutable {
                       done(std::move(result));
                     });
  }
}

void SimTraining::ExpectRows(const Decoded& decoded, float weight) {
  for (const SimSample& sample : decoded.samples) {
    for (int f = 0; f < 2; ++f) {
      std::vector<uint64_t> keys;
      if (f == 0) keys.push_back(SingleKey(sample.single));
      if (f == 1) {
        for (const uint64_t id : sample.several) keys.push_back(SeveralKey(id));
      }
      for (const uint64_t key : keys) {
        auto& row = expected_rows_.emplace(key, std::vector<double>(kRowValues, kInitialValue))
                        .first->second;
        for (int d = 0; d < kRowValues; ++d) {
          row[d] -= kRowLearningRate * SampleGradient(sample, f, d, 0, 0) / weight;
        }
      }
    }
  }
}

void SimTraining::Barrier(int rank, absl::AnyInvocable<void()> done) {
  if (at_barrier_[rank]) violated_(absl::StrCat("rank ", rank, " is at the barrier already"));
  at_barrier_[rank] = true;
  barrier_[rank] = std::move(done);
  for (const bool there : at_barrier_) {
    if (!there) return;
  }
  for (int r = 0; r < shape_.ranks; ++r) {
    at_barrier_[r] = false;
    loop_->Post(std::move(barrier_[r]));
  }
}

}  // namespace satrap::simulation
