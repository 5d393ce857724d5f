// The ranges of numeric settings, which are options of the fields (proto/options.proto). These
// functions check a message against its ranges, and name a range in errors and in docs/config.md.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_SETTING_RANGES_H_
#define SATRAP_COMMON_CONFIG_SETTING_RANGES_H_

#include <string>

#include "common/base/problems.h"
#include "google/protobuf/message.h"
#include "proto/options.pb.h"

namespace satrap {

// What a value must be: "in [1, 256]", "finite and positive", "above 0 and at most 1".
std::string RangeText(const SettingRange& range);

// Adds "PATH: must be RANGE, got VALUE" for every number that is outside the range of its field, in
// `message` and in the messages below it that are set. A number that is not set is checked with its
// default. `prefix` begins the path of each field: "" or "tables[0].", for example.
void CheckRanges(const google::protobuf::Message& message, const std::string& prefix,
                 Problems* problems);

// Like CheckRanges, but does not check the messages below `message`.
void CheckOwnRanges(const google::protobuf::Message& message, const std::string& prefix,
                    Problems* problems);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_SETTING_RANGES_H_
