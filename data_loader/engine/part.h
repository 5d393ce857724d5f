// A Part is one NN worker's share of a global batch, ready to be sent. It has the header of its
// PutBatch, in which the sender still sets envelope and call, and the payload that the header
// describes.

#ifndef SATRAP_DATA_LOADER_ENGINE_PART_H_
#define SATRAP_DATA_LOADER_ENGINE_PART_H_

#include "common/base/buffer.h"
#include "proto/hot.pb.h"

namespace satrap {

struct Part {
  PutBatchHeader header;
  Buffer payload;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_PART_H_
