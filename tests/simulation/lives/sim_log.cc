#include "tests/simulation/lives/sim_log.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"

namespace satrap::simulation {
namespace {

constexpr size_t kDigits = 8;

// The names of drafts are longer.
bool IsName(const std::string& name) {
  return name.size() == kDigits && name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

absl::StatusOr<SimLog> SimLogReader::Read() {
  SimLog log;
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(folder_);
  if (absl::IsNotFound(names.status())) return log;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (IsName(name)) log.number = std::max<size_t>(log.number, std::stoul(name));
  }
  std::vector<const File*> files;  // from the newest down to the newest COMPACTED entry
  for (size_t number = log.number; number > 0 && log.compacted_number == 0; --number) {
    ASSIGN_OR_RETURN(const File* const file, ReadEntry(absl::StrFormat("%0*d", kDigits, number)));
    files.push_back(file);
    if (!file->is_compacted) continue;
    log.compacted_number = number;
    log.left_out_cuts = file->left_out_cuts;
  }
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    log.entries.insert(log.entries.end(), (*file)->entries.begin(), (*file)->entries.end());
  }
  return log;
}

absl::StatusOr<const SimLogReader::File*> SimLogReader::ReadEntry(const std::string& name) {
  const std::string path = absl::StrCat(folder_, "/", name);
  absl::StatusOr<std::string> text = ReadFile(path, file_system_);
  if (absl::IsNotFound(text.status())) {
    return absl::DataLossError(absl::StrCat(path, " is missing, and the log has a later entry"));
  }
  RETURN_IF_ERROR(text.status());
  File& file = files_[name];
  if (!file.entries.empty() && file.text == *text) return &file;
  file = File();
  RunLogEntry entry;
  RETURN_IF_ERROR(ReadCheckedText(path, file_system_, &entry));
  if (entry.kind_case() == RunLogEntry::KIND_NOT_SET) {
    return absl::DataLossError(absl::StrCat(path, " is of no kind"));
  }
  file.is_compacted = entry.has_compacted();
  file.left_out_cuts = entry.compacted().left_out_cuts();
  if (file.is_compacted) {
    for (RunLogEntry& kept : *entry.mutable_compacted()->mutable_entries()) {
      file.entries.push_back(std::make_shared<SimLogEntry>(std::move(kept)));
    }
  } else {
    file.entries.push_back(std::make_shared<SimLogEntry>(std::move(entry)));
  }
  file.text = *std::move(text);
  return &file;
}

}  // namespace satrap::simulation
