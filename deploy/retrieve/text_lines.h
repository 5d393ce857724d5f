// Reads the files of `satrap retrieve` line by line: names, pairs of names, vectors.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_RETRIEVE_TEXT_LINES_H_
#define SATRAP_DEPLOY_RETRIEVE_TEXT_LINES_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

// The lines of a plain file, without their ends. The last line need not end with a newline.
class TextLines {
 public:
  // The error says why the file cannot be read.
  static absl::StatusOr<TextLines> Open(const std::string& path);

  // False at the end of the file. Fails if the file cannot be read.
  absl::StatusOr<bool> Next(std::string* line);
  // "FILE:LINE: WHAT" for the line that Next returned last.
  absl::Status Error(absl::string_view what) const;

  const std::string& path() const { return path_; }

 private:
  TextLines(std::string path, std::ifstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ifstream file_;
  int64_t line_ = 0;
};

// The fields of a line, separated by tabs, or by blanks if it has no tab. Empty fields between
// blanks do not count.
std::vector<absl::string_view> FieldsOf(absl::string_view line);

// The user and the item that a line names.
struct NamePair {
  std::string user;
  std::string item;
};
// The next line that is not empty; false at the end. INVALID_ARGUMENT, naming the line, if it has
// fewer than two fields.
absl::StatusOr<bool> NextPair(TextLines* lines, NamePair* pair);

// Reads the next line as a vector of numbers separated by tabs or blanks. False at the end.
// `values` is empty for a line of nan, which stands for a bad record. INVALID_ARGUMENT, naming the
// line, if a field is not a finite number, if some but not all are nan, or if the line does not
// have `dim` fields; a `dim` of 0 is set to their number.
absl::StatusOr<bool> NextVector(TextLines* lines, int64_t* dim, std::vector<float>* values);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_TEXT_LINES_H_
