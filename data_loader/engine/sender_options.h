// The options of a LoaderEngine and of its StreamSenders: those that all streams of the loader
// share, and those of one stream.

#ifndef SATRAP_DATA_LOADER_ENGINE_SENDER_OPTIONS_H_
#define SATRAP_DATA_LOADER_ENGINE_SENDER_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "common/role/kill_points.h"
#include "common/rpc/timeouts.h"
#include "proto/hot.pb.h"

namespace satrap {

struct LoaderOptions {
  uint32_t loader_index = 0;
  Envelope envelope;
  rpc::RpcTimeouts timeouts;
  // For each stream, the limit on open parts: parts that were taken from its sources but not yet
  // accepted by a worker. The sources of a stream share the limit, but each may have at least one
  // open part.
  size_t max_open_parts = 8;
  KillPoints* kill_points = nullptr;  // not owned; null: none
};

struct StreamOptions {
  Stream stream = TRAIN_STREAM;
  bool ordered = false;
  uint32_t epochs = 0;  // 0: passes without end
  uint32_t first_epoch = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_SENDER_OPTIONS_H_
