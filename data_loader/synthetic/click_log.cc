#include "data_loader/synthetic/click_log.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/random.h"

namespace satrap {
namespace {

// What a random number is used for. Each purpose has its own range of counters, so that, for
// example, the planted weights do not depend on the number of features.
enum Purpose : uint64_t {
  kRecord = 1,
  kLinearWeight = 2,
  kFactor = 3,
  kNumericWeight = 4,
  kCalibration = 5,
};

constexpr uint64_t kTabulatedVocabulary = 1 << 16;
constexpr uint64_t kCalibrationRecords = 20000;
// A prime, and therefore coprime to every smaller vocabulary size. So multiplication by it permutes
// the ids.
constexpr uint64_t kScatter = 2654435761;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The sum, and the sum of squares, of one part of the logit over the calibration records.
struct Moments {
  double sum = 0;
  double squares = 0;
  void Add(double x) {
    sum += x;
    squares += x * x;
  }
  double Mean() const { return sum / kCalibrationRecords; }
  // The factor that scales the part to the standard deviation `stddev`; 0 if the part is constant.
  double Scale(double stddev) const {
    const double variance = squares / kCalibrationRecords - Mean() * Mean();
    return variance > 1e-12 ? stddev / std::sqrt(variance) : 0;
  }
};

}  // namespace

ZipfIds::ZipfIds(uint64_t vocabulary, double exponent)
    : vocabulary_(vocabulary),
      logarithmic_(std::abs(exponent - 1) < 1e-9),
      range_(logarithmic_ ? std::log(static_cast<double>(vocabulary))
                          : std::pow(static_cast<double>(vocabulary), 1 - exponent) - 1),
      power_(logarithmic_ ? 0 : 1 / (1 - exponent)) {}

uint64_t ZipfIds::Id(double uniform) const {
  const double x =
      logarithmic_ ? std::exp(uniform * range_) : std::pow(1 + uniform * range_, power_);
  const uint64_t rank = std::min(static_cast<uint64_t>(x), vocabulary_);
  const uint64_t scattered = (rank == 0 ? 0 : rank - 1) * kScatter;
  return scattered % vocabulary_;
}

ClickLog::ClickLog(const SyntheticFormat& format)
    : format_(format), random_labels_(format.random_label_rate() >= 0) {
  for (const int64_t vocabulary : format_.vocabulary_sizes()) {
    zipf_.emplace_back(static_cast<uint64_t>(vocabulary), format_.zipf_exponent());
  }
  if (random_labels_) return;
  linear_weights_.resize(zipf_.size());
  factors_.resize(static_cast<size_t>(format_.interacting_features()));
  const size_t dim = static_cast<size_t>(format_.interaction_dim());
  std::vector<double> scratch(dim);
  // LinearWeight and Factors use a feature's table if there is one, so a table must be complete
  // before it is stored.
  for (size_t f = 0; f < zipf_.size(); ++f) {
    const uint64_t vocabulary = static_cast<uint64_t>(format_.vocabulary_sizes(f));
    if (vocabulary > kTabulatedVocabulary) continue;
    std::vector<double> weights;
    std::vector<double> factors;
    for (uint64_t id = 0; id < vocabulary; ++id) {
      weights.push_back(LinearWeight(static_cast<int>(f), id));
      if (f >= factors_.size()) continue;
      const double* of_id = Factors(static_cast<int>(f), id, scratch.data());
      factors.insert(factors.end(), of_id, of_id + dim);
    }
    linear_weights_[f] = std::move(weights);
    if (f < factors_.size()) factors_[f] = std::move(factors);
  }
  for (int k = 0; k < format_.numeric_features(); ++k) {
    numeric_weights_.push_back(
        NormalDouble(RandomBits(format_.seed(), kNumericWeight), static_cast<uint64_t>(k)));
  }
  Calibrate();
}

double ClickLog::LinearWeight(int feature, uint64_t id) const {
  const std::vector<double>& table = linear_weights_[feature];
  if (!table.empty()) return table[id];
  return NormalDouble(RandomBits(format_.seed(), kLinearWeight), static_cast<uint64_t>(feature),
                      id);
}

const double* ClickLog::Factors(int feature, uint64_t id, double* scratch) const {
  const uint64_t dim = static_cast<uint64_t>(format_.interaction_dim());
  const std::vector<double>& table = factors_[feature];
  if (!table.empty()) return table.data() + id * dim;
  for (uint64_t d = 0; d < dim; ++d) {
    scratch[d] = NormalDouble(RandomBits(format_.seed(), kFactor), static_cast<uint64_t>(feature),
                              id * dim + d);
  }
  return scratch;
}

void ClickLog::FillRecord(uint64_t base, uint64_t* ids, float* numerics) const {
  const size_t features = zipf_.size();
  for (size_t f = 0; f < features; ++f) {
    ids[f] = zipf_[f].Id(UniformDouble(RandomBits(base, f)));
  }
  for (int k = 0; k < format_.numeric_features(); ++k) {
    numerics[k] = UniformFloat(RandomBits(base, features + static_cast<uint64_t>(k)));
  }
}

// The interactions are <v_f, v_g> summed over f < g. For each dimension this is (|sum v|^2 - sum
// |v|^2) / 2 (Rendle 2010, the factorization machine's identity).
ClickLog::Parts ClickLog::PartsOf(const uint64_t* ids, const float* numerics) const {
  Parts parts;
  for (size_t f = 0; f < zipf_.size(); ++f) {
    parts.linear += LinearWeight(static_cast<int>(f), ids[f]);
  }
  const size_t dim = static_cast<size_t>(format_.interaction_dim());
  std::vector<double> sums(dim), scratch(dim);
  double squares = 0;
  for (size_t f = 0; f < factors_.size(); ++f) {
    const double* v = Factors(static_cast<int>(f), ids[f], scratch.data());
    for (size_t d = 0; d < dim; ++d) {
      sums[d] += v[d];
      squares += v[d] * v[d];
    }
  }
  for (const double sum : sums) parts.interaction += sum * sum;
  parts.interaction = (parts.interaction - squares) / 2;
  for (size_t k = 0; k < numeric_weights_.size(); ++k) {
    parts.numeric += numeric_weights_[k] * static_cast<double>(numerics[k]);
  }
  return parts;
}

void ClickLog::Calibrate() {
  std::vector<uint64_t> ids(zipf_.size());
  std::vector<float> numerics(numeric_weights_.size());
  Moments linear, interaction, numeric;
  for (uint64_t i = 0; i < kCalibrationRecords; ++i) {
    FillRecord(RandomBits(format_.seed(), kCalibration, i), ids.data(), numerics.data());
    const Parts parts = PartsOf(ids.data(), numerics.data());
    linear.Add(parts.linear);
    interaction.Add(parts.interaction);
    numeric.Add(parts.numeric);
  }
  means_ = {linear.Mean(), interaction.Mean(), numeric.Mean()};
  scales_ = {linear.Scale(format_.linear_stddev()), interaction.Scale(format_.interaction_stddev()),
             numeric.Scale(format_.numeric_stddev())};
}

double ClickLog::Append(Stream stream, uint64_t index, RecordBlock* block) const {
  const uint64_t base =
      RandomBits(RandomBits(format_.seed(), kRecord), static_cast<uint64_t>(stream), index);
  block->BeginRow();
  FillRecord(base, block->row_ids(), block->row_numerics());
  if (format_.record_numbers()) block->row_ids()[zipf_.size()] = index;
  double probability = format_.random_label_rate();
  if (!random_labels_) {
    const Parts parts = PartsOf(block->row_ids(), block->row_numerics());
    probability = Sigmoid(format_.bias() + scales_.linear * (parts.linear - means_.linear) +
                          scales_.interaction * (parts.interaction - means_.interaction) +
                          scales_.numeric * (parts.numeric - means_.numeric));
  }
  // FillRecord has used the counters below `draw`.
  const uint64_t draw = zipf_.size() + static_cast<uint64_t>(format_.numeric_features());
  block->set_label(UniformDouble(RandomBits(base, draw)) < probability ? 1.0f : 0.0f);
  block->CommitRow();
  return probability;
}

}  // namespace satrap
