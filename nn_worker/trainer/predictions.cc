#include "nn_worker/trainer/predictions.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/file/durable_file.h"
#include "common/file/file_error.h"
#include "common/file/quarantine_name.h"

namespace satrap {
namespace {

constexpr char kBegin[] = "SATPRED1";
constexpr char kEnd[] = "SATPREND";
constexpr size_t kMarkBytes = 8;
constexpr size_t kPositionBytes = 16;
constexpr size_t kLinesBytes = 1 << 20;  // of text collected for one write
constexpr size_t kBadRecordFields = 8;

std::string PathOf(const std::string& run_dir, int rank) {
  return absl::StrCat(run_dir, "/predictions/rank_", rank, ".bin");
}

// Split, block, index in the block.
using Position = std::tuple<uint32_t, uint64_t, uint64_t>;

Position PositionOf(const Prediction& prediction) {
  return {prediction.split, prediction.block, prediction.index};
}

absl::Status AppendFile(const std::string& path, size_t num_tasks,
                        std::vector<Prediction>* predictions) {
  const size_t record_bytes = kPositionBytes + num_tasks * sizeof(double);
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("no predictions at ", path));
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < 2 * kMarkBytes || (bytes.size() - 2 * kMarkBytes) % record_bytes != 0 ||
      bytes.compare(0, kMarkBytes, kBegin) != 0 ||
      bytes.compare(bytes.size() - kMarkBytes, kMarkBytes, kEnd) != 0) {
    return absl::DataLossError(absl::StrCat(path, " is not a complete file of predictions"));
  }
  for (size_t at = kMarkBytes; at + kMarkBytes < bytes.size(); at += record_bytes) {
    Prediction prediction;
    std::memcpy(&prediction.split, &bytes[at], 4);
    std::memcpy(&prediction.index, &bytes[at + 4], 4);
    std::memcpy(&prediction.block, &bytes[at + 8], 8);
    prediction.values.resize(num_tasks);
    std::memcpy(prediction.values.data(), &bytes[at + kPositionBytes],
                record_bytes - kPositionBytes);
    predictions->push_back(prediction);
  }
  return absl::OkStatus();
}

// Adds the positions of the bad records that one loader found in the test stream. A loader without
// bad records has no file.
absl::Status AppendBadRecords(const std::string& path, std::vector<Position>* positions) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    uint32_t split;
    uint64_t block, index;
    if (fields.size() != kBadRecordFields || !absl::SimpleAtoi(fields[5], &split) ||
        !absl::SimpleAtoi(fields[6], &block) || !absl::SimpleAtoi(fields[7], &index)) {
      return absl::DataLossError(absl::StrCat(path, ": no position in the line '", line, "'"));
    }
    if (fields[3] == "test") positions->emplace_back(split, block, index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    const std::string& run_dir, int rank, size_t num_tasks) {
  std::string path = PathOf(run_dir, rank);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return FileError("write", path);
  std::unique_ptr<PredictionWriter> writer(new PredictionWriter(std::move(path), file, num_tasks));
  RETURN_IF_ERROR(writer->Write(kBegin, kMarkBytes));
  return writer;
}

PredictionWriter::~PredictionWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status PredictionWriter::Write(const void* bytes, size_t size) {
  if (std::fwrite(bytes, 1, size, file_) == size) return absl::OkStatus();
  return FileError("write", path_);
}

// A sample's position comes from the part's provenance, so the order in which parts are scored, and
// by which rank, does not matter.
absl::Status PredictionWriter::Add(const PartDescription& part,
                                   absl::Span<const double> predictions) {
  uint64_t positions = 0;
  for (const ProvenanceRange& range : part.provenance()) {
    if (range.has_block_end()) {
      return absl::InvalidArgumentError(
          "predictions are written in the order of the records in files, but the test stream is a "
          "topic: set data.test_files, or run `evaluate` instead");
    }
    positions += range.to() - std::min(range.from(), range.to());
  }
  if (positions * num_tasks_ != predictions.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a part has ", predictions.size() / num_tasks_,
                                                   " samples, but its provenance has ", positions,
                                                   " positions"));
  }
  for (const ProvenanceRange& range : part.provenance()) {
    for (uint32_t index = range.from(); index < range.to(); ++index) {
      const absl::Span<const double> values = predictions.subspan(0, num_tasks_);
      predictions.remove_prefix(num_tasks_);
      RETURN_IF_ERROR(WriteRecord(range.split(), index, range.block(), values));
    }
  }
  return absl::OkStatus();
}

absl::Status PredictionWriter::WriteRecord(uint32_t split, uint32_t index, uint64_t block,
                                           absl::Span<const double> values) {
  for (const double value : values) {
    if (!std::isnan(value)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the model's output for record ", index, " of block ", block, " of split ", split,
        " is not a number: its training has diverged, or an input is too large"));
  }
  char position[kPositionBytes];
  std::memcpy(position, &split, 4);
  std::memcpy(position + 4, &index, 4);
  std::memcpy(position + 8, &block, 8);
  RETURN_IF_ERROR(Write(position, kPositionBytes));
  return Write(values.data(), values.size() * sizeof(double));
}

absl::Status PredictionWriter::Close() {
  RETURN_IF_ERROR(Write(kEnd, kMarkBytes));
  if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    return FileError("write", path_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Prediction>> ReadPredictions(const std::string& run_dir, int num_ranks,
                                                        size_t num_tasks) {
  std::vector<Prediction> predictions;
  for (int rank = 0; rank < num_ranks; ++rank) {
    RETURN_IF_ERROR(AppendFile(PathOf(run_dir, rank), num_tasks, &predictions));
  }
  std::sort(predictions.begin(), predictions.end(),
            [](const Prediction& a, const Prediction& b) { return PositionOf(a) < PositionOf(b); });
  for (size_t i = 1; i < predictions.size(); ++i) {
    if (PositionOf(predictions[i]) == PositionOf(predictions[i - 1])) {
      return absl::DataLossError(absl::StrCat("record ", predictions[i].index, " of block ",
                                              predictions[i].block, " of split ",
                                              predictions[i].split, " was predicted twice"));
    }
  }
  return predictions;
}

absl::Status WritePredictionsText(const std::string& run_dir, int num_ranks, int num_loaders,
                                  uint64_t generation, size_t num_tasks) {
  ASSIGN_OR_RETURN(const std::vector<Prediction> predictions,
                   ReadPredictions(run_dir, num_ranks, num_tasks));
  std::vector<Position> bad;
  for (int loader = 0; loader < num_loaders; ++loader) {
    RETURN_IF_ERROR(AppendBadRecords(
        absl::StrCat(run_dir, "/quarantine/", QuarantineName(generation, loader), ".tsv"), &bad));
  }
  std::sort(bad.begin(), bad.end());
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(run_dir + "/predictions.txt"));
  std::string lines;
  const std::string bad_line =
      absl::StrCat(absl::StrJoin(std::vector<absl::string_view>(num_tasks, "nan"), "\t"), "\n");
  // Both lists are in the order of positions, which is the order of the records in the file.
  auto next_bad = bad.begin();
  for (const Prediction& prediction : predictions) {
    for (; next_bad != bad.end() && *next_bad <= PositionOf(prediction); ++next_bad) {
      lines += bad_line;
    }
    for (size_t t = 0; t < num_tasks; ++t) {
      absl::StrAppendFormat(&lines, "%.9g%c", prediction.values[t],
                            t + 1 < num_tasks ? '\t' : '\n');
    }
    if (lines.size() < kLinesBytes) continue;  // a write for each line would be slow
    RETURN_IF_ERROR(file->Append(lines));
    lines.clear();
  }
  for (; next_bad != bad.end(); ++next_bad) lines += bad_line;
  RETURN_IF_ERROR(file->Append(lines));
  return file->Commit();
}

}  // namespace satrap
