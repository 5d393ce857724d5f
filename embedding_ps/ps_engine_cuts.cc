// The part of PsEngine that saves and restores the tables for rank 0.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "embedding_ps/ps_engine.h"

namespace satrap {

absl::Status PsEngine::BeginCut(const BeginCutRequest& request) {
  const uint64_t cut = request.cut();
  // Rows are marked only if no Update is open, and under the lock that is needed to admit an
  // Update. So no row changes while the tables are marked one after another.
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const bool is_new, cuts_.IsNew(cut));
  if (!is_new) return absl::OkStatus();
  if (open_updates_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cut ", cut, " refused: ", open_updates_, " Updates are not answered yet"));
  }
  if (loading_ || load_failed_ || restored_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cut ", cut, " refused: the tables hold the rows of another cut, or are being loaded"));
  }
  touched_ = true;
  if (request.hold_updates()) holding_cut_ = cut;
  cuts_.Begin(cut, request.directory(), [this, cut] { ReleaseUpdates(cut); });
  return absl::OkStatus();
}

void PsEngine::ReleaseUpdates(uint64_t cut) {
  std::vector<Task> held;
  {
    MutexLock lock(&mutex_);
    if (holding_cut_ != cut) return;
    holding_cut_ = 0;
    held.swap(held_updates_);
  }
  for (Task& update : held) options_.executor->Post(std::move(update));
}

void PsEngine::LoadTables(const std::string& directory, bool from_model, rpc::Callback done) {
  // Loads and Updates exclude each other without a lock held during either: whichever comes second
  // is refused. loading_ is set under the same lock under which no open Update was found, so an
  // Update that arrives later sees it.
  absl::Status refused;
  bool is_first = false;
  {
    MutexLock lock(&mutex_);
    if (open_updates_ > 0) {
      refused = absl::FailedPreconditionError(
          absl::StrCat("LoadTables refused: ", open_updates_, " Updates are not answered yet"));
    } else if (loading_) {
      refused = absl::FailedPreconditionError("LoadTables refused: another load is running");
    } else {
      loading_ = true;
      is_first = !touched_;
    }
  }
  if (!refused.ok()) return done(refused);
  // In a run that starts from a model, the first load reads that model. Later loads read cuts of
  // the run itself, which have all of its tables.
  const bool warm = from_model && is_first;
  LoadOptions load;
  if (warm) load.warm_start = job_.warm_start();
  for (const auto& table : tables_) load.tables.push_back(table.get());
  load.directory = directory;
  load.threads = job_.embedding_ps().threads();
  load.executor =
      options_.load_executor != nullptr ? options_.load_executor : options_.disk_executor;
  load.file_system = options_.file_system;
  cuts_.AbandonAll(absl::AbortedError("the tables were loaded"));
  satrap::LoadTables(
      load, [this, is_first, warm, done = std::move(done)](const LoadResult& result) mutable {
        // Preloads again before Updates are admitted, because the model may lack rows that this job
        // preloads.
        if (warm && result.status.ok()) Preload();
        OnLoaded(result, is_first, warm);
        if (!result.status.ok()) return done(result.status);
        LoadTablesAnswer answer;
        answer.set_outcome(OUTCOME_DONE);
        done(rpc::MessageOf(answer));
      });
}

void PsEngine::OnLoaded(const LoadResult& result, bool is_first, bool warm) {
  MutexLock lock(&mutex_);
  loading_ = false;
  // A load that failed before it removed any rows changes nothing.
  if (!result.replaced) return;
  // If the model that the run starts from vanishes while the PSs load it, rank 0 makes all of them
  // load another model, even those whose load had ended. So until the first Update, every such load
  // counts as the first load.
  if (!warm) touched_ = true;
  // After an error, no Update may be applied to the tables until another load fills them.
  load_failed_ = !result.status.ok();
  if (!is_first) restored_ = true;
}

void PsEngine::Load(const std::string& directory, absl::AnyInvocable<void(absl::Status)> done) {
  LoadTables(directory, /*from_model=*/false,
             [done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
               done(answer.status());
             });
}

}  // namespace satrap
