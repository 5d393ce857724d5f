// A temporary folder for one test, removed with its content by the destructor.

#ifndef SATRAP_COMMON_TESTING_TEMP_DIR_H_
#define SATRAP_COMMON_TESTING_TEMP_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "gtest/gtest.h"

namespace satrap {

class TempDir {
 public:
  TempDir() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "satrap_test_XXXXXX");
    CHECK(mkdtemp(pattern.data()) != nullptr) << pattern;
    path_ = pattern;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string At(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

  // Writes a file and returns its path.
  std::string Write(absl::string_view name, absl::string_view content) const {
    const std::string path = At(name);
    std::ofstream file(path, std::ios::binary);
    file << content;
    CHECK(file.good()) << path;
    return path;
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

 private:
  std::string path_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_TESTING_TEMP_DIR_H_
