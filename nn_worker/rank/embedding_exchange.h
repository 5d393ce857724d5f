// Moves embeddings between a part and the dense network: values in, summed gradients out. Pools
// here what was not pooled at the embedding worker, and sends gradients back the same way.
//
// Owns scratch memory that grows to the largest part. Not thread-safe. The network's memory is that
// of a backend on the host.

#ifndef SATRAP_NN_WORKER_RANK_EMBEDDING_EXCHANGE_H_
#define SATRAP_NN_WORKER_RANK_EMBEDDING_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "nn_worker/graph/network.h"
#include "nn_worker/rank/part_layout.h"
#include "nn_worker/rank/part_view.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class EmbeddingExchange {
 public:
  // Neither is owned; both must outlive this object. `layout` is the one that `network` was made
  // with.
  EmbeddingExchange(const PartLayout* layout, Network* network);

  // Writes the numeric block and all segments of `part` into the network's inputs.
  void WriteInputs(const PartView& part);

  // The gradients of the network's last Backward, for PushGradients, in the dtype of `part`.
  // `*finite` becomes false if a value is infinite or NaN, as sent.
  // REQUIRES: `part` is what WriteInputs was last called with
  PartGradients ReadGradients(const PartView& part, bool* finite);

 private:
  void WriteFeature(const FeatureLayout& feature, const PartView& part,
                    const PartView::Feature& values);
  // Adds (or, pooled at the worker, assigns) the gradients of a feature's segments to the rows that
  // begin at `gradients`.
  void AddGradients(const FeatureLayout& feature, const PartView& part,
                    const PartView::Feature& values, float* gradients);
  const float* Decode(const rpc::WireValues& values, std::vector<float>* scratch);

  const PartLayout& layout_;
  Network* const network_;
  std::vector<std::vector<float>> table_rows_;  // decoded, by table; unused for f32
  std::vector<const float*> rows_;              // by table, of the part in work
  std::vector<float> pooled_;
  std::vector<float> gradients_;  // unused for f32
  std::vector<float> sequences_;
  std::vector<uint32_t> lengths_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_EMBEDDING_EXCHANGE_H_
