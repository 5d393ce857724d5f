#include "nn_worker/backend/cpu/cpu_half_exchange.h"

#include <algorithm>
#include <vector>

#include "nn_worker/backend/cpu/cpu_row_exchange.h"

namespace satrap::cpu {
namespace {

// The part of a feature that belongs to samples [begin, begin + count). Offsets may begin anywhere
// (cpu_row_exchange.h), so a feature with offsets keeps all its ids.
FeatureExchange SamplesOf(const FeatureExchange& feature, int64_t begin, int64_t count) {
  FeatureExchange part = feature;
  part.samples = count;
  if (feature.one_row_a_sample) {
    if (!feature.rows.empty()) part.rows = feature.rows.Rows(begin, count);
  } else if (!feature.offsets.empty()) {
    part.offsets = feature.offsets.Columns(begin, count + 1);
  } else {
    part.ids = feature.ids.Columns(begin, count);
    if (!feature.weights.empty()) part.weights = feature.weights.Columns(begin, count);
  }
  if (!feature.lengths.empty()) part.lengths = feature.lengths.Rows(begin, count);
  return part;
}

// The values of all segments, one feature after another.
std::vector<Tensor> ValuesOf(absl::Span<const FeatureExchange> features) {
  std::vector<Tensor> values;
  for (const FeatureExchange& feature : features) {
    for (const RowSegment& segment : feature.segments) values.push_back(segment.values);
  }
  return values;
}

// The features, limited to the samples of `operation`, with values in f32. The values of all
// features are requested at once, because neighbours in one concatenation are converted together.
std::vector<FeatureExchange> InF32(absl::Span<const FeatureExchange> features, bool written,
                                   HalfOperation* operation) {
  const std::vector<Tensor> halves = ValuesOf(features);
  const std::vector<Tensor> values =
      written ? operation->WriteAll(halves) : operation->ReadAll(halves);
  std::vector<FeatureExchange> wide;
  size_t next = 0;
  for (const FeatureExchange& feature : features) {
    wide.push_back(SamplesOf(feature, operation->begin(), operation->rows()));
    for (RowSegment& segment : wide.back().segments) segment.values = values[next++];
  }
  return wide;
}

}  // namespace

bool Have16BitValues(absl::Span<const FeatureExchange> features) {
  const std::vector<Tensor> values = ValuesOf(features);
  return std::any_of(values.begin(), values.end(), Is16Bit);
}

void GatherHalves(absl::Span<const FeatureExchange> features, HalfOperation* operation) {
  for (const FeatureExchange& part : InF32(features, /*written=*/true, operation)) {
    GatherSamples(part, 0, part.samples);
  }
}

void AssignGradients(const FeatureExchange& feature, const Tensor& gradients,
                     HalfOperation* operation) {
  const auto part = InF32(absl::MakeConstSpan(&feature, 1), /*written=*/false, operation);
  ScatterFeature(part[0], operation->Rows(gradients));
}

void AddGradients(absl::Span<const FeatureExchange> features, const Tensor& gradients,
                  HalfMemory* memory) {
  for (size_t first = 0; first < features.size();) {
    // A HalfOperation covers the same rows of all its tensors. But candidates are a feature with
    // their own number of "samples", so only features with equal numbers are taken together.
    const int64_t samples = features[first].samples;
    size_t end = first + 1;
    while (end < features.size() && features[end].samples == samples) ++end;
    for (int64_t begin = 0; begin < samples; begin += kExchangeSamples) {
      HalfOperation operation(memory, begin, std::min(kExchangeSamples, samples - begin));
      for (const FeatureExchange& part :
           InF32(features.subspan(first, end - first), /*written=*/false, &operation)) {
        ScatterFeature(part, gradients);
      }
    }
    first = end;
  }
}

}  // namespace satrap::cpu
