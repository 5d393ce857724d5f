#include "common/config/setting_ranges.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/field_path.h"
#include "google/protobuf/descriptor.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsReal(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

// Compares in the field's own type, because a double cannot represent every int64 near 2^60.
template <typename T>
bool Holds(const SettingRange& range, T value) {
  const bool low = range.has_above() ? value > static_cast<T>(range.above())
                   : range.has_low() ? value >= static_cast<T>(range.low())
                                     : std::isfinite(static_cast<double>(value));
  const bool high = range.has_below()  ? value < static_cast<T>(range.below())
                    : range.has_high() ? value <= static_cast<T>(range.high())
                                       : std::isfinite(static_cast<double>(value));
  return low && high;
}

// Writes whole numbers with all their digits; StrCat would shorten a double.
std::string EndText(double end) {
  const bool whole = std::floor(end) == end && std::fabs(end) < 0x1p63;
  return whole ? absl::StrCat(static_cast<int64_t>(end)) : absl::StrCat(end);
}

template <typename T>
void CheckValue(const FieldDescriptor* field, const std::string& path, T value,
                Problems* problems) {
  if (Holds(field->options().GetExtension(range), value)) return;
  problems->Add(path, absl::StrCat("must be ", RangeText(field), ", got ", value));
}

// Checks element `index` of a list or, if `index` is -1, the value of a field that is not a list.
void CheckNumber(const Message& message, const FieldDescriptor* field, int index,
                 const std::string& path, Problems* problems) {
  const Reflection& get = *message.GetReflection();
  const bool list = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckValue<int64_t>(
          field, path,
          list ? get.GetRepeatedInt32(message, field, index) : get.GetInt32(message, field),
          problems);
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckValue<int64_t>(
          field, path,
          list ? get.GetRepeatedUInt32(message, field, index) : get.GetUInt32(message, field),
          problems);
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckValue<int64_t>(
          field, path,
          list ? get.GetRepeatedInt64(message, field, index) : get.GetInt64(message, field),
          problems);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return CheckValue<double>(
          field, path,
          list ? get.GetRepeatedFloat(message, field, index) : get.GetFloat(message, field),
          problems);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckValue<double>(
          field, path,
          list ? get.GetRepeatedDouble(message, field, index) : get.GetDouble(message, field),
          problems);
    default:
      CHECK(false) << field->full_name() << " has a range but is not a number that can have one";
  }
}

void CheckField(const Message& message, const FieldDescriptor* field, const std::string& path,
                Problems* problems) {
  if (!field->options().HasExtension(range)) return;
  if (!field->is_repeated()) return CheckNumber(message, field, -1, path, problems);
  const int size = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < size; ++i) {
    CheckNumber(message, field, i, absl::StrCat(path, "[", i, "]"), problems);
  }
}

void CheckBelow(const Message& message, const FieldDescriptor* field, const std::string& path,
                Problems* problems) {
  const Reflection& get = *message.GetReflection();
  if (!field->is_repeated()) {
    if (!get.HasField(message, field)) return;
    return CheckRanges(get.GetMessage(message, field), path + ".", problems);
  }
  for (int i = 0; i < get.FieldSize(message, field); ++i) {
    CheckRanges(get.GetRepeatedMessage(message, field, i),
                absl::StrCat(path, ElementSelector(message, field, i), "."), problems);
  }
}

}  // namespace

std::string RangeText(const FieldDescriptor* field) {
  const SettingRange& range = field->options().GetExtension(satrap::range);
  const bool no_low = !range.has_above() && (!range.has_low() || std::isinf(range.low()));
  if (!IsReal(field) && range.has_low() && !range.has_high()) {
    return absl::StrCat("at least ", EndText(range.low()));
  }
  if (!range.has_high() && !range.has_below()) {
    if (no_low) return "finite";
    if (range.has_above() && range.above() == 0) return "finite and positive";
    if (range.has_low() && range.low() == 0) return "finite and not negative";
    return range.has_above() ? absl::StrCat("finite and above ", EndText(range.above()))
                             : absl::StrCat("finite and at least ", EndText(range.low()));
  }
  const std::string high = EndText(range.has_below() ? range.below() : range.high());
  if (range.has_low() && !no_low) {
    return absl::StrCat("in [", EndText(range.low()), ", ", high, range.has_below() ? ")" : "]");
  }
  return absl::StrCat(no_low ? "" : absl::StrCat("above ", EndText(range.above()), " and "),
                      range.has_below() ? "below " : "at most ", high);
}

void CheckRanges(const Message& message, const std::string& prefix, Problems* problems) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CheckBelow(message, field, path, problems);
    } else {
      CheckField(message, field, path, problems);
    }
  }
}

absl::Status RangeStatus(const Message& message) {
  Problems problems;
  CheckRanges(message, "", &problems);
  return problems.First();
}

}  // namespace satrap
