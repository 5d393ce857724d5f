// Converts messages to JSON and back, by reflection: the lines of metrics.jsonl, report.json and
// what benchmarks print (docs/formats.md, proto/report.proto).
//
// A message is an object whose keys are the names of its fields, in the order in which the .proto
// declares them; a field that is not set is left out. A repeated field is an array, even if it is
// empty. Exception: a list of messages with exactly two fields, `name` and `value` or `values`, is
// an object with the names as keys, and is left out if it is empty. A double that is not finite is
// null. (Protobuf's own JSON writes 64-bit numbers as strings, NaN as "NaN", and names in no fixed
// order.)
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_JSON_JSON_H_
#define SATRAP_COMMON_JSON_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace satrap {

// The printf format of doubles. Null: the fewest digits that read back as the same double.
using NumberFormat = const char*;
inline constexpr NumberFormat kShortestNumbers = nullptr;

// The message on one line, without a line end. Bytes of strings that are not valid UTF-8 are kept.
// REQUIRES: the fields are int64, uint64, double, bool, string and messages of these
std::string JsonOf(const google::protobuf::Message& message,
                   NumberFormat format = kShortestNumbers);

// Prints the message as a line to stdout and flushes, because whatever the program does next may
// take long or be interrupted. Nine digits are enough to distinguish floats.
void PrintJson(const google::protobuf::Message& message, NumberFormat format = "%.9g");

// `text` is a JSON object. Sets the fields that it contains. Unknown keys are ignored, and null is
// read as NaN. INVALID_ARGUMENT names the place and what is expected there; `message` is then
// partly set.
absl::Status ParseJson(absl::string_view text, google::protobuf::Message* message);

}  // namespace satrap

#endif  // SATRAP_COMMON_JSON_JSON_H_
