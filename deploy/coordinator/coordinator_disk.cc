#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "deploy/coordinator/coordinator_rep.h"
#include "deploy/coordinator/splits/split_files.h"

namespace satrap {

void CoordinatorEngine::Rep::OnDisk(Task task) {
  ++disk_tasks;
  disk.Post([this, task = std::move(task)]() mutable {
    {
      MutexLock lock(&mutex);
      disk_busy_since_us = executor->NowUs();
    }
    task();
    MutexLock lock(&mutex);
    disk_busy_since_us.reset();
    --disk_tasks;
  });
}

void CoordinatorEngine::Rep::RestartHangClock() {
  MutexLock lock(&mutex);
  disk_busy_since_us = executor->NowUs();
}

// A disk that hangs returns no error. Without this check all members would wait for ever, because
// only this process can tell them that the generation is over.
void CoordinatorEngine::Rep::EndIfDiskHangs(int64_t now_us, int64_t stall_us) {
  if (!disk_busy_since_us.has_value() || end.has_ended()) return;
  // Leave out the time for which this process was suspended.
  *disk_busy_since_us = std::min(now_us, *disk_busy_since_us + stall_us);
  const double limit_seconds = job.checkpoint().limit_seconds();
  if (static_cast<double>(now_us - *disk_busy_since_us) * 1e-6 <= limit_seconds) return;
  end.OnDiskHang(absl::StrCat("coordinator: a file operation in ", job.run_dir(),
                              " has not returned for ", limit_seconds,
                              " s (checkpoint.limit_seconds); does the disk hang?"));
}

void CoordinatorEngine::Rep::RunCommit(const rpc::PendingAnswer& call,
                                       const CommitCutRequest& request) {
  const absl::optional<absl::StatusOr<CommitCutAnswer>> answer = commits.Commit(request);
  if (!answer.has_value()) return;
  if (!answer->ok()) return call.Finish(answer->status());
  call.Finish(rpc::MessageOf(**answer));
  if ((*answer)->has_abandoned()) return;
  OnDisk([this] { TidyCuts(); });
  OnDisk([this] { CompactLog(); });
  OnDisk([this, cut = request.cut()] { topics.FollowCut(cut); });
}

void CoordinatorEngine::Rep::TidyCuts() {
  // A coordinator whose generation has been superseded has an outdated log. It would set wrong
  // links, and could remove a cut that the run has been set back to.
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  if (!foreign.ok() || *foreign) return;
  // Each removal restarts the clock, because removing many cuts may take long on a disk that does
  // not hang.
  const auto begins_removal = [this](const std::string&) { RestartHangClock(); };
  for (const absl::Status& status :
       {cut_folders.MoveLinks(log),
        cut_folders.RemoveOld(log, job.checkpoint().keep(), begins_removal)}) {
    if (!status.ok() && options.warn) options.warn(std::string(status.message()));
  }
}

void CoordinatorEngine::Rep::Finish(const FinishRequest& request, rpc::Callback respond) {
  {
    MutexLock lock(&mutex);
    if (!end.has_ended()) {
      // A repeated call waits for the entry that the first call appends.
      finishers.push_back(std::move(respond));
      if (finishers.size() > 1) return;
      OnDisk([this, result = request.result()] { RunFinish(result); });
      return;
    }
  }
  respond(rpc::MessageOf(FinishAnswer()));
}

void CoordinatorEngine::Rep::RunFinish(const RunResult& run_result) {
  bool append;
  {
    MutexLock lock(&mutex);
    append = end.BeginAppend("the run has finished").ok();
  }
  absl::Status status;
  if (append) {
    RunLogEntry entry;
    *entry.mutable_end()->mutable_result() = run_result;
    entry.mutable_end()->set_state(FINISHED);
    entry.mutable_end()->set_submission(submission);
    status = Append(entry);
    // This generation cannot finish even if the entry is in the log.
    if (!status.ok() && EndUnlessKnown(status)) {
      MutexLock lock(&mutex);
      end.EndByLoss(
          EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
                   absl::StrCat("coordinator: the end cannot be written into the run's log: ",
                                status.message())));
    }
  }
  std::vector<rpc::Callback> waiting;
  {
    MutexLock lock(&mutex);
    // If the append hung, the generation has ended meanwhile and cannot finish.
    if (end.appends() && status.ok()) {
      end.SetEnd(FINISHED, Ending());
      result = run_result;
    }
    end.FinishAppend();
    waiting.swap(finishers);
  }
  for (rpc::Callback& respond : waiting) {
    if (status.ok()) {
      respond(rpc::MessageOf(FinishAnswer()));
    } else {
      respond(absl::AbortedError(status.message()));
    }
  }
}

void CoordinatorEngine::Rep::RunFixSplits(const FixSplitsRequest& request, rpc::Callback respond) {
  if (!topics.known() && EndedStatus().ok()) {
    if (request.loader() >= static_cast<uint32_t>(job.data_loader().replicas())) {
      return respond(absl::InvalidArgumentError(absl::StrCat("loader: ", request.loader())));
    }
    // In a shared_ptr, because the lambda must be copyable.
    const auto shared = std::make_shared<rpc::Callback>(std::move(respond));
    topics.Await(request.loader(), [this, request, shared](const absl::Status& status) {
      if (!status.ok()) return (*shared)(status);
      RunFixSplits(request, std::move(*shared));
    });
    return;
  }
  absl::StatusOr<SplitList> list = FixSplits(request);
  if (!list.ok()) return respond(list.status());
  FixSplitsAnswer answer;
  *answer.mutable_splits() = *std::move(list);
  respond(rpc::MessageOf(answer));
}

absl::StatusOr<SplitList> CoordinatorEngine::Rep::FixSplits(const FixSplitsRequest& request) {
  {
    MutexLock lock(&mutex);
    // If the run has finished, the loader learns that from its heartbeat, as all roles do.
    if (end.state() == FINISHED) return WithTopics(request.splits(), log.topics());
    if (end.has_ended()) return end.EndedError();
  }
  if (!first_splits.has_value()) first_splits = request;
  const std::string difference = FirstDifference(first_splits->splits(), request.splits());
  if (!difference.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        MemberName(DATA_LOADER, static_cast<int>(request.loader())), " sees ", difference,
        ", unlike ", MemberName(DATA_LOADER, static_cast<int>(first_splits->loader())),
        ": all loaders must see the same files"));
  }
  if (!splits.has_value()) {
    ASSIGN_OR_RETURN(
        splits, FixSplitList(job, request.splits(), topics.first_topics(), cut_order_fingerprint,
                             options.writer, options.file_system));
  }
  const uint64_t order = OrderFingerprint(job, WithTopics(*splits, topics.first_topics()));
  MutexLock lock(&mutex);
  if (cut_order_fingerprint.has_value() && *cut_order_fingerprint != order) {
    const std::string reason =
        absl::StrCat("the run cannot go on from ", cut_folder,
                     ": its data, or a field of the job that orders samples (mode, seed, lanes, "
                     "global_batch_size, data), is not what it was when the cut was made");
    end.EndForGood(EndingOf(Ending::OTHER_DATA, reason));
    return absl::FailedPreconditionError(reason);
  }
  order_fingerprint = order;
  return WithTopics(*splits, topics.topics());
}

void CoordinatorEngine::Rep::LookForOtherCoordinators() {
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  MutexLock lock(&mutex);
  looks_at_log = false;
  // If the folder cannot be read now, the next check may succeed.
  if (!foreign.ok() || !*foreign) return;
  end.EndSuperseded();
}

}  // namespace satrap
