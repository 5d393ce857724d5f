// Test support: values on both sides of every border of tables and optimizers, to compare what the
// validator and the factories say of them.

#ifndef SATRAP_COMMON_CONFIG_RANGE_CHECK_H_
#define SATRAP_COMMON_CONFIG_RANGE_CHECK_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace satrap {

struct BorderCase {
  std::string field;  // below the message, in the language of SetField
  std::vector<std::string> good;
  std::vector<std::string> bad;
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

// Of DenseOptimizerConfig.
inline std::vector<BorderCase> DenseOptimizerBorders() {
  return {Positive("learning_rate"),
          Positive("adagrad.epsilon"),
          NotNegative("adagrad.initial_accumulator"),
          Decay("adam.beta1"),
          Decay("adam.beta2"),
          Positive("adam.epsilon"),
          NotNegative("l2"),
          {"warmup_steps", {"0", "1152921504606846976"}, {"-1", "1152921504606846977"}}};
}

// Of a TableConfig with one segment.
inline std::vector<BorderCase> TableBorders() {
  const std::string optimizer = "segments[0].optimizer.";
  const std::string initializer = "segments[0].initializer.";
  return {
      {"id", {"0", "65535"}, {"65536", "4294967295"}},
      {"segments[0].dim", {"1", "4096"}, {"0", "-1", "4097", "65536"}},
      Finite(initializer + "constant.value"),
      {initializer + "uniform.low", {"-1", "0.01"}, {"0.02", "-inf", "inf", "nan"}},
      {initializer + "uniform.high", {"-0.01", "1"}, {"-0.02", "-inf", "inf", "nan"}},
      Finite(initializer + "normal.mean"),
      NotNegative(initializer + "normal.stddev"),
      Positive(optimizer + "learning_rate"),
      NotNegative(optimizer + "adagrad.initial_accumulator"),
      Positive(optimizer + "adagrad.epsilon"),
      NotNegative(optimizer + "rowwise_adagrad.initial_accumulator"),
      Positive(optimizer + "rowwise_adagrad.epsilon"),
      Decay(optimizer + "adam.beta1"),
      Decay(optimizer + "adam.beta2"),
      Positive(optimizer + "adam.epsilon"),
      {"learning_rate_schedule.warmup_steps",
       {"0", "1152921504606846976"},
       {"-1", "1152921504606846977"}},
      NotNegative("l2"),
      NotNegative("gradient_clip_norm"),
      NotNegative("weight_bound"),
      {"reserve_rows", {"0", "1099511627776"}, {"-1", "1099511627777"}},
  };
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
