#include "common/config/testing/range_check.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/config/setting_ranges.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsReal(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

std::string Text(double value) { return absl::StrFormat("%.9g", value); }

// A number slightly above `value` if `sign` is 1, slightly below if it is -1.
double Beside(double value, double sign) {
  return value + sign * (value == 0 ? 1e-30 : std::fabs(value) * 1e-6);
}

void AddRealBorders(const SettingRange& range, BorderCase* border) {
  if (range.has_above()) {
    border->good.push_back(Text(Beside(range.above(), 1)));
    border->bad.push_back(Text(range.above()));
  } else if (range.has_low() && std::isfinite(range.low())) {
    border->good.push_back(Text(range.low()));
    border->bad.push_back(Text(Beside(range.low(), -1)));
  } else {
    border->good.push_back("-1e+30");
    if (!range.has_low()) border->bad.push_back("-inf");
  }
  if (range.has_below()) {
    border->good.push_back(Text(Beside(range.below(), -1)));
    border->bad.push_back(Text(range.below()));
  } else if (range.has_high()) {
    border->good.push_back(Text(range.high()));
    border->bad.push_back(Text(Beside(range.high(), 1)));
  } else {
    border->good.push_back("1e+30");
    border->bad.push_back("inf");
  }
  border->bad.push_back("nan");
}

void AddWholeBorders(const SettingRange& range, bool is_signed, BorderCase* border) {
  const auto low = static_cast<int64_t>(range.has_above() ? range.above() + 1 : range.low());
  CHECK(range.has_above() || range.has_low()) << border->field << " has no least value";
  border->good.push_back(absl::StrCat(low));
  if (is_signed || low > 0) border->bad.push_back(absl::StrCat(low - 1));
  if (!range.has_below() && !range.has_high()) return;
  const auto high = static_cast<int64_t>(range.has_below() ? range.below() - 1 : range.high());
  border->good.push_back(absl::StrCat(high));
  border->bad.push_back(absl::StrCat(high + 1));
}

BorderCase BorderOf(const FieldDescriptor* field, const std::string& path) {
  const SettingRange& of_field = field->options().GetExtension(range);
  BorderCase border;
  border.field = path;
  border.range = RangeText(field);
  if (IsReal(field)) {
    AddRealBorders(of_field, &border);
  } else {
    AddWholeBorders(of_field, field->cpp_type() != FieldDescriptor::CPPTYPE_UINT32, &border);
  }
  return border;
}

// Whether an unset field has a value in the range. A default that the .proto file gives is always
// in the range. Without one the value is 0.
bool IsDefaultLegal(const FieldDescriptor* field) {
  const SettingRange& of_field = field->options().GetExtension(range);
  return field->has_default_value() ||
         (of_field.has_above() ? of_field.above() < 0 : of_field.low() <= 0);
}

void AddBorders(const Descriptor* message, const std::string& prefix,
                std::vector<BorderCase>* borders) {
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    const std::string path = prefix + field->name();
    if (field->message_type() != nullptr) {
      AddBorders(field->message_type(), path + (field->is_repeated() ? "[0]." : "."), borders);
      continue;
    }
    if (!field->options().HasExtension(range)) continue;
    BorderCase border = BorderOf(field, path);
    for (int j = 0; j < message->field_count() && !prefix.empty(); ++j) {
      const FieldDescriptor* other = message->field(j);
      if (other == field || !other->options().HasExtension(range) || other->is_repeated()) continue;
      if (IsDefaultLegal(other)) continue;
      border.with.push_back(
          absl::StrCat(prefix, other->name(), "=", BorderOf(other, path).good.front()));
    }
    borders->push_back(std::move(border));
  }
}

}  // namespace

std::vector<BorderCase> BordersOf(const Descriptor* message, const Rules& rules) {
  std::vector<BorderCase> borders;
  AddBorders(message, "", &borders);
  for (BorderCase& border : borders) {
    for (const auto& [end, assignment] : rules) {
      if (!absl::EndsWith(border.field, end)) continue;
      border.with.push_back(border.field.substr(0, border.field.size() - end.size()) + assignment);
    }
  }
  return borders;
}

Rules OptimizerRules() {
  return {{"momentum.dampening", "momentum.form=RATE_OUTSIDE"},
          {"uniform.low", "uniform.high=2e+30"},
          {"uniform.high", "uniform.low=-2e+30"}};
}

void AddElements(const std::string& field, Message* message) {
  for (const absl::string_view step : absl::StrSplit(field, '.')) {
    const std::string name(step.substr(0, step.find('[')));
    const FieldDescriptor* at = message->GetDescriptor()->FindFieldByName(name);
    CHECK(at != nullptr) << field;
    if (at->message_type() == nullptr) return;
    const auto* reflection = message->GetReflection();
    if (!at->is_repeated()) {
      message = reflection->MutableMessage(message, at);
    } else if (reflection->FieldSize(*message, at) == 0) {
      message = reflection->AddMessage(message, at);
    } else {
      message = reflection->MutableRepeatedMessage(message, at, 0);
    }
  }
}

std::set<std::string> NumericFields(const Descriptor* message) {
  std::set<std::string> paths;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    const std::string& name = field->name();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        for (const std::string& below : NumericFields(field->message_type())) {
          paths.insert(absl::StrCat(name, field->is_repeated() ? "[0]." : ".", below));
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

std::set<std::string> FieldsOf(const std::vector<BorderCase>& cases) {
  std::set<std::string> fields;
  for (const BorderCase& border : cases) fields.insert(border.field);
  return fields;
}

}  // namespace satrap
