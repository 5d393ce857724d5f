// Test support: values on both sides of every border of numeric settings, made from their ranges
// (proto/options.proto). Tests use them to check that the validator and the factories enforce the
// ranges.

#ifndef SATRAP_COMMON_CONFIG_TESTING_RANGE_CHECK_H_
#define SATRAP_COMMON_CONFIG_TESTING_RANGE_CHECK_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace satrap {

struct BorderCase {
  std::string field;  // path below the message, as SetField takes it; element 0 of each list
  std::vector<std::string> good;
  std::vector<std::string> bad;
  std::vector<std::string> with;  // assignments below the message that the good values need
  std::string range;              // as an error names it
};

// A rule between fields: the good values of a field whose path ends with `first` need the
// assignment `second`. Both paths begin at the same message. Example: {"momentum.dampening",
// "momentum.form=RATE_OUTSIDE"}.
using Rules = std::vector<std::pair<std::string, std::string>>;

// The borders of every number that has a range, in the message and in the messages below it. If the
// default of another field in the same message is not valid, `with` sets that field.
std::vector<BorderCase> BordersOf(const google::protobuf::Descriptor* message,
                                  const Rules& rules = {});

// The rules between fields of optimizers and of initializers.
Rules OptimizerRules();

// Adds an element to each empty list of messages on the way to `field`.
void AddElements(const std::string& field, google::protobuf::Message* message);

// The paths of all numeric fields of a message and of the messages below it, to find those that
// have no range.
std::set<std::string> NumericFields(const google::protobuf::Descriptor* message);

std::set<std::string> FieldsOf(const std::vector<BorderCase>& cases);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TESTING_RANGE_CHECK_H_
