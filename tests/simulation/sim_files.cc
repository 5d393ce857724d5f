#include "tests/simulation/sim_files.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace satrap::simulation {
namespace {

namespace fs = std::filesystem;

constexpr char kMemoryFolder[] = "/dev/shm";

std::string TextOfSplit(const WorldShape& shape, Stream stream, int split) {
  std::string text = "\n";  // a file of no bytes is no split
  for (int row = 0; row < shape.split_rows[stream][split]; ++row) {
    const SimSample sample = MakeSample(shape, stream, split, row);
    if (IsAfterBadRecord(sample.id)) absl::StrAppend(&text, "neither,a,record\n");
    if (IsAfterEmptyLine(sample.id)) absl::StrAppend(&text, "\n");
    absl::StrAppend(&text, "0,", sample.weight, ",", sample.id, ",0,", sample.single, ",",
                    absl::StrJoin(sample.several, "|"), "\n");
  }
  return text;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  CHECK(file != nullptr) << path;
  CHECK(std::fwrite(text.data(), 1, text.size(), file) == text.size()) << path;
  CHECK(std::fclose(file) == 0) << path;
}

}  // namespace

SimFolder::SimFolder() {
  path_ = absl::StrCat(kMemoryFolder, "/satrap_world_XXXXXX");
  if (mkdtemp(path_.data()) != nullptr) return;
  path_ = (fs::temp_directory_path() / "satrap_world_XXXXXX").string();
  CHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

SimFolder::~SimFolder() { fs::remove_all(path_); }

void WriteFiles(const WorldShape& shape, const SimFolder& folder, JobConfig* job) {
  const char* const names[] = {"train", "valid", "test"};
  job->set_data_root(folder.path());
  for (int stream = 0; stream < 3; ++stream) {
    const int splits = static_cast<int>(shape.split_rows[stream].size());
    for (int split = 0; split < splits; ++split) {
      WriteFile(absl::StrFormat("%s/%s-%02d", folder.path(), names[stream], split),
                TextOfSplit(shape, static_cast<Stream>(stream), split));
    }
    if (splits == 0) continue;
    DataConfig* data = job->mutable_data();
    auto* globs = stream == TRAIN_STREAM   ? data->mutable_train_files()
                  : stream == VALID_STREAM ? data->mutable_valid_files()
                                           : data->mutable_test_files();
    *globs->Add() = absl::StrCat(names[stream], "-*");
  }
}

}  // namespace satrap::simulation
