// Moves embeddings between a part and the dense network: values in, summed gradients out. Features
// that were not pooled at the embedding worker are pooled on the network's backend, and their
// gradients take the same way back.
//
// This class decodes values from the wire, unless the backend gathers them as they are, and encodes
// gradients. It does so on the host, in blocks of fixed size. GatherRows and ScatterGradients of
// the backend do the rest. These operations read the payload of the part itself if the backend can
// read the host's memory, and otherwise a copy of it.
//
// A part is prepared in a buffer: it is decoded or copied in, and if it will be trained, its ids
// are inverted for a backend that scatters by row. There are two buffers, so that one part can be
// prepared while another is trained.
//
// Owns scratch memory, here and on the backend, that grows to the largest part.
//
// Thread-compatible, except that Prepare may run on another thread at the same time as any other
// call, even a Prepare of the other buffer, as long as no other call uses the same buffer.

#ifndef SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
#define SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/thread/fork_join_pool.h"
#include "common/thread/mutex.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/row_inverse.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/growing_memory.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "nn_worker/trainer/part_view.h"

namespace satrap {

// What a part is for. Only parts that are trained send gradients back.
enum class PartUse { kTraining, kScoring };

class EmbeddingExchange {
 public:
  static constexpr int kBuffers = 2;

  // Owns none of its arguments; all must outlive this object. `layout` is the layout that `network`
  // was made with; `pool` may be the one that the network's backend runs on. When `collective`,
  // which may be null, is dead, a wait for the device ends with CANCELLED.
  EmbeddingExchange(const PartLayout* layout, Network* network, ForkJoinPool* pool,
                    Collective* collective = nullptr);

  // Takes all memory that parts up to the size of `largest` need, so that none is allocated during
  // a step. For scoring, that is the memory of buffer 0 alone, without gradients. Only for a
  // backend that the host copies to; waits for the backend. RESOURCE_EXHAUSTED. REQUIRES: before
  // the first Prepare
  absl::Status Reserve(const PartView& largest, PartUse use);

  // Prepares `part` in buffer `buffer`, on `pool`, or on this thread alone if that is null. The
  // payload of `part` must stay until ReadGradients or the backend's next Sync. RESOURCE_EXHAUSTED
  // if the backend has no memory for a part of this size: scratch memory of its operations, and
  // memory for the sums that ReadGradients copies or encodes, are taken here. REQUIRES: everything
  // that was enqueued for the buffer's previous part has run, which is so after ReadGradients or a
  // Sync
  absl::Status Prepare(const PartView& part, int buffer, ForkJoinPool* pool,
                       PartUse use = PartUse::kTraining);

  // Writes the numeric block and all segments of the buffer's part into the network's inputs.
  void WriteInputs(int buffer);

  // The gradients of the network's last Backward, for PushGradients, in the dtype of the buffer's
  // part, and without the network's gradient scale. `*finite` becomes false if a sum is infinite or
  // NaN, or becomes infinite when it is rounded to BF16; all other sums fit into every dtype. Waits
  // for the backend. Errors are those of the device. REQUIRES: WriteInputs was called for this
  // buffer, and its part was prepared to be trained
  absl::StatusOr<PartGradients> ReadGradients(int buffer, bool* finite);

 private:
  // The gradients of a table's rows, or of a feature that was pooled at the worker: one section of
  // the PushGradients message.
  struct Sent {
    std::vector<int> features;  // in the order of their ids
    int table = 0;
    bool by_row = false;  // the gradients are those of a table's rows
  };
  // The memory for the sums of one Sent, for both buffers.
  struct SumsMemory {
    GrowingMemory host{GrowingMemory::Kind::kPinned};  // what is encoded; unused for f32
    GrowingMemory on_backend;  // unused where the backend can write to the host's
  };
  // The inverse of a table's ids, for a backend that scatters by row.
  struct Inverse {
    HostRowInverse host;
    ValuesOnDevice starts, positions;
    RowInverse on_backend;
  };
  struct Buffer {
    PartView part;
    PartUse use = PartUse::kTraining;
    uint8_t* payload = nullptr;  // where the backend finds it
    ValuesOnDevice payload_values;
    // Values that arrive in 16 bits, decoded for a backend that cannot gather 16-bit values: first
    // by table, then by feature that was pooled at the worker.
    std::vector<std::vector<float>> decoded;
    std::vector<ValuesOnDevice> decoded_values;
    std::vector<FeatureExchange> gathers;
    std::vector<FeatureExchange> features;  // as gathers, without segments; by feature
    // The part's candidates, with segments; empty if the part has none.
    std::vector<FeatureExchange> candidates;
    std::vector<Inverse> inverses;                  // by Sent
    std::vector<void*> host_sums, sums_on_backend;  // by Sent; null: unused
    std::unique_ptr<BackendEvent> copied;           // the copies in have been made
  };

  // Calls body(begin, end) for blocks that make up [0, count), on `pool` unless that is null.
  static void ForBlocks(size_t count, ForkJoinPool* pool,
                        absl::FunctionRef<void(size_t, size_t)> body);
  // Rows in memory that the backend can read, to be multiplied by `scale`.
  struct Rows {
    Tensor values;
    float scale = 1;
  };
  // The values as rows of `cols`: in the payload as they are if the backend takes their dtype, and
  // otherwise decoded to f32.
  absl::StatusOr<Rows> RowsOf(const rpc::WireValues& values, size_t cols, size_t index,
                              ForkJoinPool* pool, Buffer* buffer);
  // The part's candidates, with those segments that the network reads.
  FeatureExchange CandidatesOf(const Buffer& buffer, const Rows& rows,
                               Tensor (Network::*view_of)(int) const) const;
  bool HasCandidates(const Buffer& buffer, const Sent& sent) const;
  absl::Status PrepareIn(Buffer* buffer, ForkJoinPool* pool);
  absl::Status FindRows(ForkJoinPool* pool, Buffer* buffer);
  absl::Status Invert(Buffer* buffer);
  absl::Status ReserveSums(Buffer* buffer);
  // The feature's ids, without segments.
  FeatureExchange IdsOf(size_t feature, const Buffer& buffer, const Rows& rows) const;
  void Scatter(const Buffer& buffer, size_t index, absl::Span<float> sums);
  absl::Status AwaitSums();
  // Divides `sums` by the gradient scale, encodes them into the memory at `to`, and sets the
  // section's scale. Sums in f32 are in that memory already and are only checked. Sets `*finite` to
  // false as ReadGradients does, and `*large` to true if a sum is beyond kLargeGradient or not
  // finite.
  rpc::WireLosses Encode(WireDtype dtype, absl::Span<float> sums, Section* section, uint8_t* to,
                         bool* finite, bool* large);

  const PartLayout& layout_;
  Network* const network_;
  Backend* const backend_;
  ForkJoinPool* const pool_;
  Collective* const collective_;
  std::vector<Sent> sent_;  // in the order of the answer's sections
  Mutex sums_mutex_;        // two parts may be prepared at once
  std::vector<SumsMemory> sums_memory_ GUARDED_BY(sums_mutex_);  // by Sent
  Buffer buffers_[kBuffers];
  std::unique_ptr<BackendEvent> scattered_, copied_out_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_EMBEDDING_EXCHANGE_H_
