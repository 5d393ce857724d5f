// Reads the phrases by which builds from before the message Ending (proto/control.proto) told other
// programs how a generation or a run ended. No other code decides anything by text that is meant
// for people.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_
#define SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_

#include "absl/strings/string_view.h"
#include "proto/run_log.pb.h"

namespace satrap {

// If an entry has no `began`, sets `began` and `ended` as its `cause` says, if it has one, and
// clears `cause`. An entry of this build stays as it is.
void ReadOldCause(GenerationEntry* entry);

// The advice of a failure.txt that has no ending.textproto beside it.
Ending::Advice AdviceOfOldFailure(absl::string_view failure);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_
