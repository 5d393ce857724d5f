// The ranges of numeric settings, which are options of the fields (proto/options.proto). These
// functions check a message against its ranges, and name a range in errors and in docs/config.md.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_SETTING_RANGES_H_
#define SATRAP_COMMON_CONFIG_SETTING_RANGES_H_

#include <string>

#include "absl/status/status.h"
#include "common/base/problems.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace satrap {

// What the values of a field must be: "in [1, 256]", "at least 1", "finite and positive", "above 0
// and at most 1". REQUIRES: the field is a number and has a range
std::string RangeText(const google::protobuf::FieldDescriptor* field);

// Adds "PATH: must be RANGE, got VALUE" for every number that is outside the range of its field, in
// `message` and in the messages below it that are set. A number that is not set is checked with its
// default. `prefix` begins the path of each field: "" or "tables[0].", for example.
void CheckRanges(const google::protobuf::Message& message, const std::string& prefix,
                 Problems* problems);

// For factories: OK, or INVALID_ARGUMENT with the first problem that CheckRanges finds.
absl::Status RangeStatus(const google::protobuf::Message& message);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_SETTING_RANGES_H_
