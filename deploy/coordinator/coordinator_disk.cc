#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "deploy/coordinator/coordinator_rep.h"
#include "deploy/coordinator/split_files.h"

namespace satrap {
namespace {

CommitCutAnswer Abandoned(const absl::Status& why) {
  CommitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  answer.set_abandoned(std::string(why.message()));
  return answer;
}

}  // namespace

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

// A disk that hangs gives no error. What is put off until the append is over would wait for ever,
// and so would all members, which nobody but this process can tell.
void CoordinatorEngine::Rep::EndIfDiskHangs(int64_t now_us, int64_t stall_us) {
  if (!disk_busy_since_us.has_value() || Ended()) return;
  // A standstill of this process is not one of the disk.
  *disk_busy_since_us = std::min(now_us, *disk_busy_since_us + stall_us);
  const double limit_seconds = job.checkpoint().limit_seconds();
  if (static_cast<double>(now_us - *disk_busy_since_us) * 1e-6 <= limit_seconds) return;
  const std::string hangs =
      absl::StrCat("coordinator: a file operation in ", job.run_dir(), " has not returned for ",
                   limit_seconds, " s (checkpoint.limit_seconds); does the disk hang?");
  if (put_off.has_value()) absl::StrAppend(put_off->how.mutable_text(), "; ", hangs);
  if (appending.has_value()) {
    if (!appending->empty()) uncertain = *appending;
    FinishAppend();
  }
  // As after any loss, the next generation tries the job again.
  if (std::exchange(dropping, false)) put_off.reset();
  EndGeneration(EndingOf(Ending::DISK_HANGS, COORDINATOR, 0, hangs));
}

absl::Status CoordinatorEngine::Rep::Append(RunLogEntry entry) {
  entry.set_unix_ms(static_cast<uint64_t>(options.unix_ms()));
  return log.Append(entry);
}

void CoordinatorEngine::Rep::RunCommit(const rpc::PendingAnswer& call,
                                       const CommitCutRequest& request) {
  const absl::StatusOr<CutEntry> cut = CheckCommit(request);
  // A file cannot be read, or is not whole. The work is in the tables all the same, so the cut is
  // abandoned, as one that cannot be written.
  if (absl::IsDataLoss(cut.status())) return call.Finish(rpc::MessageOf(Abandoned(cut.status())));
  absl::Status status = cut.status();
  if (status.ok()) status = BeginAppend(request);
  if (!status.ok()) return call.Finish(status);
  const absl::optional<absl::StatusOr<CommitCutAnswer>> answer = AppendCut(request, *cut);
  // Nobody knows whether the cut is committed. Rank 0 must not be told that it is not, because it
  // would remove the files. It learns by its heartbeat that the generation has ended.
  if (!answer.has_value()) return;
  if (!answer->ok()) return call.Finish(answer->status());
  call.Finish(rpc::MessageOf(**answer));
  if ((*answer)->has_abandoned()) return;
  OnDisk([this] { TidyCuts(); });
  OnDisk([this] { CompactLog(); });
  OnDisk([this, name = cut->cut()] { topics.FollowCut(name); });
}

bool CoordinatorEngine::Rep::IsNewer(const std::string& cut) const {
  const CutEntry* newest = log.last_cut();
  return newest == nullptr || ParseCutName(cut) > ParseCutName(newest->cut());
}

// DATA_LOSS: a file of the cut cannot be read or is not whole. Other errors are of the request, or
// say that the generation is over: rank 0 would meet them again with every cut.
absl::StatusOr<CutEntry> CoordinatorEngine::Rep::CheckCommit(const CommitCutRequest& request) {
  {
    MutexLock lock(&mutex);
    if (Ended()) return EndedError();
    if (state != RUNNING) return absl::FailedPreconditionError("the run has not begun yet");
  }
  // First, because the files of an older cut may be gone by now.
  if (ParseCutName(request.cut()).has_value() && !IsNewer(request.cut())) {
    return absl::FailedPreconditionError(absl::StrCat(
        request.cut(), " is not newer than ", log.last_cut()->cut(), ", which is committed"));
  }
  ASSIGN_OR_RETURN(CutEntry cut, cut_folders.Check(request.cut()));
  cut.set_best(request.best());
  cut.set_last(request.last());
  cut.set_leave(request.leave());
  cut.set_seconds(request.seconds());
  return cut;
}

// From here on the generation does not end until the entry is appended or is not.
absl::Status CoordinatorEngine::Rep::BeginAppend(const CommitCutRequest& request) {
  MutexLock lock(&mutex);
  if (Ended()) return EndedError();
  if (request.leave() && !wishes.stops() && !wishes.scales()) {
    return absl::InvalidArgumentError("leave: nobody has wished that training ends");
  }
  appending = absl::StrCat(request.cut(), " is committed");
  return absl::OkStatus();
}

// What rank 0 is told; nothing if it is not known whether the entry is in the log.
absl::optional<absl::StatusOr<CommitCutAnswer>> CoordinatorEngine::Rep::AppendCut(
    const CommitCutRequest& request, const CutEntry& cut) {
  KillPoints* const kill_points = options.kill_points;
  RunLogEntry entry;
  *entry.mutable_cut() = cut;
  if (kill_points != nullptr) kill_points->Reach(KillPoint::COORDINATOR_BEFORE_LINK);
  const absl::Status status = Append(entry);
  if (status.ok() && kill_points != nullptr) {
    kill_points->Reach(KillPoint::COORDINATOR_AFTER_LINK);
  }
  bool scale = false;
  {
    MutexLock lock(&mutex);
    // The generation has ended meanwhile because the append hung, and the end has been told:
    // whatever became of the entry is for the next coordinator to see.
    if (!appending.has_value()) return absl::nullopt;
    if (status.ok()) {
      OnCutAppended(request, log.entries().back());
      scale = request.leave() && wishes.scales();
    }
  }
  const bool known = status.ok() || EndUnlessKnown(status);
  if (scale) AppendScale();
  {
    MutexLock lock(&mutex);
    FinishAppend();
  }
  if (!known) return absl::nullopt;
  if (absl::IsAlreadyExists(status)) return absl::FailedPreconditionError(status.message());
  // The disk may be full for now, or its files limited; the work is in the tables all the same.
  if (!status.ok()) return Abandoned(status);
  CommitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  return answer;
}

void CoordinatorEngine::Rep::OnCutAppended(const CommitCutRequest& request,
                                           const RunLogEntry& entry) {
  last_cut = entry.cut();
  last_cut_unix_ms = static_cast<int64_t>(entry.unix_ms());
  restarts_without_cut = 0;
  wishes.Fulfil(request.wish());
  if (request.last()) {
    training_is_over = true;
    wishes.FulfilAll();  // there is nothing left to cut
  }
  if (wishes.stops() && (request.leave() || request.last())) {
    state = STOPPED;
    ending =
        EndingOf(Ending::ASKED, absl::StrCat("stopped on request after ", entry.cut().cut(),
                                             " at step ", entry.cut().step(), "; nothing is lost"));
    ending.set_loss(Ending::NOTHING);
  }
}

// The announcement of the next size: whoever claims the next generation takes the job from it. It
// follows the cut in the same task, so no other entry of this process comes between. If it cannot
// be written, the ranks have left all the same, so the generation ends; by the cut's entry that is
// no failure (RunLog::has_left). The next generation has the size that the log says, and `satrap
// scale` asks it again if that is the old one.
void CoordinatorEngine::Rep::AppendScale() {
  RunLogEntry entry;
  GenerationEntry* next = entry.mutable_generation();
  next->set_generation(envelope.generation() + 1);
  next->set_run_id(envelope.run_id());
  next->set_cut(log.next_start());
  next->set_began(BEGAN_SCALE_ANNOUNCED);
  {
    MutexLock lock(&mutex);
    *next->mutable_job() = wishes.next_job();
  }
  const absl::Status status = Append(entry);
  const bool absent = !status.ok() && IsAbsent(status);
  MutexLock lock(&mutex);
  if (!appending.has_value()) return;  // it hung, and the generation has ended
  state = RESTARTING;
  if (status.ok()) {
    ending = EndingOf(Ending::ASKED, absl::StrCat("the run changes its size after ", next->cut()));
  } else if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) {
    ending = SupersededEnding();
  } else {
    ending = EndingOf(
        Ending::LOG_NOT_WRITTEN,
        absl::StrCat("the run begins again from ", next->cut(), ", and nothing is lost",
                     absent ? ", because its change of size cannot be written into its log: "
                            : ", but its change of size may not be in its log: ",
                     status.message()));
  }
  ending.set_loss(Ending::NOTHING);
}

void CoordinatorEngine::Rep::FinishAppend() {
  appending.reset();
  if (!dropping) TakePutOffEnd();
}

void CoordinatorEngine::Rep::TakePutOffEnd() {
  if (!put_off.has_value()) return;
  PutOffEnd due = *std::move(put_off);
  put_off.reset();
  if (due.end == nullptr) {
    End(due.state, std::move(due.how));
  } else {
    (this->*due.end)(std::move(due.how));
  }
}

// After a failed Append: whether the entry is certainly not in the log. A link or a sync that fails
// may have worked all the same.
bool CoordinatorEngine::Rep::IsAbsent(const absl::Status& status) const {
  if (absl::IsAlreadyExists(status)) return true;
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  return foreign.ok() && !*foreign;
}

// After a failed Append: returns whether it is known that the entry is not in the log. If it is
// not known, or another coordinator was faster, the generation ends.
bool CoordinatorEngine::Rep::EndUnlessKnown(const absl::Status& status) {
  const bool absent = IsAbsent(status);
  MutexLock lock(&mutex);
  if (absl::IsAlreadyExists(status) || absl::IsAborted(status)) End(RESTARTING, SupersededEnding());
  if (absent) return true;
  // Absent if the append hung: then the generation has ended already.
  if (appending.has_value() && !appending->empty()) uncertain = appending;
  EndGeneration(
      EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
               absl::StrCat("coordinator: the run's log cannot be written: ", status.message())));
  return false;
}

void CoordinatorEngine::Rep::TidyCuts() {
  // A coordinator that is superseded has an old log: its links would be wrong, and it could remove
  // a cut that the run has been taken back to.
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  if (!foreign.ok() || *foreign) return;
  // A run that kept many cuts may need long for them all, and its disk does not hang.
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
    if (!Ended()) {
      // A repeat waits for the entry that the first one appends.
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
    append = !Ended();
    if (append) appending = "the run has finished";
  }
  absl::Status status;
  if (append) {
    RunLogEntry entry;
    *entry.mutable_end()->mutable_result() = run_result;
    status = Append(entry);
    // Whether or not the entry is in the log, this generation cannot finish.
    if (!status.ok() && EndUnlessKnown(status)) {
      MutexLock lock(&mutex);
      EndGeneration(
          EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
                   absl::StrCat("coordinator: the end cannot be written into the run's log: ",
                                status.message())));
    }
  }
  std::vector<rpc::Callback> waiting;
  {
    MutexLock lock(&mutex);
    // Unless the append hung, and the generation has ended meanwhile.
    if (appending.has_value()) {
      if (status.ok()) {
        state = FINISHED;
        result = run_result;
      }
      FinishAppend();
    }
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
    // Shared, because the function can be copied.
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
    // A loader of a run that has finished learns of that where all roles do, from its heartbeat.
    if (state == FINISHED) return WithTopics(request.splits(), log.topics());
    if (Ended()) return EndedError();
  }
  if (!first_splits.has_value()) first_splits = request;
  const std::string difference = FirstDifference(first_splits->splits(), request.splits());
  if (!difference.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        MemberName(DATA_LOADER, static_cast<int>(request.loader())), " sees ", difference, " as ",
        MemberName(DATA_LOADER, static_cast<int>(first_splits->loader())),
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
                     "global_batch_size, data), is another than when the cut was made");
    EndForGood(EndingOf(Ending::OTHER_DATA, reason));
    return absl::FailedPreconditionError(reason);
  }
  order_fingerprint = order;
  return WithTopics(*splits, topics.topics());
}

void CoordinatorEngine::Rep::LookForOtherCoordinators() {
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  MutexLock lock(&mutex);
  looks_at_log = false;
  // A folder that cannot be read now may be readable next time.
  if (!foreign.ok() || !*foreign) return;
  End(RESTARTING, SupersededEnding());
}

}  // namespace satrap
