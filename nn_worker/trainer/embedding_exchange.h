// Moves embeddings between a part and the dense network: values in, summed gradients out. Pools
// here what was not pooled at the embedding worker, and sends gradients back the same way.
//
// Work is cut into blocks of fixed size over a fork-join pool. Rows are added to in the order of
// features and samples by one thread, so a gradient has the same bits for any number of threads.
//
// Owns scratch memory that grows to the largest part. Not thread-safe. The network's memory is that
// of a backend on the host.

#ifndef SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
#define SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/batch/pooling.h"
#include "nn_worker/backend/fork_join_pool.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/part_layout.h"
#include "nn_worker/trainer/part_view.h"

namespace satrap {

class EmbeddingExchange {
 public:
  // Owns none of its arguments; all must outlive it. `layout` is the one that `network` was made
  // with; `pool` may be the one that the network's backend runs on.
  EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool);

  // Writes the numeric block and all segments of `part` into the network's inputs.
  void WriteInputs(const PartView& part);

  // The gradients of the network's last Backward, for PushGradients, in the dtype of `part`.
  // `*finite` becomes false if a sum is infinite or NaN. A finite sum that is too large for an F16
  // is sent as the largest one of its sign, and counted in `saturated_values`.
  // REQUIRES: `part` is what WriteInputs was last called with
  PartGradients ReadGradients(const PartView& part, bool* finite);

 private:
  // `view_of` (input_view or input_gradient) of each input, at an address that the host can use.
  // Calls the backend, so it must not run on the pool: a Backend takes calls from one thread.
  std::vector<Tensor> OnHost(Tensor (Network::*view_of)(int) const);
  // Calls body(begin, end, thread) for blocks of at most `block` that make up [0, count).
  void ForBlocks(size_t count, size_t block, absl::FunctionRef<void(size_t, size_t, int)> body);
  const float* DecodeRows(const rpc::WireValues& values, std::vector<float>* scratch);
  // Samples [begin, end).
  void WriteFeature(const FeatureLayout& feature, const PartView::Feature& values, size_t begin,
                    size_t end, int thread);
  void WriteSequence(const FeatureLayout& feature, const SegmentLayout& segment,
                     const RowIndices& indices, size_t begin, size_t end);
  void WritePooled(const FeatureLayout& feature, const rpc::WireValues& pooled, size_t begin,
                   size_t end, int thread);
  // Adds (or, pooled at the worker, assigns) the gradients of a feature's segments to the rows that
  // begin at `gradients`.
  void AddGradients(const FeatureLayout& feature, const PartView& part,
                    const PartView::Feature& values, float* gradients);

  const PartLayout& layout_;
  Network* const network_;
  ForkJoinPool* const pool_;
  std::vector<Tensor> inputs_;                  // by input; of WriteInputs
  std::vector<Tensor> input_gradients_;         // by input; of ReadGradients
  std::vector<std::vector<float>> table_rows_;  // decoded, by table; unused for f32
  std::vector<const float*> rows_;              // by table, of the part in work
  std::vector<std::vector<float>> pooled_;      // by thread; unused for f32
  std::vector<float> gradients_;                // unused for f32
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
