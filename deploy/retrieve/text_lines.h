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

// The lines of an uncompressed file, without their line ends. The last line need not have one.
class TextLines {
 public:
  // Opens the file. An error says why it cannot be read.
  static absl::StatusOr<TextLines> Open(const std::string& path);

  // Reads the next line. False at the end of the file. Fails if the file cannot be read.
  absl::StatusOr<bool> Next(std::string* line);
  // An error "FILE:LINE: WHAT" about the line that Next returned last.
  absl::Status Error(absl::string_view what) const;

  const std::string& path() const { return path_; }

 private:
  TextLines(std::string path, std::ifstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ifstream file_;
  int64_t line_ = 0;
};

// The fields of a line: separated by tabs or, if the line has no tab, by blanks. Several blanks in
// a row separate only once.
std::vector<absl::string_view> FieldsOf(absl::string_view line);

// A user and an item, named on one line.
struct NamePair {
  std::string user;
  std::string item;
};
// Reads the pair from the next line that is not empty; false at the end. INVALID_ARGUMENT, naming
// the line, if it has fewer than two fields.
absl::StatusOr<bool> NextPair(TextLines* lines, NamePair* pair);

// Reads the next line as a vector of numbers separated by tabs or blanks. False at the end.
// `values` becomes empty for a line of nan, which stands for a bad record. INVALID_ARGUMENT, naming
// the line, if a field is not a finite number, if only some fields are nan, or if the line does not
// have `dim` fields. If `dim` is 0, it is set to the number of fields.
absl::StatusOr<bool> NextVector(TextLines* lines, int64_t* dim, std::vector<float>* values);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_TEXT_LINES_H_
