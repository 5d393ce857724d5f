#include "common/config/field_path.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Keeps the parser from printing errors: the caller reports them.
class NoErrorLines final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

// One step "name[selector]" of a path; the selector is empty without brackets.
struct Step {
  std::string name;
  std::string selector;
};

absl::Status ParseStep(absl::string_view text, Step* step) {
  const size_t bracket = text.find('[');
  step->name = std::string(text.substr(0, bracket));
  step->selector.clear();
  if (bracket == absl::string_view::npos) return absl::OkStatus();
  if (text.back() != ']') {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' has no closing bracket"));
  }
  step->selector = std::string(text.substr(bracket + 1, text.size() - bracket - 2));
  if (step->selector.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' needs a position or field=value between its brackets"));
  }
  return absl::OkStatus();
}

absl::StatusOr<const FieldDescriptor*> FindField(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (field != nullptr) return field;
  const std::vector<std::string> names = FieldNames(*message.GetDescriptor());
  return absl::InvalidArgumentError(
      absl::StrCat("no field '", name, "' in ", message.GetDescriptor()->name(), "; it has ",
                   absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

// The element of a repeated message field that `selector` picks.
absl::StatusOr<Message*> SelectElement(Message* message, const FieldDescriptor* field,
                                       const std::string& selector) {
  const Reflection* reflection = message->GetReflection();
  const int size = reflection->FieldSize(*message, field);
  int64_t position = 0;
  if (absl::SimpleAtoi(selector, &position)) {
    if (position >= 0 && position < size) {
      return reflection->MutableRepeatedMessage(message, field, static_cast<int>(position));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(field->name(), "[", position, "]: there are ", size, " elements"));
  }
  const std::vector<std::string> parts = absl::StrSplit(selector, absl::MaxSplits('=', 1));
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", selector, "' is neither a position nor field=value"));
  }
  for (int i = 0; i < size; ++i) {
    Message* element = reflection->MutableRepeatedMessage(message, field, i);
    ASSIGN_OR_RETURN(const FieldDescriptor* key, FindField(*element, parts[0]));
    if (key->is_repeated() || key->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    // Compares as text, so that numbers, enums and strings need no separate cases.
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(*element, key, -1, &value);
    if (value == parts[1] || value == absl::StrCat("\"", parts[1], "\"")) return element;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no element of ", field->name(), " has ", selector));
}

// Parses `value` as the text format does, after quoting it if `field` is a string. Sets a singular
// field and appends to a repeated one.
absl::Status AssignScalar(absl::string_view value, const FieldDescriptor* field, Message* message) {
  std::string text(value);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted.push_back('\\');
      quoted.push_back(c);
    }
    text = quoted + "\"";
  }
  NoErrorLines no_lines;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&no_lines);
  if (parser.ParseFieldValueFromString(text, field, message)) return absl::OkStatus();
  std::string expected = field->cpp_type_name();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    std::vector<std::string> names;
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      names.push_back(field->enum_type()->value(i)->name());
    }
    expected = absl::StrCat("one of ", absl::StrJoin(names, ", "), DidYouMean(value, names));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is not a value of ", field->name(), ": expected ", expected));
}

absl::Status AssignLast(absl::string_view value, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (field->is_repeated() || !value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          field->name(), " is a message: set one of its fields, or give an empty value"));
    }
    reflection->MutableMessage(message, field);
    return absl::OkStatus();
  }
  if (!field->is_repeated()) return AssignScalar(value, field, message);
  // Replaces the whole list, because appending would leave no way to shorten it.
  reflection->ClearField(message, field);
  if (value.empty()) return absl::OkStatus();
  for (absl::string_view element : absl::StrSplit(value, ',')) {
    RETURN_IF_ERROR(AssignScalar(element, field, message));
  }
  return absl::OkStatus();
}

absl::Status SetFieldSteps(absl::string_view path, absl::string_view value, Message* message) {
  // Dots inside brackets belong to the selector.
  std::vector<absl::string_view> steps;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && path[i] == '[') ++depth;
    if (i < path.size() && path[i] == ']') --depth;
    if (i == path.size() || (path[i] == '.' && depth == 0)) {
      steps.push_back(path.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    Step step;
    RETURN_IF_ERROR(ParseStep(steps[i], &step));
    ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(*message, step.name));
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (i + 1 == steps.size() && step.selector.empty()) return AssignLast(value, field, message);
    if (!is_message) {
      return absl::InvalidArgumentError(absl::StrCat(step.name, " is not a message"));
    }
    if (field->is_repeated() == step.selector.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(step.name, field->is_repeated() ? " is repeated: name an element in brackets"
                                                       : " is not repeated"));
    }
    if (step.selector.empty()) {
      message = message->GetReflection()->MutableMessage(message, field);
    } else {
      ASSIGN_OR_RETURN(message, SelectElement(message, field, step.selector));
    }
  }
  return absl::InvalidArgumentError("the path ends at a message");
}

}  // namespace

absl::Status SetField(absl::string_view assignment, Message* message) {
  // The first '=' outside brackets ends the path.
  size_t equals = absl::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < assignment.size() && equals == absl::string_view::npos; ++i) {
    if (assignment[i] == '[') ++depth;
    if (assignment[i] == ']') --depth;
    if (assignment[i] == '=' && depth == 0) equals = i;
  }
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--set ", assignment, ": expected path=value"));
  }
  absl::Status status =
      SetFieldSteps(assignment.substr(0, equals), assignment.substr(equals + 1), message);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--set ", assignment, ": ", status.message()));
}

std::string LayerSelector(const ModelConfig& model, int index) {
  const std::string& name = model.layers(index).name();
  const auto has_name = [&](const LayerConfig& layer) { return layer.name() == name; };
  const bool is_unique = std::count_if(model.layers().begin(), model.layers().end(), has_name) == 1;
  return !name.empty() && is_unique ? absl::StrCat("[name=", name, "]")
                                    : absl::StrCat("[", index, "]");
}

std::string ElementSelector(const Message& message, const FieldDescriptor* field, int index) {
  const ModelConfig* const model = google::protobuf::DynamicCastToGenerated<ModelConfig>(&message);
  return model != nullptr && field->number() == ModelConfig::kLayersFieldNumber
             ? LayerSelector(*model, index)
             : absl::StrCat("[", index, "]");
}

void FillDefaults(Message* message) {
  const Descriptor* descriptor = message->GetDescriptor();
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_repeated()) {
        for (int j = 0; j < reflection->FieldSize(*message, field); ++j) {
          FillDefaults(reflection->MutableRepeatedMessage(message, field, j));
        }
      } else if (reflection->HasField(*message, field)) {
        FillDefaults(reflection->MutableMessage(message, field));
      }
      continue;
    }
    // A member of a oneof is not set to its default, because setting it would select that member.
    if (field->is_repeated() || field->containing_oneof() != nullptr ||
        !field->has_default_value() || reflection->HasField(*message, field)) {
      continue;
    }
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(*message, field, -1, &value);
    google::protobuf::TextFormat::ParseFieldValueFromString(value, field, message);
  }
}

}  // namespace satrap
