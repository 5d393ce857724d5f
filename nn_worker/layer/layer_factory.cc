#include "nn_worker/layer/layer_factory.h"

#include "common/base/status_macros.h"
#include "common/config/setting_ranges.h"
#include "nn_worker/layer/layers.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewLayer(const LayerConfig& config) {
  RETURN_IF_ERROR(RangeStatus(config));
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
    case LayerConfig::kAttention:
      return NewAttentionLayer(config.attention());
    case LayerConfig::kBiInteraction:
      return NewBiInteractionLayer();
    case LayerConfig::kCin:
      return NewCinLayer(config.cin());
    case LayerConfig::kCross:
      return NewCrossLayer(config.cross());
    case LayerConfig::kCrossV2:
      return NewCrossV2Layer(config.cross_v2());
    case LayerConfig::kDotInteraction:
      return NewDotInteractionLayer();
    case LayerConfig::kFieldAwareInteraction:
      return NewFieldAwareInteractionLayer();
    case LayerConfig::kFlatten:
      return NewFlattenLayer();
    case LayerConfig::kFwfm:
      return NewFwfmLayer();
    case LayerConfig::kInnerProduct:
      return NewInnerProductLayer();
    case LayerConfig::kL2Normalize:
      return NewL2NormalizeLayer(config.l2_normalize());
    case LayerConfig::kLayerNorm:
      return NewLayerNormLayer(config.layer_norm());
    case LayerConfig::kMultiply:
      return NewMultiplyLayer();
    case LayerConfig::kNumericEmbedding:
      return NewNumericEmbeddingLayer(config.numeric_embedding());
    case LayerConfig::kScale:
      return NewScaleLayer(config.scale());
    case LayerConfig::kSlice:
      return NewSliceLayer(config.slice());
    case LayerConfig::kSoftmax:
      return NewSoftmaxLayer();
    case LayerConfig::kStack:
      return NewStackLayer();
    case LayerConfig::kStopGradient:
      return NewStopGradientLayer();
    case LayerConfig::kCandidateLogits:
      return NewCandidateLogitsLayer(config.candidate_logits());
    case LayerConfig::kInBatchLogits:
      return NewInBatchLogitsLayer(config.in_batch_logits());
    case LayerConfig::kMlp:
      return absl::InvalidArgumentError("mlp is a composite: the graph expands it");
    case LayerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no kind: set one of linear, mlp, batch_norm, ...");
}

}  // namespace satrap
