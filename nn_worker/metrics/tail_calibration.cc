#include "nn_worker/metrics/tail_calibration.h"

#include <limits>

namespace satrap {

void TailCalibration::Add(uint64_t samples, double positives, double predicted) {
  if (samples == 0) return;
  if (chunks_.empty() || chunks_.back().samples >= chunk_samples_) {
    if (chunks_.size() == kChunks) {
      for (size_t i = 0; i < kChunks / 2; ++i) {
        chunks_[i] = chunks_[2 * i];
        chunks_[i].Add(chunks_[2 * i + 1]);
      }
      chunks_.resize(kChunks / 2);
      chunk_samples_ = (samples_ + kChunks / 2 - 1) / (kChunks / 2);
    }
    chunks_.emplace_back();
  }
  chunks_.back().Add({samples, positives, predicted});
  samples_ += samples;
}

TailCalibration::Value TailCalibration::Compute() const {
  Chunk tail;
  for (size_t i = chunks_.size(); i-- > 0 && tail.samples * 10 < samples_;) tail.Add(chunks_[i]);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {tail.positives > 0 ? tail.predicted / tail.positives : nan, tail.samples};
}

}  // namespace satrap
