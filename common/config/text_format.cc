#include "common/config/text_format.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

// A suggestion for an unknown field, to be appended to the parser's message; empty if no field of
// the type has a similar name. The parser reports an unknown field only as text, 'Message type "T"
// has no field named "F".', so the names are extracted from that text.
std::string MeantField(const std::string& message, const google::protobuf::DescriptorPool& pool) {
  const std::vector<std::string> words = absl::StrSplit(message, '"');
  if (words.size() != 5 || words[2] != " has no field named ") return "";
  const google::protobuf::Descriptor* type = pool.FindMessageTypeByName(words[1]);
  return type == nullptr ? "" : DidYouMean(words[3], FieldNames(*type));
}

class ErrorLines final : public google::protobuf::io::ErrorCollector {
 public:
  // `pool` holds the type of the message that is to be parsed, and the types of its fields.
  ErrorLines(absl::string_view name, const google::protobuf::DescriptorPool* pool)
      : name_(name), pool_(pool) {}

  // The tokenizer counts lines and columns from 0; people count from 1.
  void AddError(int line, int column, const std::string& message) override {
    const std::string meant = MeantField(message, *pool_);
    lines_.push_back(absl::StrCat(name_, ":", line + 1, ":", column + 1, ": ",
                                  meant.empty() ? message : absl::StripSuffix(message, "."),
                                  meant));
  }
  void AddWarning(int line, int column, const std::string& message) override {
    AddError(line, column, message);
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  const std::string name_;
  const google::protobuf::DescriptorPool* const pool_;
  std::vector<std::string> lines_;
};

}  // namespace

absl::Status ParseText(absl::string_view text, absl::string_view name,
                       google::protobuf::Message* message) {
  ErrorLines errors(name, message->GetDescriptor()->file()->pool());
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&input, message) && errors.lines().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors.lines(), "\n"));
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return FileError("open", path);
  std::string content;
  char chunk[1 << 16];
  size_t size = 0;
  while ((size = std::fread(chunk, 1, sizeof(chunk), file.get())) > 0) content.append(chunk, size);
  if (std::ferror(file.get()) != 0) return FileError("read", path);
  return content;
}

absl::Status ParseTextFile(const std::string& path, google::protobuf::Message* message) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseText(text, path, message);
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor.field_count(); ++i) names.push_back(descriptor.field(i)->name());
  return names;
}

std::string ToText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(message, &text);
  return text;
}

}  // namespace satrap
