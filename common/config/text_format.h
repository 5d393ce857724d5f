// Strict reading and writing of protobuf text.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_TEXT_FORMAT_H_
#define SATRAP_COMMON_CONFIG_TEXT_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace satrap {

// Reads `text` into `*message`, replacing its content. INVALID_ARGUMENT with one line per error,
// "NAME:LINE:COLUMN: what", for syntax errors, unknown fields, unknown enum values and repeated
// singular fields; the error line for an unknown field ends with the field that was probably meant.
// After an error `*message` is unspecified.
absl::Status ParseText(absl::string_view text, absl::string_view name,
                       google::protobuf::Message* message);

// Like ParseText, but reads a file. If the file cannot be read, errors are those of ReadWholeFile.
absl::Status ParseTextFile(const std::string& path, google::protobuf::Message* message);

// The whole content of a file. Errors name the file and are those of FileError
// (common/file/file_error.h).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// The names of a message's fields, in the order of their declaration.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& descriptor);

// `message` as text that ParseText reads back.
std::string ToText(const google::protobuf::Message& message);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TEXT_FORMAT_H_
