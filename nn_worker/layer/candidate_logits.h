// Scores of a sample's positive item and of the part's candidates, for sampled softmax and NCE.
//   user [d], positive [d], candidates [S, d] (and bias: positive [1], candidates [S, 1])  y: [1 + S]
//   y_0 = scale <u, p> + b_p,  y_{1+j} = scale <u, c_j> + b_j; with `normalize` u, p and c are divided
//   by their norms
//
// A part may have fewer candidates than S, and in an evaluation has none: further columns of y are left
// as they are, and those of dy are not read.

#ifndef SATRAP_NN_WORKER_LAYER_CANDIDATE_LOGITS_H_
#define SATRAP_NN_WORKER_LAYER_CANDIDATE_LOGITS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewCandidateLogitsLayer(const CandidateLogitsConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_CANDIDATE_LOGITS_H_
