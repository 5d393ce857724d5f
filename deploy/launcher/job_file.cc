#include "deploy/launcher/job_file.h"

#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/file/file_system.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {

absl::StatusOr<std::string> WriteJobFile(const std::string& path, const JobConfig& job,
                                         bool required) {
  const std::string text = ResolvedJobText(job);
  const auto written = ReadFile(path, DiskFileSystem());
  if (written.ok() && *written == text) return "";
  const absl::Status status = WriteFileAtomically(path, text);
  if (status.ok()) return "";
  if (required || !written.ok() || written->empty()) return status;
  return absl::StrCat(status.message(), "; it shows an older job of this run");
}

}  // namespace satrap
