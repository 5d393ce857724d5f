// Messages as JSON, and back, by reflection: the lines of metrics.jsonl, report.json and what
// benchmarks print (docs/formats.md, proto/report.proto).
//
// A message is an object whose keys are the names of its fields, in the order in which the .proto
// declares them; a field that is not set is left out. A repeated field is an array, even if it is
// empty. But if its messages have two fields, `name` and `value` or `values`, it is an object with
// the names as keys, and is left out if it is empty. A double that is not finite is null.
// (Protobuf's own JSON writes numbers of 64 bits as strings, NaN as "NaN", and names in no order.)
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_JSON_JSON_H_
#define SATRAP_COMMON_JSON_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace satrap {

// How printf writes doubles; null: with the fewest digits that read back as the same double.
using NumberFormat = const char*;
inline constexpr NumberFormat kShortestNumbers = nullptr;

// The message on one line, without a line end. Bytes of strings that are not valid UTF-8 are kept.
// REQUIRES: the fields are int64, uint64, double, bool, string and messages of these
std::string JsonOf(const google::protobuf::Message& message,
                   NumberFormat format = kShortestNumbers);

// Prints the message as a line to stdout and flushes, because what follows may take long or be cut
// off. Nine digits distinguish floats.
void PrintJson(const google::protobuf::Message& message, NumberFormat format = "%.9g");

// Sets the fields that the text, an object, has. Other keys are ignored, and null is read as NaN.
// INVALID_ARGUMENT names the place and what is expected there, and leaves `message` partly set.
absl::Status ParseJson(absl::string_view text, google::protobuf::Message* message);

}  // namespace satrap

#endif  // SATRAP_COMMON_JSON_JSON_H_
