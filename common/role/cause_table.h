// The table of causes: what follows when a process, a generation or a run has ended, by the fields
// `why` and `kind` of its Ending (proto/control.proto). Coordinator and launcher decide by it, and
// docs/operations.md prints it.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_ROLE_CAUSE_TABLE_H_
#define SATRAP_COMMON_ROLE_CAUSE_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/control.pb.h"

namespace satrap {

enum class Follows {
  kRunEnds,            // no restart cures it
  kRunEndsForNow,      // nor this one, but time may: a job on trial is tried again
  kRunEndsIfRepeated,  // the next generation, once; the run ends if that one ends by it, too
  kNextGeneration,
};

struct CauseRule {
  Ending::Why why;
  Ending::Kind kind;
  Follows follows;
  int64_t pause_ms;  // at least, before the next generation
  const char* what;  // has happened
  const char* cure;  // what to do about it
};

// Each pair of `why` and `kind` at most once.
absl::Span<const CauseRule> CauseRules();
// Of `why` and `kind`; without such a rule, that of `why` alone (UNCLASSIFIED).
const CauseRule& RuleOf(const Ending& ending);

// Whether two generations in a row have ended by the same why and kind before all their members
// were ready.
bool IsRepeated(const Ending& now, const Ending& before);

// Whether no restart cures what ended a generation. `before` is how the generation before it ended,
// an empty message if it has not failed.
bool NoRestartCures(const Ending& now, const Ending& before);

// The kind of an error: what the process lacked, if it is marked (common/base/shortage.h), else
// what its code says.
Ending::Kind KindOf(const absl::Status& error);

// The pause before the next attempt to begin, when `ends` attempts in a row have ended before they
// were ready: 0.1, 0.2, 0.4, ... 5 s; 0 for none.
int64_t PauseBeforeReadyMs(int ends);

// The table in Markdown, as it stands in docs/operations.md.
std::string CauseTableText();

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_CAUSE_TABLE_H_
