// Reads what older builds, from before the message Ending (proto/control.proto), wrote for programs
// as phrases. No other code decides anything by a text for people.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_
#define SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_

#include "absl/strings/string_view.h"
#include "proto/run_log.pb.h"

namespace satrap {

// Sets `began` and `ended` of an entry that has only a `cause`, or none of them, and clears
// `cause`. An entry of this build stays as it is.
void ReadOldCause(GenerationEntry* entry);

// The advice of a failure.txt that has no ending.textproto beside it.
Ending::Advice AdviceOfOldFailure(absl::string_view failure);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_OLD_PHRASES_H_
