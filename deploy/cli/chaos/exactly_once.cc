#include "deploy/cli/chaos/exactly_once.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/config/job_facts.h"
#include "common/file/file_system.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kFloatsAt = 20;  // in the header: how many floats a row has
constexpr size_t kBlockHeaderBytes = 8;
constexpr int64_t kWrongRecordsShown = 5;

struct LastCut {
  JobConfig job;
  RunResult result;
  std::string folder;
};

absl::StatusOr<LastCut> FindLastCut(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.result.has_value() || !progress.job.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("run ", run_dir, " has not finished"));
  }
  if (!progress.cut.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("run ", run_dir, " has no cut"));
  }
  return LastCut{*progress.job, *progress.result, FolderOfCut(run_dir, progress.cut->cut())};
}

// The feature whose ids are counted in the table kTallyTable; null if no feature uses that table.
const FeatureConfig* TallyFeature(const JobConfig& job) {
  for (const FeatureConfig& feature : job.data().features()) {
    if (feature.table() == kTallyTable) return &feature;
  }
  return nullptr;
}

template <typename T>
T NumberAt(absl::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Calls visit(key, first value of the row) for each row of a file, or of its part at `where`.
absl::Status ReadRows(const std::string& path, const PartOfFile& where, uint64_t part_bytes,
                      absl::FunctionRef<void(uint64_t, float)> visit) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, DiskFileSystem()));
  absl::string_view file = bytes;
  file.remove_prefix(std::min<size_t>(where.offset, file.size()));
  if (!where.is_last) file = file.substr(0, part_bytes);
  if (file.size() < kHeaderBytes || !absl::StartsWith(file, "SATRROW")) {
    return absl::DataLossError(absl::StrCat(path, " is not a file of rows"));
  }
  const size_t row_bytes = NumberAt<uint32_t>(file, kFloatsAt) * sizeof(float);
  size_t at = kHeaderBytes;
  // A block without rows marks the end.
  while (at + kBlockHeaderBytes <= file.size() && NumberAt<uint32_t>(file, at) > 0) {
    const size_t rows = NumberAt<uint32_t>(file, at);
    const size_t block_bytes = kBlockHeaderBytes + rows * (sizeof(uint64_t) + row_bytes);
    const size_t keys_at = at + kBlockHeaderBytes;
    if (block_bytes > file.size() - at ||
        NumberAt<uint32_t>(file, at + 4) !=
            ExtendCrc32c(Crc32c(file.substr(at, 4)),
                         file.substr(keys_at, block_bytes - kBlockHeaderBytes))) {
      return absl::DataLossError(absl::StrCat(path, " is damaged at offset ", at));
    }
    const size_t rows_at = keys_at + rows * sizeof(uint64_t);
    for (size_t i = 0; i < rows; ++i) {
      visit(NumberAt<uint64_t>(file, keys_at + i * sizeof(uint64_t)),
            NumberAt<float>(file, rows_at + i * row_bytes));
    }
    at += block_bytes;
  }
  return absl::OkStatus();
}

// The value of each record's row; NaN for a record without a row.
struct Counts {
  std::vector<float> of_record;
  int64_t strange_rows = 0;  // rows without a record, or second rows of one
};

absl::StatusOr<Counts> ReadCounts(const LastCut& cut, const FeatureConfig& feature,
                                  const TableConfig& table, int64_t records) {
  Counts counts;
  counts.of_record.assign(static_cast<size_t>(records), std::nanf(""));
  absl::flat_hash_map<uint64_t, size_t> record_of;
  record_of.reserve(counts.of_record.size());
  const uint64_t space = Xxh64(IdSpaceOf(feature));
  for (size_t i = 0; i < counts.of_record.size(); ++i) record_of[KeyOf(i, space)] = i;
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(cut.folder));
  const std::vector<PartOfFile> parts = PartsOfFiles(manifest);
  const auto count = [&](uint64_t key, float value) {
    const auto record = record_of.find(key);
    if (record == record_of.end() || !std::isnan(counts.of_record[record->second])) {
      ++counts.strange_rows;
    } else {
      counts.of_record[record->second] = value;
    }
  };
  for (int i = 0; i < manifest.table_files_size(); ++i) {
    const SavedFile& file = manifest.table_files(i);
    if (file.table() != table.id()) continue;
    RETURN_IF_ERROR(
        ReadRows(absl::StrCat(cut.folder, "/", file.name()), parts[i], file.bytes(), count));
  }
  return counts;
}

}  // namespace

absl::StatusOr<std::string> CheckLedger(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const LastCut cut, FindLastCut(run_dir));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(cut.folder));
  uint64_t records = 0;
  const auto& epochs = manifest.ledger().epochs();
  for (const EpochLedger& epoch : epochs) {
    records += epoch.rows();
    if (epoch.rows() == epochs.Get(0).rows()) continue;
    return absl::DataLossError(absl::StrCat("epoch ", epoch.epoch() + 1, " has ", epoch.rows(),
                                            " records, but the first one has ",
                                            epochs.Get(0).rows()));
  }
  if (records != cut.result.samples()) {
    return absl::DataLossError(absl::StrCat("the ledger holds ", records, " records, but ",
                                            cut.result.samples(), " samples were trained"));
  }
  return absl::StrCat("the ledger holds each of ", CountText(records), " samples once");
}

absl::StatusOr<std::string> CheckTally(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const LastCut cut, FindLastCut(run_dir));
  const FeatureConfig* feature = TallyFeature(cut.job);
  if (feature == nullptr || !cut.job.data().has_synthetic()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job has no table '", kTallyTable, "' over the synthetic log"));
  }
  const TableConfig& config = cut.job.tables(TableIndexOf(*feature, cut.job));
  if (RowValues(config) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("table '", kTallyTable, "' has rows of more than one value"));
  }
  const int64_t records = cut.job.data().synthetic().train_samples();
  ASSIGN_OR_RETURN(const Counts counts, ReadCounts(cut, *feature, config, records));
  const auto times = static_cast<float>(cut.job.epochs());
  std::vector<std::string> told;
  int64_t wrong = 0;
  for (int64_t record = 0; record < records; ++record) {
    const float count = counts.of_record[static_cast<size_t>(record)];
    if (count == times || ++wrong > kWrongRecordsShown) continue;
    told.push_back(std::isnan(count)
                       ? absl::StrCat("record ", record, " has no row")
                       : absl::StrCat("record ", record, " was trained ", count, " times"));
  }
  if (wrong > 0 || counts.strange_rows > 0) {
    return absl::DataLossError(
        absl::StrCat(wrong, " of ", records, " records were not trained exactly ", times,
                     times == 1 ? " time" : " times", ", and ", counts.strange_rows,
                     " rows belong to no record\n  ", absl::StrJoin(told, "\n  ")));
  }
  return absl::StrCat("table '", kTallyTable, "' proves that each of ",
                      CountText(static_cast<uint64_t>(records)), " records was trained ", times,
                      times == 1 ? " time" : " times");
}

}  // namespace satrap
