// Test support: values on both sides of every border of numeric fields, to compare what the validator
// and the factories say of them. optimizer_borders.h and table_borders.h have those of messages.

#ifndef SATRAP_COMMON_CONFIG_RANGE_CHECK_H_
#define SATRAP_COMMON_CONFIG_RANGE_CHECK_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace satrap {

struct BorderCase {
  std::string field;  // below the message, in the language of SetField
  std::vector<std::string> good;
  std::vector<std::string> bad;
  std::vector<std::string> with = {};  // assignments below the message that the good values need
};

inline BorderCase Positive(const std::string& field) {
  return {field, {"1e-30", "1e+30"}, {"0", "-1e-30", "inf", "nan"}};
}
inline BorderCase NotNegative(const std::string& field) {
  return {field, {"0", "1e+30"}, {"-1e-30", "inf", "nan"}};
}
inline BorderCase Finite(const std::string& field) {
  return {field, {"0", "-1", "1"}, {"inf", "-inf", "nan"}};
}
inline BorderCase Decay(const std::string& field) {
  return {field, {"0", "0.999999"}, {"-1e-30", "1", "nan"}};
}

inline BorderCase Share(const std::string& field, const std::string& with) {
  return {field, {"0", "1"}, {"-1e-30", "1.001", "nan"}, {with}};
}
inline BorderCase Steps(const std::string& field, int least, std::vector<std::string> with = {}) {
  return {field,
          {absl::StrCat(least), "1152921504606846976"},
          {absl::StrCat(least - 1), "1152921504606846977"},
          std::move(with)};
}

// Of a LearningRateSchedule at `path`.
inline std::vector<BorderCase> ScheduleBorders(const std::string& path) {
  const std::string step = path + ".step.";
  const std::string exponential = path + ".exponential.";
  const std::string polynomial = path + ".polynomial.";
  const std::string cosine = path + ".cosine.";
  const std::string cool_down = path + ".cool_down.";
  BorderCase power = Positive(polynomial + "power");
  power.with = {polynomial + "decay_steps=1"};
  return {Steps(path + ".warmup_steps", 0),
          Steps(step + "every_steps", 1),
          Share(step + "factor", step + "every_steps=1"),
          Steps(exponential + "decay_steps", 1),
          Share(exponential + "factor", exponential + "decay_steps=1"),
          Steps(polynomial + "start_step", 0, {polynomial + "decay_steps=1"}),
          Steps(polynomial + "decay_steps", 1),
          power,
          Share(polynomial + "end_factor", polynomial + "decay_steps=1"),
          Steps(cosine + "start_step", 0, {cosine + "decay_steps=1"}),
          Steps(cosine + "decay_steps", 1),
          Share(cosine + "end_factor", cosine + "decay_steps=1"),
          Steps(cool_down + "total_steps", 1),
          Share(cool_down + "share", cool_down + "total_steps=1"),
          Share(cool_down + "end_factor", cool_down + "total_steps=1")};
}

// The paths of all numeric fields of a message and of the messages below it, to find those that
// a list above misses.
inline std::set<std::string> NumericFields(const google::protobuf::Descriptor* message) {
  using google::protobuf::FieldDescriptor;
  std::set<std::string> paths;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    const std::string name = field->name() + (field->is_repeated() ? "[0]" : "");
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        for (const std::string& below : NumericFields(field->message_type())) {
          paths.insert(absl::StrCat(name, ".", below));
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
      case FieldDescriptor::CPPTYPE_BOOL:
      case FieldDescriptor::CPPTYPE_ENUM:
        break;
      default:
        paths.insert(name);
    }
  }
  return paths;
}

inline std::set<std::string> FieldsOf(const std::vector<BorderCase>& cases) {
  std::set<std::string> fields;
  for (const BorderCase& border : cases) fields.insert(border.field);
  return fields;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_RANGE_CHECK_H_
