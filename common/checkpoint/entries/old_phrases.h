// Reads the phrases by which old builds told other programs how a generation or a run ended. Those
// builds did not have the message Ending (proto/control.proto). No other code decides anything by
// text that is meant for people.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_ENTRIES_OLD_PHRASES_H_
#define SATRAP_COMMON_CHECKPOINT_ENTRIES_OLD_PHRASES_H_

#include "absl/strings/string_view.h"
#include "proto/run_log.pb.h"

namespace satrap {

// Converts an entry of an old build, which has a `cause` in place of `began`: sets `began`, and
// `ended` if the cause tells how a generation ended, and clears `cause`. An entry that has `began`
// stays as it is.
void ReadOldCause(GenerationEntry* entry);

// The advice that `failure` gives, the text of a failure.txt without an ending.textproto.
Ending::Advice AdviceOfOldFailure(absl::string_view failure);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_ENTRIES_OLD_PHRASES_H_
