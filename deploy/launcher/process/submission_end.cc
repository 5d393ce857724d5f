#include "deploy/launcher/process/submission_end.h"

#include <algorithm>

#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"

namespace satrap {

absl::optional<SubmissionEnd> EndOfSubmission(const std::string& run_dir, uint64_t submission) {
  const absl::StatusOr<RunLog> log = RunLog::Open(run_dir, DiskFileSystem());
  if (!log.ok()) return absl::nullopt;
  if (SubmissionOf(log->entries()) > submission) return SubmissionEnd();
  const EndEntry* const end = EndOf(log->entries());
  if (end == nullptr) return absl::nullopt;
  // A run that has finished has no later submission. Any other end of an earlier submission does
  // not end this one, which may not have begun yet.
  const bool is_earlier = std::max<uint64_t>(end->submission(), 1) < submission;
  if (is_earlier && StateOf(*end) != FINISHED) return absl::nullopt;
  return SubmissionEnd{*end};
}

bool HasBegun(const std::string& run_dir, uint64_t submission) {
  const absl::StatusOr<RunLog> log = RunLog::Open(run_dir, DiskFileSystem());
  return log.ok() && SubmissionOf(log->entries()) >= submission;
}

}  // namespace satrap
