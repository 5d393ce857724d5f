#include "deploy/coordinator/coordinator_engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/entries/incomplete_since.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/receivers.h"
#include "common/rpc/timeouts.h"
#include "deploy/coordinator/coordinator_rep.h"
#include "deploy/coordinator/ending/lost_work.h"

namespace satrap {
namespace {

Envelope EnvelopeOf(const ClaimedGeneration& claimed) {
  CHECK(claimed.run_id != 0);
  Envelope envelope;
  envelope.set_job_fingerprint(JobFingerprint(claimed.job));
  envelope.set_generation(claimed.generation);
  envelope.set_run_id(claimed.run_id);
  return envelope;
}

// The generations after the first, each with the step of the cut that it began from.
std::vector<Restart> RestartsOf(const ClaimedGeneration& claimed) {
  std::vector<Restart> restarts = RestartsIn(claimed.log.entries());
  for (Restart& restart : restarts) {
    if (restart.generation() == claimed.generation) restart.set_from_step(claimed.position.step());
  }
  return restarts;
}

rpc::CallReceiver::Options ReceiverOptions(const Envelope& envelope, int num_senders) {
  return rpc::ReceiverOptions("coordinator", envelope, num_senders, rpc::RpcTimeouts());
}

// How the generation before the claimed one failed. Empty if it did not fail. Also empty if its job
// was dropped, because the claimed generation then has another job.
Ending EndedBefore(const RunLog& log) {
  const GenerationEntry* own = log.last_generation();
  const size_t entries = log.entries().size();
  if (entries >= 2 && log.entries()[entries - 2].has_dropped()) return Ending();
  return own != nullptr && own->began() == BEGAN_RESTART ? own->ended() : Ending();
}

GenerationEnd::Before BeforeOf(const ClaimedGeneration& claimed, bool in_pods) {
  return {claimed.job.max_restarts(), claimed.log.restarts_without_cut(), RecentCauses(claimed.log),
          EndedBefore(claimed.log),   TrialOf(claimed.log, claimed.job),  in_pods};
}

RunTopicsOptions TopicsOptionsOf(const CoordinatorOptions& options) {
  return {options.executor,
          options.topics,
          options.topic_executor,
          options.file_system,
          options.unix_ms,
          options.warn,
          options.timeouts.partitions_period_ms,
          options.timeouts.broker_pause_ms};
}

// For how long the run has lacked members before this generation. 0 outside of pods, because a
// launcher counts the restarts instead.
int64_t LackedUs(const RunLog& log, const CoordinatorOptions& options) {
  const absl::optional<int64_t> since_ms =
      options.in_pods ? IncompleteSinceMs(log.entries()) : absl::nullopt;
  if (!since_ms.has_value()) return 0;
  return std::max<int64_t>(options.unix_ms() - *since_ms, 0) * 1000;
}

// The name of the cut in `folder`; empty if `folder` is empty.
std::string NameOf(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

GenerationLogOptions LogOptionsOf(const CoordinatorOptions& options, uint64_t generation) {
  return {generation, options.compact_after, options.unix_ms, options.warn};
}

EndEntriesOptions EndOptionsOf(const CoordinatorOptions& options,
                               const ClaimedGeneration& claimed) {
  const CoordinatorTimeouts& timeouts = options.timeouts;
  return {claimed.generation,      claimed.submission,     NameOf(claimed.cut_folder),
          claimed.position.step(), options.in_pods,        timeouts.end_period_ms,
          timeouts.end_limit_ms,   timeouts.left_limit_ms, options.warn};
}

PlacesOptions PlacesOptionsOf(const CoordinatorOptions& options) {
  return {options.in_pods, options.build, options.timeouts.heartbeat_timeout_ms,
          options.timeouts.start_timeout_ms};
}

Ledger LedgerOf(const ClaimedGeneration& claimed) {
  absl::StatusOr<Ledger> ledger = Ledger::FromState(claimed.ledger);
  CHECK(ledger.ok()) << ledger.status().ToString();  // ClaimGeneration has checked it
  return *std::move(ledger);
}

}  // namespace

CoordinatorEngine::Rep::Rep(ClaimedGeneration claimed, const CoordinatorOptions& options)
    : CoordinatorState(GenerationEnd(BeforeOf(claimed, options.in_pods))),
      options(options),
      job(claimed.job),
      envelope(EnvelopeOf(claimed)),
      cut_folder(claimed.cut_folder),
      position(claimed.position),
      ledger(claimed.ledger),
      restarts(RestartsOf(claimed)),
      submission(claimed.submission),
      executor(options.executor),
      leases_of_loaders(ReceiverOptions(envelope, job.data_loader().replicas()), executor),
      commits_of_rank0(ReceiverOptions(envelope, /*num_senders=*/1), executor),
      start_us(executor->NowUs()),
      log(this, std::move(claimed.log), LogOptionsOf(options, claimed.generation)),
      cut_folders(job.run_dir(), claimed.generation, options.file_system),
      commits(this, &log, &log.log(), &cut_folders, envelope, options.kill_points),
      topics(job, TopicsOptionsOf(options), this, &log.log(), &position,
             cut_folder.empty() ? nullptr : &ledger),
      files(this, &job, {cut_folder, claimed.order_fingerprint, options.writer}, &log, &topics,
            options.file_system),
      ends(this, &log, &disk, executor, EndOptionsOf(options, claimed)),
      asked(this, &job, {NameOf(cut_folder), position, NothingWasLostBefore(log.log())}, executor),
      next_log_us(start_us + options.timeouts.log_period_ms * 1000),
      places(this, job, PlacesOptionsOf(options), start_us, LackedUs(log.log(), options)),
      leases(LedgerOf(claimed)),
      disk(executor, options.disk_executor) {
  end.SetHost(&ends);
  training_is_over = position.next() == RunPosition::FINISH;
  if (const EndEntry* recorded = log.log().end(); recorded != nullptr) {
    end.TakeRecorded(StateOf(*recorded), recorded->ending());
    if (recorded->has_result()) result = recorded->result();
  }
  if (log.log().last_cut() == nullptr) return;
  last_cut = *log.log().last_cut();
  for (const RunLogEntry& entry : log.log().entries()) {
    if (entry.has_cut()) last_cut_unix_ms = static_cast<int64_t>(entry.unix_ms());
  }
}

void CoordinatorEngine::Rep::SetOwner(const std::weak_ptr<void>& owner) {
  topics.SetOwner(owner);
  ends.SetOwner(owner);
  asked.SetOwner(owner);
}

absl::Status CoordinatorEngine::Rep::CheckRun(const Envelope& call) const {
  return rpc::CheckEnvelope(call, envelope, "the coordinator");
}

absl::StatusOr<RegisterAnswer> CoordinatorEngine::Rep::Register(const RegisterRequest& request) {
  ASSIGN_OR_RETURN(const std::string why_wait, places.Register(request, executor->NowUs()));
  RegisterAnswer answer;
  if (!why_wait.empty()) {
    answer.set_wait(true);
    answer.set_why_wait(why_wait);
    return answer;
  }
  *answer.mutable_envelope() = envelope;
  *answer.mutable_job() = job;
  answer.set_cut(cut_folder);
  if (options.in_pods) answer.set_leaves(true);
  *answer.mutable_position() = position;
  const Member& member = request.member();
  const bool rank0 = member.role() == NN_WORKER && member.index() == 0;
  if (rank0 || member.role() == DATA_LOADER) *answer.mutable_ledger() = ledger;
  return answer;
}

absl::StatusOr<HeartbeatAnswer> CoordinatorEngine::Rep::Heartbeat(const HeartbeatRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  ASSIGN_OR_RETURN(Heard heard, places.Heartbeat(request, executor->NowUs()));
  if (heard.answer.has_value()) return *std::move(heard.answer);
  if (heard.moves.has_value()) asked.Move(*heard.moves);
  if (end.may_begin() && !begins && places.members().AllReady()) {
    begins = true;
    end.trial().writes_running ? OnDisk([this] { log.AppendRunningAndBegin(); }) : end.Begin();
  }
  if (request.has_train()) train = request.train();
  if (request.has_cuts()) cuts = request.cuts();
  HeartbeatAnswer answer;
  answer.set_state(end.state());
  if (end.has_ended()) *answer.mutable_ending() = end.ending();
  if (end.state() != STARTING) AnswerRunning(request, &answer);
  if (end.has_ended()) places.SetTold(request.role(), request.index());
  return answer;
}

// Adds what a process is told once the generation runs, or has ended.
void CoordinatorEngine::Rep::AnswerRunning(const HeartbeatRequest& request,
                                           HeartbeatAnswer* answer) {
  if (!request.knows_members()) places.members().AddTo(answer);
  if (order_fingerprint.has_value()) answer->set_order_fingerprint(*order_fingerprint);
  if (end.state() != RUNNING) return;
  const absl::optional<CutWish> wish = wishes.Open();
  const bool rank0 = request.role() == NN_WORKER && request.index() == 0;
  if (rank0 && wish.has_value()) *answer->mutable_wish() = *wish;
  if (request.has_known_partitions()) topics.AddTo(request.known_partitions(), answer);
}

absl::StatusOr<LeaseSplitAnswer> CoordinatorEngine::Rep::LeaseSplit(
    const LeaseSplitRequest& request) {
  ASSIGN_OR_RETURN(const absl::optional<uint32_t> split,
                   leases.Lease(request.epoch(), request.num_splits()));
  LeaseSplitAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  if (split.has_value()) {
    answer.set_split(*split);
  } else {
    answer.set_ended(true);
  }
  return answer;
}

absl::StatusOr<WishAnswer> CoordinatorEngine::Rep::Wish(const WishRequest& request) {
  if (request.has_run_id() && request.run_id() != envelope.run_id()) {
    return absl::FailedPreconditionError("the wish is for another run");
  }
  WishAnswer answer;
  ASSIGN_OR_RETURN(const uint64_t number, asked.Wish(request));
  answer.set_number(number);
  return answer;
}

void CoordinatorEngine::Rep::Tick() {
  bool look_at_log = false;
  {
    MutexLock lock(&mutex);
    const int64_t now_us = executor->NowUs();
    const int64_t stall_us = places.OnTick(now_us);
    const double limit_seconds = job.checkpoint().limit_seconds();
    // All members would wait for ever if this process did not tell them that the generation is
    // over.
    if (!end.has_ended() &&
        disk.Hangs(now_us, stall_us, static_cast<int64_t>(limit_seconds * 1e6))) {
      end.OnDiskHang(absl::StrCat("coordinator: a file operation in ", job.run_dir(),
                                  " has not returned for ", limit_seconds,
                                  " s (checkpoint.limit_seconds); does the disk hang?"));
    }
    places.Check(now_us, stall_us);
    ends.EndWithoutLogInTime(now_us);
    if (IsFirstComplete(now_us)) OnDisk([this] { log.AppendComplete(); });
    if (end.state() == RUNNING && !training_is_over) topics.Tick();
    if (now_us >= next_log_us && !looks_at_log && !end.has_ended()) {
      looks_at_log = true;
      next_log_us = now_us + options.timeouts.log_period_ms * 1000;
      look_at_log = true;
    }
  }
  ends.AnswerHeld();
  if (look_at_log) OnDisk([this] { log.LookForOtherCoordinators(); });
}

// COMPLETE is not needed after a cut of this generation: the cut also shows that all members were
// there.
bool CoordinatorEngine::Rep::IsFirstComplete(int64_t now_us) {
  if (!options.in_pods || says_complete || end.has_ended() || !places.IsComplete(now_us)) {
    return false;
  }
  says_complete = true;
  return !log.HasCommitted();
}

void CoordinatorEngine::Rep::RunCommit(const rpc::PendingAnswer& call,
                                       const CommitCutRequest& request) {
  const absl::optional<absl::StatusOr<CommitCutAnswer>> answer = commits.Commit(request);
  if (!answer.has_value()) return;
  if (!answer->ok()) return call.Finish(answer->status());
  call.Finish(rpc::MessageOf(**answer));
  if ((*answer)->has_abandoned()) return;
  OnDisk([this] { TidyCuts(); });
  OnDisk([this] { log.Compact([this] { disk.RestartClock(); }); });
  OnDisk([this, cut = request.cut()] { topics.FollowCut(cut); });
}

void CoordinatorEngine::Rep::TidyCuts() {
  // A coordinator whose generation has been superseded has an outdated log. It would set wrong
  // links, and could remove a cut that the run has been set back to.
  const absl::StatusOr<bool> foreign = log.log().HasForeignEntry();
  if (!foreign.ok() || *foreign) return;
  // Each removal restarts the clock, because removing many cuts may take long on a disk that does
  // not hang.
  const auto begins_removal = [this](const std::string&) { disk.RestartClock(); };
  for (const absl::Status& status :
       {cut_folders.MoveLinks(log.log()),
        cut_folders.RemoveOld(log.log(), job.checkpoint().keep(), begins_removal)}) {
    if (!status.ok() && options.warn) options.warn(std::string(status.message()));
  }
}

absl::Status CoordinatorEngine::Rep::AppendTopics(const TopicsEntry& added) {
  return log.AppendTopics(added);
}

void CoordinatorEngine::Rep::EndForTopics(Ending how) {
  MutexLock lock(&mutex);
  end.EndBy(std::move(how));
}

absl::Status CoordinatorEngine::Rep::EndedStatus() { return log.EndedStatus(); }

namespace {

// Parses the request, runs `serve` under the engine's lock, and serialises the answer.
template <typename Request, typename Rep, typename Answer>
absl::StatusOr<rpc::Message> Serve(Rep* rep, absl::StatusOr<Answer> (Rep::*serve)(const Request&),
                                   const rpc::Message& message) {
  ASSIGN_OR_RETURN(const Request request, rpc::ParseHeader<Request>(message.header));
  absl::StatusOr<Answer> answer = absl::UnknownError("");
  {
    MutexLock lock(&rep->mutex);
    answer = (rep->*serve)(request);
  }
  RETURN_IF_ERROR(answer.status());
  return rpc::MessageOf(*answer);
}

// Serves LeaseSplit. A repeated call gets the first call's answer, because a split must not be
// leased twice.
template <typename Rep>
void ServeLease(Rep* rep, rpc::Message message, rpc::Callback respond) {
  rep->leases_of_loaders.template Receive<LeaseSplitRequest>(
      std::move(message), std::move(respond),
      [rep](const rpc::PendingAnswer& call, const LeaseSplitRequest& request, const Buffer&) {
        absl::StatusOr<LeaseSplitAnswer> answer = absl::UnknownError("");
        {
          MutexLock lock(&rep->mutex);
          answer = rep->LeaseSplit(request);
        }
        call.Finish(answer.ok() ? absl::StatusOr<rpc::Message>(rpc::MessageOf(*answer))
                                : answer.status());
      });
}

template <typename Rep>
void ServeCommit(Rep* rep, rpc::Message message, rpc::Callback respond) {
  rep->commits_of_rank0.template Receive<CommitCutRequest>(
      std::move(message), std::move(respond),
      [rep](const rpc::PendingAnswer& call, const CommitCutRequest& request, const Buffer&) {
        rep->OnDisk([rep, call, request] { rep->RunCommit(call, request); });
      });
}

// Parses a request, and checks that it comes from a process of this generation.
template <typename Request, typename Rep>
absl::StatusOr<Request> RequestOfRun(const Rep& rep, const rpc::Message& message) {
  ASSIGN_OR_RETURN(Request request, rpc::ParseHeader<Request>(message.header));
  RETURN_IF_ERROR(rep.CheckRun(request.envelope()));
  return request;
}

template <typename Rep>
absl::StatusOr<rpc::Message> ServeStoreSet(Rep* rep, const rpc::Message& message) {
  ASSIGN_OR_RETURN(const auto request, RequestOfRun<StoreSetRequest>(*rep, message));
  MutexLock lock(&rep->mutex);
  ASSIGN_OR_RETURN(const StoreSetAnswer answer, rep->rendezvous.Set(request));
  return rpc::MessageOf(answer);
}

template <typename Rep>
absl::StatusOr<rpc::Message> ServeStoreGet(Rep* rep, const rpc::Message& message) {
  ASSIGN_OR_RETURN(const auto request, RequestOfRun<StoreGetRequest>(*rep, message));
  MutexLock lock(&rep->mutex);
  return rpc::MessageOf(rep->rendezvous.Get(request));
}

template <typename Rep>
void ServeFinish(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  const auto request = RequestOfRun<FinishRequest>(*rep, message);
  if (!request.ok()) return respond(request.status());
  rep->ends.Finish(request->result(), std::move(respond));
}

template <typename Rep>
void ServeFail(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  const auto request = RequestOfRun<FailRequest>(*rep, message);
  if (!request.ok()) return respond(request.status());
  FailAnswer answer;
  std::string stranger;
  {
    MutexLock lock(&rep->mutex);
    answer = rep->places.Fail(*request, rep->executor->NowUs(), &stranger);
    if (rep->end.is_linking()) return rep->ends.Hold(std::move(respond));
  }
  if (!stranger.empty() && rep->options.warn) rep->options.warn(stranger);
  respond(rpc::MessageOf(answer));
}

template <typename Rep>
void ServeFixSplits(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  auto request = RequestOfRun<FixSplitsRequest>(*rep, message);
  if (!request.ok()) return respond(request.status());
  rep->OnDisk([rep, request = *std::move(request), respond = std::move(respond)]() mutable {
    rep->files.Fix(request, std::move(respond));
  });
}

// Ticks as long as the engine lives. The executor's timer holds only a weak pointer, because it may
// fire after the engine is destroyed.
template <typename Rep>
void TickLater(Executor* executor, std::weak_ptr<Rep> weak) {
  executor->PostAfter(kTickUs, [executor, weak] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep == nullptr) return;
    rep->Tick();
    TickLater(executor, weak);
  });
}

}  // namespace

CoordinatorEngine::CoordinatorEngine(ClaimedGeneration claimed, const CoordinatorOptions& options)
    : rep_(std::make_shared<Rep>(std::move(claimed), options)) {
  rep_->SetOwner(rep_);
  TickLater(options.executor, std::weak_ptr<Rep>(rep_));
}

CoordinatorEngine::~CoordinatorEngine() = default;

void CoordinatorEngine::Handle(const rpc::Method& method, rpc::Message request,
                               rpc::Callback respond) {
  Rep* const rep = rep_.get();
  if (method == kHeartbeat) {
    respond(Serve(rep, &Rep::Heartbeat, request));
  } else if (method == kLeaseSplit) {
    ServeLease(rep, std::move(request), std::move(respond));
  } else if (method == kRegister) {
    respond(Serve(rep, &Rep::Register, request));
  } else if (method == kStoreSet) {
    respond(ServeStoreSet(rep, request));
  } else if (method == kStoreGet) {
    respond(ServeStoreGet(rep, request));
  } else if (method == kCommitCut) {
    ServeCommit(rep, std::move(request), std::move(respond));
  } else if (method == kFixSplits) {
    ServeFixSplits(rep, request, std::move(respond));
  } else if (method == kFinish) {
    ServeFinish(rep, request, std::move(respond));
  } else if (method == kFail) {
    ServeFail(rep, request, std::move(respond));
  } else if (method == kWish) {
    respond(Serve(rep, &Rep::Wish, request));
  } else if (method == kStatus) {
    respond(Serve(rep, &Rep::Status, request));
  } else {
    respond(absl::UnimplementedError(absl::StrCat("the coordinator has no method ", method.path)));
  }
}

bool CoordinatorEngine::EveryoneKnowsTheEnd() const {
  MutexLock lock(&rep_->mutex);
  return rep_->end.has_ended() && rep_->places.members().AllTold();
}

void CoordinatorEngine::Move() {
  MutexLock lock(&rep_->mutex);
  rep_->asked.Move(EndingOf(Ending::MOVED, COORDINATOR, 0, "the coordinator leaves its machine"));
}

bool CoordinatorEngine::AsksBroker() const { return rep_->topics.asks_broker(); }
bool CoordinatorEngine::DiskIsBusy() const { return rep_->disk.busy(); }

StatusAnswer CoordinatorEngine::Status() const {
  MutexLock lock(&rep_->mutex);
  return *rep_->Status(StatusRequest());
}

}  // namespace satrap
