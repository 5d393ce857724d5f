#include "deploy/coordinator/coordinator_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/entries/incomplete_since.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "common/rpc/receivers.h"
#include "common/rpc/timeouts.h"
#include "deploy/coordinator/claim/start_position.h"
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
  std::map<std::string, uint64_t> step_of_cut;
  std::vector<Restart> restarts;
  for (const RunLogEntry& entry : claimed.log.entries()) {
    if (entry.has_cut()) step_of_cut[entry.cut().cut()] = entry.cut().step();
    if (!entry.has_generation() || entry.generation().generation() == 1) continue;
    // This entry only announces the next generation, which has an entry of its own.
    if (entry.generation().began() == BEGAN_SCALE_ANNOUNCED) continue;
    Restart restart;
    restart.set_generation(entry.generation().generation());
    restart.set_began(entry.generation().began());
    restart.set_cause(CauseText(entry.generation()));
    restart.set_from_step(entry.generation().from_step());
    const auto step = step_of_cut.find(entry.generation().cut());
    if (step != step_of_cut.end()) restart.set_from_step(step->second);
    if (entry.generation().generation() == claimed.generation) {
      restart.set_from_step(claimed.position.step());
    }
    restarts.push_back(std::move(restart));
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

// For how long the run has lacked members before this generation. A launcher counts the restarts
// instead.
int64_t LackedUs(const RunLog& log, const CoordinatorOptions& options) {
  const absl::optional<int64_t> since_ms =
      options.in_pods ? IncompleteSinceMs(log.entries()) : absl::nullopt;
  if (!since_ms.has_value()) return 0;
  return std::max<int64_t>(options.unix_ms() - *since_ms, 0) * 1000;
}

Ledger LedgerOf(const ClaimedGeneration& claimed) {
  absl::StatusOr<Ledger> ledger = Ledger::FromState(claimed.ledger);
  CHECK(ledger.ok()) << ledger.status().ToString();  // ClaimGeneration has checked it
  return *std::move(ledger);
}

}  // namespace

CoordinatorEngine::Rep::Rep(ClaimedGeneration claimed, const CoordinatorOptions& options)
    : CoordinatorState(GenerationEnd(BeforeOf(claimed, options.in_pods), this)),
      options(options),
      job(claimed.job),
      envelope(EnvelopeOf(claimed)),
      cut_folder(claimed.cut_folder),
      position(claimed.position),
      ledger(claimed.ledger),
      cut_order_fingerprint(claimed.order_fingerprint),
      restarts(RestartsOf(claimed)),
      nothing_lost_before(NothingWasLostBefore(claimed.log)),
      submission(claimed.submission),
      executor(options.executor),
      leases_of_loaders(ReceiverOptions(envelope, job.data_loader().replicas()), executor),
      commits_of_rank0(ReceiverOptions(envelope, /*num_senders=*/1), executor),
      start_us(executor->NowUs()),
      log(std::move(claimed.log)),
      compact_at(log.compacted_number() + options.compact_after),
      cut_folders(job.run_dir(), claimed.generation, options.file_system),
      commits(this, this, &log, &cut_folders, envelope, options.kill_points),
      topics(job, TopicsOptionsOf(options), this, &log, &position,
             cut_folder.empty() ? nullptr : &ledger),
      last_tick_us(start_us),
      next_log_us(start_us + options.timeouts.log_period_ms * 1000),
      attendance(start_us, LackedUs(log, options), options.timeouts.start_timeout_ms * 1000),
      members(job),
      leases(LedgerOf(claimed)),
      disk(options.disk_executor) {
  training_is_over = position.next() == RunPosition::FINISH;
  if (const EndEntry* recorded = log.end(); recorded != nullptr) {
    end.TakeRecorded(StateOf(*recorded), recorded->ending());
    if (recorded->has_result()) result = recorded->result();
  }
  if (log.last_cut() == nullptr) return;
  last_cut = *log.last_cut();
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_cut()) last_cut_unix_ms = static_cast<int64_t>(entry.unix_ms());
  }
}

absl::Status CoordinatorEngine::Rep::CheckRun(const Envelope& call) const {
  return rpc::CheckEnvelope(call, envelope, "the coordinator");
}

absl::StatusOr<HeartbeatAnswer> CoordinatorEngine::Rep::Heartbeat(const HeartbeatRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  ASSIGN_OR_RETURN(Standing standing, members.Heartbeat(request, AwakeUs(), MayReplace()));
  if (standing.spare.has_value()) {
    HeartbeatAnswer answer;
    answer.set_state(end.state());
    answer.set_wait(true);
    *answer.mutable_ending() = *std::move(standing.spare);
    return answer;
  }
  if (standing.conflict.has_value()) {
    end.EndByLoss(*std::move(standing.conflict));
  } else if (request.leaving()) {
    absl::optional<HeartbeatAnswer> gone = Leave(request);
    if (gone.has_value()) return *std::move(gone);
  }
  if (end.may_begin() && !begins && members.AllReady()) {
    begins = true;
    end.trial().writes_running ? OnDisk([this] { AppendRunningAndBegin(); }) : end.Begin();
  }
  if (request.has_train()) train = request.train();
  if (request.has_cuts()) cuts = request.cuts();
  HeartbeatAnswer answer;
  const RunState state = end.state();
  answer.set_state(state);
  if (end.has_ended()) *answer.mutable_ending() = end.ending();
  if (state != STARTING && !request.knows_members()) members.AddTo(&answer);
  if (state != STARTING && order_fingerprint.has_value()) {
    answer.set_order_fingerprint(*order_fingerprint);
  }
  const absl::optional<CutWish> wish = wishes.Open();
  const bool rank0 = request.role() == NN_WORKER && request.index() == 0;
  if (state == RUNNING && rank0 && wish.has_value()) *answer.mutable_wish() = *wish;
  if (state == RUNNING && request.has_known_partitions()) {
    topics.AddTo(request.known_partitions(), &answer);
  }
  if (end.has_ended()) members.SetTold(request.role(), request.index());
  return answer;
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

absl::StatusOr<StoreSetAnswer> CoordinatorEngine::Rep::StoreSet(const StoreSetRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  const auto [entry, inserted] = store.try_emplace(request.key(), request.value());
  if (!inserted && entry->second != request.value()) {
    return absl::AlreadyExistsError(absl::StrCat("'", request.key(), "' has another value"));
  }
  return StoreSetAnswer();
}

absl::StatusOr<StoreGetAnswer> CoordinatorEngine::Rep::StoreGet(const StoreGetRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  StoreGetAnswer answer;
  const auto entry = store.find(request.key());
  answer.set_found(entry != store.end());
  if (answer.found()) answer.set_value(entry->second);
  return answer;
}

absl::StatusOr<WishAnswer> CoordinatorEngine::Rep::Wish(const WishRequest& request) {
  if (request.has_run_id() && request.run_id() != envelope.run_id()) {
    return absl::FailedPreconditionError("the wish is for another run");
  }
  if (end.has_ended()) return end.EndedError();
  // How it ends is decided, and is told once the log says so.
  if (end.is_linking() && !(request.kind() == WishRequest::STOP && wishes.stops())) {
    return end.EndedError();
  }
  if (!takes_cuts() && request.kind() != WishRequest::STOP) {
    return absl::FailedPreconditionError(job.action() == JobConfig::TRAIN
                                             ? "training is over: the run takes no cut any more"
                                             : "only a training run takes cuts");
  }
  if (request.kind() == WishRequest::SCALE && !wishes.scales()) {
    RETURN_IF_ERROR(CheckScaleKeepsTraining(job, request.job(),
                                            std::max(train.epoch(), position.epoch()),
                                            std::max(train.step(), position.step())));
  }
  const bool stopped_before = wishes.stops();
  ASSIGN_OR_RETURN(const uint64_t number, wishes.Add(request, job));
  WishAnswer answer;
  answer.set_number(number);
  if (request.kind() != WishRequest::STOP || stopped_before) return answer;
  if (end.state() == STARTING || !takes_cuts()) {
    // This generation has trained nothing that a cut would save, but earlier generations may have
    // trained something.
    wishes.FulfilAll();
    const std::string start =
        cut_folder.empty() ? "the beginning" : cut_folder.substr(cut_folder.rfind('/') + 1);
    if (nothing_lost_before || !takes_cuts()) {
      Ending saved = EndingOf(Ending::ASKED, "stopped on request; nothing is lost");
      saved.set_loss(Ending::NOTHING);
      end.End(STOPPED, std::move(saved));
    } else {
      end.End(STOPPED,
              EndingOf(Ending::ASKED,
                       absl::StrCat("stopped on request before training went on from ", start,
                                    "; what earlier generations have trained after it, if any, is "
                                    "lost")));
    }
    return answer;
  }
  std::weak_ptr<Rep> weak = weak_from_this();
  executor->PostAfter(static_cast<int64_t>(job.stop_seconds() * 1e6), [weak] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep != nullptr) rep->StopInTime();
  });
  return answer;
}

void CoordinatorEngine::Rep::StopInTime() {
  MutexLock lock(&mutex);
  end.EndWithoutLastCut(
      EndingOf(Ending::ASKED,
               absl::StrCat("stopped on request, without a last cut: none was committed within ",
                            job.stop_seconds(), " s (stop_seconds)")));
}

void CoordinatorEngine::Rep::Tick() {
  bool look_at_log = false;
  {
    MutexLock lock(&mutex);
    const int64_t now_us = executor->NowUs();
    const int64_t stall_us = StallUs(now_us);
    last_tick_us = now_us;
    EndIfDiskHangs(now_us, stall_us);
    NoteAttendance(now_us);
    SayIfComplete(now_us);
    absl::optional<Ending> lost =
        members.FindSilent(now_us, stall_us, options.timeouts.heartbeat_timeout_ms * 1000);
    if (lost.has_value()) OnSilent(*std::move(lost), now_us);
    EndWithoutLogInTime(now_us);
    EndIfOverdue(now_us);
    if (end.state() == RUNNING && !training_is_over) topics.Tick();
    if (now_us >= next_log_us && !looks_at_log && !end.has_ended()) {
      looks_at_log = true;
      next_log_us = now_us + options.timeouts.log_period_ms * 1000;
      look_at_log = true;
    }
  }
  AnswerFailed();
  if (look_at_log) OnDisk([this] { LookForOtherCoordinators(); });
}

void CoordinatorEngine::Rep::EndIfOverdue(int64_t now_us) {
  NoteAttendance(now_us);
  if (end.state() != STARTING || !attendance.IsOverdue(now_us)) return;
  Ending lacks = EndingOf(Ending::MEMBER_LOST,
                          absl::StrCat("after ", options.timeouts.start_timeout_ms / 1000,
                                       " s there is still no ", members.Unheard()));
  // In pods the members that are there hold what another run may wait for.
  options.in_pods ? end.EndForGood(std::move(lacks)) : end.EndByLoss(std::move(lacks));
}

// The next generation counts from the last one that had all its members, if this says so. A cut of
// this generation says it, too.
void CoordinatorEngine::Rep::SayIfComplete(int64_t now_us) {
  if (!options.in_pods || says_complete || end.has_ended() || !attendance.IsComplete(now_us)) {
    return;
  }
  says_complete = true;
  if (HasCommitted()) return;
  OnDisk([this] { AppendComplete(); });
}

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

template <typename Rep>
void ServeFinish(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  const auto request = rpc::ParseHeader<FinishRequest>(message.header);
  const absl::Status status = request.ok() ? rep->CheckRun(request->envelope()) : request.status();
  if (!status.ok()) return respond(status);
  rep->Finish(*request, std::move(respond));
}

template <typename Rep>
void ServeFail(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  const auto request = rpc::ParseHeader<FailRequest>(message.header);
  if (!request.ok()) return respond(request.status());
  absl::StatusOr<FailAnswer> answer = absl::UnknownError("");
  std::string stranger;
  {
    MutexLock lock(&rep->mutex);
    answer = rep->Fail(*request, &stranger);
    if (answer.ok() && rep->end.is_linking()) return rep->HoldFailed(std::move(respond));
  }
  if (!stranger.empty() && rep->options.warn) rep->options.warn(stranger);
  respond(answer.ok() ? absl::StatusOr<rpc::Message>(rpc::MessageOf(*answer)) : answer.status());
}

template <typename Rep>
void ServeFixSplits(Rep* rep, const rpc::Message& message, rpc::Callback respond) {
  auto request = rpc::ParseHeader<FixSplitsRequest>(message.header);
  const absl::Status status = request.ok() ? rep->CheckRun(request->envelope()) : request.status();
  if (!status.ok()) return respond(status);
  rep->OnDisk([rep, request = *std::move(request), respond = std::move(respond)]() mutable {
    rep->RunFixSplits(request, std::move(respond));
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
  rep_->topics.SetOwner(rep_);
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
    respond(Serve(rep, &Rep::StoreSet, request));
  } else if (method == kStoreGet) {
    respond(Serve(rep, &Rep::StoreGet, request));
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
  return rep_->end.has_ended() && rep_->members.AllTold();
}

bool CoordinatorEngine::DiskIsBusy() const { return rep_->disk_tasks > 0; }

StatusAnswer CoordinatorEngine::Status() const {
  MutexLock lock(&rep_->mutex);
  return *rep_->Status(StatusRequest());
}

}  // namespace satrap
