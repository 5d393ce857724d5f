// A message as protobuf text with a last line "# crc32c XXXXXXXX" over all bytes before it: people
// can read it, and damage is detected. Manifests and the entries of a run's log are such files.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_CHECKED_TEXT_H_
#define SATRAP_COMMON_CHECKPOINT_CHECKED_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/file/file_system.h"
#include "google/protobuf/message.h"

namespace satrap {

std::string CheckedText(const google::protobuf::Message& message);

// Writes `message` to a new file `path` and syncs it; the name is not durable yet. After an error
// the file is removed. Errors are those of FileSystem.
absl::Status WriteCheckedText(const std::string& path, const google::protobuf::Message& message,
                              FileSystem* file_system);

// ReadCheckedText reads such a file into `message`. `unknown` decides whether fields that the
// message does not have are refused or ignored. NOT_FOUND if there is no such file. DATA_LOSS,
// naming the file, if its checksum does not match or if it holds something other than `message`.
// `crc32c`, if not null, receives the checksum of the last line.
enum class UnknownFields { kRefused, kLeftOut };
absl::Status ReadCheckedText(const std::string& path, FileSystem* file_system,
                             google::protobuf::Message* message,
                             UnknownFields unknown = UnknownFields::kRefused,
                             uint32_t* crc32c = nullptr);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_CHECKED_TEXT_H_
