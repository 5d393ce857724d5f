// Computes the best AUC that any model can reach on a synthetic click log: the AUC of the
// probabilities from which the log's labels were drawn.

#ifndef SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_
#define SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_

#include "proto/data.pb.h"

namespace satrap {

struct BayesAuc {
  // The AUC of the true probabilities against the labels of the test stream. A model's test AUC
  // should be compared with this one, because both depend on the same draw of labels. NaN if there
  // is only one class.
  double of_test_labels = 0;
  // The AUC of the true probabilities, averaged over all draws of the labels: sum p_i (1 - p_j)
  // [p_i > p_j, ties 1/2] / (sum p_i (1 - p_j)) over pairs of test records.
  double expected = 0;
};

// Scores all records of the test stream. REQUIRES: a valid format
BayesAuc ComputeBayesAuc(const SyntheticFormat& format);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SYNTHETIC_BAYES_AUC_H_
