// Method constants for the seven hot RPCs (proto/hot.proto), grouped by the role that serves them.

#ifndef SATRAP_COMMON_RPC_HOT_METHODS_H_
#define SATRAP_COMMON_RPC_HOT_METHODS_H_

#include "common/rpc/rpc.h"

namespace satrap::rpc {

inline constexpr Method kPutBatch = {"/satrap.EmbeddingWorker/PutBatch", true};
inline constexpr Method kNextBatch = {"/satrap.EmbeddingWorker/NextBatch", true};
inline constexpr Method kAck = {"/satrap.EmbeddingWorker/Ack", true};
inline constexpr Method kPushGradients = {"/satrap.EmbeddingWorker/PushGradients", true};
inline constexpr Method kLookup = {"/satrap.EmbeddingPs/Lookup", true};
inline constexpr Method kUpdate = {"/satrap.EmbeddingPs/Update", true};
inline constexpr Method kApplyStep = {"/satrap.EmbeddingPs/ApplyStep", true};

inline constexpr Method kEmbeddingWorkerMethods[] = {kPutBatch, kNextBatch, kAck, kPushGradients};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_HOT_METHODS_H_
