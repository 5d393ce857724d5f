#include "common/checkpoint/checked_text.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

// Keeps the parser silent: without a collector it would write to stderr which fields it skips.
class NoErrors final : public google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

std::string LastLine(absl::string_view text) {
  return absl::StrFormat("# crc32c %08x\n", Crc32c(text));
}

}  // namespace

std::string CheckedText(const google::protobuf::Message& message) {
  const std::string text = ToText(message);
  return text + LastLine(text);
}

absl::Status WriteCheckedText(const std::string& path, const google::protobuf::Message& message,
                              FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system->Create(path));
  absl::Status status = file->Append(CheckedText(message));
  if (status.ok()) status = file->Sync();
  file.reset();
  // A file whose sync has failed is never used again: its bytes may be lost even if a later sync
  // succeeds.
  if (!status.ok()) file_system->Remove(path).IgnoreError();
  return status;
}

absl::Status ReadCheckedText(const std::string& path, FileSystem* file_system,
                             google::protobuf::Message* message, UnknownFields unknown,
                             uint32_t* crc32c) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path, file_system));
  // Tests the checksum before parsing, so that damage is reported as damage and not as a syntax
  // error.
  const size_t last_line = content.rfind("# crc32c ");
  if (last_line == std::string::npos ||
      content.substr(last_line) != LastLine(absl::string_view(content).substr(0, last_line))) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: its checksum does not match"));
  }
  if (crc32c != nullptr) *crc32c = Crc32c(absl::string_view(content).substr(0, last_line));
  if (unknown == UnknownFields::kLeftOut) {
    google::protobuf::TextFormat::Parser parser;
    parser.AllowUnknownField(true);
    NoErrors no_errors;
    parser.RecordErrorsTo(&no_errors);
    if (parser.ParseFromString(content, message)) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path, " has the right checksum, but its text cannot be parsed"));
  }
  const absl::Status status = ParseText(content, path, message);
  return status.ok() ? status : absl::DataLossError(status.message());
}

}  // namespace satrap
