#include "common/config/text_format.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

class ErrorLines final : public google::protobuf::io::ErrorCollector {
 public:
  explicit ErrorLines(absl::string_view name) : name_(name) {}

  // The tokenizer counts lines and columns from 0; people count from 1.
  void AddError(int line, int column, const std::string& message) override {
    lines_.push_back(absl::StrCat(name_, ":", line + 1, ":", column + 1, ": ", message));
  }
  void AddWarning(int line, int column, const std::string& message) override {
    AddError(line, column, message);
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  const std::string name_;
  std::vector<std::string> lines_;
};

}  // namespace

absl::Status ParseText(absl::string_view text, absl::string_view name,
                       google::protobuf::Message* message) {
  ErrorLines errors(name);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&input, message) && errors.lines().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors.lines(), "\n"));
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) {
    const std::string text = absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
    return errno == EACCES ? absl::PermissionDeniedError(text) : absl::NotFoundError(text);
  }
  std::string content;
  char chunk[1 << 16];
  size_t size = 0;
  while ((size = std::fread(chunk, 1, sizeof(chunk), file.get())) > 0) content.append(chunk, size);
  if (std::ferror(file.get()) != 0) {
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  return content;
}

absl::Status ParseTextFile(const std::string& path, google::protobuf::Message* message) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ParseText(text, path, message);
}

std::string ToText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(message, &text);
  return text;
}

}  // namespace satrap
