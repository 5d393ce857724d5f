#include "deploy/pod/members_wait.h"

#include "common/refusal/refusal.h"
#include "deploy/launcher/process/submission_end.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 1000;
constexpr int64_t kToldMs = 5000;
constexpr int kSignalExit = 128;

}  // namespace

std::vector<Flag> MembersFlags::Table() {
  return {
      Required(TextFlag("config", "FILE", "the job, of which run_dir is read", &config)),
      NumberFlag("submission", "N", "which submission of the run to wait for (default: 1)",
                 &submission, 1),
  };
}

int AwaitSubmissionEnd(const std::string& run_dir, uint64_t submission,
                       const std::function<int(int64_t timeout_ms)>& wait) {
  const RefusalWatch refusal(run_dir, submission);
  while (!EndOfSubmission(run_dir, submission).has_value() && !refusal.New().has_value()) {
    if (const int signal = wait(kPeriodMs); signal != 0) return kSignalExit + signal;
  }
  const int signal = wait(kToldMs);
  return signal == 0 ? 0 : kSignalExit + signal;
}

}  // namespace satrap
