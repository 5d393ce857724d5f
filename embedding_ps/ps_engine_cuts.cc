// The part of PsEngine that saves and restores the tables for rank 0.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/receivers.h"
#include "embedding_ps/ps_engine.h"

namespace satrap {

void PsEngine::OnBeginCut(const rpc::PendingAnswer& call, BeginCutRequest request, const Buffer&) {
  options_.executor->Post([this, call, request = std::move(request)] {
    const absl::Status begun = BeginCut(request);
    if (!begun.ok()) return call.Finish(begun);
    call.Finish(rpc::Done<BeginCutAnswer>());
  });
}

void PsEngine::OnAwaitCut(const rpc::PendingAnswer& call, const AwaitCutRequest& request,
                          const Buffer&) {
  cuts_.Await(request.cut(), [call](absl::StatusOr<AwaitCutAnswer> answer) {
    if (!answer.ok()) return call.Finish(answer.status());
    call.Finish(rpc::MessageOf(*answer));
  });
}

void PsEngine::OnAbandonCut(const rpc::PendingAnswer& call, const AbandonCutRequest& request,
                            const Buffer&) {
  cuts_.Abandon(request.cut(), [call] { call.Finish(rpc::Done<AbandonCutAnswer>()); });
}

void PsEngine::OnLoadTables(const rpc::PendingAnswer& call, const LoadTablesRequest& request,
                            const Buffer&) {
  const bool from_model = job_.action() == JobConfig::TRAIN && !job_.init_from().empty();
  LoadTables(request.directory(), from_model,
             [call](absl::StatusOr<rpc::Message> answer) { call.Finish(std::move(answer)); });
}

absl::Status PsEngine::BeginCut(const BeginCutRequest& request) {
  const uint64_t cut = request.cut();
  // Rows are marked only if no Update is open, and under the lock that is needed to admit an
  // Update. So no row changes while the tables are marked one after another.
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const bool is_new, cuts_.IsNew(cut));
  if (!is_new) return absl::OkStatus();
  RETURN_IF_ERROR(gate_.BeginCut(cut, request.hold_updates()));
  cuts_.Begin(cut, request.directory(), [this, cut] { ReleaseUpdates(cut); });
  return absl::OkStatus();
}

void PsEngine::ReleaseUpdates(uint64_t cut) {
  std::vector<Task> waiting;
  {
    MutexLock lock(&mutex_);
    waiting = gate_.Release(cut);
  }
  for (Task& update : waiting) options_.executor->Post(std::move(update));
}

void PsEngine::LoadTables(const std::string& directory, bool from_model, rpc::Callback done) {
  absl::StatusOr<bool> untouched;
  {
    MutexLock lock(&mutex_);
    untouched = gate_.BeginLoad();
  }
  if (!untouched.ok()) return done(untouched.status());
  const bool is_first = *untouched;
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
        {
          MutexLock lock(&mutex_);
          gate_.EndLoad({result.replaced, !result.status.ok(), is_first, warm});
        }
        if (!result.status.ok()) return done(result.status);
        done(rpc::Done<LoadTablesAnswer>());
      });
}

void PsEngine::Load(const std::string& directory, absl::AnyInvocable<void(absl::Status)> done) {
  LoadTables(directory, /*from_model=*/false,
             [done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
               done(answer.status());
             });
}

}  // namespace satrap
