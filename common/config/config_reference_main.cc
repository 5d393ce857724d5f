// Prints docs/config.md: every message that a job file may hold, with its fields, defaults, ranges
// and comments, from a descriptor set made with --include_source_info. A field without a comment is
// an error.
//
//   config_reference --descriptors FILE > docs/config.md

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/config/setting_ranges.h"
#include "common/config/text_format.h"
#include "common/flags/flags.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::SourceLocation;

// The comments before and after a declaration, joined to one line for a table.
template <typename T>
std::string CommentOf(const T* declaration) {
  SourceLocation location;
  if (!declaration->GetSourceLocation(&location)) return "";
  std::string text = absl::StrCat(location.leading_comments, location.trailing_comments);
  text = absl::StrReplaceAll(text, {{"\n", " "}, {"|", "\\|"}, {"<", "&lt;"}});
  while (text.find("  ") != std::string::npos) text = absl::StrReplaceAll(text, {{"  ", " "}});
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string TypeOf(const FieldDescriptor* field) {
  std::string type = field->type_name();
  if (field->message_type() != nullptr)
    type = absl::StrCat("[", field->message_type()->full_name(), "](#",
                        absl::StrReplaceAll(field->message_type()->full_name(), {{".", ""}}), ")");
  if (field->enum_type() != nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      names.push_back(absl::StrCat("`", field->enum_type()->value(i)->name(), "`"));
    }
    type = absl::StrJoin(names, " ");
  }
  return field->is_repeated() ? absl::StrCat("repeated ", type) : type;
}

std::string DefaultOf(const FieldDescriptor* field) {
  if (field->containing_oneof() != nullptr) {
    return absl::StrCat("one of `", field->containing_oneof()->name(), "`");
  }
  if (!field->has_default_value()) return "";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(field->default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(field->default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(field->default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(field->default_value_uint64());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(field->default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(field->default_value_float());
    case FieldDescriptor::CPPTYPE_BOOL:
      return field->default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return field->default_value_enum()->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat("\"", field->default_value_string(), "\"");
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "";
  }
  return "";
}

// The range and the unit: "[1, 256]", "finite and positive, s", "[0, 2^60] steps".
std::string RangeOf(const FieldDescriptor* field) {
  std::string text;
  if (field->options().HasExtension(range)) {
    text = std::string(absl::StripPrefix(RangeText(field), "in "));
  }
  for (int power = 62; power >= 20; --power) {
    const std::string digits = absl::StrCat(int64_t{1} << power);
    text = absl::StrReplaceAll(text, {{digits, absl::StrCat("2^", power)}});
  }
  if (!field->options().HasExtension(unit)) return text;
  const char* const between = text.empty() ? "" : absl::StartsWith(text, "[") ? " " : ", ";
  return absl::StrCat(text, between, field->options().GetExtension(unit));
}

// Maps the full name of each field and message to whether it may change when a run is resumed. A
// field that several paths reach may have several answers.
using Changes = std::map<std::string, std::set<AtResume::Change>>;

// `above` applies to fields without an option of their own (proto/options.proto).
void FindChanges(const Descriptor* message, AtResume::Change above, Changes* changes) {
  if (!(*changes)[message->full_name()].insert(above).second) return;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    const auto& options = field->options();
    const AtResume::Change change =
        options.HasExtension(resume) ? options.GetExtension(resume) : above;
    (*changes)[field->full_name()].insert(change);
    if (field->message_type() != nullptr) FindChanges(field->message_type(), change, changes);
  }
}

std::string ChangeOf(const FieldDescriptor* field, const Changes& changes) {
  const std::set<AtResume::Change>& found = changes.at(field->full_name());
  if (found.size() > 1) return "where its message may";
  switch (*found.begin()) {
    case AtResume::MUST_STAY:
      return "no";
    case AtResume::MAY_CHANGE:
      return "yes";
    case AtResume::UNLESS_REPRODUCIBLE:
      return "unless reproducible";
    case AtResume::UNLESS_SYNC:
      return "unless SYNC";
  }
  return "";
}

// The text up to the first period after which a word with a capital letter begins. So the period in
// "Wang et al. 2017" does not end it.
std::string FirstSentence(const std::string& text) {
  for (size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1)) {
    if (at + 2 < text.size() && std::isupper(static_cast<unsigned char>(text[at + 2])) != 0) {
      return text.substr(0, at + 1);
    }
  }
  return text;
}

// The field's comment; if it has none, the first sentence of the comment on its message type.
std::string MeaningOf(const FieldDescriptor* field) {
  std::string comment = CommentOf(field);
  if (comment.empty() && field->message_type() != nullptr) {
    comment = FirstSentence(CommentOf(field->message_type()));
  }
  return comment;
}

// Prints the sections of `message` and of the messages that its fields hold. Adds the names of
// fields without a comment to `silent`.
void PrintMessage(const Descriptor* message, const Changes& changes,
                  absl::flat_hash_set<std::string>* printed, std::vector<std::string>* silent) {
  if (!printed->insert(message->full_name()).second) return;
  std::printf("\n## %s\n\n%s\n", message->full_name().c_str(), CommentOf(message).c_str());
  if (message->field_count() > 0) {
    std::printf(
        "\n| field | type | default | range | may change | meaning |\n"
        "|---|---|---|---|---|---|\n");
  }
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    std::string comment = MeaningOf(field);
    if (comment.empty()) silent->push_back(field->full_name());
    if (field->enum_type() != nullptr) {
      for (int j = 0; j < field->enum_type()->value_count(); ++j) {
        const std::string meaning = CommentOf(field->enum_type()->value(j));
        if (!meaning.empty()) {
          absl::StrAppend(&comment, comment.empty() ? "" : " ", "`",
                          field->enum_type()->value(j)->name(),
                          "`: ", absl::StripSuffix(meaning, "."), ".");
        }
      }
    }
    std::printf("| `%s` | %s | %s | %s | %s | %s |\n", field->name().c_str(), TypeOf(field).c_str(),
                DefaultOf(field).c_str(), RangeOf(field).c_str(), ChangeOf(field, changes).c_str(),
                comment.c_str());
  }
  for (int i = 0; i < message->field_count(); ++i) {
    if (message->field(i)->message_type() != nullptr) {
      PrintMessage(message->field(i)->message_type(), changes, printed, silent);
    }
  }
}

int Run(const std::string& path) {
  const auto bytes = ReadWholeFile(path);
  google::protobuf::FileDescriptorSet files;
  if (!bytes.ok() || !files.ParseFromString(*bytes)) {
    std::fprintf(stderr, "cannot read the descriptor set %s\n", path.c_str());
    return 1;
  }
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) {
    if (pool.BuildFile(file) == nullptr) return 1;
  }
  const Descriptor* job = pool.FindMessageTypeByName("satrap.JobConfig");
  if (job == nullptr) return 1;
  std::printf(
      "# Configuration reference\n\n"
      "Use this page to look up a field of a job file: its type, default, range and meaning, and "
      "whether it may change\nin a run that has begun. `./satrap validate JOB` checks a job "
      "file.\n\n"
      "Generated from the comments of `proto/job.proto` and what it imports; do not edit. Make it "
      "again with\n"
      "`bazel build //common/config:config_reference_md && cp bazel-bin/common/config/config.md "
      "docs/config.md`.\n\n"
      "A job is one text file (`job.textproto`) holding a `JobConfig`. Any field can be set on the "
      "command line:\n"
      "`--set embedding_ps.replicas=4 --set 'tables[name=ids].segments[0].dim=8'`. "
      "A list of\nnumbers or names is set as a whole, with commas and without quotes: `--set "
      "data.train_files=a.csv,b.csv`.\n\n"
      "A message is written as a block in braces. A field that is a list is given once for each of "
      "its values:\n\n"
      "    mode: SYNC\n"
      "    embedding_ps { replicas: 2 }\n"
      "    tables {\n"
      "      name: \"ids\"\n"
      "      segments {\n"
      "        name: \"embedding\"\n"
      "        dim: 16\n"
      "        optimizer { learning_rate: 0.05 adagrad {} }\n"
      "      }\n"
      "      segments { name: \"linear\" dim: 1 }\n"
      "    }\n\n"
      "\"may change\" says whether `satrap resume --set` may change the value in a run that has "
      "begun. \"unless\nreproducible\" means that a reproducible run keeps the value, because it "
      "determines the bits of the results.\n\"unless SYNC\" means that a run in mode SYNC keeps "
      "the value. \"no\" for a message means that the message must be\nneither added nor "
      "removed; the message's own table says which of its fields may change.\n");
  Changes changes;
  FindChanges(job, AtResume::MUST_STAY, &changes);
  absl::flat_hash_set<std::string> printed;
  std::vector<std::string> silent;
  PrintMessage(job, changes, &printed, &silent);
  for (const std::string& field : silent) {
    std::fprintf(stderr, "%s has no comment: say in the .proto file what it does\n", field.c_str());
  }
  return silent.empty() ? 0 : 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  std::string descriptors;
  const auto code = satrap::TakeProgramFlags(
      argc, argv, "usage: config_reference --descriptors FILE > docs/config.md",
      {satrap::Required(satrap::TextFlag("descriptors", "FILE",
                                         "the descriptor set of the .proto files, which protoc "
                                         "makes with --include_source_info",
                                         &descriptors))});
  if (code.has_value()) return *code;
  return satrap::Run(descriptors);
}
