// The messages that an embedding worker and a rank exchange for one part: header and payload of the
// answer to NextBatch, and of PushGradients. They are cheap to copy, because a Buffer is shared.

#ifndef SATRAP_NN_WORKER_RANK_PART_MESSAGES_H_
#define SATRAP_NN_WORKER_RANK_PART_MESSAGES_H_

#include <cstdint>

#include "common/base/buffer.h"
#include "common/rpc/payload.h"
#include "proto/hot.pb.h"

namespace satrap {

// An answer to NextBatch as it arrived. It holds a part if its result is PART.
struct PartInput {
  NextBatchAnswerHeader header;
  Buffer payload;
};

// The sums over a part's samples, as PushGradients carries them: `header` has the dtype, the
// tables, and the features with their sections in `payload`; the engine fills in the rest.
struct PartGradients {
  PushGradientsHeader header;
  Buffer payload;
  uint64_t values = 0;     // in all sections
  rpc::WireLosses losses;  // of those values
  bool large = false;      // a sum is beyond kLargeGradient (step_trainer.h), or not finite
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_PART_MESSAGES_H_
