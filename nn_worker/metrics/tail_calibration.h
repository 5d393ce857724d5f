// The calibration (predicted over actual positives) of the last tenth of all samples. The number of
// samples need not be known in advance. The calibration of a cut on a test set swings with the last
// steps, but the calibration of the tail is a mean over many steps.
//
// Constant memory: samples are counted in at most kChunks pieces, and when there are that many,
// neighbours are merged in pairs. So the tail has at least a tenth of all samples, and at most 1/64
// of all samples more than a tenth.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_METRICS_TAIL_CALIBRATION_H_
#define SATRAP_NN_WORKER_METRICS_TAIL_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace satrap {

class TailCalibration {
 public:
  static constexpr size_t kChunks = 128;

  // Adds the next samples: their number, the weight of positives, and the weighted sum of
  // predictions.
  void Add(uint64_t samples, double positives, double predicted);

  struct Value {
    double calibration = 0;  // NaN without positives
    uint64_t samples = 0;
  };
  Value Compute() const;

 private:
  struct Chunk {
    uint64_t samples = 0;
    double positives = 0;
    double predicted = 0;
    void Add(const Chunk& other) {
      samples += other.samples;
      positives += other.positives;
      predicted += other.predicted;
    }
  };

  std::vector<Chunk> chunks_;  // the last is open until it holds chunk_samples_
  uint64_t chunk_samples_ = 1;
  uint64_t samples_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_TAIL_CALIBRATION_H_
