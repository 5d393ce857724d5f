#include "common/role/cause_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/shortage.h"

namespace satrap {
namespace {

// Another process of the machine, or a process of the generation that is ending, may still hold
// what the next generation needs.
constexpr int64_t kNeighbourMs = 5000;
constexpr int64_t kFirstPauseMs = 100;
constexpr int64_t kLongestPauseMs = 5000;

constexpr CauseRule kRules[] = {
    {Ending::MEMBER_FAILED, Ending::REFUSED, Follows::kRunEnds, 0,
     "a role reports that the job, a call or a file contradicts what it knows, that something it "
     "needs is not there or not permitted, or that too many records are bad",
     "correct what the message names"},
    {Ending::MEMBER_FAILED, Ending::DAMAGED, Follows::kRunEnds, 0,
     "a role reports damaged bytes: a checksum, a cut, a record that was trained twice",
     "restore the file; for a cut, `satrap resume RUN --from CUT`"},
    {Ending::MEMBER_FAILED, Ending::NOT_BUILT, Follows::kRunEnds, 0,
     "a program lacks what the job asks for, or another service listens at an address",
     "build it, or change the job or the address"},
    {Ending::OTHER_DATA, Ending::UNCLASSIFIED, Follows::kRunEnds, 0,
     "the data, or a field that orders samples, differs from what it was when the cut was made",
     "restore it, or begin a new run"},
    {Ending::TOPICS, Ending::UNCLASSIFIED, Follows::kRunEnds, 0, "topics cannot be read",
     "see [kafka.md](kafka.md)"},
    {Ending::TOPICS, Ending::PEER_AWAY, Follows::kRunEndsForNow, 0,
     "the broker of topics has been away for `broker_wait_seconds`",
     "see [kafka.md](kafka.md); `satrap resume` continues once the broker answers"},
    {Ending::MEMBER_FAILED, Ending::NO_MEMORY, Follows::kRunEndsIfRepeated, kNeighbourMs,
     "a process has no memory left, for example for a table",
     "give it more memory, or use fewer or shorter rows, smaller batches or more machines"},
    {Ending::MEMBER_FAILED, Ending::NO_PROCESSES, Follows::kRunEndsIfRepeated, kNeighbourMs,
     "a process or thread cannot be started",
     "raise the limit (`ulimit -u`, the container's pids), or lower `threads` and `replicas`"},
    {Ending::MEMBER_FAILED, Ending::NO_DESCRIPTORS, Follows::kRunEndsIfRepeated, kNeighbourMs,
     "no file or socket can be opened any more", "raise the limit (`ulimit -n`)"},
    {Ending::MEMBER_FAILED, Ending::NO_ADDRESS, Follows::kRunEndsIfRepeated, 0,
     "this machine lacks an address that a process needs, such as that of a loopback interface "
     "that is down",
     "bring the interface up (`ip link set lo up`), or correct the address"},
    {Ending::MEMBER_FAILED, Ending::MOUNT_AWAY, Follows::kNextGeneration, kNeighbourMs,
     "the server of a network file system does not answer, or the mount of a run that has begun no "
     "longer works as it did before",
     "look at the file server, and at the mount of the process that says so"},
    {Ending::MEMBER_FAILED, Ending::PEER_AWAY, Follows::kNextGeneration, 0,
     "a role reports that a peer does not answer, or has ended a call", "look at the peer's log"},
    {Ending::MEMBER_FAILED, Ending::NO_ROOM, Follows::kNextGeneration, 0,
     "a role reports that a disk is full, or a message too large",
     "free some space, or raise the field that the message names"},
    {Ending::MEMBER_FAILED, Ending::LIBRARY_FAILED, Follows::kNextGeneration, 0,
     "a role reports an error of a library", "look at its log"},
    {Ending::MEMBER_FAILED, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "a process ends with an exception, or with an exit code that explains no more",
     "look at its log"},
    {Ending::MEMBER_LOST, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "a process was killed, failed a `CHECK`, sent no heartbeat for 8 s, or was started again",
     "look at its log and at the kernel's"},
    {Ending::COORDINATOR_SILENT, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "the coordinator does not answer for 8 s", "look at its log"},
    {Ending::DISK_HANGS, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "a file operation does not return within `checkpoint.limit_seconds`",
     "look at the disk of `run_dir`"},
    {Ending::LOG_NOT_WRITTEN, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "an entry cannot be written into the run's log", "look at the disk of `run_dir`"},
    {Ending::SUPERSEDED, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "another coordinator has begun a later generation", "nothing; the run continues"},
    {Ending::ASKED, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "`satrap scale`: the generation ends with a last cut", "nothing"},
    {Ending::MOVED, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "a process has to leave its machine, for example because its node is drained: the generation "
     "ends with a last cut",
     "nothing"},
    {Ending::OTHER, Ending::UNCLASSIFIED, Follows::kNextGeneration, 0,
     "nobody knows why the generation ended", "look at the logs"},
};

// A failure that never ends a process, because it concerns only a single record. The parser and
// data.max_bad_fraction decide what happens (data_loader/batch/read_progress.h).
struct QuarantineRule {
  const char* what;
  const char* cure;
};
constexpr QuarantineRule kQuarantined[] = {
    {"a record that its parser refuses, with its reason, file and line",
     "look at `quarantine/`; more than `data.max_bad_fraction` of them end the run"},
    {"a record whose label its loss does not take, or which has a number beyond 1e15 after the "
     "transform",
     "the same; a run without a start cut also ends if over 1 % of the first 1,000 labels that a "
     "loader reads are bad (files: before the first step; topics: before they are trained)"},
};

std::string ConsequenceOf(const CauseRule& rule) {
  if (rule.follows == Follows::kRunEnds) return "ends the run";
  if (rule.follows == Follows::kRunEndsForNow) return "ends the run; a change of the job is kept";
  std::string text = "the next generation";
  if (rule.pause_ms > 0) absl::StrAppend(&text, " after ", rule.pause_ms / 1000, " s");
  if (rule.follows == Follows::kRunEndsIfRepeated) {
    absl::StrAppend(&text,
                    "; ends the run if that one, too, ends for this reason before all members are "
                    "ready");
  }
  return text;
}

}  // namespace

absl::Span<const CauseRule> CauseRules() { return kRules; }

const CauseRule& RuleOf(const Ending& ending) {
  const CauseRule* of_why = nullptr;
  for (const CauseRule& rule : kRules) {
    if (rule.why != ending.why()) continue;
    if (rule.kind == ending.kind()) return rule;
    if (rule.kind == Ending::UNCLASSIFIED) of_why = &rule;
  }
  CHECK(of_why != nullptr) << "no rule for " << Ending::Why_Name(ending.why());
  return *of_why;
}

bool IsRepeated(const Ending& now, const Ending& before) {
  return now.before_ready() && before.before_ready() && now.why() == before.why() &&
         now.kind() == before.kind();
}

bool NoRestartCures(const Ending& now, const Ending& before) {
  switch (RuleOf(now).follows) {
    case Follows::kRunEnds:
    case Follows::kRunEndsForNow:
      return true;
    case Follows::kRunEndsIfRepeated:
      return IsRepeated(now, before);
    case Follows::kNextGeneration:
      return false;
  }
  return false;
}

Ending::Kind KindOf(const absl::Status& error) {
  switch (ShortageOf(error)) {
    case Shortage::kMemory:
      return Ending::NO_MEMORY;
    case Shortage::kProcesses:
      return Ending::NO_PROCESSES;
    case Shortage::kDescriptors:
      return Ending::NO_DESCRIPTORS;
    case Shortage::kAddress:
      return Ending::NO_ADDRESS;
    case Shortage::kMount:
      return Ending::MOUNT_AWAY;
    case Shortage::kNone:
      break;
  }
  switch (error.code()) {
    case absl::StatusCode::kOk:
      return Ending::UNCLASSIFIED;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return Ending::PEER_AWAY;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return Ending::LIBRARY_FAILED;
    case absl::StatusCode::kResourceExhausted:
      return Ending::NO_ROOM;
    case absl::StatusCode::kDataLoss:
      return Ending::DAMAGED;
    case absl::StatusCode::kUnimplemented:
      return Ending::NOT_BUILT;
    default:
      return Ending::REFUSED;
  }
}

int64_t PauseBeforeReadyMs(int ends) {
  if (ends <= 0) return 0;
  return std::min(kLongestPauseMs, kFirstPauseMs << std::min(ends - 1, 10));
}

std::string CauseTableText() {
  std::string text = "| what has happened | what follows | what to do |\n|---|---|---|\n";
  for (const Follows follows : {Follows::kRunEnds, Follows::kRunEndsForNow,
                                Follows::kRunEndsIfRepeated, Follows::kNextGeneration}) {
    for (const CauseRule& rule : kRules) {
      if (rule.follows != follows) continue;
      absl::StrAppend(&text, "| ", rule.what, " | ", ConsequenceOf(rule), " | ", rule.cure, " |\n");
    }
  }
  for (const QuarantineRule& rule : kQuarantined) {
    absl::StrAppend(&text, "| ", rule.what, " | it is quarantined, and training continues | ",
                    rule.cure, " |\n");
  }
  return text;
}

}  // namespace satrap
