// Method constants for the slow calls of the embedding PS (proto/control.proto).

#ifndef SATRAP_COMMON_RPC_CONTROL_METHODS_H_
#define SATRAP_COMMON_RPC_CONTROL_METHODS_H_

#include "common/rpc/rpc.h"

namespace satrap::rpc {

inline constexpr Method kLoadTables = {"/satrap.EmbeddingPsControl/LoadTables", false};
inline constexpr Method kBeginCut = {"/satrap.EmbeddingPsControl/BeginCut", false};
inline constexpr Method kAwaitCut = {"/satrap.EmbeddingPsControl/AwaitCut", false};
inline constexpr Method kAbandonCut = {"/satrap.EmbeddingPsControl/AbandonCut", false};
inline constexpr Method kTableStats = {"/satrap.EmbeddingPsControl/TableStats", false};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_CONTROL_METHODS_H_
