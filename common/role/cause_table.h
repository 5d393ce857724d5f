// The table of causes. It says what follows after a process, a generation or a run has ended,
// depending on the fields `why` and `kind` of its Ending (proto/control.proto). The coordinator and
// the launcher use the table, and docs/operations.md prints it.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_ROLE_CAUSE_TABLE_H_
#define SATRAP_COMMON_ROLE_CAUSE_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/control.pb.h"

namespace satrap {

enum class Follows {
  kRunEnds,            // no restart helps
  kRunEndsForNow,      // no restart helps now, but time may: a job on trial is tried again
  kRunEndsIfRepeated,  // one more generation follows; if it ends in the same way, the run ends
  kNextGeneration,
};

struct CauseRule {
  Ending::Why why;
  Ending::Kind kind;
  Follows follows;
  int64_t pause_ms;  // the least pause before the next generation
  const char* what;  // what has happened
  const char* cure;  // what to do about it
};

// All rules, with at most one for each pair of `why` and `kind`.
absl::Span<const CauseRule> CauseRules();
// The rule for this `why` and `kind`; if there is none, the rule for `why` with kind UNCLASSIFIED.
const CauseRule& RuleOf(const Ending& ending);

// Whether two generations in a row have ended with the same `why` and `kind` before all their
// members were ready.
bool IsRepeated(const Ending& now, const Ending& before);

// Whether no restart can cure what ended a generation. `before` says how the previous generation
// ended, or is an empty message if that one did not fail.
bool NoRestartCures(const Ending& now, const Ending& before);

// The kind of an error. If the error is marked (common/base/shortage.h), the mark decides: it says
// what the process lacked. Otherwise the status code decides.
Ending::Kind KindOf(const absl::Status& error);

// The pause before the next attempt to begin a generation, to start a role or to register it, after
// `ends` attempts in a row that ended before they were ready: 0.1, 0.2, 0.4, ... 5 s; 0 if `ends`
// is 0.
int64_t PauseBeforeReadyMs(int ends);

// The table in Markdown, as docs/operations.md has it.
std::string CauseTableText();

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_CAUSE_TABLE_H_
