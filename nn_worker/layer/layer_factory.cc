#include "nn_worker/layer/layer_factory.h"

#include "nn_worker/layer/activation.h"
#include "nn_worker/layer/add.h"
#include "nn_worker/layer/batch_norm.h"
#include "nn_worker/layer/bias.h"
#include "nn_worker/layer/concat.h"
#include "nn_worker/layer/dropout.h"
#include "nn_worker/layer/fm.h"
#include "nn_worker/layer/linear.h"
#include "nn_worker/layer/sequence_pool.h"
#include "nn_worker/layer/sum.h"
#include "nn_worker/layer/tally.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewLayer(const LayerConfig& config) {
  switch (config.kind_case()) {
    case LayerConfig::kLinear:
      return NewLinearLayer(config.linear());
    case LayerConfig::kBatchNorm:
      return NewBatchNormLayer(config.batch_norm());
    case LayerConfig::kDropout:
      return NewDropoutLayer(config.dropout());
    case LayerConfig::kActivation:
      return NewActivationLayer(config.activation());
    case LayerConfig::kConcat:
      return NewConcatLayer();
    case LayerConfig::kAdd:
      return NewAddLayer();
    case LayerConfig::kSum:
      return NewSumLayer();
    case LayerConfig::kFm:
      return NewFmLayer();
    case LayerConfig::kBias:
      return NewBiasLayer();
    case LayerConfig::kSequencePool:
      return NewSequencePoolLayer(config.sequence_pool());
    case LayerConfig::kTally:
      return NewTallyLayer(config.tally());
    case LayerConfig::kMlp:
      return absl::InvalidArgumentError("mlp is a composite: the graph expands it");
    case LayerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no kind: set one of linear, mlp, batch_norm, ...");
}

}  // namespace satrap
