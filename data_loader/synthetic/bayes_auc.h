// The best AUC that any model can reach on a synthetic click log: that of the probabilities which
// its labels were drawn with.

#ifndef SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_
#define SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_

#include "proto/data.pb.h"

namespace satrap {

struct BayesAuc {
  // AUC of the true probabilities against the labels of the test stream: what a model's test AUC is
  // to be compared with, because both share the luck of those labels. NaN with one class only.
  double of_test_labels = 0;
  // The same probabilities with the labels averaged out:
  // sum p_i (1 - p_j) [p_i > p_j, ties 1/2] / (sum p_i (1 - p_j)) over pairs of test records.
  double expected = 0;
};

// Scores all records of the test stream. REQUIRES: a valid format
BayesAuc ComputeBayesAuc(const SyntheticFormat& format);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_
