#include "deploy/pod/restart_rule.h"

#include <sys/wait.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

constexpr int64_t kFinalMs = 5000;
constexpr int64_t kLongestFinalMs = 30000;
// A process that left no ending counts as having been ready if it lived for at least this long.
constexpr int64_t kReadyMs = 10000;

bool ExitedWith(const RoleEnd& end, int code) {
  return WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == code;
}

bool AsksForRestart(const RoleEnd& end) {
  return WIFSIGNALED(end.wait_status) || ExitedWith(end, kExitStartAgain) ||
         ExitedWith(end, kExitEchoStartAgain);
}

}  // namespace

RoleEnd EndOf(Role role, int index, int wait_status, const std::string& ending_path,
              int64_t lived_ms, const std::string& how) {
  RoleEnd end;
  end.wait_status = wait_status;
  end.how = how.empty() ? DescribeExit(wait_status) : how;
  end.lived_ms = lived_ms;
  const absl::optional<Ending> left = ReadEnding(ending_path);
  end.has_left = left.has_value();
  end.ending =
      left.value_or(EndingOf(WIFSIGNALED(wait_status) ? Ending::MEMBER_LOST : Ending::MEMBER_FAILED,
                             role, index, absl::StrCat(MemberName(role, index), " ", end.how)));
  if (!end.ending.has_before_ready()) end.ending.set_before_ready(lived_ms < kReadyMs);
  return end;
}

Ending ToldByTheNext(Role role, int index, const RoleEnd& end) {
  Ending told = EndingOf(end.ending.why(), role, index,
                         end.has_left ? absl::StrCat(end.how, ": ", end.ending.text()) : end.how);
  told.mutable_origin()->set_pid(end.pid);
  return told;
}

int64_t RoleRestarts::PauseMs(const RoleEnd& end) {
  before_ready_ = end.ending.before_ready() ? before_ready_ + 1 : 0;
  final_ = AsksForRestart(end) ? 0 : final_ + 1;
  // There is no pause after the first end.
  int64_t pause_ms = std::max(PauseBeforeReadyMs(before_ready_ - 1), RuleOf(end.ending).pause_ms);
  if (final_ > 0) {
    pause_ms = std::max(pause_ms, std::min(kLongestFinalMs, kFinalMs << std::min(final_ - 1, 10)));
  }
  return pause_ms;
}

int64_t CoordinatorRestarts::PauseMs(const RoleEnd& end, const std::string& cut) {
  if (cut != cut_) count_.OnCut();
  cut_ = cut;
  const bool is_wish = end.ending.why() == Ending::ASKED || end.ending.why() == Ending::MOVED;
  if (is_wish && !ExitedWith(end, 0)) {
    count_.AddWish();
    return 0;
  }
  // The coordinator has served the end that is in the log, or has refused to begin.
  if (ExitedWith(end, 0) || ExitedWith(end, kExitFailed)) return after_the_end_.PauseMs(end);
  // The log counts the restarts, too, so after them the next coordinator ends the run.
  return count_.AddFailure(end.ending, max_restarts_).value_or(kFinalMs);
}

}  // namespace satrap
