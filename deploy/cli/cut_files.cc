#include "deploy/cli/cut_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/numeric/crc32c.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kRowFormat[] = "%-18s %10s %12s %10s %14s  %s\n";

// The name of the folder that a link of RUN/checkpoints points at; empty if there is none.
std::string TargetOf(const std::string& run_dir, const std::string& link) {
  std::error_code error;
  return fs::read_symlink(absl::StrCat(CheckpointsDir(run_dir), "/", link), error)
      .filename()
      .string();
}

std::set<std::string> CutFolders(const std::string& run_dir) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(CheckpointsDir(run_dir), error), end; !error && it != end;
       it.increment(error)) {
    if (it->symlink_status(error).type() == fs::file_type::directory) {
      names.insert(it->path().filename().string());
    }
  }
  return names;
}

// "adagrad", "none yet": the name of the member that a oneof `kind` has chosen.
std::string KindName(const google::protobuf::Message& message) {
  const auto* kind = message.GetDescriptor()->FindOneofByName("kind");
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(message, kind);
  return field == nullptr ? "none" : field->name();
}

std::string SegmentsText(const TableConfig& table) {
  std::vector<std::string> segments;
  for (const SegmentConfig& segment : table.segments()) {
    segments.push_back(
        absl::StrCat(segment.name(), " dim ", segment.dim(), " ", KindName(segment.optimizer())));
  }
  return absl::StrJoin(segments, ", ");
}

std::string TableText(const SavedTable& table, const CheckpointManifest& manifest,
                      const JobConfig* job) {
  uint64_t bytes = 0;
  int files = 0;
  for (const SavedFile& file : manifest.table_files()) {
    if (file.table() != table.id()) continue;
    bytes += file.bytes();
    ++files;
  }
  std::string text = absl::StrFormat(
      "table        %s: id %d, %s rows, %s in %d files, fingerprint %016x\n", table.name(),
      table.id(), CountText(table.rows()), BytesText(bytes), files, table.fingerprint());
  if (job == nullptr) return text;
  for (const TableConfig& config : job->tables()) {
    if (config.id() != table.id()) continue;
    absl::StrAppend(&text, "             ", SegmentsText(config), "\n");
  }
  return text;
}

// The number of values in ascending pairs [first, last].
uint64_t CountOfPairs(const google::protobuf::RepeatedField<uint32_t>& pairs) {
  uint64_t count = 0;
  for (int i = 0; i + 1 < pairs.size(); i += 2) count += pairs[i + 1] - pairs[i] + uint64_t{1};
  return count;
}

std::string LedgerText(const LedgerState& ledger) {
  std::string text;
  for (const EpochLedger& epoch : ledger.epochs()) {
    absl::StrAppendFormat(
        &text, "%sepoch %d: %s splits done, %s open, %s records, %s bad, %s empty lines\n",
        text.empty() ? "ledger       " : "             ", epoch.epoch() + 1,
        CountText(CountOfPairs(epoch.done_splits())),
        CountText(static_cast<uint64_t>(epoch.splits_size())), CountText(epoch.rows()),
        CountText(epoch.bad_records()), CountText(epoch.empty_lines()));
  }
  return text.empty() ? "ledger       no sample is consumed\n" : text;
}

// "", or what is wrong with the file.
std::string ProblemOf(const std::string& path, uint64_t bytes, uint32_t crc32c,
                      FileSystem* file_system) {
  const auto file = file_system->Open(path);
  if (!file.ok()) return std::string(file.status().message());
  if ((*file)->size_bytes() != bytes) {
    return absl::StrCat(path, " has ", (*file)->size_bytes(), " bytes, and was written with ",
                        bytes);
  }
  std::vector<char> block(1 << 20);
  uint32_t crc = 0;
  while (true) {
    const auto size = (*file)->Read(absl::MakeSpan(block));
    if (!size.ok()) return std::string(size.status().message());
    crc = ExtendCrc32c(crc, absl::string_view(block.data(), *size));
    if (*size < block.size()) break;
  }
  if (crc == crc32c) return "";
  return absl::StrFormat("%s is damaged: its checksum is %08x, and it was written with %08x", path,
                         crc, crc32c);
}

}  // namespace

absl::StatusOr<std::string> ListCuts(const std::string& run_dir, int64_t now_unix_ms) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  std::set<std::string> uncommitted = CutFolders(run_dir);
  const std::string best = TargetOf(run_dir, "best");
  const std::string latest = TargetOf(run_dir, "latest");
  int removed = 0;
  std::string text = absl::StrFormat(kRowFormat, "cut", "generation", "step", "bytes", "age", "");
  for (const RunLogEntry& entry : log.entries()) {
    if (!entry.has_cut()) continue;
    const CutEntry& cut = entry.cut();
    if (uncommitted.erase(cut.cut()) == 0) {
      ++removed;
      continue;
    }
    const double age_seconds =
        static_cast<double>(now_unix_ms - static_cast<int64_t>(entry.unix_ms())) * 1e-3;
    std::vector<std::string> marks;
    if (cut.cut() == best) marks.push_back("best");
    if (cut.cut() == latest) marks.push_back("latest");
    if (cut.last()) marks.push_back("last");
    absl::StrAppendFormat(&text, kRowFormat, cut.cut(), CountText(cut.generation()),
                          CountText(cut.step()), BytesText(cut.bytes()), DurationText(age_seconds),
                          absl::StrJoin(marks, " "));
  }
  for (const std::string& name : uncommitted) {
    absl::StrAppendFormat(&text, kRowFormat, name, "", "", "", "", "not committed");
  }
  if (log.last_cut() == nullptr && uncommitted.empty())
    return absl::StrCat("run ", run_dir, " has no cut yet\n");
  if (removed > 0) {
    absl::StrAppend(&text, "(", removed, " older ", removed == 1 ? "cut is" : "cuts are",
                    " removed: checkpoint.keep)\n");
  }
  return text;
}

std::string DescribeCut(const std::string& folder, const CheckpointManifest& manifest,
                        const JobConfig* job) {
  const RunPosition& position = manifest.position();
  std::string text = absl::StrFormat("cut          %s\n", folder);
  absl::StrAppendFormat(
      &text, "of           job '%s', generation %d, number %d; format version %d\n",
      manifest.job_name(), manifest.generation(), manifest.cut(), manifest.version());
  absl::StrAppendFormat(
      &text, "position     step %s, epoch %d, %s samples; %s\n", CountText(manifest.step()),
      position.epoch() + 1, CountText(position.samples()),
      position.next() == RunPosition::FINISH ? "training is over" : "training goes on");
  absl::StrAppendFormat(&text, "order        fingerprint %016x\n", manifest.order_fingerprint());
  for (const SavedTable& table : manifest.tables()) {
    absl::StrAppend(&text, TableText(table, manifest, job));
  }
  absl::StrAppendFormat(&text, "dense        %s, %s", manifest.dense_file(),
                        BytesText(manifest.dense_bytes()));
  if (job != nullptr) absl::StrAppend(&text, ", ", KindName(job->dense_optimizer()));
  absl::StrAppend(&text, "\n");
  if (position.has_best()) {
    absl::StrAppendFormat(&text, "best         step %s (%s): AUC %.5f, logloss %.5f\n",
                          CountText(position.best().step()), position.best().cut(),
                          position.best().values().auc(), position.best().values().logloss());
  }
  absl::StrAppend(&text, LedgerText(manifest.ledger()));
  return text;
}

absl::StatusOr<std::string> VerifyCut(const std::string& folder, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(folder, file_system));
  std::vector<std::string> problems;
  uint64_t bytes = 0;
  uint64_t files = 0;
  const auto check = [&](const std::string& name, uint64_t size, uint32_t crc32c) {
    const std::string problem =
        ProblemOf(absl::StrCat(folder, "/", name), size, crc32c, file_system);
    if (!problem.empty()) problems.push_back(problem);
    bytes += size;
    ++files;
  };
  for (const SavedFile& file : manifest.table_files()) {
    check(file.name(), file.bytes(), file.crc32c());
  }
  if (!manifest.dense_file().empty()) {
    check(manifest.dense_file(), manifest.dense_bytes(), manifest.dense_crc32c());
  }
  if (!problems.empty()) return absl::DataLossError(absl::StrJoin(problems, "\n"));
  return absl::StrCat(folder, ": ", CountText(files), " files with ", BytesText(bytes),
                      " are as they were written");
}

absl::StatusOr<std::string> FindCutOfRun(const std::string& run_dir, const std::string& cut) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  std::error_code error;
  const fs::path own = fs::weakly_canonical(absl::StrCat(CheckpointsDir(run_dir), "/", cut), error);
  const bool is_own_name = cut.find('/') == std::string::npos && fs::is_directory(own, error);
  const fs::path folder = is_own_name ? own : fs::weakly_canonical(cut, error);
  const auto manifest = ReadManifest(folder.string());
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(),
                        absl::StrCat("no cut '", cut, "': ", manifest.status().message(),
                                     "; `satrap checkpoint list ", run_dir, "` lists them"));
  }
  const bool is_own = folder.parent_path() == fs::weakly_canonical(CheckpointsDir(run_dir), error);
  bool committed = false;
  uint64_t order = 0;
  for (const RunLogEntry& entry : log.entries()) {
    if (!entry.has_cut()) continue;
    committed |= entry.cut().cut() == folder.filename().string();
    order = entry.cut().order_fingerprint();
  }
  if (is_own && !committed) {
    return absl::FailedPreconditionError(
        absl::StrCat("cut ", folder.string(),
                     " was not committed: a run goes on from cuts that "
                     "its log names"));
  }
  if (order != 0 && manifest->order_fingerprint() != order) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "cut %s is of a run with other samples or another order of them: its fingerprint is %016x, "
        "and that of %s is %016x",
        folder.string(), manifest->order_fingerprint(), run_dir, order));
  }
  return is_own ? folder.filename().string() : folder.string();
}

absl::StatusOr<std::string> FindCutFolder(const std::string& typed) {
  std::error_code error;
  for (const std::string& folder : {typed, CheckpointsDir(typed) + "/latest"}) {
    if (fs::is_regular_file(folder + "/manifest", error)) {
      return fs::canonical(folder, error).string();
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no cut in ", typed,
                   ": a cut is a folder with a manifest, RUN/checkpoints/"
                   "NAME; `satrap checkpoint list RUN` lists those of a run"));
}

}  // namespace satrap
