// Moves embeddings between a part and the dense network: values in, summed gradients out. Pools on
// the network's backend what was not pooled at the embedding worker, and sends gradients back the
// same way.
//
// Here, on the host, values are decoded from the wire and gradients encoded, in blocks of fixed
// size over a fork-join pool; GatherRows and ScatterGradients of the backend do the rest. What they
// read is the payload of the part itself where the backend can read the host's memory, and else one
// copy of it.
//
// Owns scratch memory, here and on the backend, that grows to the largest part. Not thread-safe.

#ifndef SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
#define SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/fork_join_pool.h"
#include "nn_worker/backend/row_inverse.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/growing_memory.h"
#include "nn_worker/trainer/part_layout.h"
#include "nn_worker/trainer/part_view.h"

namespace satrap {

class EmbeddingExchange {
 public:
  // Owns none of its arguments; all must outlive it. `layout` is the one that `network` was made
  // with; `pool` may be the one that the network's backend runs on.
  EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool);

  // Writes the numeric block and all segments of `part` into the network's inputs. The payload of
  // `part` must stay until ReadGradients or the backend's next Sync. RESOURCE_EXHAUSTED if the
  // backend has no memory for a part of this size.
  absl::Status WriteInputs(const PartView& part);

  // The gradients of the network's last Backward, for PushGradients, in the dtype of `part`.
  // `*finite` becomes false if a sum is infinite or NaN. A finite sum that is too large for an F16
  // is sent as the largest one of its sign, and counted in `saturated_values`. Waits for the
  // backend. Errors as WriteInputs. REQUIRES: `part` is what WriteInputs was last called with
  absl::StatusOr<PartGradients> ReadGradients(const PartView& part, bool* finite);

 private:
  // The gradients of a table's rows, or of a feature that was pooled at the worker: a section of
  // the answer.
  struct Sent {
    std::vector<int> features;  // in the order of their ids
    int table = 0;
    bool by_row = false;      // of a table's rows
    Tensor sums;              // (num_rows, row_values), where the backend finds them
    std::vector<float> host;  // where they are encoded from; unused for f32
    GrowingMemory memory;     // unused where the backend can write to the host's
    HostRowInverse inverse;   // of the last part; unused unless the backend scatters by row
    GrowingMemory starts, positions;
  };

  // Calls body(begin, end) for blocks that make up [0, count).
  void ForBlocks(size_t count, absl::FunctionRef<void(size_t, size_t)> body);
  // The values in f32 where the backend finds them, as rows of `cols`.
  absl::StatusOr<Tensor> RowsOf(const rpc::WireValues& values, size_t cols, size_t slot);
  // Where the backend finds a part of the payload.
  Tensor InPayload(DType dtype, const void* host, size_t rows, size_t cols) const;
  // The feature's ids, without segments.
  FeatureExchange IdsOf(size_t feature, const PartView& part, const Tensor& rows) const;
  absl::StatusOr<RowInverse> InverseOf(const PartView& part, Sent* sent);
  absl::Status Scatter(const PartView& part, float* sums, Sent* sent);
  // Encodes to `to`, or only checks f32, which is there already. Returns the saturated values.
  uint64_t Encode(WireDtype dtype, absl::Span<float> sums, uint8_t* to, bool* finite);

  const PartLayout& layout_;
  Network* const network_;
  Backend* const backend_;
  ForkJoinPool* const pool_;
  // Of the part in work.
  const uint8_t* payload_ = nullptr;  // on the host
  uint8_t* on_backend_ = nullptr;     // the same
  GrowingMemory payload_memory_;
  std::vector<FeatureExchange> features_;  // by feature, with the network's inputs
  // Values that come in 16 bits, by table, and behind them by feature that was pooled at the worker.
  std::vector<std::vector<float>> decoded_;
  std::vector<GrowingMemory> decoded_memory_;
  std::vector<Sent> sent_;  // in the order of the answer's sections
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
