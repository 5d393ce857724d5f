#include "nn_worker/checkpoint/cut_engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/checkpoint/saved_features.h"
#include "common/file/durable_file.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/control_methods.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "proto/checkpoint.pb.h"

namespace satrap {
namespace {

constexpr int kMostAbandonedInARow = 3;
// Abandoned cuts in a row become an error only if this much time has passed since the first of
// them: a disk that is full for some seconds, because of another program's file that is soon
// removed, must not end the run.
constexpr int64_t kLeastAbandonedUs = 30 * 1000 * 1000;
// If a cut that all ranks wait for is abandoned, it is begun again after a pause: 0.1, 0.2, ... 5
// s.
constexpr int64_t kFirstPauseUs = 100 * 1000;
constexpr int64_t kLongestPauseUs = 5 * 1000 * 1000;
// If the PSs needed more memory than checkpoint.copy_bytes for this many cuts in a row, they hold
// Updates back during the next cut.
constexpr int kCopyLimitsUntilHeld = 2;

void DescribeTables(const JobConfig& job, CheckpointManifest* manifest) {
  for (const TableConfig& table : job.tables()) {
    SavedTable* saved = manifest->add_tables();
    saved->set_name(table.name());
    saved->set_id(table.id());
    saved->set_fingerprint(TableFingerprint(table));
    uint64_t rows = 0;
    for (const SavedFile& file : manifest->table_files()) {
      if (file.table() == table.id()) rows += file.rows();
    }
    saved->set_rows(rows);
  }
}

}  // namespace

struct CutEngine::Cut {
  CutPlan plan;
  std::vector<LedgerState> released;
  std::string dense;
  Marked marked;
  Ended ended;

  std::string folder;
  CutOutcome outcome;
  CheckpointManifest manifest;
  int64_t marked_us = 0;
  bool told_ps = false;         // BeginCut was sent
  bool all_marked = false;      // and answered by all
  std::set<size_t> ps_missing;  // whose files are not written yet
  uint64_t dense_bytes = 0;
  uint32_t dense_crc32c = 0;
  bool dense_written = false;
  bool commit_sent = false;
  int disk_tasks = 0;  // under way
  bool abandoned = false;
  bool ps_abandoned = false;  // no PS writes anything any more

  // Describes what the cut still needs before it can end.
  std::string Missing() const;
};

std::string CutEngine::Cut::Missing() const {
  if (abandoned) {
    return absl::StrCat("the removal of its folder, after this error: ", outcome.cause);
  }
  if (!told_ps) return "its folder";
  if (!all_marked) return "the marks of all embedding PSs";
  if (commit_sent) return "the coordinator's commit";
  std::vector<std::string> files;
  for (const size_t ps : ps_missing)
    files.push_back(absl::StrCat("the files of embedding_ps ", ps));
  if (!dense_written) files.push_back(kDenseFile);
  return files.empty() ? "its manifest" : absl::StrJoin(files, ", ");
}

absl::StatusOr<std::unique_ptr<CutEngine>> CutEngine::Create(const Options& options) {
  ASSIGN_OR_RETURN(Ledger ledger, Ledger::FromState(options.ledger));
  return std::unique_ptr<CutEngine>(new CutEngine(options, std::move(ledger)));
}

CutEngine::CutEngine(const Options& options, Ledger ledger)
    : options_(options),
      embedding_ps_(options.envelope, options.timeouts, options.executor, options.embedding_ps),
      commit_({kCommitCut, options.envelope, kCutSender, options.timeouts}, options.executor,
              {rpc::Peer{"coordinator", options.coordinator}}),
      ledger_(std::move(ledger)),
      consumed_(ledger_.OfAll()) {}

CutEngine::~CutEngine() = default;

Ledger::Totals CutEngine::consumed() const {
  MutexLock lock(&mutex_);
  return consumed_;
}

void CutEngine::Begin(CutPlan plan, std::vector<LedgerState> released, std::string dense,
                      Marked marked, Ended ended) {
  auto cut = std::make_shared<Cut>();
  cut->plan = std::move(plan);
  cut->released = std::move(released);
  cut->dense = std::move(dense);
  cut->marked = std::move(marked);
  cut->ended = std::move(ended);
  options_.executor->Post([this, cut = std::move(cut)]() mutable {
    waiting_.push_back(std::move(cut));
    if (cut_ == nullptr) StartNext();
  });
}

// If an answer or a task of a cut comes after the cut has ended, it is dropped. By then there may
// be another cut, or none.
template <typename T>
absl::AnyInvocable<void(T)> CutEngine::InCut(std::function<void(T)> then) {
  return [this, number = cut_->plan.number, then = std::move(then)](T result) mutable {
    options_.executor->Post(
        [this, number, then = std::move(then), result = std::move(result)]() mutable {
          if (cut_ != nullptr && cut_->plan.number == number) then(std::move(result));
        });
  };
}

void CutEngine::OnDisk(std::function<absl::Status()> work, void (CutEngine::*then)(absl::Status)) {
  ++cut_->disk_tasks;
  auto done = InCut<absl::Status>([this, then](absl::Status status) {
    --cut_->disk_tasks;
    (this->*then)(std::move(status));
  });
  options_.disk_executor->Post(
      [work = std::move(work), done = std::move(done)]() mutable { done(work()); });
}

void CutEngine::Reach(KillPoint::Point point) {
  if (options_.kill_points != nullptr) options_.kill_points->Reach(point);
}

void CutEngine::StartNext() {
  cut_ = std::move(waiting_.front());
  waiting_.pop_front();
  cut_->outcome.name = CutName(options_.envelope.generation(), cut_->plan.number);
  cut_->folder = absl::StrCat(CheckpointsDir(options_.job.run_dir()), "/", cut_->outcome.name);
  if (!broken_.ok()) return End(broken_);
  const int64_t pause_us = PauseUs();
  if (pause_us == 0) return StartCurrent();
  options_.executor->PostAfter(pause_us, [this, number = cut_->plan.number] {
    if (cut_ != nullptr && cut_->plan.number == number) StartCurrent();
  });
}

// Only cuts that ranks wait for are begun again at once, so only these need a pause. Other cuts are
// begun again only when the clock or the steps make the next one due.
int64_t CutEngine::PauseUs() const {
  if (abandoned_in_a_row_ == 0 || !IsWaitedFor(cut_->plan)) return 0;
  const int64_t pause_us =
      std::min(kLongestPauseUs, kFirstPauseUs << std::min(abandoned_in_a_row_ - 1, 10));
  return std::max<int64_t>(0, last_abandoned_us_ + pause_us - options_.executor->NowUs());
}

void CutEngine::StartCurrent() {
  cut_->marked_us = options_.executor->NowUs();
  if (absl::Status status = MergeLedgers(); !status.ok()) return End(std::move(status));
  EndAfterLimit();
  Reach(KillPoint::RANK_BEFORE_MARK);
  OnDisk([fs = options_.file_system, folder = cut_->folder] { return fs->CreateFolders(folder); },
         &CutEngine::OnFolder);
}

// A disk that hangs gives no error, and its PS answers WAIT for ever: without a limit, ranks that
// wait for this cut would never continue, and no other cut would be taken. The folder stays,
// because the commit may have been sent.
void CutEngine::EndAfterLimit() {
  const double limit_seconds = options_.job.checkpoint().limit_seconds();
  options_.executor->PostAfter(static_cast<int64_t>(limit_seconds * 1e6), [this, limit_seconds,
                                                                           number =
                                                                               cut_->plan.number] {
    if (cut_ == nullptr || cut_->plan.number != number) return;
    End(absl::UnavailableError(absl::StrCat(
        "cut ", cut_->outcome.name, ": not written within ", limit_seconds,
        " s (checkpoint.limit_seconds); does the disk hang? Still missing: ", cut_->Missing())));
  });
}

// The ledger keeps the records that ranks handed over even if this cut is abandoned, because ranks
// report them only once.
absl::Status CutEngine::MergeLedgers() {
  for (size_t rank = 0; rank < cut_->released.size(); ++rank) {
    absl::StatusOr<Ledger> released = Ledger::FromState(cut_->released[rank]);
    const absl::Status status = released.ok() ? ledger_.Merge(*released) : released.status();
    if (!status.ok()) {
      // A restart would meet the same contradiction, so the status code must not lead to a restart.
      return absl::DataLossError(absl::StrCat("cut ", cut_->outcome.name,
                                              ": the ledger refuses the records that nn_worker ",
                                              rank, " has trained: ", status.message()));
    }
  }
  ledger_.CloseEpochsBefore(cut_->plan.position.epoch());
  *cut_->manifest.mutable_ledger() = ledger_.ToState();
  cut_->outcome.ledger_pieces = ledger_.PiecesBehind();
  MutexLock lock(&mutex_);
  consumed_ = ledger_.OfAll();
  return absl::OkStatus();
}

void CutEngine::OnFolder(absl::Status status) {
  if (!status.ok()) return Abandon(std::string(status.message()), /*copy_limit=*/false);
  BeginCutRequest request;
  request.set_cut(cut_->plan.number);
  request.set_directory(cut_->folder);
  if (copy_limits_in_a_row_ >= kCopyLimitsUntilHeld) request.set_hold_updates(true);
  cut_->told_ps = true;
  embedding_ps_.CallAll(rpc::kBeginCut, request, InCut<absl::Status>([this](absl::Status status) {
                          OnMarked(std::move(status));
                        }));
}

void CutEngine::OnMarked(absl::Status status) {
  if (!status.ok()) return End(std::move(status));
  cut_->marked_us = options_.executor->NowUs();
  cut_->all_marked = true;
  Reach(KillPoint::RANK_AFTER_MARK);
  cut_->marked();
  AwaitCutRequest request;
  request.set_cut(cut_->plan.number);
  for (size_t ps = 0; ps < embedding_ps_.num_ps(); ++ps) {
    cut_->ps_missing.insert(ps);
    embedding_ps_.Call(
        ps, rpc::kAwaitCut, request,
        InCut<absl::StatusOr<rpc::Message>>([this, ps](absl::StatusOr<rpc::Message> answer) {
          OnFilesOfPs(ps, std::move(answer));
        }));
  }
  OnDisk(
      [cut = cut_, fs = options_.file_system]() -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                         DurableFile::Create(absl::StrCat(cut->folder, "/", kDenseFile), fs));
        RETURN_IF_ERROR(file->Append(cut->dense));
        RETURN_IF_ERROR(file->Commit());
        cut->dense_bytes = file->size_bytes();
        cut->dense_crc32c = file->crc32c();
        return absl::OkStatus();
      },
      &CutEngine::OnDense);
}

void CutEngine::OnFilesOfPs(size_t ps, absl::StatusOr<rpc::Message> answer) {
  if (!answer.ok()) return End(answer.status());
  AwaitCutAnswer files;
  if (!files.ParseFromString(answer->header)) {
    return End(absl::InvalidArgumentError(
        absl::StrCat("AwaitCut to embedding_ps ", ps, ": the answer cannot be parsed")));
  }
  cut_->outcome.copied_bytes += files.copied_bytes();
  if (files.has_abandoned()) {
    return Abandon(absl::StrCat("embedding_ps ", ps, ": ", files.abandoned()), files.copy_limit());
  }
  for (SavedFile& file : *files.mutable_files()) {
    cut_->outcome.bytes += file.bytes();
    *cut_->manifest.add_table_files() = std::move(file);
  }
  cut_->ps_missing.erase(ps);
  WriteManifestWhenWhole();
}

void CutEngine::OnDense(absl::Status status) {
  if (!status.ok()) return Abandon(std::string(status.message()), /*copy_limit=*/false);
  cut_->outcome.bytes += cut_->dense_bytes;
  cut_->manifest.set_dense_file(kDenseFile);
  cut_->manifest.set_dense_bytes(cut_->dense_bytes);
  cut_->manifest.set_dense_crc32c(cut_->dense_crc32c);
  cut_->dense_written = true;
  WriteManifestWhenWhole();
}

void CutEngine::WriteManifestWhenWhole() {
  if (cut_->abandoned) return RemoveFolderWhenIdle();
  if (!cut_->ps_missing.empty() || !cut_->dense_written) return;
  CheckpointManifest& manifest = cut_->manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_min_reader_version(MinReaderVersion(manifest));
  manifest.set_job_name(options_.job.name());
  manifest.set_step(cut_->plan.position.step());
  DescribeTables(options_.job, &manifest);
  *manifest.mutable_features() = SavedFeaturesOf(options_.job);
  if (cut_->plan.best) *manifest.mutable_valid() = cut_->plan.position.best().values();
  *manifest.mutable_position() = cut_->plan.position;
  manifest.set_generation(options_.envelope.generation());
  manifest.set_cut(cut_->plan.number);
  manifest.set_order_fingerprint(options_.order_fingerprint);
  OnDisk(
      [cut = cut_, fs = options_.file_system, run_dir = options_.job.run_dir()]() -> absl::Status {
        RETURN_IF_ERROR(WriteManifest(cut->folder, cut->manifest, fs));
        // The files are durable, but the name of the cut's folder may not be. For the first cut of
        // a run, the name of the folder above it may not be durable, either.
        RETURN_IF_ERROR(fs->SyncFolder(CheckpointsDir(run_dir)));
        return fs->SyncFolder(run_dir);
      },
      &CutEngine::OnManifest);
}

void CutEngine::OnManifest(absl::Status status) {
  if (!status.ok()) return Abandon(std::string(status.message()), /*copy_limit=*/false);
  Reach(KillPoint::RANK_BEFORE_COMMIT);
  const double seconds = static_cast<double>(options_.executor->NowUs() - cut_->marked_us) * 1e-6;
  CommitCutRequest request;
  request.set_cut(cut_->outcome.name);
  request.set_best(cut_->plan.best);
  request.set_last(cut_->plan.last);
  request.set_wish(cut_->plan.wish);
  request.set_leave(cut_->plan.leave);
  request.set_seconds(seconds);
  cut_->commit_sent = true;
  commit_.Call(0, {request.SerializeAsString(), Buffer()},
               InCut<absl::StatusOr<rpc::Message>>([this](absl::StatusOr<rpc::Message> answer) {
                 OnCommitted(std::move(answer));
               }));
}

// An error does not say whether the coordinator has appended the cut to its log. If it has, the
// next generation begins from the cut, so none of its files may be removed here. The answer
// `abandoned` means that the coordinator has not appended the cut and never will.
void CutEngine::OnCommitted(absl::StatusOr<rpc::Message> answer) {
  if (!answer.ok()) {
    const absl::Status& status = answer.status();
    const bool is_over = absl::IsFailedPrecondition(status);
    return End(absl::Status(is_over ? absl::StatusCode::kAborted : status.code(),
                            absl::StrCat("cut ", cut_->outcome.name, ": ", status.message())));
  }
  CommitCutAnswer committed;
  if (!committed.ParseFromString(answer->header)) {
    return End(absl::InvalidArgumentError(
        absl::StrCat("cut ", cut_->outcome.name, ": the answer to CommitCut cannot be parsed")));
  }
  if (committed.has_abandoned()) {
    return Abandon(absl::StrCat("the coordinator: ", committed.abandoned()), /*copy_limit=*/false);
  }
  Reach(KillPoint::RANK_AFTER_COMMIT);
  abandoned_in_a_row_ = copy_limits_in_a_row_ = 0;
  cut_->outcome.committed = true;
  End(std::move(cut_->outcome));
}

void CutEngine::Abandon(std::string cause, bool copy_limit) {
  if (!cut_->abandoned) {
    cut_->abandoned = true;
    cut_->outcome.cause = std::move(cause);
    cut_->outcome.copy_limit = copy_limit;
    cut_->ps_abandoned = !cut_->told_ps;
    if (cut_->told_ps) {
      AbandonCutRequest request;
      request.set_cut(cut_->plan.number);
      embedding_ps_.CallAll(rpc::kAbandonCut, request,
                            InCut<absl::Status>([this](absl::Status status) {
                              if (!status.ok()) return End(std::move(status));
                              cut_->ps_abandoned = true;
                              RemoveFolderWhenIdle();
                            }));
    }
  }
  RemoveFolderWhenIdle();
}

// Waits until no file is being written any more, because such a file could appear in the folder
// again.
void CutEngine::RemoveFolderWhenIdle() {
  if (!cut_->abandoned || !cut_->ps_abandoned || cut_->disk_tasks > 0) return;
  OnDisk([fs = options_.file_system, folder = cut_->folder] { return fs->Remove(folder); },
         &CutEngine::OnRemoved);
}

// If the folder could not be removed, it takes up space until the next generation's coordinator
// removes it.
void CutEngine::OnRemoved(absl::Status) {
  last_abandoned_us_ = options_.executor->NowUs();
  if (++abandoned_in_a_row_ == 1) first_abandoned_us_ = last_abandoned_us_;
  copy_limits_in_a_row_ = cut_->outcome.copy_limit ? copy_limits_in_a_row_ + 1 : 0;
  if (cut_->plan.last) {
    return End(absl::FailedPreconditionError(absl::StrCat(
        "the last cut of the run, ", cut_->outcome.name, ", could not be written: ",
        cut_->outcome.cause, ". Remove the cause, then continue with `satrap resume`")));
  }
  if (abandoned_in_a_row_ >= kMostAbandonedInARow &&
      last_abandoned_us_ - first_abandoned_us_ >= kLeastAbandonedUs) {
    return End(absl::FailedPreconditionError(
        absl::StrCat(abandoned_in_a_row_, " cuts in a row could not be written; the last of them, ",
                     cut_->outcome.name, ": ", cut_->outcome.cause,
                     ". Remove the cause, then continue with `satrap resume`")));
  }
  End(std::move(cut_->outcome));
}

void CutEngine::End(absl::StatusOr<CutOutcome> outcome) {
  if (outcome.ok()) {
    outcome->seconds = static_cast<double>(options_.executor->NowUs() - cut_->marked_us) * 1e-6;
  } else if (broken_.ok()) {
    broken_ = outcome.status();
  }
  const std::shared_ptr<Cut> cut = std::move(cut_);
  cut->ended(std::move(outcome));
  if (!waiting_.empty()) StartNext();
}

}  // namespace satrap
