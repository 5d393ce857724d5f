#include "deploy/cli/show/cut_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_identity.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "deploy/launcher/process/cut_check.h"
#include "deploy/report/run_report.h"
#include "nn_worker/metrics/metric_names.h"

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

// The name of the member that is set in the oneof `kind`: "adagrad"; "none" if no member is set.
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

// Describes a saved table. Its rows are in many files: each PS that saved it has written one for
// each range of partitions. Several tables may share a file, and each then has a part of it.
std::string TableText(const SavedTable& table, const CheckpointManifest& manifest,
                      const JobConfig* job) {
  uint64_t bytes = 0;
  std::set<std::string> files;
  for (const SavedFile& file : manifest.table_files()) {
    if (file.table() != table.id()) continue;
    bytes += file.bytes();
    files.insert(file.name());
  }
  std::string text =
      absl::StrFormat("table        %s: id %d, %s, %s in %s, fingerprint %016x\n", table.name(),
                      table.id(), Counted(table.rows(), "row"), BytesText(bytes),
                      Counted(static_cast<uint64_t>(files.size()), "file"), table.fingerprint());
  if (job == nullptr) return text;
  for (const TableConfig& config : job->tables()) {
    if (config.id() != table.id()) continue;
    absl::StrAppend(&text, "             ", SegmentsText(config), "\n");
  }
  return text;
}

// The number of values that ascending ranges [first, last] contain.
uint64_t CountOfPairs(const google::protobuf::RepeatedField<uint32_t>& pairs) {
  uint64_t count = 0;
  for (int i = 0; i + 1 < pairs.size(); i += 2) count += pairs[i + 1] - pairs[i] + uint64_t{1};
  return count;
}

std::string LedgerText(const LedgerState& ledger) {
  std::string text;
  for (const EpochLedger& epoch : ledger.epochs()) {
    absl::StrAppendFormat(&text, "%sepoch %d: %s done, %s open, %s, %s bad, %s\n",
                          text.empty() ? "ledger       " : "             ", epoch.epoch() + 1,
                          Counted(CountOfPairs(epoch.done_splits()), "split"),
                          CountText(static_cast<uint64_t>(epoch.splits_size())),
                          Counted(epoch.rows(), "record"), CountText(epoch.bad_records()),
                          Counted(epoch.empty_lines(), "empty line"));
  }
  return text.empty() ? "ledger       no sample is consumed\n" : text;
}

// The checksum of the next `bytes` bytes of a file.
absl::StatusOr<uint32_t> CrcOfNext(uint64_t bytes, ReadableFile* file) {
  // Read in blocks, because a file of rows may be larger than the memory.
  std::vector<char> block(1 << 20);
  uint32_t crc = 0;
  while (bytes > 0) {
    const size_t next = static_cast<size_t>(std::min<uint64_t>(bytes, block.size()));
    ASSIGN_OR_RETURN(const size_t size, file->Read(absl::MakeSpan(block).first(next)));
    crc = ExtendCrc32c(crc, absl::string_view(block.data(), size));
    if (size < next) break;
    bytes -= size;
  }
  return crc;
}

// What is wrong with the file; "" if nothing is.
std::string ProblemOf(const FileOfCut& expected, FileSystem* file_system) {
  const auto file = file_system->Open(expected.path);
  if (!file.ok()) return std::string(file.status().message());
  if ((*file)->size_bytes() != expected.bytes) {
    return absl::StrCat(expected.path, " has ", (*file)->size_bytes(),
                        " bytes, but was written with ", expected.bytes);
  }
  for (const FileOfManifest::Part& part : expected.parts) {
    const auto crc = CrcOfNext(part.bytes, file->get());
    if (!crc.ok()) return std::string(crc.status().message());
    if (*crc == part.crc32c) continue;
    return absl::StrFormat("%s is damaged: its checksum is %08x, and it was written with %08x",
                           expected.path, *crc, part.crc32c);
  }
  return "";
}

// The cuts that retention does not remove: the newest ones, and those that links name. `resume
// --set` may have changed how many are kept, so this assumes the smallest number in the jobs of the
// log.
std::set<std::string> CutsThatOughtToBe(const RunLog& log, const std::string& run_dir) {
  int keep = std::numeric_limits<int>::max();
  for (const RunLogEntry& entry : log.entries()) {
    // Only some entries have a job: a compacted log has the jobs of the cuts that still exist.
    if (!entry.has_generation() || !entry.generation().has_job()) continue;
    keep = std::min(keep, std::max(1, entry.generation().job().checkpoint().keep()));
  }
  std::set<std::string> names = {log.next_start(), TargetOf(run_dir, "best"),
                                 TargetOf(run_dir, "latest")};
  int newest = 0;
  for (auto entry = log.entries().rbegin(); entry != log.entries().rend(); ++entry) {
    if (entry->has_cut() && newest++ < keep) names.insert(entry->cut().cut());
  }
  return names;
}

}  // namespace

absl::StatusOr<std::string> ListCuts(const std::string& run_dir, int64_t now_unix_ms) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  std::set<std::string> uncommitted = CutFolders(run_dir);
  const std::set<std::string> expected = CutsThatOughtToBe(log, run_dir);
  // Read the best cut from the links, not from the log: a run that was set back to an earlier cut
  // no longer has the best cut that the log names last.
  const std::string best = TargetOf(run_dir, "best");
  const std::string latest = TargetOf(run_dir, "latest");
  uint64_t removed = log.left_out_cuts();
  std::string text = absl::StrFormat(kRowFormat, "cut", "generation", "step", "bytes", "age", "");
  for (const RunLogEntry& entry : log.entries()) {
    if (!entry.has_cut()) continue;
    const CutEntry& cut = entry.cut();
    // A cut without a manifest counts as removed, because removal deletes the manifest first.
    std::error_code error;
    const bool is_there = fs::exists(FolderOfCut(run_dir, cut.cut()) + "/manifest", error);
    uncommitted.erase(cut.cut());
    if (!is_there && expected.count(cut.cut()) == 0) {
      ++removed;
      continue;
    }
    const double age_seconds =
        static_cast<double>(now_unix_ms - static_cast<int64_t>(entry.unix_ms())) * 1e-3;
    std::vector<std::string> marks;
    if (cut.cut() == best) marks.push_back("best");
    if (cut.cut() == latest) marks.push_back("latest");
    if (cut.last()) marks.push_back("last");
    if (cut.left_for() == CutEntry::STOP) marks.push_back("stop");
    if (cut.left_for() == CutEntry::SCALE) marks.push_back("scale");
    if (cut.left_for() == CutEntry::MOVE) marks.push_back("move");
    const std::string problem = CutProblem(log, run_dir, cut.cut());
    if (!problem.empty()) marks.push_back(problem);
    absl::StrAppendFormat(&text, kRowFormat, cut.cut(), CountText(cut.generation()),
                          CountText(cut.step()), BytesText(cut.bytes()), DurationText(age_seconds),
                          absl::StrJoin(marks, " "));
  }
  // One of these folders may be a cut that a running generation has not committed yet.
  for (const std::string& name : uncommitted) {
    absl::StrAppendFormat(&text, kRowFormat, name, "", "", "", "", "not committed");
  }
  if (log.last_cut() == nullptr && uncommitted.empty()) {
    return absl::StrCat("run ", run_dir, " has no cut yet\n");
  }
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
      &text, "position     step %s, epoch %d, %s; %s\n", CountText(manifest.step()),
      position.epoch() + 1, Counted(position.samples(), "sample"),
      position.next() == RunPosition::FINISH ? "training is over" : "training continues");
  absl::StrAppendFormat(&text, "order        fingerprint %016x\n", manifest.order_fingerprint());
  for (const SavedTable& table : manifest.tables()) {
    absl::StrAppend(&text, TableText(table, manifest, job));
  }
  absl::StrAppendFormat(&text, "dense        %s, %s", manifest.dense_file(),
                        BytesText(manifest.dense_bytes()));
  if (job != nullptr) absl::StrAppend(&text, ", ", KindName(job->dense_optimizer()));
  absl::StrAppend(&text, "\n");
  if (position.has_best()) {
    absl::StrAppendFormat(&text, "best         step %s (%s): %s\n",
                          CountText(position.best().step()), position.best().cut(),
                          MetricsText(position.best().values()));
  }
  absl::StrAppend(&text, LedgerText(manifest.ledger()));
  return text;
}

absl::StatusOr<std::string> VerifyCut(const std::string& folder, FileSystem* file_system,
                                      const RunLog* log) {
  uint32_t manifest_crc32c = 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> pin, PinCut(folder, file_system));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                   ReadManifest(folder, file_system, &manifest_crc32c));
  std::vector<std::string> problems;
  if (log != nullptr) {
    // Undamaged files are not enough: they must be those of the committed cut.
    const absl::Status identity = CheckCutIdentity(*log, folder, manifest, manifest_crc32c);
    if (absl::IsFailedPrecondition(identity)) return identity;
    if (!identity.ok()) problems.emplace_back(identity.message());
  }
  uint64_t bytes = 0;
  uint64_t files = 0;
  for (const FileOfCut& file : FilesOfCut(folder, manifest)) {
    const std::string problem = ProblemOf(file, file_system);
    if (!problem.empty()) problems.push_back(problem);
    bytes += file.bytes;
    ++files;
  }
  if (!problems.empty() && HasVanished(folder, file_system)) {
    return absl::NotFoundError(absl::StrCat(folder, " was removed while it was read"));
  }
  if (!problems.empty()) return absl::DataLossError(absl::StrJoin(problems, "\n"));
  return absl::StrCat(folder, ": ", Counted(files, "file"), " with ", BytesText(bytes),
                      " are undamaged");
}

absl::StatusOr<CutEntry> FindCutOfRun(const std::string& run_dir, const std::string& typed) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  const std::string hint =
      absl::StrCat("; `satrap checkpoint list ", run_dir, "` lists those to continue from");
  const absl::StatusOr<std::string> name = NameOfCut(log, run_dir, typed);
  if (!name.ok()) {
    // If the user typed a path to another run's cut, this error explains more than "no such cut".
    if (absl::StrContains(typed, "/")) return name.status();
    return absl::NotFoundError(absl::StrCat("run ", run_dir, " has no cut '", typed, "'", hint));
  }
  const std::string problem = CutProblem(log, run_dir, *name);
  if (!problem.empty()) {
    return absl::DataLossError(absl::StrCat("cut ", *name, " is ", problem, hint));
  }
  return *log.FindCut(*name);
}

absl::StatusOr<std::string> FindCutFolder(const std::string& typed) {
  std::error_code error;
  // Accept a cut's folder outside a run, because somebody may have copied it out of its run.
  for (const std::string& folder : {typed, CheckpointsDir(typed) + "/latest"}) {
    if (fs::is_regular_file(folder + "/manifest", error)) {
      return fs::canonical(folder, error).string();
    }
  }
  RETURN_IF_ERROR(RemovedCutError(typed));
  return absl::NotFoundError(
      absl::StrCat("no cut in ", typed,
                   ": a cut is a folder with a manifest, RUN/checkpoints/"
                   "NAME; `satrap checkpoint list RUN` lists the cuts of a run"));
}

}  // namespace satrap
