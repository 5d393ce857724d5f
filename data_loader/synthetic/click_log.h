// A ClickLog generates the records of the synthetic format: Zipf ids, uniform numerics, and labels
// drawn from a planted model, so that their true probabilities are known. Record i of a stream is a
// function of (SyntheticFormat, stream, i). docs/formats.md, "Synthetic click log", gives the
// formulas.
//
// Immutable after construction: thread-safe.

#ifndef SATRAP_DATA_LOADER_SYNTHETIC_CLICK_LOG_H_
#define SATRAP_DATA_LOADER_SYNTHETIC_CLICK_LOG_H_

#include <cstdint>
#include <vector>

#include "data_loader/parser/record_block.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

// Draws ids in [0, vocabulary) by Zipf's law. First draws a rank by inverting the continuous law on
// [1, vocabulary), then takes the id of that rank. Ranks are scattered over the vocabulary, so that
// frequent ids are not neighbours.
class ZipfIds {
 public:
  // REQUIRES: vocabulary >= 1, exponent >= 0
  ZipfIds(uint64_t vocabulary, double exponent);
  // The id for a random number `uniform` in [0, 1). Rank r, counted from 1, has a weight of about
  // r^-exponent.
  uint64_t Id(double uniform) const;

 private:
  const uint64_t vocabulary_;
  const bool logarithmic_;  // exponent 1
  const double range_;      // vocabulary^(1 - exponent) - 1, or ln(vocabulary)
  const double power_;      // 1 / (1 - exponent)
};

class ClickLog {
 public:
  // REQUIRES: a valid format
  explicit ClickLog(const SyntheticFormat& format);

  // Appends record `index` to `block`, and returns the probability that its label is 1. REQUIRES:
  // `block` has the format's schema
  double Append(Stream stream, uint64_t index, RecordBlock* block) const;

 private:
  // The three parts of the planted logit.
  struct Parts {
    double linear = 0;
    double interaction = 0;
    double numeric = 0;
  };
  void FillRecord(uint64_t base, uint64_t* ids, float* numerics) const;
  Parts PartsOf(const uint64_t* ids, const float* numerics) const;
  const double* Factors(int feature, uint64_t id, double* scratch) const;
  double LinearWeight(int feature, uint64_t id) const;
  // Measures the mean and standard deviation of the parts, and sets `means_` and `scales_` so that
  // the parts of the logit have the standard deviations that the format asks for.
  void Calibrate();

  const SyntheticFormat format_;
  const bool random_labels_;
  std::vector<ZipfIds> zipf_;
  // Tables for features with a small vocabulary. For other features the table is empty, and the
  // values are computed on each use.
  std::vector<std::vector<double>> linear_weights_;  // [feature][id]
  std::vector<std::vector<double>> factors_;         // [feature][id * interaction_dim + d]
  std::vector<double> numeric_weights_;
  Parts means_;
  Parts scales_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SYNTHETIC_CLICK_LOG_H_
